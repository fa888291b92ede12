//! Masks that stay in their registers from node to node, so that each is made once.
//!
//! A node makes the masks that it needs: its units compare their numbers with a literal. The next node often needs the same
//! masks. In one program they may stay in the mask registers, which nodes use in parts only. So a mask is made where no register
//! holds it, and the lines that would make it again go away. That saves steps of the ALU. It also matters where a download runs
//! beside a product: a product keeps the ALU busy, so a download that had to make its masks there would wait until it ends.
//!
//! Only lines of which all sources are the same in every run count: literals, numbers of units, and words of register files
//! that such lines wrote in the same node.

use crate::code::{Instruction, Line, Operand, Pe};
use crate::machine::Machine;
use crate::rules::Name;
use rustc_hash::{FxHashMap as Map, FxHashSet as Set};
use std::sync::Arc;

/// A word of a register file.
type Word = (Name, i64);
/// An instruction: the number of its line, and its place there.
type Place = (usize, usize);
/// The number of what an instruction computes.
type Key = usize;

/// What a source holds: an operand that is the same in every run, or what a word or a forwarding path holds, read in a form.
#[derive(Clone, PartialEq, Eq, Hash)]
enum Source {
    Same(Operand),
    Held(Operand, Key),
}

/// The computations that were seen so far.
type Keys = Map<(Name, Vec<Source>), Key>;

/// A mask that a node makes in a register; line `last` is its last reader. `key` is None if it depends on data.
struct Mask {
    place: Place,
    register: i64,
    key: Option<Key>,
    last: Option<usize>,
}

/// What a node does with masks.
#[derive(Default)]
struct Facts {
    /// Its masks in their order.
    masks: Vec<Mask>,
    /// For each line the mask that a register holds.
    read: Vec<Vec<(i64, usize)>>,
    /// The instructions that do the same in every run.
    constant: Set<Place>,
    /// The words of register files that it reads but has not written.
    outside: Set<Word>,
}

/// For each mask of a node: its register, and whether its lines stay.
type Choice = Vec<(i64, bool)>;

/// Returns the lines of the nodes of a program, in their order, without masks that are there already.
///
/// Nodes that shared their lines still do if the same masks are there.
pub(crate) fn with_kept_masks(machine: &Machine, nodes: &[Arc<[Line]>]) -> Vec<Arc<[Line]>> {
    let (mut keys, mut known) = (Keys::default(), Map::default());
    for lines in nodes {
        if let std::collections::hash_map::Entry::Vacant(place) = known.entry(lines.as_ptr()) {
            let Some(found) = facts_of(machine, lines, &mut keys) else { return nodes.to_vec() };
            place.insert(found);
        }
    }
    let outside: Set<Word> = known.values().flat_map(|one| &one.outside).copied().collect();
    let facts: Vec<&Facts> = nodes.iter().map(|lines| &known[&lines.as_ptr()]).collect();
    let mut made: Map<(*const Line, Choice), Arc<[Line]>> = Map::default();
    let choices = choices(machine, &facts);
    let each = nodes.iter().zip(&facts).zip(choices);
    each.map(|((lines, facts), choice)| {
        let key = (lines.as_ptr(), choice);
        if let Some(found) = made.get(&key) {
            return Arc::clone(found);
        }
        let found = rewritten(machine, lines, facts, &key.1, &outside);
        made.insert(key, Arc::clone(&found));
        found
    })
    .collect()
}

// -- what a node does with masks ---------------------------------------------------------------

/// Returns what a node does with masks; None if it reads one that it has not made.
fn facts_of(machine: &Machine, lines: &[Line], keys: &mut Keys) -> Option<Facts> {
    let mut facts = Facts::default();
    let mut words: Map<Word, Option<Key>> = Map::default();
    let mut forwards: Map<Name, Option<Key>> = Map::default();
    let mut current: Map<i64, usize> = Map::default();
    for (number, line) in lines.iter().enumerate() {
        facts.read.push(Vec::new());
        let Line::Step(all) = line else { continue };
        let computed: Vec<Option<Key>> = all.iter().map(|one| key(machine, one, &words, &forwards, keys)).collect();
        for one in all {
            if one.sources.iter().any(|own| matches!(own, Operand::Pe(pe) if pe.memory == machine.masks)) {
                return None;
            }
            for first in masks_read(one) {
                let register = first / machine.rules.cycles;
                let mask = *current.get(&register)?;
                facts.read[number].push((register, mask));
                facts.masks[mask].last = Some(number);
            }
            facts.outside.extend(words_read(machine, one).into_iter().filter(|word| !words.contains_key(word)));
        }
        forwards.clear();
        for (index, (one, key)) in all.iter().zip(computed).enumerate() {
            forwards.insert(one.form.facts.slot, key);
            if key.is_some() {
                facts.constant.insert((number, index));
            }
            for operand in &one.destinations {
                let Operand::Pe(pe) = operand else { continue };
                let whole = plain(machine, pe) && pe.mask.is_none() && pe.word.is_empty();
                for word in words_of(machine, pe) {
                    words.insert(word, key.filter(|_| whole));
                }
                if pe.memory == machine.masks {
                    let (cycles, first) = (machine.rules.cycles, *pe.offsets.first()?);
                    let usual = pe.mask.is_none() && pe.word.is_empty() && !pe.negate && pe.words == machine.long;
                    if !usual || first % cycles != 0 || !pe.offsets.iter().copied().eq(first..first + cycles) {
                        return None;
                    }
                    let register = first / cycles;
                    current.insert(register, facts.masks.len());
                    facts.masks.push(Mask { place: (number, index), register, key, last: None });
                }
            }
        }
    }
    Some(facts)
}

/// Returns what an instruction computes, the same in all cycles; None if it depends on data.
fn key(
    machine: &Machine,
    one: &Instruction,
    words: &Map<Word, Option<Key>>,
    forwards: &Map<Name, Option<Key>>,
    keys: &mut Keys,
) -> Option<Key> {
    if one.form.facts.slot != machine.alu || one.flush.is_some() {
        return None;
    }
    let held = |operand: &Operand| match operand {
        Operand::Literal(_, None, _) => Some(Source::Same(operand.clone())),
        Operand::Special(name) if machine.numbers.contains(name) => Some(Source::Same(operand.clone())),
        Operand::Forward(slot, _) => Some(Source::Held(operand.clone(), (*forwards.get(slot)?)?)),
        Operand::Pe(pe) if plain(machine, pe) => {
            let mut all = pe.offsets.iter().map(|&at| words.get(&(pe.memory, at)).copied().flatten());
            let first = all.next()??;
            if all.any(|other| other != Some(first)) {
                return None;
            }
            Some(Source::Held(Operand::Pe(Pe { memory: Name::MAX, offsets: Vec::new(), ..pe.clone() }), first))
        }
        _ => None,
    };
    let sources = one.sources.iter().map(held).collect::<Option<Vec<_>>>()?;
    let next = keys.len();
    Some(*keys.entry((one.mnemonic, sources)).or_insert(next))
}

/// Whether an operand is one long word of a register file in each cycle.
fn plain(machine: &Machine, pe: &Pe) -> bool {
    machine.files.contains(&pe.memory) && pe.value.is_none() && pe.words == machine.long && !pe.indirect
}

fn words_of<'a>(machine: &'a Machine, pe: &'a Pe) -> impl Iterator<Item = Word> + 'a {
    let wide = (pe.words / machine.long).max(1);
    let own = machine.files.contains(&pe.memory);
    let offsets = pe.offsets.iter().filter(move |_| own);
    offsets.flat_map(move |&at| (at..at + wide).map(move |word| (pe.memory, word)))
}

/// The words of register files that an instruction reads, or writes in part.
fn words_read(machine: &Machine, one: &Instruction) -> Vec<Word> {
    let own = one.operands().filter_map(|(operand, written)| match operand {
        Operand::Pe(pe) if !written || pe.partly(machine) => Some(pe),
        _ => None,
    });
    own.flat_map(|pe| words_of(machine, pe)).collect()
}

fn words_written(machine: &Machine, one: &Instruction) -> Vec<Word> {
    let own = one.destinations.iter().filter_map(|one| if let Operand::Pe(pe) = one { Some(pe) } else { None });
    own.flat_map(|pe| words_of(machine, pe)).collect()
}

/// The first words of the mask registers that an instruction reads.
fn masks_read(one: &Instruction) -> impl Iterator<Item = i64> + '_ {
    let masks = one.destinations.iter().filter_map(|own| if let Operand::Pe(pe) = own { pe.mask } else { None });
    one.flush.into_iter().chain(masks)
}

// -- which masks stay where --------------------------------------------------------------------

/// What the choice of registers knows.
struct Registers<'a> {
    /// All registers, those that hold masks of data last.
    all: Vec<i64>,
    /// The nodes that need each mask.
    wanted: Map<Key, Vec<usize>>,
    /// When each register was used last, as a count.
    used: Map<i64, i64>,
    facts: &'a [&'a Facts],
}

/// Returns for each node the registers of its masks, and which of them it makes.
fn choices(machine: &Machine, facts: &[&Facts]) -> Vec<Choice> {
    let mut wanted: Map<Key, Vec<usize>> = Map::default();
    for (number, own) in facts.iter().enumerate() {
        for key in own.masks.iter().filter_map(|mask| mask.key) {
            wanted.entry(key).or_default().push(number);
        }
    }
    let fixed: Set<i64> = facts.iter().flat_map(|own| fixed(own)).collect();
    // Entry 0 is no register: it stands for no mask.
    let mut all: Vec<i64> = (1..machine.registers).collect();
    sorting::sort_by_key(&mut all, |register| (fixed.contains(register), -register));
    let mut registers = Registers { all, wanted, used: Map::default(), facts };
    let mut held: Vec<(i64, Key)> = Vec::new();
    let each = facts.iter().enumerate().map(|(number, own)| match registers.choice(number, held.clone()) {
        Some((choice, after)) => {
            held = after;
            choice
        }
        None => {
            held.retain(|(register, _)| own.masks.iter().all(|mask| mask.register != *register));
            own.masks.iter().map(|mask| (mask.register, true)).collect()
        }
    });
    each.collect()
}

/// The registers of masks that depend on data; these masks keep their registers.
fn fixed(facts: &Facts) -> impl Iterator<Item = i64> + '_ {
    facts.masks.iter().filter(|mask| mask.key.is_none()).map(|mask| mask.register)
}

impl Registers<'_> {
    /// Returns what a node does with its masks, and what registers hold behind it.
    ///
    /// A mask takes the register whose mask is needed again last; of several whose masks nobody needs, the one that was used
    /// longest ago, so that lines of the old mask and the new one need not wait for each other. None if too many masks are
    /// needed at once.
    fn choice(&mut self, number: usize, mut held: Vec<(i64, Key)>) -> Option<(Choice, Vec<(i64, Key)>)> {
        let facts = self.facts[number];
        let fixed: Set<i64> = fixed(facts).collect();
        let mut busy: Map<i64, usize> = Map::default();
        let mut choice = Choice::new();
        for mask in &facts.masks {
            let Some(key) = mask.key else {
                held.retain(|(register, _)| *register != mask.register);
                choice.push((mask.register, true));
                continue;
            };
            let there = held.iter().find(|(register, own)| *own == key && !fixed.contains(register));
            let found = there.map(|(register, _)| *register);
            let register = match found {
                Some(register) => register,
                None => {
                    let register = self.best(number, mask.place.0, &held, &fixed, &busy)?;
                    match held.iter_mut().find(|(own, _)| *own == register) {
                        Some(own) => own.1 = key,
                        None => held.push((register, key)),
                    }
                    register
                }
            };
            let last = mask.last.map_or(0, |last| last + 1);
            let until = busy.entry(register).or_insert(0);
            *until = last.max(*until);
            let next = self.used.values().max().map_or(1, |most| most + 1);
            self.used.insert(register, next);
            choice.push((register, found.is_none()));
        }
        Some((choice, held))
    }

    fn best(
        &self,
        number: usize,
        line: usize,
        held: &[(i64, Key)],
        fixed: &Set<i64>,
        busy: &Map<i64, usize>,
    ) -> Option<i64> {
        let worth = |register: i64| {
            let mask = held.iter().find(|(own, _)| *own == register).map(|(_, key)| &self.wanted[key]);
            let again = mask.and_then(|uses| uses.get(uses.partition_point(|&use_| use_ <= number)));
            (again.copied().unwrap_or(usize::MAX), -self.used.get(&register).copied().unwrap_or(-1))
        };
        let free = |register: &&i64| {
            // A register whose last reader is line n is free for a mask that line n makes.
            !fixed.contains(register) && busy.get(register).is_none_or(|&until| until <= line + 1)
        };
        // Of equals the first.
        self.all.iter().rev().filter(free).max_by_key(|&&register| worth(register)).copied()
    }
}

// -- the lines that are left -------------------------------------------------------------------

/// Returns the lines with other registers, without masks that are there and what led to them.
///
/// `outside` are the words of register files that some node reads and has not written.
fn rewritten(
    machine: &Machine,
    lines: &Arc<[Line]>,
    facts: &Facts,
    choice: &Choice,
    outside: &Set<Word>,
) -> Arc<[Line]> {
    let masks = || facts.masks.iter().zip(choice);
    if masks().all(|(mask, &(register, makes))| makes && register == mask.register) {
        return Arc::clone(lines);
    }
    let gone: Set<Place> = masks().filter(|(_, (_, makes))| !makes).map(|(mask, _)| mask.place).collect();
    let made: Map<Place, i64> = masks().map(|(mask, (register, _))| (mask.place, *register)).collect();
    let mut out = Vec::new();
    let (mut live, mut taken) = (outside.clone(), Vec::new());
    for (number, line) in lines.iter().enumerate().rev() {
        let Line::Step(all) = line else {
            out.push(line.clone());
            continue;
        };
        let useless = |index: usize, one: &Instruction| {
            let place = (number, index);
            facts.constant.contains(&place)
                && (gone.contains(&place) || !made.contains_key(&place))
                && !taken.contains(&one.form.facts.slot)
                && only_registers(machine, one)
                && words_written(machine, one).iter().all(|word| !live.contains(word))
        };
        let kept: Vec<(usize, &Arc<Instruction>)> =
            all.iter().enumerate().filter(|(index, one)| !useless(*index, one)).collect();
        for (_, one) in &kept {
            let partly = words_read(machine, one);
            for word in words_written(machine, one).iter().filter(|word| !partly.contains(word)) {
                live.remove(word);
            }
        }
        taken.clear();
        for (_, one) in &kept {
            live.extend(words_read(machine, one));
            taken.extend(&one.form.facts.takes);
        }
        if kept.is_empty() && !all.is_empty() {
            continue;
        }
        let registers: Vec<(i64, i64)> = facts.read[number].iter().map(|(old, mask)| (*old, choice[*mask].0)).collect();
        let step =
            kept.into_iter().map(|(index, one)| renamed(machine, one, &registers, made.get(&(number, index)).copied()));
        out.push(Line::Step(step.collect()));
    }
    out.reverse();
    out.into()
}

/// Whether an instruction writes only words of register files and mask registers.
fn only_registers(machine: &Machine, one: &Instruction) -> bool {
    one.destinations.iter().all(|operand| match operand {
        Operand::Pe(pe) => machine.files.contains(&pe.memory) || pe.memory == machine.masks,
        Operand::Special(_) => true,
        _ => false,
    })
}

/// Returns an instruction that reads other mask registers, and makes its mask in `made`.
fn renamed(machine: &Machine, one: &Arc<Instruction>, registers: &[(i64, i64)], made: Option<i64>) -> Arc<Instruction> {
    let cycles = machine.rules.cycles;
    let other = |first: i64| {
        let found = registers.iter().rev().find(|(old, _)| *old == first / cycles);
        found.map_or(first, |(_, register)| register * cycles)
    };
    if made.is_none() && masks_read(one).next().is_none() {
        return Arc::clone(one);
    }
    let own = |operand: &Operand| match (operand, made) {
        (Operand::Pe(pe), Some(register)) if pe.memory == machine.masks => {
            let first = register * cycles;
            Operand::Pe(Pe { offsets: (first..first + cycles).collect(), ..pe.clone() })
        }
        (Operand::Pe(pe), _) => Operand::Pe(Pe { mask: pe.mask.map(other), ..pe.clone() }),
        _ => operand.clone(),
    };
    let destinations = one.destinations.iter().map(own).collect();
    Arc::new(Instruction { destinations, flush: one.flush.map(other), ..Instruction::clone(one) })
}

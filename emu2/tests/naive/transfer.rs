//! Transfers, one long word at a time. Between L1BM and the PEs they follow the moves of the index maps, above that the
//! manual's formulas.

use super::chip::{Chip, CYCLES};
use super::fetch::extend_halves;
use super::formulas::{self, Numbers, Word};
use super::letters::{long, path, Letter, Path};
use super::num_reference::reduce::{narrowed, tree};
use super::num_reference::{lane, pack_lanes};
use emu2::asm::{FormRef, L2bmTransfer, Mv, Selected};
use emu2::spec::{End, LevelName, Move, Place, UnitSet};
use std::collections::BTreeMap;
use std::rc::Rc;

/// Evaluates the map of a form unless it is known.
pub fn prepare(chip: &mut Chip, form: FormRef) {
    if !chip.maps.contains_key(&form) {
        let parameter = chip.spec.parameters[form.transfer].as_ref();
        let values: Vec<_> = parameter.iter().map(|p| (p.name.as_str(), form.parameter)).collect();
        let moves = chip.spec.forms[form.transfer][form.form].evaluate(&values).expect("a map that was checked");
        chip.maps.insert(form, Rc::new(moves));
    }
}

fn moves(chip: &Chip, form: FormRef) -> Rc<Vec<Move>> {
    chip.maps[&form].clone()
}

/// Entry of the memory at an end of a form.
fn memory(chip: &Chip, end: &End) -> Option<usize> {
    match end {
        End::Pe => None,
        End::Memory { operand, .. } => Some(chip.memory(&chip.spec.operands[*operand].memory)),
    }
}

/// Whether the PE side of a move in an L1B is a given PE in a given cycle.
fn is_at(chip: &Chip, place: &Place, pe: usize, cycle: usize) -> bool {
    let [_, _, _, m, p] = chip.place(pe);
    (place.mab as usize, place.pe as usize, place.cycle as usize) == (m, p, cycle)
}

/// The form of the words that the turnaround register keeps: `l1bmd` without its shift.
pub fn unshifted(chip: &Chip, form: FormRef) -> FormRef {
    let shifts = chip.spec.transfers[form.transfer].name == "l1bmd";
    FormRef { parameter: if shifts { 0 } else { form.parameter }, ..form }
}

/// The path that an L1BM instruction brings to a PE in a cycle. None if it goes the other way. Without an address it comes
/// from the words that the PEs sent last.
pub fn load(chip: &Chip, form: FormRef, address: Option<u64>, pe: usize, cycle: usize) -> Option<Path> {
    let resolved = &chip.spec.forms[form.transfer][form.form];
    let l1bm = memory(chip, &resolved.source)?;
    let (source, address) = address.map_or_else(|| (chip.memory("turnaround"), 0), |address| (l1bm, address));
    let unit = chip.unit(LevelName::L1b, chip.place(pe));
    let mut longs = [0; 2];
    for (from, to) in moves(chip, form).iter().filter(|(_, to)| is_at(chip, to, pe, cycle)) {
        longs[to.half as usize] = chip.read_upper(source, unit, address + from.addr);
    }
    Some(path(longs[0], longs[1]))
}

/// A reduction over the MABs, as its mnemonic states it.
struct Reduction {
    letter: Letter,
    function: String,
    /// Inputs of each stage.
    stages: Vec<usize>,
    /// The halves of the source become singles first.
    widened: bool,
    /// The last stage gives halves.
    narrow: bool,
}

fn reduction(chip: &Chip, form: FormRef) -> Option<Reduction> {
    let transfer = &chip.spec.transfers[form.transfer];
    transfer.reduction?;
    let name = &transfer.name;
    let (operation, stages) = match (name.strip_prefix("l1bmr4"), name.strip_prefix("l1bmr")) {
        (Some(operation), _) => (operation, vec![4]),
        (None, Some(operation)) => (operation, vec![4, chip.spec.counts.mab as usize / 4]),
        (None, None) => panic!("no reference for {name}"),
    };
    let narrow = ["ffaddr", "fmaxr", "fminr"].contains(&operation);
    let operation = if narrow { operation.trim_end_matches('r') } else { operation };
    let (letter, function) = operation.split_at(1);
    // Halves go through the circuit for singles.
    let halves = letter == "h";
    let letter = Letter::of(if halves { "f" } else { letter });
    Some(Reduction { letter, function: function.to_string(), stages, widened: halves, narrow: narrow || halves })
}

/// The places of the long words of a PE in a cycle for an L1BM instruction: memory, offset, long word of the path.
pub fn store(chip: &Chip, form: FormRef, pe: usize, cycle: usize) -> Vec<(usize, u64, usize)> {
    if reduction(chip, form).is_some() {
        return Vec::new();
    }
    let resolved = &chip.spec.forms[form.transfer][form.form];
    let Some(memory) = memory(chip, &resolved.destination) else { return Vec::new() };
    let moves = moves(chip, form);
    let mine = moves.iter().filter(|(from, _)| is_at(chip, from, pe, cycle));
    mine.map(|(from, to)| (memory, to.addr, from.half as usize)).collect()
}

/// The writes of a reduction over the MABs: memory, unit, offset, value. First four MABs with consecutive numbers meet,
/// then the results. `word` gives the path of a PE in a cycle.
pub fn reduce(chip: &Chip, form: FormRef, word: &dyn Fn(usize, usize) -> Path) -> Vec<(usize, usize, u64, u64)> {
    let Some(Reduction { letter, function, stages, widened, narrow }) = reduction(chip, form) else {
        return Vec::new();
    };
    let memory = memory(chip, &chip.spec.forms[form.transfer][form.form].destination).expect("a memory");
    let mut writes = Vec::new();
    for first in (0..chip.pes.len()).step_by(chip.spec.lanes()) {
        let unit = chip.unit(LevelName::L1b, chip.place(first));
        // Elements by MAB, for every offset and every word of a narrowed result.
        let mut results: BTreeMap<u64, BTreeMap<u32, BTreeMap<u32, u64>>> = BTreeMap::new();
        for (from, to) in moves(chip, form).iter() {
            let pe = first + (from.mab * chip.spec.counts.pe + from.pe) as usize;
            let path = word(pe, from.cycle as usize);
            let path = if widened { extend_halves(&path, 4) } else { path };
            let elements = results.entry(to.addr).or_default().entry(to.half).or_default();
            assert!(elements.insert(from.mab, long(&path, from.half as usize)).is_none());
        }
        for (addr, words) in results {
            let mut lanes = Vec::new();
            for elements in words.values() {
                for k in 0..letter.lanes() as u32 {
                    let all: Vec<u64> = elements.values().map(|v| lane(*v, letter.width, k)).collect();
                    let reduce = if narrow { narrowed } else { tree };
                    lanes.push(reduce(&function, letter.width, &stages, &all));
                }
            }
            let width = if narrow { letter.width / 2 } else { letter.width };
            writes.push((memory, unit, addr, pack_lanes(width, &lanes)));
        }
    }
    writes
}

/// The counts of the chip, by the manual's names.
fn numbers(chip: &Chip) -> Numbers {
    let (c, port) = (&chip.spec.counts, |name: &str| chip.spec.ports[name] as u64);
    Numbers {
        groups: c.group.into(),
        l2bs: c.l2b.into(),
        l1bs: c.l1b.into(),
        cycles: c.cycle.into(),
        narrow: port("l2bm_narrow"),
        lane: port("l2bm_lane"),
        block: port("mv_block"),
    }
}

fn unit_of(chip: &Chip, memory: usize, (g, l, b, _): Word) -> usize {
    chip.unit(chip.spec.memories[memory].level, [g as usize, l as usize, b as usize, 0, 0])
}

/// The value of a destination from its elements. None stands for the neutral element.
fn met(c: Numbers, mnemonic: &str, elements: &[Option<u64>]) -> u64 {
    let (mode, Some((letter, function))) = formulas::mode(mnemonic) else { return elements[0].expect("a word") };
    let width = Letter::of(letter).width;
    let lanes: Vec<u64> = (0..64 / width)
        .map(|k| {
            let neutral = formulas::neutral(function, width);
            let lanes: Vec<u64> = elements.iter().map(|v| v.map_or(neutral, |v| lane(v, width, k))).collect();
            tree(function, width, &formulas::tree(c, mode), &lanes)
        })
        .collect();
    pack_lanes(width, &lanes)
}

/// The writes of an L2BM instruction of a line: memory, unit, address, value.
pub fn l2bm(chip: &Chip, line: &[L2bmTransfer], transfer: &L2bmTransfer) -> Vec<(usize, usize, u64, u64)> {
    let name = &chip.spec.transfers[transfer.form.transfer].name;
    let form = &chip.spec.forms[transfer.form.transfer][transfer.form.form];
    match name.as_str() {
        "l2bmdars" => return fill_table(chip, transfer),
        "l2bmdarw" => {
            // It sees the buffer and the entry as an `l2bmdars` on its own line leaves them.
            let named = |t: &&L2bmTransfer| chip.spec.transfers[t.form.transfer].name == "l2bmdars";
            let filled = line.iter().find(named).map_or_else(Vec::new, |fill| fill_table(chip, fill));
            return empty_table(chip, &filled);
        }
        _ => {}
    }
    let c = numbers(chip);
    let [from, to] = [&form.source, &form.destination].map(|end| memory(chip, end).expect("a memory"));
    let down = chip.spec.memories[from].name == "l2bm";
    let set = UnitSet::from_code(transfer.form.parameter);
    let (set, x) = ((set.first.into(), set.free.into()), transfer.form.parameter as u64);
    let mut writes = Vec::new();
    for g in 0..c.groups {
        for l in 0..c.l2bs {
            for (at, elements) in formulas::l2bm(c, formulas::mode(name).0, down, (g, l), set, x) {
                let read = |w: Word| chip.read_upper(from, unit_of(chip, from, w), transfer.source + w.3);
                let values: Vec<Option<u64>> = elements.into_iter().map(|w| w.map(read)).collect();
                writes.push((to, unit_of(chip, to, at), transfer.destination + at.3, met(c, name, &values)));
            }
        }
    }
    writes
}

/// Long words that the buffer of a DAR takes in a step, and the place of its state.
const TABLE_WORDS: u64 = 256;

/// The buffer takes 64 long words per cycle. Behind them lie the entry of the first word, and the number of words that have
/// gone.
fn fill_table(chip: &Chip, transfer: &L2bmTransfer) -> Vec<(usize, usize, u64, u64)> {
    let (l2bm, buffer) = (chip.memory("l2bm"), chip.memory("dar_buffer"));
    let l = transfer.source_unit.l2b.expect("a selector") as usize;
    let mut writes = Vec::new();
    for g in 0..chip.spec.counts.group as usize {
        let unit = chip.unit(LevelName::L2b, [g, l, 0, 0, 0]);
        for k in 0..TABLE_WORDS {
            writes.push((buffer, g, k, chip.read_upper(l2bm, unit, transfer.source + k)));
        }
        writes.extend([(buffer, g, TABLE_WORDS, transfer.destination), (buffer, g, TABLE_WORDS + 1, 0)]);
    }
    writes
}

/// One word per cycle, the most significant one of a long word first. `filled`: the words that the line puts into the
/// buffer.
fn empty_table(chip: &Chip, filled: &[(usize, usize, u64, u64)]) -> Vec<(usize, usize, u64, u64)> {
    let (dar, buffer) = (chip.memory("dar"), chip.memory("dar_buffer"));
    let read = |group: usize, addr: u64| {
        let new = filled.iter().find(|(_, unit, at, _)| (*unit, *at) == (group, addr));
        new.map_or_else(|| chip.read_upper(buffer, group, addr), |(.., value)| *value)
    };
    let mut writes = Vec::new();
    for g in 0..chip.spec.counts.group as usize {
        let [entry, gone] = [0, 1].map(|k| read(g, TABLE_WORDS + k));
        for k in gone..gone + CYCLES as u64 {
            let at = k % (2 * TABLE_WORDS);
            let long = read(g, at / 2);
            let word = if at.is_multiple_of(2) { long >> 32 } else { long & 0xFFFF_FFFF };
            writes.push((dar, g, (entry + k) % 1024, word));
        }
        writes.push((buffer, g, TABLE_WORDS + 1, gone + CYCLES as u64));
    }
    writes
}

/// Runs an MV word by word. As in the manual's formulas, all reads see the state before the instruction.
pub fn mv(chip: &mut Chip, mv: &Mv) {
    let name = chip.spec.transfers[mv.form.transfer].name.clone();
    let form = &chip.spec.forms[mv.form.transfer][mv.form.form];
    let c = numbers(chip);
    let [from, to] = [&form.source, &form.destination].map(|end| memory(chip, end).expect("a memory"));
    let names = [from, to].map(|m| chip.spec.memories[m].name.as_str());
    let numbers = |s: Selected| (s.group.map(u64::from), s.l2b.map(u64::from));
    let selected = [numbers(mv.source_unit), numbers(mv.destination_unit)];
    // Offset `at` in a group's DRAM, with a DAR entry for N blocks of 16.
    let place = |address: u64, table: Option<u64>, (g, _, _, at): Word| match table {
        None => address + at,
        Some(n) => {
            let j = at / 16;
            let entry = chip.read_upper(chip.memory("dar"), g as usize, (address + j / n) % 1024);
            16 * ((entry & 0xFFFF_FFFF) + j % n) + at % 16
        }
    };
    let mut writes = Vec::new();
    for (at, elements) in formulas::mv(c, formulas::mode(&name).0, names, selected, mv.size) {
        let read = |w: Word| chip.read_upper(from, unit_of(chip, from, w), place(mv.source, mv.source_dar, w));
        let values: Vec<Option<u64>> = elements.into_iter().map(|w| w.map(read)).collect();
        let addr = place(mv.destination, mv.destination_dar, at);
        writes.push((to, unit_of(chip, to, at), addr, met(c, &name, &values)));
    }
    for (memory, unit, addr, value) in writes {
        chip.write_upper(memory, unit, addr, value);
    }
}

//! The lines of nodes at their addresses: packed, with what they touch.
//!
//! Nodes that share their code often have the same addresses in LM too. Then they also share the packed lines. MVs that name
//! DRAM differ, because the values of different nodes have different addresses there.

use crate::code::{Instruction, Line, Operand, Value, Values};
use crate::machine::Machine;
use crate::ready::{Addressed, Ready};
use crate::rules::Name;
use crate::schedule::schedule;
use rustc_hash::{FxHashMap as Map, FxHashSet as Set};
use std::sync::Arc;

/// The code of a node.
#[derive(Clone)]
pub struct Fragment {
    /// Its lines.
    pub lines: Arc<[Line]>,
    /// Whether they cannot be packed further.
    pub packed: bool,
    /// Whether lines that share no forwarding path may drift apart when nodes are merged.
    pub loose: bool,
    /// The values that the lines name.
    pub values: Arc<Values>,
}

/// The lines of one node in the order of issue, and the number of steps that use each issue slot.
pub(crate) struct Lines {
    pub(crate) lines: Vec<Arc<Ready>>,
    pub(crate) busy: Vec<(Name, i64)>,
}

/// The values of lines of which no line but an MV has the address, and whether lines name any value in DRAM.
struct InDram {
    free: Set<Value>,
    any: bool,
    /// Keys are places in memory: the lines stay, so that no others get the same.
    _lines: Arc<[Line]>,
}

/// Lines, whether they are packed, and the addresses of values.
type Key = (*const Line, bool, Vec<Option<i64>>);

/// The lines of nodes; equal code at equal addresses is made once.
pub(crate) struct Shelf<'a> {
    machine: &'a Machine,
    in_dram: Map<*const Line, InDram>,
    made: Map<Key, Arc<Lines>>,
}

impl<'a> Shelf<'a> {
    pub(crate) fn new(machine: &'a Machine) -> Self {
        Self { machine, in_dram: Map::default(), made: Map::default() }
    }

    /// The lines of a node.
    pub(crate) fn of(&mut self, fragment: &Fragment) -> Arc<Lines> {
        let machine = self.machine;
        let place = fragment.lines.as_ptr();
        let known = self.in_dram.entry(place).or_insert_with(|| in_dram(machine, &fragment.lines));
        let fixed = fragment.values.at.iter().enumerate().filter(|(value, _)| !known.free.contains(value));
        let key = (place, fragment.packed, fixed.map(|(_, at)| *at).collect());
        let made = self.made.entry(key).or_insert_with(|| Arc::new(ready(machine, fragment)));
        if !known.any || made.lines.first().is_none_or(|one| one.node == fragment.values) {
            return Arc::clone(made);
        }
        let mut addressed = Addressed::new(machine, &fragment.values);
        let own = made.lines.iter().map(|ready| match &ready.line {
            Line::Move(one) if one.source.value.is_none() && one.destination.value.is_none() => Arc::clone(ready),
            Line::Move(_) => Arc::new(addressed.ready(&ready.line)),
            line if line.literals().next().is_none() => Arc::clone(ready),
            _ => Arc::new(Ready { node: Arc::clone(&fragment.values), ..Ready::clone(ready) }),
        });
        Arc::new(Lines { lines: own.collect(), busy: made.busy.clone() })
    }
}

fn in_dram(machine: &Machine, lines: &Arc<[Line]>) -> InDram {
    let moves = lines.iter().filter_map(|line| if let Line::Move(one) = line { Some(one) } else { None });
    let blocks = moves.flat_map(|one| [&one.source, &one.destination]);
    let mut any = false;
    let mut free = Set::default();
    for block in blocks.filter(|block| block.memory == machine.dram) {
        any = true;
        free.extend(block.value);
    }
    for value in lines.iter().flat_map(Line::literals) {
        any = true;
        free.remove(&value);
    }
    InDram { free, any, _lines: Arc::clone(lines) }
}

fn ready(machine: &Machine, fragment: &Fragment) -> Lines {
    let mut addressed = Addressed::new(machine, &fragment.values);
    let lines =
        if fragment.packed { fragment.lines.to_vec() } else { packed(machine, &fragment.lines, &mut addressed) };
    let mut busy: Vec<(Name, i64)> = Vec::new();
    for one in lines.iter().flat_map(Line::instructions) {
        let slot = one.form.facts.slot;
        match busy.iter_mut().find(|(own, _)| *own == slot) {
            Some((_, count)) => *count += 1,
            None => busy.push((slot, 1)),
        }
    }
    Lines { lines: lines.iter().map(|line| Arc::new(addressed.ready(line))).collect(), busy }
}

/// Lines between MVs, or an MV.
enum Part<'a> {
    Steps(Vec<&'a [Arc<Instruction>]>),
    Move(&'a Line),
}

/// Returns the lines packed: instructions share lines where ports and hazards allow it. No instruction moves past an MV, or
/// past a line that may wait for an MV.
fn packed(machine: &Machine, lines: &[Line], addressed: &mut Addressed<'_>) -> Vec<Line> {
    let parts = parts(lines, addressed);
    let mut out = Vec::new();
    for (number, part) in parts.iter().enumerate() {
        let steps = match part {
            Part::Move(line) => {
                out.push((*line).clone());
                continue;
            }
            Part::Steps(steps) => steps,
        };
        // If the next part reads results by forwarding, they must stay in the last line of this part. Then this part is not
        // packed.
        let mut following = parts[number + 1..].iter();
        let following = following.find_map(|part| if let Part::Steps(steps) = part { steps.first() } else { None });
        let taken = following.is_some_and(|step| step.iter().any(|one| !one.form.facts.takes.is_empty()));
        let indirect = || steps.iter().copied().flatten().any(|one| indirect(one));
        let found = if taken || indirect() {
            None
        } else {
            let ops: Vec<Vec<_>> =
                steps.iter().map(|step| step.iter().map(|one| addressed.op(one)).collect()).collect();
            schedule(&machine.rules, &ops)
        };
        let all: Vec<_> = steps.iter().copied().flatten().collect();
        match found {
            None => out.extend(steps.iter().map(|step| Line::Step(step.to_vec()))),
            Some(found) => out.extend(
                found.iter().map(|line| Line::Step(line.iter().map(|&number| Arc::clone(all[number])).collect())),
            ),
        }
    }
    out
}

fn indirect(one: &Instruction) -> bool {
    one.operands().any(|(operand, _)| matches!(operand, Operand::Pe(pe) if pe.indirect))
}

/// Cuts the lines at MVs, and before the first line that must wait for an MV.
fn parts<'a>(lines: &'a [Line], addressed: &mut Addressed<'_>) -> Vec<Part<'a>> {
    let mut out = Vec::new();
    let mut part: Vec<&[Arc<Instruction>]> = Vec::new();
    let mut moves: Vec<Ready> = Vec::new();
    let mut close = |part: &mut Vec<&'a [Arc<Instruction>]>, next: Option<Part<'a>>| {
        if !part.is_empty() {
            out.push(Part::Steps(std::mem::take(part)));
        }
        out.extend(next);
    };
    for line in lines {
        let Line::Step(all) = line else {
            close(&mut part, Some(Part::Move(line)));
            moves.push(addressed.ready(line));
            continue;
        };
        let above = || all.iter().any(|one| one.operands().any(|(own, _)| matches!(own, Operand::Block(_))));
        if !moves.is_empty() && above() {
            let ready = addressed.ready(line);
            let before = moves.len();
            moves.retain(|one| !one.needs.conflicts(&ready.needs));
            if moves.len() < before {
                close(&mut part, None);
            }
        }
        part.push(all);
    }
    close(&mut part, None);
    out
}

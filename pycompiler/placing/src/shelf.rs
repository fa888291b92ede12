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

/// Returns the lines packed: instructions share lines where ports and hazards allow it. No instruction moves past an MV, or
/// past a line that may wait for an MV.
fn packed(machine: &Machine, lines: &[Line], addressed: &mut Addressed<'_>) -> Vec<Line> {
    let (mut out, mut part, mut moves) = (Vec::new(), Vec::new(), Vec::<Ready>::new());
    for (number, line) in lines.iter().enumerate() {
        let Line::Step(all) = line else {
            out.extend(pack(machine, &std::mem::take(&mut part), &lines[number..], addressed));
            out.push(line.clone());
            moves.push(addressed.ready(line));
            continue;
        };
        if !moves.is_empty() && any(all, |operand| matches!(operand, Operand::Block(_))) {
            let (ready, before) = (addressed.ready(line), moves.len());
            moves.retain(|one| !one.needs.conflicts(&ready.needs));
            if moves.len() < before {
                out.extend(pack(machine, &std::mem::take(&mut part), &lines[number..], addressed));
            }
        }
        part.push(all.as_slice());
    }
    out.extend(pack(machine, &part, &[], addressed));
    out
}

/// Returns lines packed. If the next line of `rest` reads results by forwarding, they must stay in the last one of these lines.
/// Then they are not packed.
fn pack(machine: &Machine, part: &[&[Arc<Instruction>]], rest: &[Line], addressed: &mut Addressed<'_>) -> Vec<Line> {
    let mut following = rest.iter().filter(|line| !line.is_move());
    let taken =
        following.next().is_some_and(|line| line.instructions().iter().any(|one| !one.form.facts.takes.is_empty()));
    let all = part.concat();
    let mut found = None;
    if !taken && !any(&all, |operand| matches!(operand, Operand::Pe(pe) if pe.indirect)) {
        let ops: Vec<Vec<_>> = part.iter().map(|step| step.iter().map(|one| addressed.op(one)).collect()).collect();
        found = schedule(&machine.rules, &ops);
    }
    let Some(found) = found else { return part.iter().map(|step| Line::Step(step.to_vec())).collect() };
    found.iter().map(|line| Line::Step(line.iter().map(|&number| Arc::clone(&all[number])).collect())).collect()
}

fn any(instructions: &[Arc<Instruction>], what: impl Fn(&Operand) -> bool) -> bool {
    instructions.iter().any(|one| one.operands().any(|(operand, _)| what(operand)))
}

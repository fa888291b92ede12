//! MV instructions: copies between the memories of groups and L2Bs. Each one completes when it is issued.

use super::maps::{moves, wrapped};
use crate::asm::{Mv, Selected};
use crate::error::Error;
use crate::machine::{Machine, Slot};
use crate::spec::{selector_name, End, LevelName, Place, ResolvedForm, Spec};

/// Consecutive long words between one source unit and one destination unit.
#[derive(Clone, Copy, Debug)]
struct Run {
    from: Place,
    to: Place,
    length: u64,
}

/// The values of a form's selectors by the names that index maps use.
pub(crate) fn selectors(form: &ResolvedForm, mv: &Mv) -> Vec<(String, i64)> {
    let mut values = Vec::new();
    for (side, end, unit) in [("src", &form.source, &mv.source_unit), ("dst", &form.destination, &mv.destination_unit)]
    {
        let End::Memory { selectors, .. } = end else { continue };
        for level in selectors {
            let Selected { group, l2b } = *unit;
            let value = if *level == LevelName::Group { group } else { l2b };
            values.push((selector_name(side, *level), i64::from(value.unwrap_or(0))));
        }
    }
    values
}

/// Runs `mv` on the whole chip.
pub(super) fn run(machine: &mut Machine, mv: &Mv) -> Result<(), Error> {
    let spec = machine.spec().clone();
    let form = &spec.forms[mv.form.transfer][mv.form.form];
    let named = selectors(form, mv);
    let mut parameters: Vec<(&str, i64)> = named.iter().map(|(n, v)| (n.as_str(), *v)).collect();
    let fail = |e: crate::spec::ExprError| {
        Error::new(crate::error::Code::SpecExpression, format!("form `{}`: {e}", form.name))
    };
    let strides = form.block_strides(&parameters).map_err(fail)?;
    parameters.push(("i", 0));
    let mut runs = coalesce(&moves(form, &parameters)?);
    let unit = form.unit.unwrap_or(1);
    let mut blocks = mv.size / unit;
    // Blocks that follow each other on both sides are one long copy.
    let dense = runs.iter().all(|r| (r.length, r.length) == strides);
    if dense {
        runs.iter_mut().for_each(|r| r.length *= blocks);
        blocks = blocks.min(1);
    }
    let (source, destination) = (slot(machine, &spec, &form.source), slot(machine, &spec, &form.destination));
    // Inside one memory everything is read before anything is written, so that overlapping ranges copy as a whole.
    let mut held = Vec::new();
    for block in 0..blocks {
        for run in &runs {
            let mut words = vec![0; run.length as usize];
            read(machine, source, &run.from, mv.source + run.from.addr + block * strides.0, &mut words);
            let to = mv.destination + run.to.addr + block * strides.1;
            if source == destination {
                held.push((run.to, to, words));
            } else {
                write(machine, destination, &run.to, to, &words);
            }
        }
    }
    for (unit, addr, words) in held {
        write(machine, destination, &unit, addr, &words);
    }
    Ok(())
}

fn coalesce(moves: &[crate::spec::Move]) -> Vec<Run> {
    let mut runs: Vec<Run> = Vec::new();
    for (from, to) in moves {
        if let Some(run) = runs.last_mut() {
            let next = |start: &Place| Place { addr: start.addr + run.length, ..*start };
            if next(&run.from) == *from && next(&run.to) == *to {
                run.length += 1;
                continue;
            }
        }
        runs.push(Run { from: *from, to: *to, length: 1 });
    }
    runs
}

fn slot(machine: &Machine, spec: &Spec, end: &End) -> Option<Slot> {
    match end {
        End::Memory { operand, .. } => spec.memory(&spec.operands[*operand].memory).map(|m| machine.layout().slot(m)),
        End::Pe => None,
    }
}

fn l2b_index(machine: &Machine, unit: &Place) -> usize {
    (unit.group * machine.spec().counts.l2b + unit.l2b) as usize
}

fn read(machine: &Machine, slot: Option<Slot>, unit: &Place, addr: u64, out: &mut [u64]) {
    let Some(slot) = slot else { return };
    if slot.level == LevelName::Group {
        machine.state.group[unit.group as usize][slot.index].read(addr, out);
    } else {
        let memory = &machine.state.l2b[l2b_index(machine, unit)][slot.index];
        wrapped(addr, out.len(), memory.len(), |at, to, n| out[to..to + n].copy_from_slice(&memory[at..at + n]));
    }
}

fn write(machine: &mut Machine, slot: Option<Slot>, unit: &Place, addr: u64, words: &[u64]) {
    let Some(slot) = slot else { return };
    if slot.level == LevelName::Group {
        machine.state.group[unit.group as usize][slot.index].write(addr, words);
    } else {
        let index = l2b_index(machine, unit);
        let memory = &mut machine.state.l2b[index][slot.index];
        let size = memory.len();
        wrapped(addr, words.len(), size, |at, from, n| memory[at..at + n].copy_from_slice(&words[from..from + n]));
    }
}

//! L2BM instructions: between the memory of every L2B and those of its L1Bs, and among those.

use super::lower::memory_slot;
use super::maps::wrapped;
use super::piece::{pieces, Piece, Reducer, Rows};
use super::table;
use crate::asm::{FormRef, UpperTransfer};
use crate::error::Error;
use crate::machine::{L1b, Machine, Slot, State};
use crate::spec::{LevelName, Spec};
use std::collections::HashMap;
use std::sync::Arc;

/// A form with its parameter, as the engine runs it.
#[derive(Debug)]
pub(super) struct Plan {
    pieces: Vec<Piece>,
    words: usize,
    reducer: Option<Reducer>,
    source: Slot,
    destination: Slot,
    /// Where the last long words end on both sides, from the written addresses.
    ends: (u64, u64),
}

/// The plans of one program, and the buffers they share.
#[derive(Debug, Default)]
pub(super) struct Uppers {
    plans: HashMap<FormRef, Arc<Plan>>,
    rows: Rows,
}

/// What an L2BM instruction has read and still has to write.
pub(super) enum Moved {
    /// The words of every L2B, piece after piece, and the address that they go to.
    Words { plan: Arc<Plan>, destination: u64, words: Vec<Vec<u64>> },
    /// What goes to the table of every group.
    Table(Vec<table::Change>),
}

impl Uppers {
    fn plan(&mut self, machine: &Machine, form: FormRef) -> Result<Arc<Plan>, Error> {
        if let Some(plan) = self.plans.get(&form) {
            return Ok(plan.clone());
        }
        let spec = machine.spec();
        let resolved = &spec.forms[form.transfer][form.form];
        let named = spec.form_values(form.transfer, form.parameter);
        let parameters: Vec<(&str, i64)> = named.iter().map(|(n, v)| (n.as_str(), *v)).collect();
        let pieces = pieces(resolved, &parameters)?;
        let ends_from = pieces.iter().flat_map(|p| p.from.iter().flatten().map(|from| from.addr + p.length));
        let ends_to = pieces.iter().map(|p| p.to.addr + p.length);
        let plan = Arc::new(Plan {
            ends: (ends_from.max().unwrap_or(0), ends_to.max().unwrap_or(0)),
            words: pieces.iter().map(|p| p.length as usize).sum(),
            pieces,
            reducer: Reducer::of(spec, form.transfer, resolved)?,
            source: memory_slot(spec, machine.layout(), &resolved.source)?,
            destination: memory_slot(spec, machine.layout(), &resolved.destination)?,
        });
        self.plans.insert(form, plan.clone());
        Ok(plan)
    }

    /// Runs the only instruction of a step at once, memory to memory; false: it must be read and written one after the other,
    /// since it wraps or its sides are one kind of memory.
    pub(super) fn run_alone(&mut self, machine: &mut Machine, instruction: &UpperTransfer) -> Result<bool, Error> {
        if machine.spec().transfers[instruction.form.transfer].level == LevelName::Group {
            return Ok(false);
        }
        let plan = self.plan(machine, instruction.form)?;
        let fits = |slot: Slot, at: u64, end: u64| at + end <= slot.words;
        let (from, to) = (instruction.source, instruction.destination);
        let down = plan.source.level == LevelName::L2b;
        if plan.source.level == plan.destination.level
            || (down && plan.reducer.is_some())
            || !fits(plan.source, from, plan.ends.0)
            || !fits(plan.destination, to, plan.ends.1)
        {
            return Ok(false);
        }
        let per_l2b = l1bs_of_l2b(machine.spec());
        let State { l1b, l2b, .. } = &mut machine.state;
        for (l2b, l1bs) in l2b.iter_mut().zip(l1b.chunks_exact_mut(per_l2b)) {
            for piece in &plan.pieces {
                let length = piece.length as usize;
                if down {
                    let Some(place) = piece.from.first().and_then(Option::as_ref) else { continue };
                    let at = (from + place.addr) as usize;
                    let target = (to + piece.to.addr) as usize;
                    let memory = &mut l1bs[piece.to.l1b as usize].own[plan.destination.index];
                    memory[target..target + length].copy_from_slice(&l2b[plan.source.index][at..at + length]);
                } else {
                    let target = (to + piece.to.addr) as usize;
                    let memory = &mut l2b[plan.destination.index][target..target + length];
                    self.rows.fetch(piece, plan.reducer.as_ref(), memory, |place, out| {
                        let at = (from + place.addr) as usize;
                        out.copy_from_slice(&l1bs[place.l1b as usize].own[plan.source.index][at..at + out.len()]);
                    });
                }
            }
        }
        Ok(true)
    }

    /// Reads the sources of all L2BM instructions of a step.
    pub(super) fn read(&mut self, machine: &Machine, instructions: &[UpperTransfer]) -> Result<Vec<Moved>, Error> {
        instructions.iter().map(|instruction| self.read_one(machine, instruction)).collect()
    }

    fn read_one(&mut self, machine: &Machine, instruction: &UpperTransfer) -> Result<Moved, Error> {
        let spec = machine.spec();
        if spec.transfers[instruction.form.transfer].level == LevelName::Group {
            return table::read(machine, instruction).map(Moved::Table);
        }
        let plan = self.plan(machine, instruction.form)?;
        let l2bs = machine.state.l2b.iter().zip(machine.state.l1b.chunks_exact(l1bs_of_l2b(spec)));
        let mut words = Vec::with_capacity(machine.state.l2b.len());
        for (l2b, l1bs) in l2bs {
            let mut buffer = vec![0; plan.words];
            let mut rest = &mut buffer[..];
            for piece in &plan.pieces {
                let (target, tail) = std::mem::take(&mut rest).split_at_mut(piece.length as usize);
                self.rows.fetch(piece, plan.reducer.as_ref(), target, |from, out| {
                    let memory = memory(plan.source, l2b, l1bs, from.l1b);
                    wrapped(instruction.source + from.addr, out.len(), memory.len(), |at, to, n| {
                        out[to..to + n].copy_from_slice(&memory[at..at + n]);
                    });
                });
                rest = tail;
            }
            words.push(buffer);
        }
        Ok(Moved::Words { plan, destination: instruction.destination, words })
    }
}

fn memory<'m>(slot: Slot, l2b: &'m [crate::machine::Words], l1bs: &'m [L1b], l1b: u32) -> &'m [u64] {
    if slot.level == LevelName::L1b {
        &l1bs[l1b as usize].own[slot.index]
    } else {
        &l2b[slot.index]
    }
}

fn l1bs_of_l2b(spec: &Spec) -> usize {
    spec.count(LevelName::L1b) as usize
}

/// Writes what [`Uppers::read`] has read.
pub(super) fn write(machine: &mut Machine, all: Vec<Moved>) {
    let per_l2b = l1bs_of_l2b(machine.spec());
    for moved in all {
        let (plan, destination, words) = match moved {
            Moved::Words { plan, destination, words } => (plan, destination, words),
            Moved::Table(changes) => {
                changes.into_iter().for_each(|change| change.write(machine));
                continue;
            }
        };
        let slot = plan.destination;
        let l2bs = machine.state.l2b.iter_mut().zip(machine.state.l1b.chunks_exact_mut(per_l2b));
        for ((l2b, l1bs), buffer) in l2bs.zip(words) {
            let mut rest = &buffer[..];
            for piece in &plan.pieces {
                let (source, tail) = rest.split_at(piece.length as usize);
                let memory = if slot.level == LevelName::L1b {
                    &mut l1bs[piece.to.l1b as usize].own[slot.index]
                } else {
                    &mut l2b[slot.index]
                };
                let size = memory.len();
                wrapped(destination + piece.to.addr, source.len(), size, |at, from, n| {
                    memory[at..at + n].copy_from_slice(&source[from..from + n]);
                });
                rest = tail;
            }
        }
    }
}

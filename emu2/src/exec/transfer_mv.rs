//! MV instructions: between the memories of groups and L2Bs. Each one completes when it is issued.

pub(super) mod words;

use super::dram_address_register::DarLookup;
use super::lower::memory_slot;
use super::transfer_runs::{transfer_runs, Reducer, RunBuffers, TransferRun};
use super::wrap::wrapped;
use crate::asm::{FormRef, Mv, Selected};
use crate::error::{Code, Error};
use crate::machine::{Machine, Slot};
use crate::spec::{selector_name, End, ExprError, LevelName, Place, ResolvedForm};
use std::collections::HashMap;
use std::sync::Arc;

/// A form with its selectors, as the engine runs it.
#[derive(Debug)]
struct TransferPlan {
    /// The runs of one block.
    runs: Vec<TransferRun>,
    /// Long words from one block to the next, at the source and at the destination.
    strides: (u64, u64),
    /// Long words of a block, the unit in which an MV states its size.
    unit: u64,
    /// The blocks follow each other in every run, so the MV is copied as one long block.
    dense: bool,
    reducer: Option<Reducer>,
    source: Slot,
    destination: Slot,
}

/// The units that `@` selects at the source and at the destination.
type Units = (Selected, Selected);

/// The plans of all MVs of a program, and their buffers.
#[derive(Debug, Default)]
pub(super) struct MvTransfers {
    plans: HashMap<(FormRef, Units), Arc<TransferPlan>>,
    rows: RunBuffers,
    words: Vec<u64>,
    /// The transfers move validity instead of values.
    validity: bool,
}

/// The values of a form's selectors by the names that index maps use.
pub(crate) fn selectors(form: &ResolvedForm, mv: &Mv) -> Vec<(String, i64)> {
    let mut values = Vec::new();
    for (side, end, unit) in [("src", &form.source, mv.source_unit), ("dst", &form.destination, mv.destination_unit)] {
        let End::Memory { selectors, .. } = end else { continue };
        for level in selectors {
            values.push((selector_name(side, *level), i64::from(unit.number(*level).unwrap_or(0))));
        }
    }
    values
}

/// The source or the destination of an MV: the memory, and the address to which the offsets of the index map are added.
struct Side {
    slot: Slot,
    address: u64,
    indirect: Option<DarLookup>,
}

impl Side {
    fn new(machine: &Machine, slot: Slot, end: &End, address: u64, table: Option<u64>) -> Result<Side, Error> {
        let indirect = table.map(|per_entry| DarLookup::new(machine, end, address, per_entry)).transpose()?;
        Ok(Side { slot, address, indirect })
    }

    fn read(&self, machine: &Machine, unit: &Place, offset: u64, out: &mut [u64]) {
        let addr = self.address + offset;
        if self.slot.level != LevelName::Group {
            let memory = &machine.state.l2b[l2b_index(machine, unit)][self.slot.index];
            wrapped(addr, out.len(), memory.len(), |at, to, n| out[to..to + n].copy_from_slice(&memory[at..at + n]));
            return;
        }
        let group = unit.group as usize;
        let memory = &machine.state.group[group][self.slot.index];
        match &self.indirect {
            None => memory.read(addr, out),
            Some(way) => way.each(machine, group, offset, out.len(), |at, a, b| memory.read(at, &mut out[a..b])),
        }
    }

    /// Number of the L2B and first long word, if `length` of them lie in its memory without wrapping.
    fn in_l2b(&self, machine: &Machine, unit: &Place, length: usize) -> Option<(usize, usize)> {
        let at = self.address + unit.addr;
        let lies = self.slot.level == LevelName::L2b && at + length as u64 <= self.slot.words;
        lies.then(|| (l2b_index(machine, unit), at as usize))
    }

    fn write(&self, machine: &mut Machine, unit: &Place, offset: u64, words: &[u64]) {
        let addr = self.address + offset;
        if self.slot.level != LevelName::Group {
            let index = l2b_index(machine, unit);
            let memory = &mut machine.state.l2b[index][self.slot.index];
            let size = memory.len();
            wrapped(addr, words.len(), size, |at, from, n| memory[at..at + n].copy_from_slice(&words[from..from + n]));
            return;
        }
        let group = unit.group as usize;
        let mut places = vec![(addr, 0, words.len())];
        if let Some(way) = &self.indirect {
            places.clear();
            way.each(machine, group, offset, words.len(), |at, a, b| places.push((at, a, b)));
        }
        for (at, a, b) in places {
            machine.state.group[group][self.slot.index].write(at, &words[a..b]);
        }
    }
}

fn l2b_index(machine: &Machine, unit: &Place) -> usize {
    (unit.group * machine.spec().counts.l2b + unit.l2b) as usize
}

impl MvTransfers {
    fn plan(&mut self, machine: &Machine, mv: &Mv) -> Result<Arc<TransferPlan>, Error> {
        let units: Units = (mv.source_unit, mv.destination_unit);
        if let Some(plan) = self.plans.get(&(mv.form, units)) {
            return Ok(plan.clone());
        }
        let spec = machine.spec();
        let form = &spec.forms[mv.form.transfer][mv.form.form];
        let named = selectors(form, mv);
        let mut parameters: Vec<(&str, i64)> = named.iter().map(|(n, v)| (n.as_str(), *v)).collect();
        let fail = |e: ExprError| Error::new(Code::SpecExpression, format!("form `{}`: {e}", form.name));
        let strides = form.block_strides(&parameters).map_err(fail)?;
        parameters.push(("i", 0));
        let runs = transfer_runs(form, &parameters)?;
        let reducer = Reducer::of(spec, mv.form.transfer, form)?;
        let reducer = if self.validity { reducer.map(Reducer::of_validity).transpose()? } else { reducer };
        let plan = Arc::new(TransferPlan {
            dense: runs.iter().all(|p| (p.length, p.length) == strides),
            runs,
            strides,
            unit: form.unit.unwrap_or(1),
            reducer,
            source: memory_slot(spec, machine.layout(), &form.source)?,
            destination: memory_slot(spec, machine.layout(), &form.destination)?,
        });
        self.plans.insert((mv.form, units), plan.clone());
        Ok(plan)
    }

    /// Transfers between memories that hold the validity of words.
    pub(super) fn of_validity() -> MvTransfers {
        MvTransfers { validity: true, ..MvTransfers::default() }
    }

    /// Runs `mv` on the whole chip.
    pub(super) fn run(&mut self, machine: &mut Machine, mv: &Mv) -> Result<(), Error> {
        let plan = self.plan(machine, mv)?;
        let spec = machine.spec().clone();
        let form = &spec.forms[mv.form.transfer][mv.form.form];
        let source = Side::new(machine, plan.source, &form.source, mv.source, mv.source_dar)?;
        let destination = Side::new(machine, plan.destination, &form.destination, mv.destination, mv.destination_dar)?;
        let total = mv.size / plan.unit;
        let (blocks, times) = if plan.dense { (total.min(1), total) } else { (total, 1) };
        // If both sides are one memory, everything is read before anything is written, so that overlapping ranges copy as a
        // whole.
        let hold = plan.source == plan.destination;
        let mut held = Vec::new();
        if !hold && plan.reducer.is_none() && blocks == 1 && plan.dense {
            for run in &plan.runs {
                let length = (run.length * times) as usize;
                if let Some(place) = run.from.first().and_then(Option::as_ref) {
                    copy(machine, (&source, place), (&destination, &run.to), length, &mut self.words);
                }
            }
            return Ok(());
        }
        for block in 0..blocks {
            let (from, to) = (block * plan.strides.0, block * plan.strides.1);
            for run in &plan.runs {
                let mut words = std::mem::take(&mut self.words);
                words.resize((run.length * times) as usize, 0);
                self.rows.fetch(run, plan.reducer.as_ref(), &mut words, |place, out| {
                    source.read(machine, place, from + place.addr, out);
                });
                if hold {
                    held.push((run.to, to, words));
                } else {
                    destination.write(machine, &run.to, to + run.to.addr, &words);
                    self.words = words;
                }
            }
        }
        for (unit, offset, words) in held {
            destination.write(machine, &unit, offset + unit.addr, &words);
        }
        Ok(())
    }
}

/// Copies long words from one memory to another. It copies directly if one side is an L2B whose range does not wrap.
fn copy(machine: &mut Machine, from: (&Side, &Place), to: (&Side, &Place), length: usize, words: &mut Vec<u64>) {
    let ((source, from), (destination, to)) = (from, to);
    if let (Some((l2b, at)), LevelName::Group) = (destination.in_l2b(machine, to, length), source.slot.level) {
        let mut memory = std::mem::take(&mut machine.state.l2b[l2b][destination.slot.index]);
        source.read(machine, from, from.addr, &mut memory[at..at + length]);
        machine.state.l2b[l2b][destination.slot.index] = memory;
    } else if let (Some((l2b, at)), LevelName::Group) = (source.in_l2b(machine, from, length), destination.slot.level) {
        let memory = std::mem::take(&mut machine.state.l2b[l2b][source.slot.index]);
        destination.write(machine, to, to.addr, &memory[at..at + length]);
        machine.state.l2b[l2b][source.slot.index] = memory;
    } else {
        words.resize(length, 0);
        source.read(machine, from, from.addr, words);
        destination.write(machine, to, to.addr, words);
    }
}

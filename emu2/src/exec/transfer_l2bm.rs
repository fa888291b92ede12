//! L2BM instructions: transfers between the memory of each L2B and the memories of its L1Bs, or between memories of one
//! level.

use super::dram_address_register;
use super::lower::memory_slot;
use super::transfer_runs::{transfer_runs, Reducer, RunBuffers, TransferRun};
use super::wrap::wrapped;
use crate::asm::{FormRef, L2bmTransfer};
use crate::error::Error;
use crate::machine::{L1b, Machine, Slot, Words};
use crate::num::level::kernel;
use crate::spec::{LevelName, Spec};
use std::collections::HashMap;
use std::sync::Arc;

/// A form with its parameter, as the engine runs it.
#[derive(Debug)]
pub(super) struct TransferPlan {
    runs: Vec<TransferRun>,
    words: usize,
    reducer: Option<Reducer>,
    source: Slot,
    destination: Slot,
    /// The end of the last long word of the source and of the destination, relative to the written addresses.
    ends: (u64, u64),
    /// The copies of a transfer between an L2B and its L1Bs, for every L1B.
    copies: Vec<Vec<Copies>>,
}

/// Consecutive long words of a memory of an L2B.
#[derive(Clone, Copy, Debug)]
pub(super) struct Span {
    slot: usize,
    first: usize,
    end: usize,
}

impl Span {
    /// Whether the spans have a long word in common.
    pub(super) fn meets(&self, other: &Span) -> bool {
        self.slot == other.slot && self.first < other.end && other.first < self.end
    }

    /// Whether the spans together are one.
    pub(super) fn touches(&self, other: &Span) -> bool {
        self.slot == other.slot && self.first <= other.end && other.first <= self.end
    }

    /// Adds a span that [`Span::touches`] this one.
    pub(super) fn extend(&mut self, other: &Span) {
        (self.first, self.end) = (self.first.min(other.first), self.end.max(other.end));
    }
}

/// The copies of one length between an L2B and one of its L1Bs.
#[derive(Debug)]
struct Copies {
    /// One pair for each copy: the offset in the memory of the L2B, and the offset in the memory of the L1B.
    places: Vec<(usize, usize)>,
    /// Long words of each copy.
    length: usize,
}

/// A transfer between L2BM and L1BM. It runs in program order with the steps of its region.
#[derive(Clone, Debug)]
pub(super) struct RegionTransfer {
    plan: Arc<TransferPlan>,
    /// Address in the memory of the L2Bs, and in that of the L1Bs.
    l2bm_address: usize,
    l1bm_address: usize,
}

/// The plans of all L2BM instructions of a program.
#[derive(Debug, Default)]
pub(super) struct L2bmTransfers {
    plans: HashMap<FormRef, Arc<TransferPlan>>,
    rows: RunBuffers,
    /// The transfers move validity instead of values.
    validity: bool,
    last: Option<(FormRef, Arc<TransferPlan>)>,
}

/// Long words that most forms move between an L2B and an L1B in a cycle. Copies of this length have a branch of their own.
const LANE: usize = 8;

/// Words that an L2BM instruction has read and still has to write.
pub(super) enum Moved {
    /// The words of every L2B, run after run, and the destination address.
    Words { plan: Arc<TransferPlan>, destination: u64, words: Vec<Vec<u64>> },
    /// The words to write in every group: to its DAR and to the buffer of the DAR.
    Dar(Vec<dram_address_register::GroupWrite>),
}

impl L2bmTransfers {
    /// Transfers between memories that hold the validity of words.
    pub(super) fn of_validity() -> L2bmTransfers {
        L2bmTransfers { validity: true, ..L2bmTransfers::default() }
    }

    fn plan(&mut self, machine: &Machine, form: FormRef) -> Result<Arc<TransferPlan>, Error> {
        if let Some((_, plan)) = self.last.as_ref().filter(|(last, _)| *last == form) {
            return Ok(plan.clone());
        }
        if let Some(plan) = self.plans.get(&form) {
            self.last = Some((form, plan.clone()));
            return Ok(plan.clone());
        }
        let spec = machine.spec();
        let resolved = &spec.forms[form.transfer][form.form];
        let named = spec.form_values(form.transfer, form.parameter);
        let parameters: Vec<(&str, i64)> = named.iter().map(|(n, v)| (n.as_str(), *v)).collect();
        let runs = transfer_runs(resolved, &parameters)?;
        let ends_from = runs.iter().flat_map(|p| p.from.iter().flatten().map(|from| from.addr + p.length));
        let ends_to = runs.iter().map(|p| p.to.addr + p.length);
        let source = memory_slot(spec, machine.layout(), &resolved.source)?;
        let destination = memory_slot(spec, machine.layout(), &resolved.destination)?;
        let reducer = Reducer::of(spec, form.transfer, resolved)?;
        let reducer = if self.validity { reducer.map(Reducer::of_validity).transpose()? } else { reducer };
        let between = source.level != destination.level && reducer.is_none();
        let plan = Arc::new(TransferPlan {
            copies: if between { copies(&runs, source.level == LevelName::L2b) } else { Vec::new() },
            ends: (ends_from.max().unwrap_or(0), ends_to.max().unwrap_or(0)),
            words: runs.iter().map(|p| p.length as usize).sum(),
            runs,
            reducer,
            source,
            destination,
        });
        self.plans.insert(form, plan.clone());
        Ok(plan)
    }

    /// An instruction as a part of a region. None if it must be read and written like any other: it uses the DAR, it wraps,
    /// both sides are memories of one level, or it reduces on the way down.
    ///
    /// # Errors
    /// [`Code::NoKernel`](crate::error::Code::NoKernel) for a transfer that the engine cannot run.
    pub(super) fn in_region(
        &mut self,
        machine: &Machine,
        instruction: &L2bmTransfer,
    ) -> Result<Option<RegionTransfer>, Error> {
        if machine.spec().transfers[instruction.form.transfer].level == LevelName::Group {
            return Ok(None);
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
            return Ok(None);
        }
        let (l2bm_address, l1bm_address) = if down { (from, to) } else { (to, from) };
        Ok(Some(RegionTransfer { plan, l2bm_address: l2bm_address as usize, l1bm_address: l1bm_address as usize }))
    }

    /// The words of a memory of the L2Bs that an instruction touches: its slot, the first word and the one behind the last,
    /// and whether it writes them. None if it touches no such memory.
    ///
    /// # Errors
    /// [`Code::NoKernel`](crate::error::Code::NoKernel) for a transfer that the engine cannot run.
    pub(super) fn of_l2b(
        &mut self,
        machine: &Machine,
        instruction: &L2bmTransfer,
    ) -> Result<Option<(Slot, u64, u64, bool)>, Error> {
        if machine.spec().transfers[instruction.form.transfer].level == LevelName::Group {
            return Ok(None);
        }
        let plan = self.plan(machine, instruction.form)?;
        let sides = [
            (plan.source, instruction.source, plan.ends.0, false),
            (plan.destination, instruction.destination, plan.ends.1, true),
        ];
        let side = sides.into_iter().find(|(slot, ..)| slot.level == LevelName::L2b);
        Ok(side.map(|(slot, at, end, writes)| (slot, at, at + end, writes)))
    }

    /// Reads the sources of all L2BM instructions of a step. The buffer of the DAR is filled at once: only `l2bmdarw` reads
    /// it, and it sees the words that an `l2bmdars` on its own line puts there.
    ///
    /// # Errors
    /// [`Code::NoKernel`](crate::error::Code::NoKernel) for a transfer that the engine cannot run.
    pub(super) fn read(&mut self, machine: &mut Machine, instructions: &[L2bmTransfer]) -> Result<Vec<Moved>, Error> {
        let fills = |spec: &Spec, instruction: &&L2bmTransfer| dram_address_register::fills_buffer(spec, instruction);
        let spec = machine.spec().clone();
        for instruction in instructions.iter().filter(|instruction| fills(&spec, instruction)) {
            dram_address_register::fill_buffer(machine, instruction)?;
        }
        let others = instructions.iter().filter(|instruction| !fills(&spec, instruction));
        others.map(|instruction| self.read_one(machine, instruction)).collect()
    }

    fn read_one(&mut self, machine: &Machine, instruction: &L2bmTransfer) -> Result<Moved, Error> {
        let spec = machine.spec();
        if spec.transfers[instruction.form.transfer].level == LevelName::Group {
            return dram_address_register::empty_buffer(machine, instruction).map(Moved::Dar);
        }
        let plan = self.plan(machine, instruction.form)?;
        let l2bs = machine.state.l2b.iter().zip(machine.state.l1b.chunks_exact(l1bs_of_l2b(spec)));
        let mut words = Vec::with_capacity(machine.state.l2b.len());
        for (l2b, l1bs) in l2bs {
            let mut buffer = vec![0; plan.words];
            let mut rest = &mut buffer[..];
            for run in &plan.runs {
                let (target, tail) = std::mem::take(&mut rest).split_at_mut(run.length as usize);
                self.rows.fetch(run, plan.reducer.as_ref(), target, |from, out| {
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

/// Runs reductions one after the other on one L2B and its L1Bs.
pub(super) fn reduce_all(all: &[RegionTransfer], l2b: &mut [Words], l1bs: &[L1b], rows: &mut RunBuffers) {
    all.iter().for_each(|one| one.reduce(rows, l2b, l1bs));
}

kernel! {
    /// All copies between an L2B and its L1B of number `k`.
    pub(super) fn copy_all(all: &[RegionTransfer], l2b: &mut [Words], l1b: &mut L1b, k: usize) {
        for one in all {
            one.copy(l2b, l1b, k);
        }
    }
}

impl RegionTransfer {
    /// Whether the L2B gives the words.
    pub(super) fn down(&self) -> bool {
        self.plan.source.level == LevelName::L2b
    }

    /// Whether words of several L1Bs are reduced.
    pub(super) fn reduces(&self) -> bool {
        self.plan.reducer.is_some()
    }

    /// Long words between the first and the last one that are read or written in the memory of an L2B.
    pub(super) fn above(&self) -> Span {
        let (slot, end) =
            if self.down() { (self.plan.source, self.plan.ends.0) } else { (self.plan.destination, self.plan.ends.1) };
        Span { slot: slot.index, first: self.l2bm_address, end: self.l2bm_address + end as usize }
    }

    /// Copies between an L2B and its L1B of number `k`.
    #[inline(always)]
    fn copy(&self, l2b: &mut [Words], l1b: &mut L1b, k: usize) {
        let RegionTransfer { plan, l2bm_address, l1bm_address } = self;
        let down = self.down();
        let slots = if down { (plan.source, plan.destination) } else { (plan.destination, plan.source) };
        let above = &mut l2b[slots.0.index][*l2bm_address..];
        let below = &mut l1b.own[slots.1.index][*l1bm_address..];
        for Copies { places, length } in plan.copies.get(k).into_iter().flatten() {
            if down {
                copy(places, *length, above, below, |(above, below)| (above, below));
            } else {
                copy(places, *length, below, above, |(above, below)| (below, above));
            }
        }
    }

    /// Reduces words of the L1Bs into the memory of their L2B.
    fn reduce(&self, rows: &mut RunBuffers, l2b: &mut [Words], l1bs: &[L1b]) {
        let plan = &self.plan;
        for run in &plan.runs {
            let target = self.l2bm_address + run.to.addr as usize;
            let memory = &mut l2b[plan.destination.index][target..target + run.length as usize];
            rows.fetch(run, plan.reducer.as_ref(), memory, |place, out| {
                let at = self.l1bm_address + place.addr as usize;
                out.copy_from_slice(&l1bs[place.l1b as usize].own[plan.source.index][at..at + out.len()]);
            });
        }
    }
}

/// Copies `length` long words for each entry of `places`. `sides` turns an entry into the offsets of source and
/// destination.
#[inline(always)]
fn copy(
    places: &[(usize, usize)],
    length: usize,
    from: &[u64],
    to: &mut [u64],
    sides: impl Fn((usize, usize)) -> (usize, usize),
) {
    for place in places {
        let (source, target) = sides(*place);
        if length != LANE {
            to[target..target + length].copy_from_slice(&from[source..source + length]);
        } else if let (Some(to), Some(from)) = (to[target..].first_chunk_mut::<LANE>(), from[source..].first_chunk()) {
            *to = *from;
        }
    }
}

/// The runs of a copy, grouped by L1B. `down`: the L2B is the source.
fn copies(runs: &[TransferRun], down: bool) -> Vec<Vec<Copies>> {
    let mut all: Vec<Vec<Copies>> = Vec::new();
    for run in runs {
        let Some(from) = run.from.first().and_then(Option::as_ref) else { continue };
        let (above, below) = if down { (from, &run.to) } else { (&run.to, from) };
        let (l1b, length) = (below.l1b as usize, run.length as usize);
        let place = (above.addr as usize, below.addr as usize);
        if all.len() <= l1b {
            all.resize_with(l1b + 1, Vec::new);
        }
        match all[l1b].iter_mut().find(|copies| copies.length == length) {
            Some(copies) => copies.places.push(place),
            None => all[l1b].push(Copies { places: vec![place], length }),
        }
    }
    all
}

fn memory<'m>(slot: Slot, l2b: &'m [Words], l1bs: &'m [L1b], l1b: u32) -> &'m [u64] {
    if slot.level == LevelName::L1b {
        &l1bs[l1b as usize].own[slot.index]
    } else {
        &l2b[slot.index]
    }
}

pub(super) fn l1bs_of_l2b(spec: &Spec) -> usize {
    spec.count(LevelName::L1b) as usize
}

/// Writes the words that [`L2bmTransfers::read`] has read.
pub(super) fn write(machine: &mut Machine, all: Vec<Moved>) {
    let per_l2b = l1bs_of_l2b(machine.spec());
    for moved in all {
        let (plan, destination, words) = match moved {
            Moved::Words { plan, destination, words } => (plan, destination, words),
            Moved::Dar(changes) => {
                changes.into_iter().for_each(|change| change.write(machine));
                continue;
            }
        };
        let slot = plan.destination;
        let l2bs = machine.state.l2b.iter_mut().zip(machine.state.l1b.chunks_exact_mut(per_l2b));
        for ((l2b, l1bs), buffer) in l2bs.zip(words) {
            let mut rest = &buffer[..];
            for run in &plan.runs {
                let (source, tail) = rest.split_at(run.length as usize);
                let memory = if slot.level == LevelName::L1b {
                    &mut l1bs[run.to.l1b as usize].own[slot.index]
                } else {
                    &mut l2b[slot.index]
                };
                let size = memory.len();
                wrapped(destination + run.to.addr, source.len(), size, |at, from, n| {
                    memory[at..at + n].copy_from_slice(&source[from..from + n]);
                });
                rest = tail;
            }
        }
    }
}

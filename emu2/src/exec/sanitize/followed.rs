//! The validity of a machine's memories, and the runs that keep it.

use super::finding::{Findings, Origin, Via, Word};
use super::observed::Buffers;
use super::shadow::Summary;
use super::worker::{L2b, Work, Worker};
use crate::error::Error;
use crate::exec::compute::Compute;
use crate::exec::fast::liveness::mark_live;
use crate::exec::no_kernel::no_kernel;
use crate::exec::op::{Scratch, Step};
use crate::exec::source::Fetch;
use crate::exec::transfer_l2bm::l1bs_of_l2b;
use crate::exec::validity::VALID;
use crate::interrupt::Interrupt;
use crate::machine::{Layout, Machine, Part, Region, State};
use crate::num::lane::Lane;
use crate::num::reduce::reduce_kernel;
use crate::spec::{LevelName, Spec, Unit};
use crate::threads;
use rayon::prelude::*;
use std::sync::{Arc, Mutex, PoisonError};

/// Long words that are marked at a time.
const CHUNK: u64 = 1 << 16;

/// The validity of all memories of a machine.
pub(super) struct Followed {
    spec: Arc<Spec>,
    /// A machine whose words are the validity of the words of the other one.
    pub(super) shadow: Machine,
    summaries: Vec<Summary>,
    worker: Worker,
    spare: Mutex<Vec<Worker>>,
    /// The machine that is followed was reset this many times.
    resets: u64,
    /// Slot of the turnaround register among the memories of an L1B.
    turnaround: usize,
    /// Something has run that was not followed, so every word counts as written.
    assumed: bool,
}

impl Followed {
    pub(super) fn new(spec: Arc<Spec>) -> Result<Followed, Error> {
        let and = reduce_kernel("band", Lane::L, false).ok_or_else(|| no_kernel("the reduction `band`"))?;
        let (lanes, cycles) = (spec.lanes(), spec.counts.cycle as usize);
        let worker = Worker {
            scratch: Scratch::new(&spec),
            buffers: Buffers::new(lanes, cycles, and),
            fetch: std::array::from_fn(|_| Fetch::new(lanes)),
            findings: Findings::default(),
            follows: true,
        };
        let mut followed = Followed {
            turnaround: Layout::new(&spec).slot(spec.memory(&spec.turnaround.memory).unwrap_or_default()).index,
            shadow: Machine::new(spec.clone()),
            spec,
            summaries: Vec::new(),
            worker,
            spare: Mutex::default(),
            resets: 0,
            assumed: false,
        };
        followed.start();
        Ok(followed)
    }

    /// Whether every word counts as written.
    pub(super) fn assumed(&self) -> bool {
        self.assumed
    }

    /// Nothing is written yet, except base address registers, which are zero when a program begins, and the first mask
    /// register, which holds ones.
    fn start(&mut self) {
        let lanes = self.spec.lanes();
        let layout = self.shadow.layout();
        let bases = self.spec.memories.iter().enumerate().filter(|(_, memory)| memory.unit == Unit::Base);
        let bases: Vec<usize> = bases.map(|(at, _)| layout.slot(at).index).collect();
        let masks = self.spec.memory(&self.spec.mask.memory).map(|at| layout.slot(at).index);
        self.summaries.clear();
        for l1b in &mut self.shadow.state.l1b {
            let mut summary = Summary::new(l1b, lanes, self.spec.forwards.len());
            bases.iter().for_each(|slot| summary.fill(l1b, *slot, 0, lanes));
            for row in 0..self.spec.counts.cycle as usize {
                masks.iter().for_each(|slot| summary.fill(l1b, *slot, row, lanes));
            }
            self.summaries.push(summary);
        }
    }

    /// Takes what was written to the machine from outside since the last call.
    pub(super) fn absorb(&mut self, machine: &mut Machine) {
        let written = machine.take_written();
        if written.resets != self.resets {
            self.resets = written.resets;
            self.assumed = false;
            self.shadow = Machine::new(self.spec.clone());
            self.start();
        }
        self.assumed |= written.lost;
        if !self.assumed {
            for Part { memory, units, addr, count } in written.regions {
                self.mark(&Region { memory, units, addr, count });
            }
        }
    }

    /// Marks a region as written.
    fn mark(&mut self, region: &Region) {
        let (lanes, slot) = (self.spec.lanes(), self.shadow.layout().slot(region.memory));
        let valid = vec![VALID; region.count.min(CHUNK) as usize];
        for first in (0..region.count).step_by(CHUNK as usize) {
            let count = CHUNK.min(region.count - first);
            let piece = Region { addr: region.addr + first, count, ..*region };
            // The machine itself has taken this region.
            let _ = self.shadow.write(&piece, &valid[..count as usize]);
        }
        if slot.level == LevelName::Pe {
            let c = &self.spec.counts;
            let l1bs =
                Region { units: [region.units[0], region.units[1], region.units[2], Some(0), Some(0)], ..*region };
            let (state, summaries) = (&self.shadow.state, &mut self.summaries);
            l1bs.each(&self.spec, |unit| {
                let index = ((unit[0] * c.l2b + unit[1]) * c.l1b + unit[2]) as usize;
                for row in region.addr..region.addr + region.count {
                    summaries[index].refresh(&state.l1b[index], slot.index, row as usize, lanes, None);
                }
            });
        }
    }

    /// A word as findings name it, and the origin of its undefined value.
    pub(super) fn word(&self, memory: usize, unit: [u32; 5], address: u64, line: u32) -> (Word, Option<Origin>) {
        let (c, slot) = (&self.spec.counts, self.shadow.layout().slot(memory));
        let l2b = (unit[0] * c.l2b + unit[1]) as usize;
        let l1b = l2b * c.l1b as usize + unit[2] as usize;
        let lane = (unit[3] * c.pe + unit[4]) as usize;
        let (unit, lane) = match slot.level {
            LevelName::Chip | LevelName::Group => (unit[0] as usize, 0),
            LevelName::L2b => (l2b, 0),
            LevelName::L1b => (l1b, 0),
            LevelName::Mab | LevelName::Pe => (l1b, lane),
        };
        let word = Word { level: slot.level, slot: slot.index, unit, lane, address };
        let summary = &self.summaries;
        let origin = match slot.level {
            LevelName::Pe | LevelName::Mab => {
                Some(summary[l1b].origin(slot.index, address as usize, (l1b, lane), line))
            }
            LevelName::L1b => summary[l1b].sent,
            // Words above the L1Bs have come from one of them, if they were not undefined all along.
            _ => summary.iter().find_map(|summary| summary.sent),
        };
        (word, origin.filter(|origin| origin.word != Some(word) || origin.via != Via::Operand))
    }

    /// Marks what the steps of a region need not keep, so that their results go to their destinations directly. Results
    /// that [`Ranges`](super::range::Ranges) cannot find there are kept in a buffer too.
    fn mark_live(&self, work: &mut [Work]) {
        for alike in work.chunk_by_mut(|one, next| matches!((one, next), (Work::Step(..), Work::Step(..)))) {
            let mut steps: Vec<Step> = alike.iter_mut().filter_map(Work::take_step).collect();
            mark_live(&mut steps, self.spec.forwards.len(), self.turnaround);
            for op in steps.iter_mut().flat_map(|step| &mut step.ops) {
                let found = op.writes.first().is_some_and(|write| write.block() && op.narrow_result());
                op.live |= matches!(op.compute, Compute::Mau(_)) && !(found && op.writes.len() == 1);
                op.live |= op.plain_rows.is_some_and(|rows| rows.addend.is_some());
            }
            alike.iter_mut().zip(steps).for_each(|(one, step)| one.put_step(step));
        }
    }

    /// Runs a region on every L2B.
    pub(super) fn run(
        &mut self,
        machine: &mut Machine,
        work: &mut [Work],
        interrupt: &Interrupt,
        findings: &mut Findings,
    ) {
        self.mark_live(work);
        let work = &*work;
        let per_l2b = l1bs_of_l2b(&self.spec);
        let State { l1b: l1bs, l2b: l2bs, .. } = &mut machine.state;
        let State { l1b: shadow_l1bs, l2b: shadow_l2bs, .. } = &mut self.shadow.state;
        self.worker.follows = !self.assumed;
        let (worker, spare) = (&self.worker, &self.spare);
        let stop = || interrupt.requested();
        let real = l2bs.par_iter_mut().zip(l1bs.par_chunks_exact_mut(per_l2b));
        let shadow = shadow_l2bs.par_iter_mut().zip(shadow_l1bs.par_chunks_exact_mut(per_l2b));
        let all = real.zip(shadow).zip(self.summaries.par_chunks_exact_mut(per_l2b)).enumerate();
        let found = Mutex::new(findings);
        threads::share(|| {
            all.for_each(|(index, (((own, l1bs), (shadow_own, shadow_l1bs)), summaries))| {
                let free = spare.lock().unwrap_or_else(PoisonError::into_inner).pop();
                let mut worker = Worker { follows: worker.follows, ..free.unwrap_or_else(|| worker.clone()) };
                let (real, shadow) = (L2b { own, l1bs }, L2b { own: shadow_own, l1bs: shadow_l1bs });
                worker.run(work, real, shadow, summaries, index * per_l2b, &stop);
                found.lock().unwrap_or_else(PoisonError::into_inner).take(&mut worker.findings);
                spare.lock().unwrap_or_else(PoisonError::into_inner).push(worker);
            });
        });
    }
}

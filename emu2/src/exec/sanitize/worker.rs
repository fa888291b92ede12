//! Runs steps and transfers of a region on one L2B, with their validity.

use super::finding::Findings;
use super::observed::{Buffers, On};
use super::range::Ranges;
use super::shadow::Summary;
use super::step;
use crate::exec::fallback_step::run_observed;
use crate::exec::op::{Scratch, Step, MAX_SOURCES};
use crate::exec::source::Fetch;
use crate::exec::transfer_l2bm::{copy_all, reduce_all, RegionTransfer};
use crate::exec::transfer_runs::RunBuffers;
use crate::machine::{L1b, Words};

/// A piece of a region.
#[derive(Debug)]
pub(super) enum Work {
    /// A step and its line.
    Step(u32, Step),
    /// A transfer between an L2B and its L1Bs: of values, and of validity.
    Transfer(Box<[RegionTransfer; 2]>),
}

impl Work {
    /// Takes the step out, and leaves an empty one.
    pub(super) fn take_step(&mut self) -> Option<Step> {
        match self {
            Work::Step(_, step) => {
                Some(std::mem::replace(step, Step { ops: Vec::new(), prepares: false, forward: true }))
            }
            Work::Transfer(_) => None,
        }
    }

    /// Puts the step back.
    pub(super) fn put_step(&mut self, to: Step) {
        if let Work::Step(_, step) = self {
            *step = to;
        }
    }
}

/// Buffers of one thread.
#[derive(Clone, Debug)]
pub(super) struct Worker {
    pub(super) scratch: Scratch,
    pub(super) buffers: Buffers,
    pub(super) fetch: [Fetch; MAX_SOURCES],
    pub(super) findings: Findings,
    /// Values are followed by their validity.
    pub(super) follows: bool,
}

/// An L2B: its own memories and its L1Bs.
pub(super) struct L2b<'a> {
    pub(super) own: &'a mut [Words],
    pub(super) l1bs: &'a mut [L1b],
}

impl Worker {
    /// Runs all of `work`. `first` is the chip-wide number of the first L1B.
    pub(super) fn run(
        &mut self,
        work: &[Work],
        real: L2b<'_>,
        shadow: L2b<'_>,
        summaries: &mut [Summary],
        first: usize,
        stop: &dyn Fn() -> bool,
    ) {
        for l1b in real.l1bs.iter_mut() {
            l1b.settle(&self.scratch.base_slots);
        }
        for alike in work.chunk_by(|one, next| matches!((one, next), (Work::Step(..), Work::Step(..)))) {
            if stop() {
                return;
            }
            if let [Work::Transfer(pair)] = alike {
                let rows = &mut self.scratch.transfer_rows;
                transfer(&pair[0], real.own, real.l1bs, rows);
                transfer(&pair[1], shadow.own, shadow.l1bs, rows);
                continue;
            }
            let l1bs = real.l1bs.iter_mut().zip(shadow.l1bs.iter_mut()).zip(summaries.iter_mut());
            for (k, ((real, shadow), summary)) in l1bs.enumerate() {
                for one in alike {
                    if let Work::Step(line, step) = one {
                        self.step((*line, step), real, shadow, summary, first + k);
                    }
                }
            }
        }
    }

    fn step(
        &mut self,
        (line, step): (u32, &Step),
        real: &mut L1b,
        shadow: &mut L1b,
        summary: &mut Summary,
        index: usize,
    ) {
        let Worker { scratch, buffers, fetch, findings, follows } = self;
        if *follows {
            let mut on = On { real, shadow, summary, index, line, findings };
            step::run(step, &mut on, buffers);
        }
        let Buffers { lanes, cycles, zeros, .. } = buffers;
        let mut ranges = Ranges { index, line, lanes: *lanes, cycles: *cycles, fetch, zeros, findings };
        run_observed(step, real, index, scratch, |l1b, results| ranges.look(step, l1b, results));
    }
}

/// Runs one transfer between an L2B and all its L1Bs.
fn transfer(one: &RegionTransfer, l2b: &mut [Words], l1bs: &mut [L1b], rows: &mut RunBuffers) {
    let one = std::slice::from_ref(one);
    if one[0].reduces() {
        return reduce_all(one, l2b, l1bs, rows);
    }
    for (k, l1b) in l1bs.iter_mut().enumerate() {
        copy_all(one, l2b, l1b, k);
    }
}

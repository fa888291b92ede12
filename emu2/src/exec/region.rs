//! Regions: steps and L2BM instructions that no other statement stands between. Every L2B runs a region on its own.

use super::fallback_step::run_step;
use super::fast::data_flow::{Action, Segment};
use super::fast::kernel_call::update_forward;
use super::op::Scratch;
use super::transfer_l2bm::{run_transfers, RegionTransfer};
use crate::machine::{L1b, Words};

/// A stretch of a region: steps, which each L1B runs on its own, or instructions between an L2B and its L1Bs.
#[derive(Debug)]
pub(super) enum Stretch<Steps> {
    Steps(Steps),
    Transfers(Vec<RegionTransfer>),
}

/// A lowered region.
pub(super) type Region = Vec<Stretch<Vec<Segment>>>;

impl Stretch<Vec<Segment>> {
    /// Number of steps.
    pub(super) fn steps(&self) -> usize {
        match self {
            Stretch::Steps(segments) => segments.iter().map(|segment| segment.steps.len()).sum(),
            Stretch::Transfers(_) => 0,
        }
    }

    /// Number of transfers.
    pub(super) fn transfers(&self) -> usize {
        match self {
            Stretch::Steps(_) => 0,
            Stretch::Transfers(all) => all.len(),
        }
    }

    /// Whether nothing happens in it.
    pub(super) fn idle(&self) -> bool {
        match self {
            Stretch::Steps(segments) => segments.iter().all(|one| one.steps.iter().all(|step| step.ops.is_empty())),
            Stretch::Transfers(_) => false,
        }
    }
}

/// Runs `region` on an L2B and its L1Bs. `first` is the chip-wide number of its first L1B. Ends early if `stop`.
pub(super) fn run_on_l2b(
    region: &[Stretch<Vec<Segment>>],
    l2b: &mut [Words],
    l1bs: &mut [L1b],
    first: usize,
    scratch: &mut Scratch,
    stop: impl Fn() -> bool,
) {
    for stretch in region {
        if stop() {
            return;
        }
        match stretch {
            Stretch::Steps(segments) => {
                for (k, l1b) in l1bs.iter_mut().enumerate() {
                    run_steps(segments, l1b, first + k, scratch);
                }
            }
            Stretch::Transfers(all) => run_transfers(all, l2b, l1bs, &mut scratch.transfer_rows),
        }
    }
}

/// Runs segments on the L1B with chip-wide number `index`, by their plans or step by step.
pub(super) fn run_steps(region: &[Segment], l1b: &mut L1b, index: usize, scratch: &mut Scratch) {
    // Debug statements and the host write memories between regions.
    l1b.settle(&scratch.base_slots);
    for Segment { steps, parts } in region {
        for part in parts {
            if scratch.general || l1b.live_bases & part.bases != 0 {
                steps[part.steps.clone()].iter().for_each(|step| run_step(step, l1b, index, scratch));
                continue;
            }
            for action in &part.actions {
                match action {
                    Action::Call(op) => op.run(l1b, index, scratch),
                    Action::UpdateForward { path, later } => update_forward(*path, *later, l1b, scratch),
                    Action::FallbackStep(at) => run_step(&steps[*at], l1b, index, scratch),
                }
            }
        }
    }
}

//! A region on one L1B: its segments by their plans, or step by step.

use super::fallback_step::run_step;
use super::fast::data_flow::{Action, Segment};
use super::fast::kernel_call::update_forward;
use super::op::Scratch;
use crate::machine::L1b;

/// Runs `region` on the L1B with chip-wide number `index`.
pub(super) fn run_region(region: &[Segment], l1b: &mut L1b, index: usize, scratch: &mut Scratch) {
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

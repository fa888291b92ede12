//! Measures the gap in steps or cycles between a write and a read of one memory.

use super::extent::{meet, Extent};
use crate::spec::{Hazard, HazardRule};

/// A write of an earlier step.
#[derive(Clone, Debug)]
pub(super) struct Write {
    pub(super) step: u64,
    /// Entry of `slots`.
    pub(super) slot: usize,
    /// For a transfer, the memory that the words come from.
    pub(super) source: Option<usize>,
    /// The line of the write in the source.
    pub(super) line: u32,
    pub(super) extent: Extent,
}

/// A read that comes too early.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct TooEarly {
    pub(super) line: u32,
    pub(super) needed: u64,
    pub(super) actual: u64,
    pub(super) cycles: bool,
    /// How many more steps are needed between the two.
    pub(super) missing: u64,
}

/// The number of steps after which a write can no longer break the rule.
pub(super) fn horizon(hazard: &Hazard, cycles: u32) -> u64 {
    let steps = u64::from(hazard.steps.unwrap_or(0));
    let from_cycles = (u64::from(hazard.cycles.unwrap_or(0)) + u64::from(cycles)) / u64::from(cycles.max(1));
    steps.max(from_cycles) + 1
}

/// Checks a read in step `now` against one earlier write. `size` is the size of the memory in the unit of the extents.
pub(super) fn check(
    hazard: &Hazard,
    write: &Write,
    read: &Extent,
    now: u64,
    size: u64,
    cycles: u32,
) -> Option<TooEarly> {
    let distance = now.checked_sub(write.step).filter(|d| *d > 0)?;
    let (line, between) = (write.line, distance - 1);
    if let Some(steps) = hazard.steps.map(u64::from) {
        let early =
            between < steps && (hazard.rule == HazardRule::Port || meet(&write.extent, read, size, cycles).is_some());
        let missing = steps.saturating_sub(between);
        return early.then_some(TooEarly { line, needed: steps, actual: between, cycles: false, missing });
    }
    let needed = u64::from(hazard.cycles?);
    let per_step = u64::from(cycles);
    if distance > horizon(hazard, cycles) {
        return None;
    }
    let (written, read) = meet(&write.extent, read, size, cycles)?;
    // Full cycles between the two. At least 0, because the read lies in a later step.
    let actual = (distance * per_step + u64::from(read)).saturating_sub(u64::from(written) + 1);
    let missing = needed.saturating_sub(actual).div_ceil(per_step.max(1));
    (actual < needed).then_some(TooEarly { line, needed, actual, cycles: true, missing })
}

//! Programs that run again: lowered once.

use super::plan::Stretch;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};

/// A longer program is lowered for every run, since a lowered step takes about a kilobyte.
const KEPT_STEPS: usize = 1 << 14;

/// A program as the engine runs it, kept from its second run on: most run once, and what is kept is memory that the host has to
/// give and to clear.
#[derive(Debug, Default)]
pub struct Regions {
    kept: OnceLock<Arc<Vec<Vec<Stretch>>>>,
    /// It has run.
    again: AtomicBool,
}

/// Where the steps of a run come from.
#[derive(Debug)]
pub(super) enum Supply {
    /// They are lowered and forgotten.
    Once,
    /// They are lowered and kept.
    Recording { regions: Vec<Vec<Stretch>>, steps: usize },
    /// They have been kept. `next`: the region that comes next; `count`: steps of it that the program has reached.
    Kept { regions: Arc<Vec<Vec<Stretch>>>, next: usize, count: usize },
}

impl Regions {
    /// What a run of the program works with.
    pub(super) fn supply(&self) -> Supply {
        match self.kept.get() {
            Some(regions) => Supply::Kept { regions: regions.clone(), next: 0, count: 0 },
            None if !self.again.swap(true, Ordering::Relaxed) => Supply::Once,
            None => Supply::Recording { regions: Vec::new(), steps: 0 },
        }
    }

    /// Keeps what a run has recorded to its end.
    pub(super) fn keep(&self, supply: Supply) {
        if let Supply::Recording { regions, .. } = supply {
            // Another thread may have been quicker, with the same.
            let _ = self.kept.set(Arc::new(regions));
        }
    }
}

impl Supply {
    /// Counts a step that need not be lowered: how many the region has then. None: it must be.
    pub(super) fn count_step(&mut self) -> Option<usize> {
        let Supply::Kept { count, .. } = self else { return None };
        *count += 1;
        Some(*count)
    }

    /// Whether nothing need be lowered.
    pub(super) fn is_kept(&self) -> bool {
        matches!(self, Supply::Kept { .. })
    }

    /// The region whose steps have been counted, if any has been.
    pub(super) fn next_region(&mut self) -> Option<KeptRegion> {
        let Supply::Kept { regions, next, count } = self else { return None };
        if std::mem::take(count) == 0 {
            return None;
        }
        *next += 1;
        Some(KeptRegion { regions: regions.clone(), at: *next - 1 })
    }

    /// Takes a region that has run.
    pub(super) fn record(&mut self, region: Vec<Stretch>) {
        if let Supply::Recording { regions, steps } = self {
            *steps += region.iter().map(|stretch| stretch.steps.len()).sum::<usize>();
            if *steps > KEPT_STEPS {
                *self = Supply::Once;
            } else {
                regions.push(region);
            }
        }
    }
}

/// One region of those that are kept.
pub(super) struct KeptRegion {
    regions: Arc<Vec<Vec<Stretch>>>,
    at: usize,
}

impl KeptRegion {
    /// It.
    pub(super) fn stretches(&self) -> &[Stretch] {
        self.regions.get(self.at).map_or(&[], Vec::as_slice)
    }
}

//! Programs that run again and again are lowered once.

use super::fast::data_flow::Segment;
use super::region::{Region, Stretch};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};

/// A longer program is lowered again for every run, because a lowered step takes about a kilobyte.
const KEPT_STEPS: usize = 1 << 14;

/// The lowered form of a program. It is kept from the second run on, because most programs run once and keeping costs
/// memory. [`Engine::prepare`](super::Engine::prepare) keeps it before the first run.
#[derive(Debug, Default)]
pub struct KeptRegions {
    kept: OnceLock<Arc<Vec<Region>>>,
    /// The program has run once.
    again: AtomicBool,
}

/// Where the steps and transfers of a run come from.
#[derive(Debug)]
pub(super) enum StepSource {
    /// The steps are lowered and forgotten.
    Once,
    /// The steps are lowered and kept.
    Recording { regions: Vec<Region>, steps: usize },
    /// The steps have been kept. `next`: the region that comes next; `count`: how much of it the program has reached.
    Kept { regions: Arc<Vec<Region>>, next: usize, count: usize },
}

impl KeptRegions {
    /// Where the next run of the program takes its steps from.
    pub(super) fn step_source(&self) -> StepSource {
        match self.kept.get() {
            Some(regions) => StepSource::Kept { regions: regions.clone(), next: 0, count: 0 },
            None if !self.again.swap(true, Ordering::Relaxed) => StepSource::Once,
            None => StepSource::Recording { regions: Vec::new(), steps: 0 },
        }
    }

    /// Where lowering before the first run records the regions. None if they are kept already.
    pub(super) fn recording(&self) -> Option<StepSource> {
        let missing = self.kept.get().is_none();
        missing.then(|| StepSource::Recording { regions: Vec::new(), steps: 0 })
    }

    /// Keeps the regions of a complete run.
    pub(super) fn keep(&self, step_source: StepSource) {
        if let StepSource::Recording { regions, .. } = step_source {
            // If another thread has kept its regions first, they are the same.
            let _ = self.kept.set(Arc::new(regions));
        }
    }
}

impl StepSource {
    /// Counts a step or transfer of a kept program and returns how many the region has so far. None: it must be collected.
    pub(super) fn count(&mut self) -> Option<usize> {
        let StepSource::Kept { count, .. } = self else { return None };
        *count += 1;
        Some(*count)
    }

    /// Whether the program is kept, so that nothing needs to be lowered.
    pub(super) fn is_kept(&self) -> bool {
        matches!(self, StepSource::Kept { .. })
    }

    /// The region whose steps have been counted, if any has been.
    pub(super) fn next_region(&mut self) -> Option<KeptRegion> {
        let StepSource::Kept { regions, next, count } = self else { return None };
        if std::mem::take(count) == 0 {
            return None;
        }
        *next += 1;
        Some(KeptRegion { regions: regions.clone(), at: *next - 1 })
    }

    /// Whether regions are recorded. Recording ends where a program is too long to be kept.
    pub(super) fn records(&self) -> bool {
        matches!(self, StepSource::Recording { .. })
    }

    /// The regions recorded so far.
    pub(super) fn recorded(&self) -> &[Region] {
        match self {
            StepSource::Recording { regions, .. } => regions,
            _ => &[],
        }
    }

    /// Records a region.
    pub(super) fn record(&mut self, region: Region) {
        if let StepSource::Recording { regions, steps } = self {
            *steps += region.iter().map(Stretch::steps).sum::<usize>();
            if *steps > KEPT_STEPS {
                *self = StepSource::Once;
            } else {
                regions.push(region);
            }
        }
    }
}

/// One of the kept regions.
pub(super) struct KeptRegion {
    regions: Arc<Vec<Region>>,
    at: usize,
}

impl KeptRegion {
    /// The stretches of the region.
    pub(super) fn stretches(&self) -> &[Stretch<Vec<Segment>>] {
        self.regions.get(self.at).map_or(&[], Vec::as_slice)
    }
}

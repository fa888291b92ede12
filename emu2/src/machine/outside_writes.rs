//! The regions of a machine that were written from outside the engine, for those who follow its values.

/// At most this many regions are kept. With more, everything counts as written.
const LIMIT: usize = 4096;

/// Long words of a memory in the units that are selected: a region without its checks.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Part {
    pub(crate) memory: usize,
    pub(crate) units: [Option<u32>; 5],
    pub(crate) addr: u64,
    pub(crate) count: u64,
}

/// Regions that were written.
#[derive(Clone, Debug, Default)]
pub(crate) struct OutsideWrites {
    pub(crate) regions: Vec<Part>,
    /// More was written than the regions name.
    pub(crate) lost: bool,
    /// The machine was reset this many times.
    pub(crate) resets: u64,
}

impl OutsideWrites {
    /// Adds a region, or extends the last one.
    pub(super) fn add(&mut self, region: &Part) {
        if self.lost {
            return;
        }
        if let Some(last) = self.regions.last_mut() {
            let end = last.addr + last.count;
            if (last.memory, last.units) == (region.memory, region.units) && (last.addr..=end).contains(&region.addr) {
                last.count = end.max(region.addr + region.count) - last.addr;
                return;
            }
        }
        if self.regions.len() == LIMIT {
            return self.lose();
        }
        self.regions.push(*region);
    }

    pub(super) fn lose(&mut self) {
        self.lost = true;
        self.regions = Vec::new();
    }

    pub(super) fn take(&mut self) -> OutsideWrites {
        std::mem::replace(self, OutsideWrites { resets: self.resets, ..OutsideWrites::default() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn neighbours_join_and_many_are_lost() {
        let region = |addr, count, unit| Part { memory: 1, units: [Some(unit), None, None, None, None], addr, count };
        let mut written = OutsideWrites::default();
        for (addr, count, unit) in [(0, 4, 0), (4, 4, 0), (2, 3, 0), (9, 1, 0), (10, 1, 1)] {
            written.add(&region(addr, count, unit));
        }
        let taken = written.take();
        let all: Vec<_> = taken.regions.iter().map(|r| (r.addr, r.count, r.units[0])).collect();
        assert_eq!((all, taken.lost), (vec![(0, 8, Some(0)), (9, 1, Some(0)), (10, 1, Some(1))], false));
        for k in 0..=LIMIT as u64 {
            written.add(&region(2 * k, 1, 0));
        }
        assert!(written.regions.is_empty() && written.take().lost);
    }
}

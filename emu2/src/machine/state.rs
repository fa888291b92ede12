//! The state of the chip as plain arrays. A row of a PE memory holds the same address of all PEs of an L1B.

use super::words::Zeros;
use super::{Layout, Pages, PathRows, Words};
use crate::num::matvec::{DMatrix, FMatrix, GMatrix, HMatrix};
use crate::spec::{LevelName, Spec};

/// State of one L1B and everything below it.
///
/// A PE memory is `[long word address][lane]` with lane = MAB number * PEs of a MAB + PE number. So one instruction of one
/// L1B is a loop over contiguous rows.
#[derive(Clone, Debug)]
pub struct L1b {
    /// PE memories, in slot order.
    pub pe: Vec<Words>,
    /// Memories of the L1B itself (L1BM, turnaround register), in slot order.
    pub own: Vec<Words>,
    /// Forwarding paths in the order of the spec.
    pub forward: Vec<PathRows>,
    /// Cycles of a step.
    pub(crate) cycles: usize,
    /// False after a write of a PE memory from outside the engine. Then everything derived from PE memories must be
    /// computed anew.
    pub(crate) settled: bool,
    /// PE memory slots that hold a base address other than 0 on some PE; see [`L1b::settle`].
    pub(crate) live_bases: u64,
    /// PE memory slots whose second long word of every pair is known to be zero.
    pub(crate) narrow: u64,
    /// Decoded matrix registers, by PE memory slot. A product decodes its register when needed; a write of the register
    /// drops it.
    pub(crate) decoded: Vec<Option<Decoded>>,
    /// Memory of decoded registers that have been dropped, by slot, for the next ones.
    pub(crate) dropped: Vec<Option<Decoded>>,
}

/// The matrix registers of an L1B's MABs in one precision.
#[derive(Clone, Debug)]
pub(crate) enum Decoded {
    /// Doubles.
    D(Vec<DMatrix>),
    /// Singles.
    F(Vec<FMatrix>),
    /// Pseudo-singles.
    G(Vec<GMatrix>),
    /// Halves.
    H(Vec<HMatrix>),
}

impl L1b {
    /// Computes everything anew that is derived from PE memories, if code outside the engine may have written them.
    pub(crate) fn settle(&mut self, base_slots: &[usize]) {
        if std::mem::replace(&mut self.settled, true) {
            return;
        }
        self.decoded.iter_mut().for_each(|d| *d = None);
        self.narrow = 0;
        self.settle_bases(base_slots);
    }

    /// Drops a decoded matrix register, because it is written.
    pub(crate) fn drop_decoded(&mut self, slot: usize) {
        if let Some(decoded) = self.decoded[slot].take() {
            self.dropped[slot] = Some(decoded);
        }
    }

    /// Notes which base address registers are not zero.
    pub(crate) fn settle_bases(&mut self, base_slots: &[usize]) {
        self.live_bases = base_slots
            .iter()
            .filter(|slot| self.pe[**slot].iter().any(|base| *base != 0))
            .fold(0, |live, slot| live | 1 << slot);
    }
}

/// State of the chip.
#[derive(Clone, Debug)]
pub struct State {
    /// L1Bs in chip order: `(group * L2Bs + l2b) * L1Bs + l1b`.
    pub l1b: Vec<L1b>,
    /// Memories of each L2B in chip order, in slot order.
    pub l2b: Vec<Vec<Words>>,
    /// Memories of each group, in slot order.
    pub group: Vec<Vec<Pages>>,
}

impl State {
    /// The state with all memories zero.
    pub fn new(spec: &Spec, layout: &Layout) -> State {
        let lanes = spec.lanes();
        let sizes = |level, lanes: usize| -> Vec<usize> {
            layout.sizes(level).iter().map(|words| *words as usize * lanes).collect()
        };
        let [of_pe, of_l1b, of_l2b] = [sizes(LevelName::Pe, lanes), sizes(LevelName::L1b, 1), sizes(LevelName::L2b, 1)];
        let units = |level, sizes: &[usize]| -> Vec<usize> { sizes.repeat(spec.units(level) as usize) };
        let in_l1bs = [&of_pe[..], &of_l1b].concat();
        let all = units(LevelName::L1b, &in_l1bs).into_iter().chain(units(LevelName::L2b, &of_l2b));
        let mut zeros = Zeros::new(all);
        let mut rows = |sizes: &[usize]| -> Vec<Words> { sizes.iter().map(|size| zeros.cut(*size)).collect() };
        let plane = spec.counts.cycle as usize * lanes;
        let l1b: Vec<L1b> = (0..spec.units(LevelName::L1b))
            .map(|_| L1b {
                pe: rows(&of_pe),
                own: rows(&of_l1b),
                forward: spec.forwards.iter().map(|_| PathRows::new(plane)).collect(),
                cycles: spec.counts.cycle as usize,
                settled: false,
                live_bases: 0,
                narrow: 0,
                decoded: vec![None; layout.sizes(LevelName::Pe).len()],
                dropped: vec![None; layout.sizes(LevelName::Pe).len()],
            })
            .collect();
        let l2b = (0..spec.units(LevelName::L2b)).map(|_| rows(&of_l2b)).collect();
        let group = (0..spec.units(LevelName::Group))
            .map(|_| layout.sizes(LevelName::Group).iter().map(|words| Pages::new(*words)).collect())
            .collect();
        State { l1b, l2b, group }
    }
}

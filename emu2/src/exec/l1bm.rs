//! The operands of L1BM instructions above the PEs: loads to the PEs, and the words that stores write.

use super::l1bm_map::{repeat, PeRun, RepeatedRows};
use super::wrap::inside;
use crate::machine::{Out, Words};
use std::sync::Arc;

/// An L1BM instruction that copies words to the PEs.
#[derive(Clone, Debug)]
pub(super) struct Load {
    pub(super) place: L1bPlace,
    pub(super) runs: Arc<[PeRun]>,
    /// Long words of the path that the runs fill.
    pub(super) words: usize,
    /// The runs as equal rows, if they have that form and begin at the start of the path.
    pub(super) rows: Option<RepeatedRows>,
}

/// A place in a memory of the L1B: L1BM or the turnaround register.
#[derive(Clone, Copy, Debug)]
pub(super) struct L1bPlace {
    pub(super) slot: usize,
    pub(super) address: u64,
}

/// The places that take words from the PEs. `T` describes how the words are arranged there.
#[derive(Clone, Debug)]
pub(super) struct Sent<T> {
    /// The place in L1BM; none if the turnaround register is the destination.
    pub(super) written: Option<(L1bPlace, T)>,
    /// The place in the turnaround register, where words are stored unshifted.
    pub(super) kept: (L1bPlace, T),
}

impl<T> Sent<T> {
    /// The places to write. `keep`: the turnaround register is one of them.
    pub(super) fn places(&self, keep: bool) -> impl Iterator<Item = &(L1bPlace, T)> {
        self.written.iter().chain(keep.then_some(&self.kept))
    }
}

impl Load {
    /// Copies the words of all cycles.
    pub(super) fn run(&self, own: &[Words], out: Out<'_>) {
        let memory = &own[self.place.slot];
        let Out { l0, l1 } = out;
        let plane = l0.len();
        let mut planes = [Some(l0), l1];
        if self.words < planes.iter().flatten().count() * plane {
            planes.iter_mut().flatten().for_each(|l| l.fill(0));
        }
        if let (Some(rows), Some(first), true) = (&self.rows, planes[0].as_deref_mut(), self.words <= plane) {
            let start = inside(self.place.address + rows.offset, memory.len());
            if let Some(words) = memory.get(start..start + rows.words) {
                return repeat(words, rows.period, rows.length, &mut first[..self.words]);
            }
        }
        for run in self.runs.iter() {
            // No run of words goes from one plane to the other, see `pe_runs`.
            let (half, first) = (run.path / plane, run.path % plane);
            if let Some(Some(rows)) = planes.get_mut(half) {
                run.bring(memory, self.place.address, &mut rows[first..first + run.length]);
            }
        }
    }
}

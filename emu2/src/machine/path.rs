//! The 128-bit data path: the result of every PE of an L1B in each cycle of a step.

use super::Words;

/// The planes L0 and L1 of the 128-bit data path: rows of one cycle or of all cycles of a step.
pub(crate) type Path<'a> = (&'a [u64], &'a [u64]);

/// A result or a forwarding path: two planes of rows, L0 and L1, each `[cycle][lane]`.
#[derive(Clone, Debug)]
pub struct PathRows {
    words: Words,
    /// Whether L1 is known to be zero. Then it need not be cleared again.
    narrow: bool,
}

impl PathRows {
    /// Zeros, with `plane` long words in each plane.
    pub(crate) fn new(plane: usize) -> PathRows {
        PathRows { words: Words::zeros(2 * plane), narrow: true }
    }

    fn plane(&self) -> usize {
        self.words.len() / 2
    }

    /// L0 and L1.
    pub(crate) fn planes(&self) -> Path<'_> {
        self.words.split_at(self.plane())
    }

    /// Both planes, L0 first.
    pub(crate) fn words(&self) -> &[u64] {
        &self.words
    }

    /// Both planes to write, L0 first.
    pub(crate) fn words_mut(&mut self) -> &mut [u64] {
        self.narrow = false;
        &mut self.words
    }

    /// Whether L1 is known to be zero.
    pub(crate) fn narrow(&self) -> bool {
        self.narrow
    }

    /// The planes to write. If `narrow`, L1 is zero and must not be written.
    pub(crate) fn start(&mut self, narrow: bool) -> Out<'_> {
        let plane = self.plane();
        let (l0, l1) = self.words.split_at_mut(plane);
        if narrow && !self.narrow {
            l1.fill(0);
        }
        self.narrow = narrow;
        Out { l0, l1: (!narrow).then_some(l1) }
    }
}

/// The buffers that a computation writes.
#[derive(Debug)]
pub(crate) struct Out<'a> {
    pub(crate) l0: &'a mut [u64],
    /// None if L1 is not needed or is zero already.
    pub(crate) l1: Option<&'a mut [u64]>,
}

impl<'a> Out<'a> {
    /// The rows of each cycle, L0 and L1. L1 is empty if it is not needed.
    pub(crate) fn rows(self, lanes: usize) -> impl Iterator<Item = [&'a mut [u64]; 2]> {
        let mut l1 = self.l1.map(|l1| l1.chunks_exact_mut(lanes));
        self.l0.chunks_exact_mut(lanes).map(move |l0| [l0, l1.as_mut().and_then(Iterator::next).unwrap_or_default()])
    }

    /// A part of `length` long words, beginning at long word `first` of each plane.
    pub(crate) fn part(&mut self, first: usize, length: usize) -> Out<'_> {
        Out { l0: &mut self.l0[first..][..length], l1: self.l1.as_deref_mut().map(|l1| &mut l1[first..][..length]) }
    }
}

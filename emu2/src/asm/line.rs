//! One PE or MV line while it is being read.

use super::statement::{L2bmTransfer, Mv, PeInstruction};
use crate::error::Span;

/// An issue slot in use, and the instruction that uses it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Use {
    /// Entry of `slots`.
    pub(super) slot: usize,
    pub(super) span: Span,
}

/// The instructions of a line, in source order within each kind.
#[derive(Debug, Default)]
pub(super) struct Line {
    pub(super) pe: Vec<PeInstruction>,
    pub(super) l2bm: Vec<L2bmTransfer>,
    pub(super) mv: Option<Box<Mv>>,
    pub(super) nop: Option<u64>,
    pub(super) wait: Option<u32>,
    /// The line has a `wait`. Its tag may be malformed.
    pub(super) waits: bool,
    pub(super) noforward: bool,
    pub(super) quit: bool,
    /// The line has an MV that does nothing. It makes no item.
    pub(super) idle_mv: bool,
    /// The line has a mask statement. It makes no step.
    pub(super) mask: bool,
    pub(super) uses: Vec<Use>,
}

impl Line {
    /// Empties the line for the next one and keeps its storage.
    pub(super) fn clear(&mut self) {
        self.pe.clear();
        self.l2bm.clear();
        self.uses.clear();
        (self.mv, self.nop, self.wait) = (None, None, None);
        (self.waits, self.noforward, self.quit) = (false, false, false);
        (self.mask, self.idle_mv) = (false, false);
    }
}

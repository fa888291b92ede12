//! An operand as it is written, before its place in the instruction says what it may be.

use super::statement::{Access, Convert, Mask, Selected};
use crate::error::Span;

/// A written operand, wherever it stands.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Operand {
    pub(super) span: Span,
    pub(super) kind: Kind,
    /// Preceded by `-`.
    pub(super) negate: bool,
    pub(super) convert: Option<Convert>,
    pub(super) mask: Option<Mask>,
}

#[derive(Clone, Debug, PartialEq)]
pub(super) enum Kind {
    /// A memory of the PEs.
    Pe(Access),
    /// A memory above them.
    Upper(Upper),
    /// The turnaround register of the L1Bs, and words of 32 bits of its width prefix.
    Turnaround(u32),
    /// Entry of `forwards`.
    Forward(usize),
    /// Entry of `fixed`.
    Fixed(usize),
    /// Entry of `bases`, and the words of 32 bits that are accessed.
    Base {
        base: usize,
        words: u32,
    },
    /// A matrix register.
    Bank(Bank),
    /// Entry of the mask registers.
    Flags(u32),
    Nowrite,
}

/// A matrix register as an operand.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Bank {
    /// Entry of `banks`.
    pub(super) bank: usize,
    /// Two rows or columns a cycle.
    pub(super) wide: bool,
    /// First row or column; none: the whole register.
    pub(super) row: Option<u32>,
}

/// An operand in a memory above the PEs.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Upper {
    /// Entry of `operands`; of the one that it stands for if it goes through a table.
    pub(super) operand: usize,
    /// The address is an entry of a table.
    pub(super) table: bool,
    /// Entry of `memories`.
    pub(super) memory: usize,
    /// Words of 32 bits of its width prefix.
    pub(super) words: u32,
    /// Long words of the memory, or entries of the table.
    pub(super) size: u64,
    /// In long words, or an entry.
    pub(super) address: u64,
    pub(super) selected: Selected,
}

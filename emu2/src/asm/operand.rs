//! An operand as it is written. Whether it is legal at its place in the instruction is checked later.

use super::statement::{Access, Convert, Mask, Selected};
use crate::error::Span;

/// An operand as it is written, at any place of an instruction.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Operand {
    pub(super) span: Span,
    pub(super) kind: Kind,
    /// A `-` stands before it.
    pub(super) negate: bool,
    pub(super) convert: Option<Convert>,
    pub(super) mask: Option<Mask>,
}

#[derive(Clone, Debug, PartialEq)]
pub(super) enum Kind {
    /// A memory of the PEs.
    Pe(Access),
    /// A memory above the PEs.
    AbovePe(AbovePeOperand),
    /// The turnaround register of the L1Bs, and the number of 32-bit words of its width prefix.
    Turnaround(u32),
    /// Entry of `forwards`.
    Forward(usize),
    /// Entry of `fixed`.
    Fixed(usize),
    /// Entry of `bases`, and the number of 32-bit words that are accessed.
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
    /// First row or column. `None` is the whole register.
    pub(super) row: Option<u32>,
}

/// An operand in a memory above the PEs.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct AbovePeOperand {
    /// Entry of `operands`. If the operand goes through a table, the entry that it stands for.
    pub(super) operand: usize,
    /// The address is an entry of a table.
    pub(super) table: bool,
    /// Entry of `memories`.
    pub(super) memory: usize,
    /// The number of 32-bit words of its width prefix.
    pub(super) words: u32,
    /// Long words of the memory, or entries of the table.
    pub(super) size: u64,
    /// The address in long words, or the entry of the table.
    pub(super) address: u64,
    pub(super) selected: Selected,
}

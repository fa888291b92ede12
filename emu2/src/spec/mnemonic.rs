//! The meaning of a mnemonic.

/// The PEs of a MAB that multiply in a `pair` precision.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Half {
    /// `u`: the first half of the PEs of a MAB.
    Upper,
    /// `d`: the second half.
    Lower,
}

/// The meaning of a mnemonic without its parameter. Numbers index the lists of [`Spec`](super::Spec).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mnemonic {
    /// An ALU operation.
    Alu {
        /// Entry of `alu`.
        op: usize,
        /// Entry of `precisions`.
        precision: Option<usize>,
        /// The `u` form.
        unsigned: bool,
    },
    /// A MAU operation.
    Mau {
        /// Entry of `mau`.
        op: usize,
        /// Entry of `precisions`.
        precision: usize,
        /// Entry of `mau_precisions`.
        mau_precision: usize,
        /// `u` or `d`.
        half: Option<Half>,
        /// `r`: the result is in the reduced format.
        reduced: bool,
    },
    /// Access to a matrix register.
    Matrix {
        /// Entry of `matrix_ops`.
        op: usize,
        /// Entry of `precisions`.
        precision: usize,
        /// Entry of `mau_precisions`.
        mau_precision: usize,
    },
    /// A transfer.
    Transfer(usize),
    /// A control statement.
    Control(usize),
}

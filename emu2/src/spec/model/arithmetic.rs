//! ALU, MAU and matrix register operations.

use super::entry::{Evidence, Example};
use serde::Deserialize;

/// Which part of the 128-bit path an op works on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum DataWidth {
    /// L0; L1 of an ALU result is L1 of x.
    Long,
    /// Both long words.
    Path,
}

/// Mantissa lengths written after the mnemonic, `hbfn/9`.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Lengths {
    /// The precision that names one.
    pub precision: String,
    /// Smallest.
    pub minimum: u32,
    /// Largest.
    pub maximum: u32,
}

/// `[[alu]]`
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Alu {
    /// The op without prefixes.
    pub name: String,
    /// Legal precision letters; none: the op has no prefix.
    pub precisions: Vec<String>,
    /// Precision letters with a `u` form.
    #[serde(default)]
    pub unsigned: Vec<String>,
    /// Source operands.
    pub sources: u32,
    /// Begins with a literal.
    #[serde(default)]
    pub literal: bool,
    /// Lane function: a name of the ALU kernels, or `imm`, `immu`.
    pub kernel: String,
    /// The bit of x that `relu` tests, counted from the top.
    #[serde(default)]
    pub bit: u32,
    /// What `lrelu` subtracts from and `ilrelu` adds to the exponent field; how many PEs `rotate` goes on; how far below the
    /// exponent of its block an extended element counts.
    #[serde(default)]
    pub amount: u32,
    /// `rsqrt`: results in 64ths, 16 for even and 16 for odd exponents.
    pub table: Option<[u8; 32]>,
    /// Block float: the mantissa lengths that a precision must name.
    pub lengths: Option<Lengths>,
    /// What the op works on.
    pub data: DataWidth,
    /// Precisions in which it works on all 128 bits whatever `data` says.
    #[serde(default)]
    pub path_precisions: Vec<String>,
    /// Flag rule.
    pub flag: String,
    /// Flag rule of the `u` form.
    pub unsigned_flag: Option<String>,
    /// Memories that no instruction of the line may touch.
    #[serde(default)]
    pub excludes: Vec<String>,
    /// One paragraph.
    pub doc: String,
    /// How well it is known.
    pub evidence: Evidence,
    /// Programs with their bits.
    pub example: Vec<Example>,
}

/// `[[mau_precision]]`
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct MauPrecision {
    /// Precision letter.
    pub name: String,
    /// Low bits of both factors whose partial products are not formed.
    pub omitted_bits: u32,
    /// What the addend port takes.
    pub addend: DataWidth,
    /// What the result fills.
    pub result: DataWidth,
    /// Format of an `r` result.
    pub reduced: String,
    /// Products need `u` or `d`.
    pub pair: bool,
    /// Low mantissa bits of a matrix factor that are not seen.
    #[serde(default)]
    pub ignored_bits: u32,
    /// Rows of the matrix register.
    pub rows: u32,
    /// Columns of it that take part in products.
    pub columns: u32,
}

/// A MAU input port.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum MauPort {
    /// First factor.
    X,
    /// Second factor.
    Y,
    /// Addend.
    Z,
}

/// `[[mau]]`
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Mau {
    /// The op without prefix and suffixes.
    pub name: String,
    /// Legal precision letters.
    pub precisions: Vec<String>,
    /// The port of each written source.
    pub sources: Vec<MauPort>,
    /// Multiplies two written sources, so that `pair` precisions need `u` or `d`.
    pub product: bool,
    /// The first factor is a matrix register, written before the sources.
    #[serde(default)]
    pub matrix: bool,
    /// One paragraph.
    pub doc: String,
    /// How well it is known.
    pub evidence: Evidence,
    /// Programs with their bits.
    pub example: Vec<Example>,
}

/// What a matrix register access does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum MatrixKernel {
    /// Stores rows.
    Write,
    /// Gives columns.
    Read,
}

/// `[[matrix_op]]`: access to a matrix register.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct MatrixOp {
    /// The op without prefix.
    pub name: String,
    /// Legal precision letters.
    pub precisions: Vec<String>,
    /// What it does.
    pub kernel: MatrixKernel,
    /// Issue slot.
    pub slot: String,
    /// The MAU input that its source comes through.
    pub port: Option<MauPort>,
    /// Precisions that may move two rows or columns a cycle.
    #[serde(default)]
    pub wide: Vec<String>,
    /// Precisions that must.
    #[serde(default)]
    pub wide_only: Vec<String>,
    /// One paragraph.
    pub doc: String,
    /// How well it is known.
    pub evidence: Evidence,
    /// Programs with their bits.
    pub example: Vec<Example>,
}

//! ALU, MAU and matrix register operations.

use super::entry::{Evidence, Example};
use serde::Deserialize;

/// The part of the 128-bit path that an op works on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum DataWidth {
    /// L0 only. L1 of an ALU result is L1 of x.
    Long,
    /// Both long words.
    Path,
}

/// The mantissa lengths that may stand after the mnemonic, as in `hbfn/9`.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Lengths {
    /// The precision that has a length.
    pub precision: String,
    /// Smallest length.
    pub minimum: u32,
    /// Largest length.
    pub maximum: u32,
}

/// `[[alu]]`
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Alu {
    /// The op without prefixes.
    pub name: String,
    /// Legal precision letters. If empty, the op has no prefix.
    pub precisions: Vec<String>,
    /// Precision letters with a `u` form.
    #[serde(default)]
    pub unsigned: Vec<String>,
    /// Number of source operands.
    pub sources: u32,
    /// The operands begin with a literal.
    #[serde(default)]
    pub literal: bool,
    /// Name of the ALU kernel, or `imm` or `immu`.
    pub kernel: String,
    /// The bit of x that `relu` tests, counted from the top.
    #[serde(default)]
    pub bit: u32,
    /// Parameter of some kernels. `lrelu` subtracts it from the exponent field and `ilrelu` adds it. `rotate` reads the
    /// PE that is so many PEs further. An extended block float element counts so far below the exponent of its block.
    #[serde(default)]
    pub amount: u32,
    /// For `rsqrt`: results in 64ths, 16 for even and 16 for odd exponents.
    pub table: Option<[u8; 32]>,
    /// For block float: the mantissa lengths that may be written.
    pub lengths: Option<Lengths>,
    /// The part of the path that the op works on.
    pub data: DataWidth,
    /// Precisions in which the op works on all 128 bits, whatever `data` says.
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
    /// Programs with the bits of their results.
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
    /// The width of the addend port.
    pub addend: DataWidth,
    /// The width of the result.
    pub result: DataWidth,
    /// Format of an `r` result.
    pub reduced: String,
    /// Products need `u` or `d`.
    pub pair: bool,
    /// Low mantissa bits of a matrix factor that a product ignores.
    #[serde(default)]
    pub ignored_bits: u32,
    /// Rows of the matrix register.
    pub rows: u32,
    /// Columns of the matrix register that take part in products.
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
    /// The op multiplies two written sources, so `pair` precisions need `u` or `d`.
    pub product: bool,
    /// The first factor is a matrix register, written before the sources.
    #[serde(default)]
    pub matrix: bool,
    /// One paragraph.
    pub doc: String,
    /// How well it is known.
    pub evidence: Evidence,
    /// Programs with the bits of their results.
    pub example: Vec<Example>,
}

/// The kind of access to a matrix register.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum MatrixKernel {
    /// Stores rows.
    Write,
    /// Returns columns.
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
    /// The kind of access.
    pub kernel: MatrixKernel,
    /// Issue slot.
    pub slot: String,
    /// The MAU input that its source comes through.
    pub port: Option<MauPort>,
    /// Precisions that may move two rows or columns a cycle.
    #[serde(default)]
    pub wide: Vec<String>,
    /// Precisions that must move two.
    #[serde(default)]
    pub wide_only: Vec<String>,
    /// One paragraph.
    pub doc: String,
    /// How well it is known.
    pub evidence: Evidence,
    /// Programs with the bits of their results.
    pub example: Vec<Example>,
}

//! What may stand after `$`, literals, masks.

use super::entry::Evidence;
use super::machine::LevelName;
use serde::Deserialize;

/// `[syntax]`: letters of the language that belong to no entry.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Syntax {
    /// Behind an address: it grows from cycle to cycle.
    pub stride: char,
    /// Between letter and address: the T register is added.
    pub indirect: char,
    /// Behind an address: one access width more on the PEs of a MAB up to a number.
    pub modify: char,
    /// Behind a source: from the next lower format.
    pub extend: char,
    /// Behind a source: from the next higher format.
    pub reduce: char,
    /// Behind a mask: assertions about its length, which change nothing.
    pub mask_assertions: Vec<char>,
    /// The size of an MV.
    pub mv_size: char,
    /// The tag of an MV and of a `wait`.
    pub mv_tag: char,
    /// The priority of an MV.
    pub mv_priority: char,
    /// Blocks that one entry of the DAR table serves.
    pub mv_table: String,
    /// Hex digits of a tag.
    pub tag_digits: usize,
    /// Before the letter of a block float type of `d get`.
    pub block_float: char,
}

impl Syntax {
    /// A tag as it is written.
    pub fn tag(&self, tag: u32) -> String {
        format!("{}{tag:0digits$x}", self.mv_tag, digits = self.tag_digits)
    }
}

/// A way to write an address.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Addressing {
    /// `0v`, `0v4`: advances every cycle.
    Stride,
    /// `[0,2,4,6]`: one address per cycle.
    Flat,
    /// `t`: the low bits of the T register's long word are added.
    Indirect,
    /// `j1`: one access width more on the first PEs of a MAB.
    Modify,
}

/// `[[operand]]`: a memory as assembly names it.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Operand {
    /// Name that transfer forms use.
    pub name: String,
    /// The letter after the width prefix.
    pub letter: char,
    /// What follows the letter, before the address.
    #[serde(default)]
    pub suffix: String,
    /// Addresses are entries of a table: in an MV it stands where the other operand may.
    pub table: Option<Table>,
    /// A memory through which the words pass that an L2BM instruction brings here.
    pub buffer: Option<String>,
    /// The memory.
    pub memory: String,
    /// Legal width prefixes.
    pub widths: Vec<String>,
    /// Legal ways to write the address beyond a plain number.
    pub addressing: Vec<Addressing>,
    /// Levels that `@` may select, outermost first.
    #[serde(default)]
    pub selectors: Vec<LevelName>,
    /// Memory of the base address register that is added to every address.
    pub base: Option<String>,
    /// One sentence.
    pub doc: String,
    /// How well it is known.
    pub evidence: Evidence,
}

/// How an operand finds its words through a table.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Table {
    /// The operand that it stands for.
    pub operand: String,
    /// The memory with the entries.
    pub memory: String,
    /// Long words of a block, an expression: an entry is the number of one.
    pub block: String,
}

/// The unit whose last result a forwarding path holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ForwardUnit {
    /// MAU compute.
    Mau,
    /// ALU.
    Alu,
    /// L1BM to PE.
    L1bm,
    /// Matrix read.
    Matrix,
}

/// `[[forward]]`
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Forward {
    /// Token without `$`.
    pub name: String,
    /// Whose result.
    pub unit: ForwardUnit,
    /// No other unit's input takes it.
    #[serde(default)]
    pub first_alu_input_only: bool,
    /// One sentence.
    pub doc: String,
    /// How well it is known.
    pub evidence: Evidence,
}

/// `[[base]]`: a base address register as a destination.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Base {
    /// Token without `$` and width prefix.
    pub name: String,
    /// The register's memory.
    pub memory: String,
    /// Legal width prefixes.
    pub widths: Vec<String>,
    /// Low bits of the accessed width that it keeps.
    pub bits: u32,
    /// One sentence.
    pub doc: String,
    /// How well it is known.
    pub evidence: Evidence,
}

/// `[[bank]]`: a matrix register.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Bank {
    /// Letter after the width prefix.
    pub name: String,
    /// The register's memory.
    pub memory: String,
    /// Legal width prefixes.
    pub widths: Vec<String>,
    /// One sentence.
    pub doc: String,
    /// How well it is known.
    pub evidence: Evidence,
}

/// `[turnaround]`: the register of an L1B that keeps one step of what its PEs send, in the layout of the instruction.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Turnaround {
    /// Token without `$` and width prefix.
    pub name: String,
    /// The operand whose place it takes.
    pub operand: String,
    /// The register's memory.
    pub memory: String,
    /// Issue slot of instructions that read it.
    pub slot: String,
    /// One sentence.
    pub doc: String,
    /// How well it is known.
    pub evidence: Evidence,
}

/// `[mask]`: write masks and mask registers.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct MaskRegisters {
    /// Token of a destination, without `$`.
    pub destination: String,
    /// Token of a mask, without `$`.
    pub source: String,
    /// The statement that sets the masks of the following lines.
    pub statement: String,
    /// Letter of the mask registers in that statement.
    pub letter: char,
    /// The registers' memory.
    pub memory: String,
    /// Register entries, entry 0 included; the fixed patterns follow.
    pub entries: u32,
    /// Bits of an entry in one cycle.
    pub bits: u32,
    /// One paragraph.
    pub doc: String,
    /// How well it is known.
    pub evidence: Evidence,
}

/// `[[fixed]]`
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Fixed {
    /// Token without `$`.
    pub name: String,
    /// Expression over `g q b m p` and the counts, or "msb".
    pub value: String,
    /// One sentence.
    pub doc: String,
    /// How well it is known.
    pub evidence: Evidence,
}

/// What a literal's text is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum LiteralKind {
    /// A decimal number, rounded to a float format.
    Float,
    /// A signed integer.
    Signed,
    /// An unsigned integer.
    Unsigned,
}

/// `[[literal]]`
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Literal {
    /// What stands before the quotes.
    pub name: String,
    /// Float or integer.
    pub kind: LiteralKind,
    /// Float format.
    pub format: Option<String>,
    /// Integer width.
    pub bits: Option<u32>,
    /// How often the value fills the 32-bit word.
    pub repeat: u32,
    /// One sentence.
    pub doc: String,
    /// How well it is known.
    pub evidence: Evidence,
}

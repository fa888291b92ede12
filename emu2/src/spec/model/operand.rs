//! Operands, literals, masks and other parts of the syntax.

use super::entry::Evidence;
use super::machine::LevelName;
use serde::Deserialize;

/// `[syntax]`: letters of the language that belong to no entry.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Syntax {
    /// Stands after an address, which then grows from cycle to cycle.
    pub stride: char,
    /// Stands between letter and address. The T register is then added to the address.
    pub indirect: char,
    /// Stands after an address, before the number of a PE. The PEs of a MAB up to this one then add one access width.
    pub modify: char,
    /// Stands after a source that is converted from the next lower format.
    pub extend: char,
    /// Stands after a source that is converted from the next higher format.
    pub reduce: char,
    /// Letters that may stand after a mask. They assert its length and change nothing.
    pub mask_assertions: Vec<char>,
    /// Stands before the size of an MV.
    pub mv_size: char,
    /// Stands before the tag of an MV or a `wait`.
    pub mv_tag: char,
    /// Stands before the priority of an MV.
    pub mv_priority: char,
    /// Stands before the number of blocks that one entry of the DAR table serves.
    pub mv_table: String,
    /// Number of hex digits of a tag.
    pub tag_digits: usize,
    /// Stands before the letter of a block float type of `d get`.
    pub block_float: char,
}

impl Syntax {
    /// A tag as assembly text.
    pub fn tag(&self, tag: u32) -> String {
        format!("{}{tag:0digits$x}", self.mv_tag, digits = self.tag_digits)
    }
}

/// A way to write an address.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Addressing {
    /// `0v`, `0v4`: the address advances every cycle.
    Stride,
    /// `[0,2,4,6]`: one address per cycle.
    Flat,
    /// `t`: the low bits of the long word in the T register are added.
    Indirect,
    /// `j1`: the first PEs of a MAB add one access width.
    Modify,
}

/// `[[operand]]`: a memory under the name that assembly uses.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Operand {
    /// Name that transfer forms use.
    pub name: String,
    /// The letter after the width prefix.
    pub letter: char,
    /// The text between the letter and the address.
    #[serde(default)]
    pub suffix: String,
    /// Set if addresses are entries of a table. In an MV, this operand may then replace the one that the table names.
    pub table: Option<Table>,
    /// A memory that buffers the words that an L2BM instruction brings here.
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

/// The way in which an operand finds its words through a table.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Table {
    /// The operand that it stands for.
    pub operand: String,
    /// The memory with the entries.
    pub memory: String,
    /// Long words of a block, as an expression. An entry of the table is the number of a block.
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
    /// The unit whose result the path holds.
    pub unit: ForwardUnit,
    /// Only the first input of the ALU takes this path.
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
    /// How many low bits of the accessed width the register keeps.
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

/// `[turnaround]`: the register of an L1B that keeps the words that its PEs sent in one step, in the layout of the
/// instruction.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Turnaround {
    /// Token without `$` and width prefix.
    pub name: String,
    /// The operand that the register stands in for.
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
    /// Number of register entries, with entry 0. The fixed patterns follow them.
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
    /// An expression over `g q b m p` and the counts, or "msb".
    pub value: String,
    /// One sentence.
    pub doc: String,
    /// How well it is known.
    pub evidence: Evidence,
}

/// The kind of text of a literal.
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
    /// The letters before the quotes.
    pub name: String,
    /// Float or integer.
    pub kind: LiteralKind,
    /// Float format.
    pub format: Option<String>,
    /// Integer width.
    pub bits: Option<u32>,
    /// How often the value is repeated to fill the 32-bit word.
    pub repeat: u32,
    /// One sentence.
    pub doc: String,
    /// How well it is known.
    pub evidence: Evidence,
}

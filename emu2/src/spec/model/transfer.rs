//! Transfers: index maps and reductions.

use super::entry::{Evidence, Example};
use super::machine::LevelName;
use indexmap::IndexMap;
use serde::Deserialize;

/// The way in which the parameter of a transfer is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ParameterStyle {
    /// `@3`
    At,
    /// `+3`, `-3`, or nothing for the default.
    Signed,
    /// `@0/6`, `@3`, `@0,2,4,6`: a set of numbers that are equal except in some free bits. Index maps see two names:
    /// `_first` is the smallest number, and `_free` has the free bits.
    Set,
}

/// The parameter that follows the mnemonic of a transfer.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Parameter {
    /// Name in the index map.
    pub name: String,
    /// Spelling.
    pub style: ParameterStyle,
    /// Smallest value, an expression.
    pub minimum: String,
    /// Largest value, an expression.
    pub maximum: String,
    /// Value if it is left out. `None` if it must be written. For a set, -1 is all numbers.
    pub default: Option<i64>,
    /// For a set: the set of all numbers is refused.
    #[serde(default)]
    pub partial: bool,
    /// Forms that have the parameter. Empty is all forms.
    #[serde(default)]
    pub forms: Vec<String>,
}

/// When the elements of a reduction are widened to the next higher format. One long word then becomes two.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Widen {
    /// If the source has an `e`.
    Written,
    /// Always in this form. The lanes of the reduction are those of the next higher format.
    Always,
}

/// One end of a transfer form.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Side {
    /// The name of an operand, or "pe" for the PE side.
    pub operand: String,
    /// Width prefix that selects this form.
    pub width: Option<String>,
    /// Levels that `@` must select here.
    #[serde(default)]
    pub selectors: Vec<LevelName>,
    /// The levels of `selectors` that may be left out. This means unit 0, with a warning.
    #[serde(default)]
    pub assumed: Vec<LevelName>,
    /// An expression. The written address must be a multiple of it.
    pub align: Option<String>,
    /// The end is not written as an operand. The instruction implies it.
    #[serde(default)]
    pub implied: bool,
}

/// Published rates of an MV form, in long words per cycle through each memory that it touches. Either both sides have
/// one rate, which depends on whether they lie in one group, or each side has its own. A side without a rate does not
/// limit the form.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Throughput {
    /// Rate of both sides if they lie in one group.
    pub same_group: Option<u32>,
    /// Rate of both sides if they lie in different groups.
    pub across: Option<u32>,
    /// Rate of each memory that is read.
    pub source: Option<u32>,
    /// Rate of each memory that is written.
    pub destination: Option<u32>,
}

impl Throughput {
    /// Rates of the source and of the destination. `across` says that they lie in different groups.
    pub fn sides(&self, across: bool) -> [Option<u32>; 2] {
        let both = if across { self.across } else { self.same_group };
        [self.source.or(both), self.destination.or(both)]
    }
}

/// `[[transfer.form]]`: one index map.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Form {
    /// Name.
    pub name: String,
    /// For an MV: an expression for the long words of a block. The size must be a multiple of it, and `i` counts
    /// blocks.
    pub unit: Option<String>,
    /// Where the words come from.
    pub source: Side,
    /// Where they go.
    pub destination: Side,
    /// For an MV: published rates.
    pub throughput: Option<Throughput>,
    /// The counters, outermost first, each with an expression for its count.
    pub r#loop: IndexMap<String, String>,
    /// An expression over counters and parameters. If it is 0, a copy moves nothing and a reduction takes the neutral
    /// element.
    pub r#where: Option<String>,
    /// Coordinates of the source.
    pub from: IndexMap<String, String>,
    /// Coordinates of the destination.
    pub to: IndexMap<String, String>,
    /// For reductions: expressions for the inputs of each stage, beginning with the stage at the elements. The elements
    /// of a destination are the words that the map sends there, in loop order.
    #[serde(default)]
    pub tree: Vec<String>,
    /// Reductions that have this form. Empty is all reductions of the entry.
    #[serde(default)]
    pub reductions: Vec<String>,
    /// The suffix after the name of the reduction that selects this form.
    #[serde(default)]
    pub suffix: String,
    /// Whether halves are widened to singles on their way in.
    pub widen: Option<Widen>,
    /// The last stage rounds to the next lower format. `half` of the destination is then the number of the word in its
    /// long word.
    #[serde(default)]
    pub narrow: bool,
    /// Evidence of the form, if it differs from that of the instruction.
    pub evidence: Option<Evidence>,
}

/// `[[reduction]]`: the operation by which a reducing transfer combines the words of one destination.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Reduction {
    /// The text after the name of the transfer.
    pub name: String,
    /// Precision letter.
    pub precision: String,
    /// Name of the reduction kernel.
    pub kernel: String,
    /// One sentence.
    pub doc: String,
    /// How well it is known.
    pub evidence: Evidence,
}

/// `[[transfer]]`
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Transfer {
    /// The mnemonic without its parameter.
    pub name: String,
    /// Issue slot.
    pub slot: String,
    /// The level at which every unit runs the map.
    pub level: LevelName,
    /// The parameter after the mnemonic.
    pub parameter: Option<Parameter>,
    /// Reductions whose names may follow the name of the entry. Each makes a transfer of its own.
    #[serde(default)]
    pub reductions: Vec<String>,
    /// Set if this transfer was made for a reduction: entry of `reductions` of the spec.
    #[serde(skip)]
    pub reduction: Option<usize>,
    /// Name of the entry that the transfer was made from.
    #[serde(skip)]
    pub entry: String,
    /// Index maps. The written operands select one.
    pub form: Vec<Form>,
    /// One paragraph.
    pub doc: String,
    /// How well it is known.
    pub evidence: Evidence,
    /// Programs with the bits of their results.
    pub example: Vec<Example>,
}

//! Transfers: index maps and what reduces them.

use super::entry::{Evidence, Example};
use super::machine::LevelName;
use indexmap::IndexMap;
use serde::Deserialize;

/// How a transfer's parameter is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ParameterStyle {
    /// `@3`
    At,
    /// `+3`, `-3`, or nothing for the default.
    Signed,
    /// `@0/6`, `@3`, `@0,2,4,6`: numbers that agree outside some free bits. Index maps see two names: `_first`, the
    /// smallest number, and `_free`, the free bits.
    Set,
}

/// What a transfer's mnemonic carries.
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
    /// Value when left out; none: must be written. Of a set -1: all numbers.
    pub default: Option<i64>,
    /// Of a set: the one of all numbers is refused.
    #[serde(default)]
    pub partial: bool,
    /// Forms that have it; empty: all.
    #[serde(default)]
    pub forms: Vec<String>,
}

/// Who says that a reduction's elements are widened to the next higher format: one long word becomes two.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Widen {
    /// `e` on the source.
    Written,
    /// The form itself: the reduction's lanes are those of the next higher format.
    Always,
}

/// One end of a transfer form.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Side {
    /// An operand's name, or "pe" for the PE side.
    pub operand: String,
    /// Width prefix that selects this form.
    pub width: Option<String>,
    /// Levels that `@` must select here.
    #[serde(default)]
    pub selectors: Vec<LevelName>,
    /// Of these, levels that may be left out; unit 0 is meant then, with a warning.
    #[serde(default)]
    pub assumed: Vec<LevelName>,
    /// What the written address must be a multiple of, an expression.
    pub align: Option<String>,
    /// Not written: the instruction has this end by itself.
    #[serde(default)]
    pub implied: bool,
}

/// Published rates of an MV form, in long words per cycle through each memory that it touches. Either one rate for both
/// sides, by where the ends lie, or a rate of a side; a side without one does not limit the form.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Throughput {
    /// Both sides, all in one group.
    pub same_group: Option<u32>,
    /// Both sides, in different groups.
    pub across: Option<u32>,
    /// Through each memory that is read.
    pub source: Option<u32>,
    /// Through each memory that is written.
    pub destination: Option<u32>,
}

impl Throughput {
    /// Rates of the source and of the destination.
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
    /// MV: the size must be a multiple of this expression, and `i` counts such blocks.
    pub unit: Option<String>,
    /// Where the words come from.
    pub source: Side,
    /// Where they go.
    pub destination: Side,
    /// MV: published rates.
    pub throughput: Option<Throughput>,
    /// Counter to its count, an expression; outermost first.
    pub r#loop: IndexMap<String, String>,
    /// An expression over counters and parameters: where it is 0, nothing moves; a reduction takes the neutral element.
    pub r#where: Option<String>,
    /// Coordinates of the source.
    pub from: IndexMap<String, String>,
    /// Coordinates of the destination.
    pub to: IndexMap<String, String>,
    /// Reductions: inputs of each stage, expressions, the stage at the elements first. The words that meet in one
    /// destination are its elements, in loop order.
    #[serde(default)]
    pub tree: Vec<String>,
    /// Reductions that have this form; empty: all of the entry's.
    #[serde(default)]
    pub reductions: Vec<String>,
    /// What follows the reduction's name where this form is meant.
    #[serde(default)]
    pub suffix: String,
    /// Whether halves are widened to singles on their way in.
    pub widen: Option<Widen>,
    /// The last stage rounds to the next lower format. `half` of the destination is then the word of its long word.
    #[serde(default)]
    pub narrow: bool,
    /// Where it differs from the instruction's.
    pub evidence: Option<Evidence>,
}

/// `[[reduction]]`: what a reducing transfer does with the words that meet.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Reduction {
    /// What follows the transfer's name.
    pub name: String,
    /// Precision letter.
    pub precision: String,
    /// A name of the reduction kernels.
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
    /// The level whose every unit runs the map.
    pub level: LevelName,
    /// What the mnemonic carries.
    pub parameter: Option<Parameter>,
    /// Reductions whose names follow this one's; each makes a transfer of its own.
    #[serde(default)]
    pub reductions: Vec<String>,
    /// Set where this is one of them: entry of `reductions` of the spec.
    #[serde(skip)]
    pub reduction: Option<usize>,
    /// Name of the entry that it was made from.
    #[serde(skip)]
    pub entry: String,
    /// Index maps; the operands written decide which one is meant.
    pub form: Vec<Form>,
    /// One paragraph.
    pub doc: String,
    /// How well it is known.
    pub evidence: Evidence,
    /// Programs with their bits.
    pub example: Vec<Example>,
}

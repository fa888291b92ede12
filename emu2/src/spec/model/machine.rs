//! The tree of the machine, its memories and its number formats.

use super::entry::Evidence;
use serde::Deserialize;

/// `[machine]`
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Machine {
    /// Name of the spec.
    pub name: String,
    /// One sentence.
    pub doc: String,
    /// Clock frequency in MHz.
    pub clock_mhz: u32,
}

/// `[counts]`: the number of units of each level inside one unit of the level above, and the cycles of a step.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Counts {
    /// Groups of the chip.
    pub group: u32,
    /// L2Bs of a group.
    pub l2b: u32,
    /// L1Bs of an L2B.
    pub l1b: u32,
    /// MABs of an L1B.
    pub mab: u32,
    /// PEs of a MAB.
    pub pe: u32,
    /// Cycles of a step.
    pub cycle: u32,
}

/// A level of the tree.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Deserialize, PartialOrd, Ord)]
#[serde(rename_all = "lowercase")]
pub enum LevelName {
    /// The whole chip.
    Chip,
    /// A group: DRAM, PDM.
    Group,
    /// An L2B: L2BM.
    L2b,
    /// An L1B: L1BM.
    L1b,
    /// A matrix block.
    Mab,
    /// A processing element.
    Pe,
}

/// `[[level]]`, outermost first.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Level {
    /// The level.
    pub name: LevelName,
    /// Its letter in debug statements.
    pub selector: char,
}

/// `[[width]]`
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Width {
    /// Name in messages.
    pub name: String,
    /// The text between `$` and the letter.
    pub prefix: String,
    /// Number of 32-bit words.
    pub words: u32,
}

/// `[[format]]`
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Format {
    /// Name.
    pub name: String,
    /// Exponent bits.
    pub exponent: u32,
    /// Fraction bits.
    pub fraction: u32,
}

/// Whether the lanes of a precision are floating point or integers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum LaneKind {
    /// Floating point.
    Float,
    /// Two's complement or unsigned integers.
    Int,
}

/// `[[precision]]`
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Precision {
    /// The letter of mnemonics.
    pub name: String,
    /// Floats or integers.
    pub kind: LaneKind,
    /// Name of the float format.
    pub format: Option<String>,
    /// Lanes of a long word.
    pub lanes: u32,
    /// Only for block float, with a shorter mantissa than that of the format.
    #[serde(default)]
    pub pseudo: bool,
}

/// The unit of a written address.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Unit {
    /// Words of 32 bits.
    Word,
    /// Long words of 64 bits.
    Long,
    /// No address: the entry of the cycle.
    Cycle,
    /// Mask entries of one long word per cycle.
    Mask,
    /// A base address register.
    Base,
    /// A row of a matrix register.
    Matrix,
}

/// Whether reads and writes of a memory go through one port.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Ports {
    /// One port for both. Such a matrix register serves one instruction of a line.
    Shared,
    /// One port for reads and one for writes.
    Split,
}

/// `[[memory]]`
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Memory {
    /// Name in the Python API and in memory files.
    pub name: String,
    /// One instance per unit of this level.
    pub level: LevelName,
    /// Long words of one instance. The turnaround register has as many as the PEs of an L1B send in a step.
    #[serde(default)]
    pub words: u64,
    /// The unit of a written address.
    pub unit: Unit,
    /// Read and write ports.
    pub ports: Ports,
    /// The memory is kept as pages that exist once they are touched.
    #[serde(default)]
    pub sparse: bool,
    /// The group whose instance the host reaches.
    #[serde(default)]
    pub host: Option<u32>,
    /// Name in dump lines.
    pub dump: String,
    /// One sentence.
    pub doc: String,
    /// How well it is known.
    pub evidence: Evidence,
}

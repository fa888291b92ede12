//! Issue slots, control statements, hazards, timing.

use super::entry::{Evidence, Example};
use serde::Deserialize;

/// `[[slot]]`: an issue slot. A line has at most one instruction of each slot.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Slot {
    /// Name.
    pub name: String,
    /// Its instructions share a line with no other.
    #[serde(default)]
    pub alone: bool,
    /// If given, its instructions share a line with these slots only.
    #[serde(default)]
    pub with: Vec<String>,
    /// Its instructions need another instruction on the line.
    #[serde(default)]
    pub needs_company: bool,
    /// How many priorities (`p0`, `p1`, ...) its instructions may ask for. 0 if they have none.
    #[serde(default)]
    pub priorities: u32,
    /// One sentence.
    pub doc: String,
}

/// `[[share]]`: slots whose instructions drive one unit.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Share {
    /// Name of the unit.
    pub name: String,
    /// The slots.
    pub slots: Vec<String>,
    /// At most this many instructions of these slots stand on a line, all of one precision.
    pub limit: u32,
    /// One sentence.
    pub doc: String,
    /// How well it is known.
    pub evidence: Evidence,
}

/// The action of a control statement.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ControlKernel {
    /// Idle steps.
    Nop,
    /// An MV that does nothing.
    Mvnop,
    /// Waits for an MV.
    Wait,
    /// Freezes the forwarding paths.
    Noforward,
    /// Sets the write masks of the lines after it.
    Mask,
    /// Ends the source.
    Quit,
}

/// `[[control]]`
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Control {
    /// The mnemonic.
    pub name: String,
    /// Issue slot.
    pub slot: String,
    /// The action.
    pub kernel: ControlKernel,
    /// The syntax, for messages.
    pub syntax: String,
    /// One paragraph.
    pub doc: String,
    /// How well it is known.
    pub evidence: Evidence,
    /// Programs with the bits of their results.
    pub example: Vec<Example>,
}

/// The condition under which a read is too early.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum HazardRule {
    /// It comes after a write to any address of the memory, with fewer than `steps` steps in between.
    Port,
    /// It comes after a write to the same words, with fewer than `steps` steps or `cycles` cycles in between.
    Data,
    /// An MV writes the same words, and no `wait` has waited for it.
    Wait,
    /// It reads a forwarding path whose unit was idle in the last step that was not a `nop`.
    Forward,
}

/// `[[hazard]]`: a rule for the gap between a write and a read.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Hazard {
    /// Name.
    pub name: String,
    /// The memories of the rule. Empty for the rule `forward`.
    #[serde(default)]
    pub memories: Vec<String>,
    /// Slots of the instructions that write. Empty is all slots.
    #[serde(default)]
    pub writers: Vec<String>,
    /// For writing transfers above the PEs: the memory that the words come from. `None` is any memory.
    pub source: Option<String>,
    /// Slots of the instructions that read. Empty is all slots.
    #[serde(default)]
    pub readers: Vec<String>,
    /// The kind of rule.
    pub rule: HazardRule,
    /// How many whole steps must lie in between.
    pub steps: Option<u32>,
    /// How many full cycles must lie between the writing and the reading cycle.
    pub cycles: Option<u32>,
    /// One sentence.
    pub doc: String,
    /// How well it is known.
    pub evidence: Evidence,
}

/// `[timing]`
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Timing {
    /// Cycles from the start of an MV to its first word.
    pub mv_latency: u32,
    /// Long words per cycle, for each group that is touched.
    pub mv_throughput: u32,
    /// Smallest tag.
    pub tag_minimum: u32,
    /// Largest tag.
    pub tag_maximum: u32,
    /// One sentence.
    pub doc: String,
    /// How well it is known.
    pub evidence: Evidence,
}

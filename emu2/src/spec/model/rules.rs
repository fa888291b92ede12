//! Issue slots, control statements, hazards, timing.

use super::entry::{Evidence, Example};
use serde::Deserialize;

/// `[[slot]]`: at most one instruction of a slot per line.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Slot {
    /// Name.
    pub name: String,
    /// Shares a line with nothing.
    #[serde(default)]
    pub alone: bool,
    /// Shares a line with these slots only.
    #[serde(default)]
    pub with: Vec<String>,
    /// Needs another instruction on the line.
    #[serde(default)]
    pub needs_company: bool,
    /// How many priorities (`p0`, `p1`, ...) its instructions may ask for; 0: they have none.
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
    /// Instructions of these slots on a line, all of one precision.
    pub limit: u32,
    /// One sentence.
    pub doc: String,
    /// How well it is known.
    pub evidence: Evidence,
}

/// What a control statement does.
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
    /// Sets the write masks of the lines that follow.
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
    /// What it does.
    pub kernel: ControlKernel,
    /// How it is written.
    pub syntax: String,
    /// One paragraph.
    pub doc: String,
    /// How well it is known.
    pub evidence: Evidence,
    /// Programs with their bits.
    pub example: Vec<Example>,
}

/// What makes a read too early.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum HazardRule {
    /// A write to any address of the memory, `steps` or less before.
    Port,
    /// A write to the same words, `steps` or `cycles` or less before.
    Data,
    /// A write to the same words by an MV that no `wait` has seen finish.
    Wait,
    /// A forwarding path whose unit was idle in the last step that was not a `nop`.
    Forward,
}

/// `[[hazard]]`: what must lie between a write and a read.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Hazard {
    /// Name.
    pub name: String,
    /// Memories concerned; none for the forward rule.
    #[serde(default)]
    pub memories: Vec<String>,
    /// Slots of the instructions that write; empty: all.
    #[serde(default)]
    pub writers: Vec<String>,
    /// Of writing transfers above the PEs: the memory that the words come from; none: any.
    pub source: Option<String>,
    /// Slots of the instructions that read; empty: all.
    #[serde(default)]
    pub readers: Vec<String>,
    /// The cause.
    pub rule: HazardRule,
    /// Whole steps in between.
    pub steps: Option<u32>,
    /// Full cycles between the writing and the reading cycle.
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
    /// Long words per cycle and group touched.
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

//! The parts that every entry has: evidence and examples.

use indexmap::IndexMap;
use serde::Deserialize;

/// How well an entry is known.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Deserialize, PartialOrd, Ord)]
#[serde(rename_all = "kebab-case")]
pub enum Evidence {
    /// Reproduced against output of the vendor's emulator or board.
    VendorOutput,
    /// Stated by the vendor's manual.
    Manual,
    /// Follows from working public programs or from other entries.
    Derived,
    /// Not established. The best guess.
    Guess,
}

impl Evidence {
    /// The name in the spec.
    pub fn name(self) -> &'static str {
        match self {
            Evidence::VendorOutput => "vendor-output",
            Evidence::Manual => "manual",
            Evidence::Derived => "derived",
            Evidence::Guess => "guess",
        }
    }
}

/// A few lines of assembly and the long words that they must leave behind.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Example {
    /// The program.
    pub text: String,
    /// The long words (16 hex digits) from a location on, by the location as in `d get`.
    pub expect: IndexMap<String, Vec<String>>,
    /// The same per machine, by its name. It replaces `expect` on that machine.
    #[serde(default)]
    pub expect_on: IndexMap<String, IndexMap<String, Vec<String>>>,
}

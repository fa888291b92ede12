//! What every entry has: evidence and examples.

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
    /// Not established; the best guess.
    Guess,
}

impl Evidence {
    /// The spelling of the spec.
    pub fn name(self) -> &'static str {
        match self {
            Evidence::VendorOutput => "vendor-output",
            Evidence::Manual => "manual",
            Evidence::Derived => "derived",
            Evidence::Guess => "guess",
        }
    }
}

/// A few lines of assembly and the long words they must leave behind.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Example {
    /// The program.
    pub text: String,
    /// Location, as in `d get`, to the long words (16 hex digits) from there on.
    pub expect: IndexMap<String, Vec<String>>,
    /// The same for one machine by name, instead of `expect`.
    #[serde(default)]
    pub expect_on: IndexMap<String, IndexMap<String, Vec<String>>>,
}

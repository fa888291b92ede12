//! The facts of a machine that the code of a program depends on. All of them come from its spec.

use crate::rules::{Name, Rules};
use rustc_hash::FxHashMap as Map;
use std::sync::{Arc, Mutex, PoisonError};

/// The number of each name, and the names by number.
type Known = (Map<Arc<str>, Name>, Vec<Arc<str>>);

/// Gives each name a number.
#[derive(Default)]
pub struct Names(Mutex<Known>);

impl Names {
    /// The number of a name, which is new if nobody asked for it before.
    pub fn of(&self, name: &str) -> Name {
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(&found) = known.0.get(name) {
            return found;
        }
        let (next, name) = (Name::try_from(known.1.len()).unwrap_or(Name::MAX), Arc::<str>::from(name));
        known.0.insert(Arc::clone(&name), next);
        known.1.push(name);
        next
    }

    /// All names so far, by number.
    pub fn all(&self) -> Vec<Arc<str>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).1.clone()
    }
}

/// A memory: its long words, and what operands in it look like.
pub struct Memory {
    /// The long words of one instance.
    pub words: i64,
    /// Its letter, and the letter of operands whose blocks a table names.
    pub letter: String,
    /// See `letter`.
    pub by_table: String,
    /// The prefixes of an operand above the PEs: plain and wide.
    pub prefixes: [String; 2],
}

/// The letters of assembly text that belong to no memory.
pub struct Syntax {
    /// Marks an address to which a register is added.
    pub indirect: String,
    /// Marks a source that is read as the next lower format.
    pub extend: String,
    /// Marks a source that is read as the next higher format.
    pub reduce: String,
    /// Stands before the distance from cycle to cycle.
    pub stride: String,
    /// Stands before the long words of an MV.
    pub mv_size: String,
    /// Stands before the tag of an MV.
    pub mv_tag: String,
    /// The digits of a tag.
    pub tag_digits: usize,
    /// A mask register as a destination, and as a mask.
    pub masks: [String; 2],
    /// The forwarding path of each slot.
    pub forwards: Map<Name, String>,
}

/// A machine.
pub struct Machine {
    /// Where instructions may stand.
    pub rules: Arc<Rules>,
    /// The numbers of all names.
    pub names: Names,
    /// All memories.
    pub memories: Map<Name, Memory>,
    /// The letters of assembly text.
    pub syntax: Syntax,
    /// The memory of each bank of matrix registers.
    pub banks: Map<Name, Name>,
    /// The register files.
    pub files: Vec<Name>,
    /// The local memories.
    pub local: Vec<Name>,
    /// DRAM, L1BM, L2BM and PDM.
    pub dram: Name,
    /// See `dram`.
    pub blocks: Name,
    /// See `dram`.
    pub above: Name,
    /// See `dram`.
    pub host: Name,
    /// The register that indirect addresses add.
    pub added: Name,
    /// The memory of address registers.
    pub entries: Name,
    /// The memory of mask registers, and how many there are; the first is no register.
    pub masks: Name,
    /// See `masks`.
    pub registers: i64,
    /// Operands without an address that are the same in every run.
    pub numbers: Vec<Name>,
    /// The slot of the ALU, and the name of MVs among the slots.
    pub alu: Name,
    /// See `alu`.
    pub mv: Name,
    /// Long words of L2BM that go to all L1Bs in one cycle.
    pub row: i64,
    /// Words of a long word.
    pub long: i64,
    /// Long words of the widest access of a PE in a cycle.
    pub wide: i64,
    /// Downloads go round in this part of L1BM.
    pub ring: i64,
    /// The first and the last tag of MVs.
    pub tags: (i64, i64),
}

impl Machine {
    /// The long words of a memory; 0 for what is none.
    pub fn words(&self, memory: Name) -> i64 {
        self.memories.get(&memory).map_or(0, |one| one.words)
    }

    /// The memories that data passes on its way. No node finds there what another one left.
    pub fn passed(&self) -> [Name; 3] {
        [self.blocks, self.above, self.host]
    }
}

/// The least common multiple of positive numbers.
pub(crate) fn lcm(one: i64, other: i64) -> i64 {
    one / gcd(one, other) * other
}

/// The greatest common divisor.
pub(crate) fn gcd(one: i64, other: i64) -> i64 {
    if other == 0 {
        one.abs()
    } else {
        gcd(other, one % other)
    }
}

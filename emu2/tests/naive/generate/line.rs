//! The resources that a line has used so far, by the rules of parallel issue.

use super::{Choices, Table};
use emu2::asm::{Access, FormRef, L2bmTransfer, Mask, MaskEntry, PeInstruction};
use emu2::spec::Ports;

/// A PE line that is being made.
pub struct Line {
    pub pe: Vec<PeInstruction>,
    pub l2bm: Vec<L2bmTransfer>,
    /// One access for each memory that is read.
    pub reads: Vec<Access>,
    /// Memories that are written, with the access if there is one.
    pub writes: Vec<(usize, Option<Access>)>,
    /// Memories that must not be read or written, and those that must not be written.
    pub off_limits: Vec<usize>,
    pub no_write: Vec<usize>,
    /// Entry of `mau_precisions` that all MAU instructions share, and the number of these instructions.
    pub mau: Option<usize>,
    pub mau_count: usize,
    /// Matrix registers in use.
    pub banks: Vec<usize>,
    /// Whether the PEs write L1BM.
    pub stores: bool,
    /// The words that the PEs send, to L1BM or to the turnaround register, and whether something is brought to them.
    pub sends: Option<FormRef>,
    pub loads: bool,
    /// Length and register of all masks.
    pub wide: bool,
    register: u32,
    pub flushed: bool,
    /// Whether the paths are updated, if an instruction needs one or the other.
    pub forward: Option<bool>,
}

impl Line {
    /// A line that has used nothing.
    pub fn new(table: &Table, choices: &mut Choices) -> Line {
        let entries = u64::from(table.spec.mask.entries - 1);
        Line {
            pe: Vec::new(),
            l2bm: Vec::new(),
            reads: Vec::new(),
            writes: Vec::new(),
            off_limits: Vec::new(),
            no_write: Vec::new(),
            mau: None,
            mau_count: 0,
            banks: Vec::new(),
            stores: false,
            sends: None,
            loads: false,
            wide: choices.chance(40),
            register: 1 + choices.below(entries) as u32,
            flushed: false,
            forward: None,
        }
    }

    /// A mask with the length and register of the line.
    pub fn mask(&self, table: &Table, choices: &mut Choices) -> Mask {
        let patterns = 1 << table.spec.counts.cycle;
        let entry = if choices.chance(50) {
            MaskEntry::Cycles(choices.below(patterns) as u32)
        } else {
            MaskEntry::Register(self.register)
        };
        Mask { wide: self.wide, entry }
    }

    /// Sometimes a mask.
    pub fn maybe_mask(&self, table: &Table, choices: &mut Choices) -> Option<Mask> {
        choices.chance(35).then(|| self.mask(table, choices))
    }

    /// The access that a read of the memory must have, if the line restricts it.
    pub fn bound_read(&self, table: &Table, memory: usize) -> Option<Access> {
        let read = self.reads.iter().find(|a| a.memory == memory);
        read.cloned().or_else(|| {
            let shared = table.spec.memories[memory].ports == Ports::Shared;
            self.writes.iter().find(|(m, _)| *m == memory && shared).and_then(|(_, access)| access.clone())
        })
    }

    /// The access that a write of the memory must have, if the line restricts it.
    pub fn bound_write(&self, table: &Table, memory: usize) -> Option<Access> {
        let shared = table.spec.memories[memory].ports == Ports::Shared;
        self.reads.iter().find(|a| a.memory == memory && shared).cloned()
    }

    /// Whether any instruction of the line touches the memory.
    pub fn touches(&self, memory: usize) -> bool {
        self.reads.iter().any(|a| a.memory == memory) || self.writes_to(memory)
    }

    /// Whether a destination of the line is in the memory.
    pub fn writes_to(&self, memory: usize) -> bool {
        self.writes.iter().any(|(m, _)| *m == memory)
    }

    /// Whether a destination in the memory is possible.
    pub fn may_write(&self, memory: usize) -> bool {
        !self.writes_to(memory) && !self.no_write.contains(&memory) && !self.off_limits.contains(&memory)
    }
}

//! The cycles in which the entries of the mask registers can be set.

use crate::asm::line::Line;
use crate::asm::statement::{Mask, MaskEntry, Target};
use crate::spec::Spec;

/// Per entry of the mask registers the cycles that can be set; bit c is cycle c.
#[derive(Debug)]
pub(super) struct MaskCycles {
    entries: Vec<u32>,
}

impl MaskCycles {
    /// Nothing is known of entries that the program has not written.
    pub(super) fn new(spec: &Spec) -> Self {
        MaskCycles { entries: vec![u32::MAX; spec.mask.entries as usize] }
    }

    /// The cycles that a mask can let through.
    pub(super) fn of(&self, mask: Mask) -> u32 {
        match mask.entry {
            MaskEntry::Cycles(cycles) => cycles,
            MaskEntry::Register(entry) => self.entries.get(entry as usize).copied().unwrap_or(u32::MAX),
        }
    }

    /// After a refused line no cycle counts: a finding could only follow from that line's fault.
    pub(super) fn assume(&mut self) {
        self.entries.fill(0);
    }

    /// The mask registers after a line. Bits that the write mask stops become 0, also where another entry is the mask.
    pub(super) fn step(&mut self, line: &Line) {
        let written: Vec<(usize, u32)> = line
            .pe
            .iter()
            .flat_map(|instruction| &instruction.destinations)
            .filter_map(|destination| match destination.target {
                Target::Flags { entry } => {
                    Some((entry as usize, destination.mask.map_or(u32::MAX, |mask| self.of(mask))))
                }
                Target::Memory(_) | Target::Base { .. } => None,
            })
            .collect();
        for (entry, cycles) in written {
            if let Some(known) = self.entries.get_mut(entry) {
                *known = cycles;
            }
        }
    }
}

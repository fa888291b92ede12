//! Tracks the cycles that each mask register can let through.

use crate::asm::line::Line;
use crate::asm::statement::{Mask, MaskEntry, Target};
use crate::spec::Spec;

/// Per mask register, the cycles that it can let through: bit c is cycle c.
#[derive(Debug)]
pub(super) struct MaskCycles {
    entries: Vec<u32>,
}

impl MaskCycles {
    /// A register that the program has not written may let every cycle through.
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

    /// Takes a refused line: no cycle counts any more. A finding after it would only follow from the fault of that
    /// line.
    pub(super) fn assume(&mut self) {
        self.entries.fill(0);
    }

    /// Takes a line that has run. Bits of a written register that the write mask stops become 0, also if the mask is
    /// another register.
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

//! The reads and writes of an instruction. All code that orders, drops or joins instructions asks here.

use super::access::Access;
use super::compute::Compute;
use super::destination::Write;
use super::op::Op;
use super::source::Source;

/// Slots of registers that a write depends on: the T register for its addresses, and the mask registers.
pub(super) fn write_depends_on(write: &Write) -> impl Iterator<Item = usize> {
    write.access.indirect_slot().into_iter().chain(write.mask.slot())
}

impl Op {
    /// The writes of PE memories, the T register included.
    pub(super) fn writes(&self) -> impl Iterator<Item = &Write> + Clone {
        self.writes.iter().chain(&self.late_writes)
    }

    /// The sources that are PE memories.
    pub(super) fn memory_sources(&self) -> impl Iterator<Item = &Access> + Clone {
        self.sources.iter().filter_map(Source::access)
    }

    /// All reads and writes of PE memories.
    pub(super) fn accesses(&self) -> impl Iterator<Item = &Access> + Clone {
        self.memory_sources().chain(self.writes().map(|write| &write.access))
    }

    /// Slots of the base address registers that the addresses depend on.
    pub(super) fn base_slots(&self) -> impl Iterator<Item = usize> + '_ {
        self.accesses().filter_map(|access| access.base)
    }

    /// Slots of PE memories that the instruction reads, as bits: sources, registers that form addresses and masks, and the
    /// matrix register.
    pub(super) fn slots_read(&self) -> u64 {
        let sources = self.memory_sources().flat_map(|access| [Some(access.slot), access.indirect_slot()]).flatten();
        let masks = self.base_writes.iter().map(|write| &write.mask);
        let masks = masks.chain(self.flag_writes.iter().map(|write| &write.mask)).chain(&self.zero_flush);
        let registers = self.writes().flat_map(write_depends_on).chain(masks.filter_map(|mask| mask.slot()));
        let slots = sources.chain(registers).chain(self.base_slots()).chain(self.compute.matrix_slot());
        slots.fold(0, |bits, slot| bits | 1 << slot)
    }

    /// Slots of the mask registers that the instruction writes, and of its matrix register.
    pub(super) fn register_slots(&self) -> impl Iterator<Item = usize> + '_ {
        self.flag_writes.iter().map(|write| write.slot).chain(self.compute.matrix_slot())
    }

    /// Numbers of the forwarding paths that the instruction reads.
    pub(super) fn paths_read(&self) -> impl Iterator<Item = usize> + '_ {
        self.sources.iter().filter_map(Source::path)
    }

    /// Whether the instruction leaves nothing that anyone can see.
    pub(super) fn idle(&self) -> bool {
        let written = self.writes.len() + self.late_writes.len() + self.base_writes.len() + self.flag_writes.len();
        !self.live && written == 0 && !self.compute.sends() && !matches!(self.compute, Compute::MatrixWrite(_))
    }
}

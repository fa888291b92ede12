//! Memories of a device: a debugger's access, DRAM, and the file that keeps them all.

use crate::board::Board;
use crate::kept;
use crate::status::{Refusal, Status};
use emu2::host::UnitNumbers;
use std::path::Path;

impl Board {
    /// Keeps the contents of all memories in a file: reads it if it exists, and writes it when the device is closed.
    ///
    /// # Errors
    /// [`Status::Io`] for a file that cannot be read or holds no state; [`Status::Device`] for the state of another machine.
    pub fn keep(&self, path: &Path) -> Result<(), Refusal> {
        kept::load(self.settled().device()?, path)?;
        let _ = self.kept.set(path.to_path_buf());
        Ok(())
    }

    /// Reads long words of a memory of one unit, after everything that can run has run.
    ///
    /// # Errors
    /// [`Status::Param`] for a memory, unit or address that does not exist.
    pub fn debug_read(&self, memory: &str, place: UnitNumbers, addr: u64, count: u64) -> Result<Vec<u64>, Refusal> {
        let mut state = self.settled();
        state.run_ended = true;
        Ok(state.device()?.debug_read(memory, place, addr, count)?)
    }

    /// Writes long words of a memory of one unit, after everything that can run has run.
    ///
    /// # Errors
    /// [`Status::Param`] for a memory, unit or address that does not exist.
    pub fn debug_write(&self, memory: &str, place: UnitNumbers, addr: u64, words: &[u64]) -> Result<(), Refusal> {
        let mut state = self.settled();
        state.begin(self.shared.rules)?;
        Ok(state.device()?.debug_write(memory, place, addr, words)?)
    }

    /// Copies bytes to DRAM of group 0, from byte `address` on, in the byte order of transfers.
    ///
    /// # Errors
    /// [`Status::Param`] past its end, and for addresses and lengths that are no multiples of 8 bytes.
    pub fn dram_write(&self, address: u64, data: &[u8]) -> Result<(), Refusal> {
        Ok(self.settled().usable(Status::Dma)?.dram_write(address, data)?)
    }

    /// Fills `out` from DRAM of group 0, from byte `address` on, in the byte order of transfers.
    ///
    /// # Errors
    /// Those of [`Board::dram_write`].
    pub fn dram_read(&self, address: u64, out: &mut [u8]) -> Result<(), Refusal> {
        Ok(self.settled().usable(Status::Dma)?.dram_read(address, out)?)
    }
}

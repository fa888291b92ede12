//! The variables that are read.

use std::ffi::OsString;

/// The vendor's variable: the configuration of the emulator that runs as a process.
pub(crate) const CONFIG: &str = "MNC2_EMU_CONFIG";
/// Any text: memories are zero at the start of each run, as with the vendor's emulator that runs as a process.
pub(crate) const FORGET: &str = "EMU2_FORGET";
/// Bytes that a kernel may take, rounded up to a power of two: the contiguous memory of a host with a board.
pub(crate) const DMA_LIMIT: &str = "EMU2_DMA_LIMIT";
/// A file for the lines of `d get`.
pub(crate) const DUMP: &str = "EMU2_DUMP";
/// A file for what ran on each device, a line of JSON each.
pub(crate) const REPORT: &str = "EMU2_REPORT";
/// Any text: no messages on stderr.
pub(crate) const QUIET: &str = "EMU2_QUIET";

/// The value of a variable that is set and not empty.
pub(crate) fn value(name: &str) -> Option<OsString> {
    std::env::var_os(name).filter(|value| !value.is_empty())
}

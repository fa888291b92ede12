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
/// A file for the contents of all memories: read when a device is opened, written when it is closed.
pub(crate) const STATE: &str = "EMU2_STATE";
/// Any text: kernels are checked for results that depend on undefined values, on timing or on the range of a format.
pub(crate) const SANITIZE: &str = "EMU2_SANITIZE";
/// A socket at which a debugger may attach.
pub(crate) const DEBUG: &str = "EMU2_DEBUG";
/// Any text: the first kernel waits for a debugger.
pub(crate) const DEBUG_STOP: &str = "EMU2_DEBUG_STOP";
/// Any text: no messages on stderr.
pub(crate) const QUIET: &str = "EMU2_QUIET";

/// The value of a variable that is set and not empty.
pub(crate) fn value(name: &str) -> Option<OsString> {
    std::env::var_os(name).filter(|value| !value.is_empty())
}

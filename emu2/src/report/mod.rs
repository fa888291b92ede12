//! Output of a run: dump lines (`dump.rs`), and a report of steps, cycles and moved words (`cost.rs`).

mod clock;
mod cost;
mod dump;
pub mod manual;
mod number;
mod timeline;
mod trace;
mod traffic;

pub use clock::Clock;
pub use cost::Report;
pub use dump::dump_lines;
pub use number::general;
pub use trace::trace;
pub use traffic::{mv_rate, MemoryWords};

use crate::asm::Program;
use crate::error::Error;
use crate::exec::{self, RunError};
use crate::machine::Machine;

/// Runs `program`, hands every dump line to `sink` in order, and reports steps, cycles and moved words.
///
/// # Errors
/// Those of [`exec::run`], and the errors of `sink`.
pub fn run(
    machine: &mut Machine,
    program: &Program,
    sink: &mut dyn FnMut(&str) -> Result<(), Error>,
) -> Result<Report, RunError> {
    exec::run(machine, program, &mut |get, machine| dump_lines(machine, get, sink))?;
    Ok(Report::of(program))
}

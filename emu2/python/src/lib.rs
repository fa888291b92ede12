//! Python bindings of emu2 and of the compiler's crates. They convert arguments, results and errors, and listen to signals
//! during long calls. The work is done by the crates `emu2`, `annealing`, `choosing`, `packing`,
//! `placing` and `switches`.

// `make lint` switches these lints off for tests, benches and their helpers. Here they stay on.
#![cfg_attr(not(test), warn(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::type_complexity))]

mod annealing;
mod app;
mod argument;
mod attended;
mod bench;
mod choosing;
mod code_machine;
mod code_program;
mod convert;
mod debugger;
mod device;
mod error;
mod files;
mod found;
mod halves;
mod machine;
mod packing;
mod program;
mod region;
mod report;
mod rows;
mod sink;
mod spec;
mod switches;
mod transfer;
mod words;

use pyo3::prelude::*;

/// The compiled part of the Python package `emu2`.
#[pymodule]
mod _core {
    use super::*;

    #[pymodule_init]
    fn init(module: &Bound<'_, PyModule>) -> PyResult<()> {
        module.add("__version__", env!("CARGO_PKG_VERSION"))
    }

    #[pymodule_export]
    use super::annealing::{anneal_schedule, walk_schedule};
    #[pymodule_export]
    use super::app::{check_app, run_app};
    #[pymodule_export]
    use super::bench::{choices, level, levels, limit, race, threads};
    #[pymodule_export]
    use super::choosing::PyChoiceSearch;
    #[pymodule_export]
    use super::code_machine::{PyCodeLines, PyCodeMachine};
    #[pymodule_export]
    use super::code_program::PyCodeProgram;
    #[pymodule_export]
    use super::debugger::PyDebugger;
    #[pymodule_export]
    use super::device::{PyDevice, PyKernel};
    #[pymodule_export]
    use super::error::codes;
    #[pymodule_export]
    use super::files::{read_source, stream_limit};
    #[pymodule_export]
    use super::halves::{from_half, to_half};
    #[pymodule_export]
    use super::machine::{PyMachine, PyMemoryFiles};
    #[pymodule_export]
    use super::packing::{fit_offsets, search_offsets, spread_offsets};
    #[pymodule_export]
    use super::program::{assemble, PyProgram};
    #[pymodule_export]
    use super::report::PyReport;
    #[pymodule_export]
    use super::rows::place_rows;
    #[pymodule_export]
    use super::spec::{built_in_specs, spec_texts, what_if_specs, PySpec};
    #[pymodule_export]
    use super::switches::{compare_units, count_pass_steps, move_lines, pass_moves, plan_passes, PySwitchGuesses};
    #[pymodule_export]
    use super::transfer::PyIndexMap;
    #[pymodule_export]
    use super::words::{pack, read_asm, to_text, unpack, write_asm};
}

//! `emu2.Program` and `emu2.assemble`.

use crate::argument::{Name, Text};
use crate::attended::{attended, Where};
use crate::spec::PySpec;
use crate::{convert, error};
use emu2::asm::{self, Assembler, Policy, Program};
use emu2::error::{Code, Error};
use emu2::exec::KeptRegions;
use emu2::interrupt::Interrupt;
use emu2::report::{self, Report};
use pyo3::prelude::*;
use std::sync::OnceLock;

/// A program that assembled without errors.
#[pyclass(frozen, name = "Program", module = "emu2")]
pub(crate) struct PyProgram {
    pub(crate) inner: Program,
    report: OnceLock<Report>,
    /// The form in which machines run the program.
    pub(crate) regions: KeptRegions,
}

/// Assembles a source and checks it.
///
/// `text` is str or UTF-8 bytes, at most 4 GiB; comments may be in any encoding. `filename` is its name in messages.
/// `policy` decides about hazards (reads that the hardware would serve too early): "run" turns all of them into
/// warnings, "check" turns hazards that the manual or a vendor's program proves into errors, "strict" turns every warning
/// into an error.
///
/// Returns a Program, whose `warnings` are the findings that are not errors.
///
/// Raises AssembleError with every finding (codes A0001 to A0706, F0002, F0003) and EmulatorError R0009 for an unknown
/// policy. KeyboardInterrupt is heard while it works.
///
/// Source: the grammar is the assembly language of the vendor's developer manual, as `isa_specs` holds it.
#[pyfunction]
#[pyo3(
    signature = (text, spec, *, filename = Name::of("<string>"), policy = Name::of("run")),
    text_signature = "(text, spec, *, filename='<string>', policy='run')"
)]
pub(crate) fn assemble(
    py: Python<'_>,
    text: &Bound<'_, PyAny>,
    spec: &PySpec,
    filename: Name,
    policy: Name,
) -> PyResult<PyProgram> {
    let policy = match &*policy {
        "run" => Policy::Run,
        "check" => Policy::Check,
        "strict" => Policy::Strict,
        other => {
            let message = format!("no policy `{other}`");
            let error = Error::new(Code::BadOption, message).help("use `run`, `check` or `strict`");
            return Err(error::core(py, &error));
        }
    };
    let spec = spec.inner.clone();
    // Neither is copied, because a source may have a hundred megabytes.
    let text = Text::new(text)?;
    let program = py.detach(|| {
        attended(Where::of_text(text.len()), None, |interrupt, _| {
            Assembler::new(&spec).interrupted_by(interrupt).assemble_bytes(&text, &filename, policy)
        })
    });
    match program?.0 {
        Ok(inner) => Ok(PyProgram::new(inner)),
        Err(e) => Err(error::assemble(py, &e)),
    }
}

impl PyProgram {
    pub(crate) fn new(inner: Program) -> PyProgram {
        PyProgram { inner, report: OnceLock::new(), regions: KeptRegions::default() }
    }

    /// The cost of the program, counted once.
    pub(crate) fn cost_until(&self, interrupt: &Interrupt) -> Result<&Report, Error> {
        if let Some(report) = self.report.get() {
            return Ok(report);
        }
        let report = Report::of_until(&self.inner, interrupt)?;
        Ok(self.report.get_or_init(|| report))
    }

    fn cost(&self, py: Python<'_>) -> PyResult<&Report> {
        let place = Where::of_program(&self.inner, true);
        let cost = py.detach(|| attended(place, None, |interrupt, _| self.cost_until(interrupt)))?.0;
        cost.map_err(|e| error::core(py, &e))
    }
}

#[pymethods]
impl PyProgram {
    /// Name of the source.
    #[getter]
    fn filename(&self) -> &str {
        &self.inner.name
    }

    /// The spec for which the program was assembled.
    #[getter]
    fn spec(&self) -> PySpec {
        PySpec { inner: self.inner.spec.clone() }
    }

    /// Warnings, one dict for each: file, line, column, end_line, end_column, code, severity, message, help.
    #[getter]
    fn warnings<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let program = &self.inner;
        error::records(py, &program.name, &program.text, &program.warnings)
    }

    /// The warnings as text that shows them in the source.
    fn render_warnings(&self) -> String {
        asm::render(&self.inner.name, &self.inner.text, &self.inner.warnings, false)
    }

    /// The cost of the program as a dict (docs/cycle_model.md): steps, cycles, stall_cycles, waits, stalled_waits, mvs,
    /// mv_busy_cycles, mv_end, port_cycles, busy_steps, dram_words, words, host_tags.
    fn report<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        convert::serialize(py, self.cost(py)?)
    }

    /// The waits that stall, in order: a list of the line of the source, from 1, and the cycles that it stands still. The
    /// cycles add up to `stall_cycles` of `report()`.
    fn stalls(&self, py: Python<'_>) -> PyResult<Vec<(u32, u64)>> {
        Ok(self.cost(py)?.stalls.clone())
    }

    /// Writes the timeline of the program to `sink`, an object with a `write(str)` method, as trace events in JSON, which
    /// Perfetto opens. A microsecond there is a cycle of the timing model.
    fn trace(&self, py: Python<'_>, sink: &Bound<'_, PyAny>) -> PyResult<()> {
        let mut failure = None;
        let written = report::trace(&self.inner, &mut |piece| {
            py.check_signals().and_then(|()| sink.call_method1("write", (piece,)).map(drop)).map_err(|e| {
                failure = Some(e);
                Error::new(Code::Unwritable, "the trace cannot be written")
            })
        });
        match (failure, written) {
            (Some(error), _) => Err(error),
            (None, written) => written.map_err(|e| error::core(py, &e)),
        }
    }

    fn __repr__(&self) -> String {
        format!("Program({:?}, {} statements)", self.inner.name, self.inner.statements())
    }
}

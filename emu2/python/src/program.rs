//! `emu2.Program` and `emu2.assemble`.

use crate::spec::PySpec;
use crate::{convert, error};
use emu2::asm::{self, Policy, Program};
use emu2::error::{Code, Error};
use emu2::exec::Regions;
use emu2::report::{self, Report};
use pyo3::prelude::*;
use pyo3::pybacked::{PyBackedBytes, PyBackedStr};
use std::sync::OnceLock;

/// A program that assembled without errors.
#[pyclass(frozen, name = "Program", module = "emu2")]
pub(crate) struct PyProgram {
    pub(crate) inner: Program,
    report: OnceLock<Report>,
    /// As machines run it.
    pub(crate) regions: Regions,
}

/// Assembles `text` (str or UTF-8 bytes) for `spec`. `policy` "run" makes hazards warnings, "check" makes those with
/// evidence errors, "strict" makes every warning about timing an error.
#[pyfunction]
#[pyo3(signature = (text, spec, *, filename = "<string>", policy = "run"))]
pub(crate) fn assemble(
    py: Python<'_>,
    text: &Bound<'_, PyAny>,
    spec: &PySpec,
    filename: &str,
    policy: &str,
) -> PyResult<PyProgram> {
    let policy = match policy {
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
    // Neither is copied: a source may have a hundred megabytes.
    let program = if let Ok(bytes) = text.extract::<PyBackedBytes>() {
        py.detach(|| asm::assemble_bytes(&bytes, filename, &spec, policy))
    } else {
        let text = text.extract::<PyBackedStr>()?;
        py.detach(|| asm::assemble(&text, filename, &spec, policy))
    };
    match program {
        Ok(inner) => Ok(PyProgram::new(inner)),
        Err(e) => Err(error::assemble(py, &e)),
    }
}

impl PyProgram {
    pub(crate) fn new(inner: Program) -> PyProgram {
        PyProgram { inner, report: OnceLock::new(), regions: Regions::default() }
    }

    /// What it costs; counted once.
    pub(crate) fn cost(&self) -> &Report {
        self.report.get_or_init(|| Report::of(&self.inner))
    }
}

#[pymethods]
impl PyProgram {
    /// Name of the source.
    #[getter]
    fn filename(&self) -> &str {
        &self.inner.name
    }

    /// The spec it was assembled for.
    #[getter]
    fn spec(&self) -> PySpec {
        PySpec { inner: self.inner.spec.clone() }
    }

    /// Warnings, one dict each: file, line, column, end_line, end_column, code, severity, message, help.
    #[getter]
    fn warnings<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let program = &self.inner;
        error::records(py, &program.name, &program.text, &program.warnings)
    }

    /// The warnings as text that shows them in the source.
    fn render_warnings(&self) -> String {
        asm::render(&self.inner.name, &self.inner.text, &self.inner.warnings, false)
    }

    /// What the program costs, as a dict (docs/cycle_model.md): steps, cycles, stall_cycles, waits, stalled_waits, mvs,
    /// mv_busy_cycles, mv_end, port_cycles, busy_steps, dram_words, words, host_tags.
    fn report<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        convert::serialize(py, py.detach(|| self.cost()))
    }

    /// Writes the program's time line to `sink`, an object with a `write(str)` method: trace events as JSON, which Perfetto
    /// opens. A microsecond there is a cycle of the timing model.
    fn trace(&self, py: Python<'_>, sink: &Bound<'_, PyAny>) -> PyResult<()> {
        let mut failure = None;
        let written = report::trace(&self.inner, &mut |piece| {
            sink.call_method1("write", (piece,)).map(|_| ()).map_err(|e| {
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

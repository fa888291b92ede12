//! `emu2.Report`.

use crate::convert;
use crate::found::Found;
use emu2::report::Report;
use pyo3::prelude::*;

/// The results of one run.
#[pyclass(frozen, name = "Report", module = "emu2")]
pub(crate) struct PyReport {
    inner: Report,
    dump: Vec<String>,
    host: Vec<String>,
    findings: Vec<Found>,
}

impl PyReport {
    pub(crate) fn new(inner: Report, dump: Vec<String>) -> PyReport {
        PyReport { inner, dump, host: Vec::new(), findings: Vec::new() }
    }

    /// The same with the lines of host commands and with findings.
    pub(crate) fn with(self, host: Vec<String>, findings: Vec<Found>) -> PyReport {
        PyReport { host, findings, ..self }
    }
}

#[pymethods]
impl PyReport {
    /// Number of PE lines run, nops included.
    #[getter]
    fn steps(&self) -> u64 {
        self.inner.steps
    }

    /// Cycles of the timing model: steps and stalls at waits.
    #[getter]
    fn cycles(&self) -> u64 {
        self.inner.cycles
    }

    /// Dump lines in order. Empty if they went to a sink.
    #[getter]
    fn dump(&self) -> Vec<String> {
        self.dump.clone()
    }

    /// What the `e` lines of host commands have read, a line for each long word.
    #[getter]
    fn host(&self) -> Vec<String> {
        self.host.clone()
    }

    /// The findings of a sanitized run, one dict for each, in the order of their lines: those of `Program.warnings`, and
    /// memory, unit, address, earlier_line, count.
    #[getter]
    fn findings<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        convert::serialize(py, &self.findings)
    }

    /// The findings as text that shows them in the source.
    fn render_findings(&self) -> String {
        self.findings.iter().map(|found| found.text.as_str()).collect()
    }

    /// All counters, as `Program.report` returns them.
    #[getter]
    fn counters<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        convert::serialize(py, &self.inner)
    }

    fn __repr__(&self) -> String {
        format!("Report(steps={}, cycles={}, dump={} lines)", self.inner.steps, self.inner.cycles, self.dump.len())
    }
}

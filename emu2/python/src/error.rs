//! Turns errors of the core into the exceptions of `emu2.errors`.

use crate::convert;
use emu2::asm::AssembleError;
use emu2::error::{Code, Diagnostic, Error};
use emu2::exec::RunError;
use pyo3::prelude::*;
use pyo3::types::PyDict;

/// Every code of a diagnostic, with its title and its remedy: `(code, title, remedy)`.
#[pyfunction]
pub(crate) fn codes() -> Vec<(&'static str, &'static str, &'static str)> {
    Code::ALL.iter().map(|code| (code.id(), code.title(), code.remedy())).collect()
}

fn raise(py: Python<'_>, class: &str, fields: &Bound<'_, PyDict>) -> PyErr {
    let make = || py.import("emu2.errors")?.getattr(class)?.call((), Some(fields));
    match make() {
        Ok(exception) => PyErr::from_value(exception),
        Err(error) => error,
    }
}

fn fields<'py>(py: Python<'py>, diagnostic: &Diagnostic) -> PyResult<Bound<'py, PyDict>> {
    let dict = PyDict::new(py);
    dict.set_item("code", diagnostic.code.id())?;
    dict.set_item("message", &diagnostic.message)?;
    dict.set_item("help", &diagnostic.help)?;
    Ok(dict)
}

/// `emu2.EmulatorError`.
pub(crate) fn core(py: Python<'_>, error: &Error) -> PyErr {
    match fields(py, &error.0) {
        Ok(dict) => raise(py, "EmulatorError", &dict),
        Err(error) => error,
    }
}

/// `emu2.RunError`, with the place of the statement in the program that is called `file`.
pub(crate) fn run(py: Python<'_>, file: &str, error: &RunError) -> PyErr {
    let make = || {
        let dict = fields(py, &error.diagnostic)?;
        dict.set_item("file", file)?;
        dict.set_item("line", error.line)?;
        Ok(dict)
    };
    match make() {
        Ok(dict) => raise(py, "RunError", &dict),
        Err(error) => error,
    }
}

/// Findings in a text as dicts: file, line, column, end_line, end_column, code, severity, message, help.
pub(crate) fn records<'py>(
    py: Python<'py>,
    name: &str,
    text: &str,
    diagnostics: &[Diagnostic],
) -> PyResult<Bound<'py, PyAny>> {
    convert::serialize(py, &emu2::asm::records(name, text, diagnostics))
}

/// `emu2.AssembleError`, with every diagnostic and the text that shows them in the source.
pub(crate) fn assemble(py: Python<'_>, error: &AssembleError) -> PyErr {
    let make = || {
        let dict = PyDict::new(py);
        dict.set_item("rendered", error.to_string())?;
        dict.set_item("diagnostics", records(py, &error.name, &error.text, &error.diagnostics)?)?;
        Ok(dict)
    };
    match make() {
        Ok(dict) => raise(py, "AssembleError", &dict),
        Err(error) => error,
    }
}

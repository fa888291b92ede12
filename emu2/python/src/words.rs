//! Machine words: assembled text, canonical assembly, and the container format of this project.

use crate::argument::{Name, Text};
use crate::attended::{attended, Where};
use crate::error;
use crate::program::PyProgram;
use crate::spec::PySpec;
use emu2::error::{Code, Error};
use emu2::word::{self, Form, Options};
use pyo3::prelude::*;
use pyo3::types::PyBytes;

/// Reads the program of assembled text (`.asm`), given as str or bytes.
#[pyfunction]
#[pyo3(
    signature = (text, spec, *, filename = Name::of("<string>")),
    text_signature = "(text, spec, *, filename='<string>')"
)]
pub(crate) fn read_asm(py: Python<'_>, text: &Bound<'_, PyAny>, spec: &PySpec, filename: Name) -> PyResult<PyProgram> {
    let (text, spec) = (Text::new(text)?, spec.inner.clone());
    let program = py.detach(|| {
        attended(Where::of_text(text.len()), None, |interrupt, _| word::read_until(&text, &filename, &spec, interrupt))
    });
    Ok(PyProgram::new(program?.0.map_err(|e| error::assemble(py, &e))?))
}

/// Writes the assembled text (`.asm`) of a program to `sink`, an object with a `write(str)` method. `form` "words" refuses
/// statements whose machine word is unknown, "mixed" writes them as `s` lines, "flat" writes a `j` line for every step and
/// an `m` line for every MV. With `allow_inferred`, words that rest on inferred positions are written too.
#[pyfunction]
#[pyo3(
    signature = (program, sink, *, form = Name::of("words"), allow_inferred = false),
    text_signature = "(program, sink, *, form='words', allow_inferred=False)"
)]
pub(crate) fn write_asm(
    py: Python<'_>,
    program: &PyProgram,
    sink: &Bound<'_, PyAny>,
    form: Name,
    allow_inferred: bool,
) -> PyResult<()> {
    let form = match &*form {
        "words" => Form::Words,
        "mixed" => Form::Mixed,
        "flat" => Form::Flat,
        other => {
            let error =
                Error::new(Code::BadOption, format!("no form `{other}`")).help("use `words`, `mixed` or `flat`");
            return Err(error::core(py, &error));
        }
    };
    let options = Options { form, inferred: allow_inferred };
    let lines = py.detach(|| word::encode(&program.inner, options)).map_err(|e| error::assemble(py, &e))?;
    let mut failure = None;
    let written = word::write(&program.inner.spec, &lines, &mut |piece| {
        py.check_signals().and_then(|()| sink.call_method1("write", (piece,)).map(drop)).map_err(|e| {
            failure = Some(e);
            Error::new(Code::Unwritable, "the assembled text cannot be written")
        })
    });
    match (failure, written) {
        (Some(error), _) => Err(error),
        (None, Err(error)) => Err(error::core(py, &error)),
        (None, Ok(())) => Ok(()),
    }
}

/// Returns the canonical assembly of a program, one statement per line.
#[pyfunction]
pub(crate) fn to_text(py: Python<'_>, program: &PyProgram) -> String {
    py.detach(|| word::print(&program.inner))
}

/// Returns the program as a container, a format of this project that boards do not read.
#[pyfunction]
pub(crate) fn pack<'py>(py: Python<'py>, program: &PyProgram) -> PyResult<Bound<'py, PyBytes>> {
    let bytes = word::pack(&program.inner).map_err(|e| error::core(py, &e))?;
    Ok(PyBytes::new(py, &bytes))
}

/// Returns the assembly in such a container.
#[pyfunction]
pub(crate) fn unpack(py: Python<'_>, data: &[u8]) -> PyResult<String> {
    word::unpack(data).map_err(|e| error::core(py, &e))
}

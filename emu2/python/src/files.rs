//! Files that Python objects name.

use crate::argument::lossy;
use crate::attended::{attended, Where};
use crate::error;
use emu2::error::{Code, Error};
use emu2::files;
use pyo3::exceptions::PyUnicodeEncodeError;
use pyo3::prelude::*;
use pyo3::types::PyBytes;
use std::path::{Path, PathBuf};

/// Number of bytes from which on signals are heard while a file is read.
const LONG_FILE: u64 = 1 << 20;

/// The path that `object` names: a str or an `os.PathLike`, not bytes. F0001 for a path that no file of the host can have.
pub(crate) fn path(object: &Bound<'_, PyAny>) -> PyResult<PathBuf> {
    object.extract().map_err(|found: PyErr| match found.is_instance_of::<PyUnicodeEncodeError>(object.py()) {
        true => {
            let shown = object.str().map_or_else(|_| String::new(), |text| lossy(&text));
            let message = format!("{shown}: no path of this host holds such a character");
            error::core(object.py(), &Error::new(Code::Unreadable, message))
        }
        false => found,
    })
}

/// Argument: a path that [`path`] accepts.
pub(crate) struct FilePath(pub(crate) PathBuf);

impl FromPyObject<'_, '_> for FilePath {
    type Error = PyErr;

    fn extract(object: Borrowed<'_, '_, PyAny>) -> PyResult<Self> {
        path(&object).map(FilePath)
    }
}

/// Reads a file of up to `limit` bytes.
pub(crate) fn read(py: Python<'_>, path: &Path, limit: u64) -> PyResult<Vec<u8>> {
    let read = py.detach(|| {
        let short = std::fs::metadata(path).is_ok_and(|file| file.is_file() && file.len() < LONG_FILE);
        let place = if short { Where::Here } else { Where::Thread };
        attended(place, None, |interrupt, _| files::read(path, limit, interrupt))
    });
    read?.0.map_err(|e| error::core(py, &e))
}

/// Reads the bytes of the source at `path`, as the command line does: at most a gigabyte, of pipes and devices at most 256
/// MiB. Raises EmulatorError F0001 if it cannot be read, also for a pipe to which nobody writes, and F0007 if it is longer.
#[pyfunction]
pub(crate) fn read_source<'py>(py: Python<'py>, path: FilePath) -> PyResult<Bound<'py, PyBytes>> {
    Ok(PyBytes::new(py, &read(py, &path.0, files::SOURCE_LIMIT)?))
}

/// Most bytes that [`read_source`] takes from anything but a regular file.
#[pyfunction]
pub(crate) fn stream_limit() -> u64 {
    files::STREAM_LIMIT
}

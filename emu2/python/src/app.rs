//! `emu2 app run`, and the check of an app's structure, which the compiler makes too.

use crate::attended::{attended, Where};
use crate::error;
use crate::files::FilePath;
use pyo3::prelude::*;
use pyo3::types::PyBytes;

/// Runs the app in the file `app` on the arrays of the .npz file `inputs`.
///
/// Returns the bytes of an .npz file with the outputs.
///
/// Raises EmulatorError: M0001 to M0005, and F0001 for a file that cannot be read. KeyboardInterrupt is heard.
#[pyfunction]
#[pyo3(signature = (app, inputs = None))]
pub(crate) fn run_app<'py>(py: Python<'py>, app: FilePath, inputs: Option<FilePath>) -> PyResult<Bound<'py, PyBytes>> {
    let ran = py.detach(|| {
        let inputs = inputs.as_ref().map(|path| &*path.0);
        attended(Where::Thread, None, |interrupt, _| emu2::app::run_files(&app.0, inputs, interrupt))
    });
    let bytes = ran?.0.map_err(|e| error::core(py, &e))?;
    Ok(PyBytes::new(py, &bytes))
}

/// Checks the digest of the bytes of an app, and the structure of its tables; returns where they end.
///
/// Raises EmulatorError (M0001).
#[pyfunction]
pub(crate) fn check_app(py: Python<'_>, data: &[u8]) -> PyResult<usize> {
    py.detach(|| emu2::app::check_structure(data)).map_err(|e| error::core(py, &e))
}

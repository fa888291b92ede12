//! Numbers from Python.

use crate::error;
use emu2::error::{Code, Error};
use pyo3::exceptions::PyOverflowError;
use pyo3::prelude::*;

/// Argument: an address or a count of long words. R0001 for an integer that none can be.
pub(crate) struct Addr(pub(crate) u64);

/// Argument: the number of a unit. R0003 for an integer that none can be.
pub(crate) struct Unit(pub(crate) u32);

impl FromPyObject<'_, '_> for Addr {
    type Error = PyErr;

    fn extract(object: Borrowed<'_, '_, PyAny>) -> PyResult<Self> {
        integer(object, Code::AddressRange).map(Addr)
    }
}

impl FromPyObject<'_, '_> for Unit {
    type Error = PyErr;

    fn extract(object: Borrowed<'_, '_, PyAny>) -> PyResult<Self> {
        integer(object, Code::BadSelector).map(Unit)
    }
}

/// An integer that fits; one that does not is an error with `code`, not Python's OverflowError.
fn integer<'a, 'py, T: FromPyObject<'a, 'py, Error = PyErr>>(
    object: Borrowed<'a, 'py, PyAny>,
    code: Code,
) -> PyResult<T> {
    object.extract().map_err(|found: PyErr| match found.is_instance_of::<PyOverflowError>(object.py()) {
        true => error::core(object.py(), &Error::new(code, format!("{} is out of range", *object))),
        false => found,
    })
}

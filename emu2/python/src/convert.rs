//! Reports and numbers as Python objects, and numbers from Python.

use crate::error;
use emu2::error::{Code, Error};
use pyo3::exceptions::{PyOverflowError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList};
use serde::Serialize;
use serde_json::Value;

/// A value as the Python object that its JSON form means.
pub(crate) fn serialize<'py>(py: Python<'py>, value: &impl Serialize) -> PyResult<Bound<'py, PyAny>> {
    let value = serde_json::to_value(value).map_err(|e| PyValueError::new_err(e.to_string()))?;
    json(py, &value)
}

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

/// A JSON value as the Python object it means.
fn json<'py>(py: Python<'py>, value: &Value) -> PyResult<Bound<'py, PyAny>> {
    Ok(match value {
        Value::Null => py.None().into_bound(py),
        Value::Bool(b) => b.into_pyobject(py)?.to_owned().into_any(),
        Value::Number(n) => match (n.as_u64(), n.as_i64()) {
            (Some(n), _) => n.into_pyobject(py)?.into_any(),
            (None, Some(n)) => n.into_pyobject(py)?.into_any(),
            _ => n.as_f64().unwrap_or(f64::NAN).into_pyobject(py)?.into_any(),
        },
        Value::String(s) => s.into_pyobject(py)?.into_any(),
        Value::Array(items) => {
            let list = PyList::empty(py);
            for item in items {
                list.append(json(py, item)?)?;
            }
            list.into_any()
        }
        Value::Object(map) => {
            let dict = PyDict::new(py);
            for (key, item) in map {
                dict.set_item(key, json(py, item)?)?;
            }
            dict.into_any()
        }
    })
}

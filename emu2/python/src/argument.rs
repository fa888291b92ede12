//! Numbers, names and texts from Python.

use crate::error;
use emu2::error::{Code, Error};
use pyo3::exceptions::{PyOverflowError, PyUnicodeEncodeError};
use pyo3::prelude::*;
use pyo3::pybacked::{PyBackedBytes, PyBackedStr};
use pyo3::types::PyString;
use std::ops::Deref;

/// Argument: an address or a count of long words. R0001 for an integer out of its range.
pub(crate) struct Addr(pub(crate) u64);

/// Argument: the number of a unit. R0003 for an integer out of its range.
pub(crate) struct Unit(pub(crate) u32);

/// Argument: a name of something, for messages. Characters that UTF-8 cannot hold become U+FFFD.
pub(crate) struct Name(pub(crate) String);

impl Name {
    pub(crate) fn of(name: &str) -> Name {
        Name(name.to_string())
    }
}

impl Deref for Name {
    type Target = str;

    fn deref(&self) -> &str {
        &self.0
    }
}

impl FromPyObject<'_, '_> for Name {
    type Error = PyErr;

    fn extract(object: Borrowed<'_, '_, PyAny>) -> PyResult<Self> {
        Ok(Name(lossy(&*object.cast::<PyString>()?)))
    }
}

/// The text of a str. Each surrogate that stands alone becomes U+FFFD, because UTF-8 cannot hold it.
pub(crate) fn lossy(text: &Bound<'_, PyString>) -> String {
    text.to_string_lossy().into_owned()
}

/// A source given as str or bytes. It is not copied, because it may have a hundred megabytes. Surrogates that stand alone
/// become bytes that are not UTF-8, so that the assembler says where they are.
pub(crate) enum Text {
    Bytes(PyBackedBytes),
    Str(PyBackedStr),
    /// The contents of a file.
    Read(Vec<u8>),
}

impl Text {
    pub(crate) fn new(text: &Bound<'_, PyAny>) -> PyResult<Text> {
        if let Ok(bytes) = text.extract() {
            return Ok(Text::Bytes(bytes));
        }
        match text.extract() {
            Ok(text) => Ok(Text::Str(text)),
            Err(error) if error.is_instance_of::<PyUnicodeEncodeError>(text.py()) => {
                Ok(Text::Bytes(text.call_method1("encode", ("utf-8", "surrogatepass"))?.extract()?))
            }
            Err(error) => Err(error),
        }
    }
}

impl Deref for Text {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        match self {
            Text::Bytes(bytes) => bytes,
            Text::Str(text) => text.as_bytes(),
            Text::Read(bytes) => bytes,
        }
    }
}

impl FromPyObject<'_, '_> for Addr {
    type Error = PyErr;

    fn extract(object: Borrowed<'_, '_, PyAny>) -> PyResult<Self> {
        integer(object, "", Code::AddressRange).map(Addr)
    }
}

impl FromPyObject<'_, '_> for Unit {
    type Error = PyErr;

    fn extract(object: Borrowed<'_, '_, PyAny>) -> PyResult<Self> {
        integer(object, "", Code::BadSelector).map(Unit)
    }
}

/// Extracts an integer that fits. One that does not fit is an error with `code`, not Python's OverflowError.
pub(crate) fn integer<'a, 'py, T: FromPyObject<'a, 'py, Error = PyErr>>(
    object: Borrowed<'a, 'py, PyAny>,
    what: &str,
    code: Code,
) -> PyResult<T> {
    object.extract().map_err(|found: PyErr| match found.is_instance_of::<PyOverflowError>(object.py()) {
        true => error::core(object.py(), &Error::new(code, format!("{what}{} is out of range", *object))),
        false => found,
    })
}

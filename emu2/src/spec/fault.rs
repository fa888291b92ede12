//! The two faults that most checks of a spec report.

use crate::error::{Code, Error};

/// A value outside its range.
pub(super) fn bad(message: String) -> Error {
    Error::new(Code::SpecBadValue, message)
}

/// A name that nothing declares.
pub(super) fn unknown(message: String) -> Error {
    Error::new(Code::SpecUnknownName, message)
}

//! The two faults that most checks of a spec report.

use crate::error::{Code, Error};

/// The error for a value outside its range.
pub(super) fn bad(message: String) -> Error {
    Error::new(Code::SpecBadValue, message)
}

/// The error for a name that nothing declares.
pub(super) fn unknown(message: String) -> Error {
    Error::new(Code::SpecUnknownName, message)
}

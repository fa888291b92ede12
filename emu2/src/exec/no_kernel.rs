//! The error of something in a spec that the engine has no code for.

use crate::error::{Code, Error};

/// The engine cannot run `what`.
pub(super) fn no_kernel(what: &str) -> Error {
    Error::new(Code::NoKernel, format!("the engine cannot run {what}"))
}

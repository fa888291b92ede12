//! The edge to C: no panic passes it, and every error leaves a message.

use crate::message;
use crate::status::{Refusal, Status};
use std::ffi::c_int;
use std::panic::{catch_unwind, AssertUnwindSafe};

/// Runs the body of a function that returns `otherwise` on errors.
pub(super) fn value<T>(function: &str, otherwise: T, body: impl FnOnce() -> Result<T, Refusal>) -> T {
    let done = catch_unwind(AssertUnwindSafe(body))
        .unwrap_or_else(|_| Err(Refusal::new(Status::Device, "an internal error of emu2; please report it")));
    done.unwrap_or_else(|refusal| {
        message::report(function, &refusal);
        otherwise
    })
}

/// Runs the body of a function that returns a code.
pub(super) fn code(function: &str, body: impl FnOnce() -> Result<(), Refusal>) -> c_int {
    let mut status = Status::Device;
    let done = value(function, None, || match body() {
        Ok(()) => Ok(Some(())),
        Err(refusal) => {
            status = refusal.status;
            Err(refusal)
        }
    });
    done.map_or(status.number(), |()| Status::Success.number())
}

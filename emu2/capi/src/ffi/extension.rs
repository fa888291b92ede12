//! Functions of our own.

use crate::message;
use crate::status::Status;
use std::ffi::{c_char, c_int, CStr};

/// The text of a code.
#[no_mangle]
pub extern "C" fn emu2_strerror(code: c_int) -> *const c_char {
    let known = Status::ALL.iter().find(|status| status.number() == code);
    known.map_or(c"this is no code of the interface", |status| status.text()).as_ptr()
}

/// The message of the last error of this thread; empty if there was none. It is valid until the next error.
#[no_mangle]
pub extern "C" fn emu2_last_error() -> *const c_char {
    message::last()
}

const VERSION: &str = concat!(env!("CARGO_PKG_VERSION"), "\0");

/// The version of emu2.
#[no_mangle]
pub extern "C" fn emu2_version() -> *const c_char {
    CStr::from_bytes_with_nul(VERSION.as_bytes()).unwrap_or_default().as_ptr()
}

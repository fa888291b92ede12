//! The last message of a thread, and messages on stderr.

use crate::environment;
use crate::status::Refusal;
use std::cell::RefCell;
use std::ffi::{c_char, CString};

thread_local! {
    static LAST: RefCell<CString> = RefCell::default();
}

/// Keeps the message of an error of a function, and shows it.
pub(crate) fn report(function: &str, refusal: &Refusal) {
    let text = format!("{function}: {}", refusal.message);
    show(&text);
    let text = CString::new(text.replace('\0', " ")).unwrap_or_default();
    LAST.with(|last| *last.borrow_mut() = text);
}

/// Shows a message.
pub(crate) fn show(text: &str) {
    if environment::value(environment::QUIET).is_none() {
        eprintln!("{text}");
    }
}

/// The last message of this thread; valid until its next error.
pub(crate) fn last() -> *const c_char {
    LAST.with(|last| last.borrow().as_ptr())
}

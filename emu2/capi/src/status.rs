//! Codes of the interface, and errors of the emulator as such codes.

use emu2::error::{Code, Error};
use std::fmt;

/// What a function of the interface returns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(i32)]
pub enum Status {
    /// Done.
    Success = 0,
    /// The device cannot be opened or used, or it has no such function.
    Device = -1,
    /// A transfer failed.
    Dma = -2,
    /// A register cannot be read or written.
    Pio = -3,
    /// A file cannot be read or written.
    Io = -4,
    /// Nothing can make progress any more.
    Timeout = -5,
    /// An environment variable is missing.
    Env = -6,
    /// An argument is wrong.
    Param = -7,
    /// The kernel is none.
    Kernel = -8,
    /// A pool is empty.
    Busy = -9,
}

impl Status {
    /// All codes.
    pub const ALL: [Status; 10] = [
        Status::Success,
        Status::Device,
        Status::Dma,
        Status::Pio,
        Status::Io,
        Status::Timeout,
        Status::Env,
        Status::Param,
        Status::Kernel,
        Status::Busy,
    ];

    /// The number for C.
    pub fn number(self) -> i32 {
        self as i32
    }

    /// A text for people, with a NUL at its end.
    pub fn text(self) -> &'static std::ffi::CStr {
        match self {
            Status::Success => c"success",
            Status::Device => c"the device cannot be opened or used, or it has no such function",
            Status::Dma => c"the transfer failed",
            Status::Pio => c"the register cannot be read or written",
            Status::Io => c"the file cannot be read or written, or the reset failed",
            Status::Timeout => c"time-out: nothing can make progress any more",
            Status::Env => c"an environment variable is missing",
            Status::Param => c"an argument is wrong",
            Status::Kernel => c"the kernel is none, or its device has stopped",
            Status::Busy => c"the pool is empty",
        }
    }
}

/// An error of the interface: its code, and what went wrong.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refusal {
    /// The code.
    pub status: Status,
    /// The message.
    pub message: String,
}

impl Refusal {
    /// An error with a code and a message.
    pub fn new(status: Status, message: impl Into<String>) -> Refusal {
        Refusal { status, message: message.into() }
    }

    /// The error of a wrong argument.
    pub fn param(message: impl Into<String>) -> Refusal {
        Refusal::new(Status::Param, message)
    }
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for Refusal {}

impl From<Error> for Refusal {
    fn from(error: Error) -> Refusal {
        let status = match error.code() {
            Code::NothingToReceive => Status::Timeout,
            Code::Poisoned | Code::TagInFlight => Status::Dma,
            Code::TransferUnit
            | Code::TransferRange
            | Code::TagRange
            | Code::BadOption
            | Code::BadSelector
            | Code::AddressRange
            | Code::UnknownMemory
            | Code::BadShape => Status::Param,
            _ => Status::Device,
        };
        Refusal::new(status, error.to_string())
    }
}

//! The functions of `mnc2.h` and `gpfn3.h`, and a few of our own (`emu2.h`).
//!
//! A pointer that a function takes may be null or wild: handles are looked up, and memory of the program is accessed through
//! `user`. So each function is safe to call with any values, except that memory which the caller names must not be used by
//! another thread meanwhile, as usual in C. Errors are codes; the message goes to stderr and to `emu2_last_error`.
#![allow(unsafe_code)]

mod debug;
mod device;
mod engine;
mod extension;
mod gpfn3;
mod guard;
mod kernel;
mod pools;
mod status;
mod transfer;

pub use debug::*;
pub use device::*;
pub use engine::*;
pub use extension::*;
pub use gpfn3::*;
pub use kernel::*;
pub use pools::*;
pub use status::*;
pub use transfer::*;

//! The vendor's C interface for host programs, on the emulator.
//!
//! The crate has two faces. [`ffi`] exports the functions of `mnc2.h` and `gpfn3.h` for C. [`Board`] is the same for Rust:
//! a device with a queue of kernels, transfers, tags and pools.
//!
//! ```
//! use emu2_capi::{Board, Rules};
//!
//! let board = Board::open(Rules::default())?;
//! let kernel = board.load(b"nop; wait i10\nmvp/n64i1e $p0@0 $p64@0\n", "copy.vsm")?;
//! board.send(&[7; 512], 0, 0x10)?;
//! board.launch(&kernel)?;
//! let mut out = [0; 512];
//! board.receive(&mut out, 512, 0x1e)?;
//! assert_eq!(out, [7; 512]);
//! # Ok::<(), emu2_capi::Refusal>(())
//! ```
//!
//! The facts of the interface, and which of them are guesses, stand in `docs/c.md`.
//!
//! # Files
//!
//! One line per file, in the order of their dependencies.
//!
//! | file | subject |
//! |---|---|
//! | `status` | codes of the interface, and errors of the emulator as such codes |
//! | `limits` | how often a board is asked before a time-out |
//! | `pool` | tags, waits and register sets that a program reserves |
//! | `capture` | the counters of instructions, and snapshots of them |
//! | `environment` | the variables that are read |
//! | `message` | the last message of a thread |
//! | `record` | what ran on a device |
//! | `kept` | the file that keeps the memories of a device |
//! | `kernel` | loaded kernels |
//! | `queue` | what is queued on a device: kernels and transfers |
//! | `attach` | a debugger that attaches to the process |
//! | `shared` | the state of a device, and what runs |
//! | `board` | a device: runs what is queued, in order |
//! | `memories` | access to the memories of a device |
//! | `handles` | handles of C programs, which are never dereferenced |
//! | `user` | memory of the program that calls |
//! | `ffi` | the functions for C |

#![cfg_attr(not(test), warn(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::type_complexity))]
#![warn(clippy::undocumented_unsafe_blocks, unsafe_op_in_unsafe_fn)]

mod attach;
mod board;
mod capture;
mod environment;
pub mod ffi;
mod handles;
mod kept;
mod kernel;
mod limits;
mod memories;
mod message;
mod pool;
mod queue;
mod record;
mod shared;
mod status;
mod user;

pub use board::{Board, DEFAULT_SPEC};
pub use capture::{Capture, Snapshot};
pub use kernel::Loaded;
pub use limits::{Limit, Limits};
pub use pool::Pool;
pub use queue::TransferId;
pub use shared::Rules;
pub use status::{Refusal, Status};

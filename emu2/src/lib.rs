//! Bit-exact emulator and assembler of the MN-Core 2 accelerator.
//!
//! Text goes through [`asm`] (parse, check), [`exec`] (lowering, engine) and [`report`] (dump text, counters). Every
//! fact of the machine comes from a [`spec`], a folder of TOML files.

#![cfg_attr(test, allow(clippy::unwrap_used, clippy::expect_used, clippy::panic))]
// `make lint` switches these lints off for tests, benches and their helpers. Here they stay on.
#![cfg_attr(not(test), warn(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::type_complexity))]

pub mod app;
pub mod asm;
pub mod debug;
pub mod error;
pub mod exec;
pub mod files;
pub mod host;
pub mod interrupt;
#[cfg(feature = "measure")]
pub mod limits;
pub mod machine;
#[cfg(feature = "measure")]
pub mod measure;
pub mod num;
pub mod report;
pub mod spec;
pub mod threads;
pub mod word;

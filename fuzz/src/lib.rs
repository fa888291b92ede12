//! What is fuzzed: plain functions of bytes that panic when something is wrong. The tests of `emu2` call them too.

#[path = "../../emu2/tests/naive/mod.rs"]
pub mod naive;
pub mod targets;

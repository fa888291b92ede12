//! What is fuzzed: plain functions of bytes that panic when something is wrong. The tests of `emu2` call them too.

#[path = "../../tests/naive/mod.rs"]
pub mod naive;
pub mod targets;

//! Any bytes to the assembler.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| emu2_fuzz::targets::assembler(bytes));

//! Random legal programs, chosen by bytes, on the engine and the naive machine.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| emu2_fuzz::targets::programs(bytes));

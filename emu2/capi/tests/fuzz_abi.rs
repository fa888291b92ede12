//! Random calls of the functions for C, also with values that fit: a code, never a crash.

#![allow(unsafe_code, clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use emu2_capi::ffi::*;
use proptest::prelude::*;
use std::ffi::{c_void, CStr};
use std::ptr;

const KERNEL: &CStr = c"nop; wait i10\nmvp/n64i1e $p0@0 $p64@0\n";

/// Addresses where the program has no memory, and numbers that are no handles.
fn wild() -> impl Strategy<Value = usize> {
    prop_oneof![Just(0), Just(1), Just(8), Just(0xdead_beef_0000), Just(usize::MAX - 4095), 0usize..4096]
}

fn pointer(number: usize) -> *mut c_void {
    ptr::without_provenance_mut(number)
}

fn cases(quick: u32) -> ProptestConfig {
    let long = std::env::var_os("EMU2_LONG").is_some();
    ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(if long { 100 * quick } else { quick }) }
}

proptest! {
    #![proptest_config(cases(200))]

    #[test]
    fn wild_arguments(handle in wild(), place in wild(), number in any::<i32>(), size in any::<u32>(), choice in 0..36u32) {
        let (dev, at) = (pointer(handle), pointer(place));
        let (small, tag) = (number & 0xff, size & 0x7f);
        // SAFETY: no pointer names memory of the program, and the functions refuse such pointers.
        unsafe {
            let code = match choice {
                0 => mnc2_send(dev, at, u64::from(size), size as usize, tag),
                1 => mnc2_recv(dev, at, u64::from(size), size as usize, tag),
                2 => mnc2_exec_kernel(dev),
                3 => mnc2_kernel_get_dma_tags(dev, at.cast(), at.cast(), number, at.cast(), at.cast()),
                4 => mnc2_debug_read(dev, small, at.cast(), number, number, at.cast()),
                5 => mnc2_debug_write(dev, small, at.cast(), number, number, at.cast()),
                6 => mnc2_get_ddma_stat(dev, at.cast()),
                7 => mnc2_get_idma_stat(dev, at.cast()),
                8 => mnc2_get_wdbit_status(dev, at.cast()),
                9 => mnc2_clear_wdbit(dev, size),
                10 => mnc2_capture_get_inst(dev, at.cast()),
                11 => mnc2_capture_set_trigger(dev, small, 1),
                12 => mnc2_capture_read(dev, small, at.cast()),
                13 => mnc2_tag_alloc(dev, at.cast()),
                14 => mnc2_tag_free(dev, size),
                15 => mnc2_tag_set_size(dev, size, size),
                16 => mnc2_tag_check_done(dev, size, at.cast()),
                17 => mnc2_tag_wait(dev, size),
                18 => mnc2_wd_alloc(dev, at.cast()),
                19 => mnc2_regset_alloc(dev, at.cast()),
                20 => mnc2_regset_free(dev, size),
                21 => mnc2_async_poll(dev, at.cast()),
                22 => mnc2_async_wait(dev),
                23 => mnc2_wait_ddma_idle(dev),
                24 => mnc2_wait_idma_idle(dev),
                25 => mnc2_set_endian_ctrl(dev, number),
                26 => mnc2_get_endian_ctrl(dev),
                27 => mnc2_read_pio(dev, u64::from(size), at.cast()),
                28 => mnc2_set_idma_complete_max(dev, number),
                29 => -i32::from(mnc2_async_send(dev, at, u64::from(size), 8, tag).is_null()),
                30 => -i32::from(mnc2_async_recv(dev, at, u64::from(size), 8, tag).is_null()),
                31 => -i32::from(mnc2_load_kernel(dev, at.cast()).is_null()),
                32 => {
                    mnc2_free_host_buffer(dev, at, size as usize);
                    mnc2_free_kernel(dev);
                    mnc2_async_release(dev);
                    mnc2_close(dev);
                    -1
                }
                33 => -gpfn3_kick_inst_dma(number | 64, at, size as usize),
                34 => -gpfn3_read_pio(number | 64, size, at.cast()),
                _ => -gpfn3_set_regset(number | 64, tag, at, 0),
            };
            prop_assert!(code < 0, "{choice} gave {code}");
        }
    }
}

proptest! {
    #![proptest_config(cases(20))]

    /// An open device with random numbers and good buffers.
    #[test]
    fn random_numbers(calls in prop::collection::vec((0..12u32, any::<i32>(), any::<u32>()), 1..40)) {
        let dev = mnc2_open(0);
        let mut buffer = vec![0u64; 1 << 16];
        let at: *mut c_void = buffer.as_mut_ptr().cast();
        let bytes = size_of_val(&buffer[..]);
        // SAFETY: the buffer has room for everything that the calls may read or write.
        unsafe {
            let kernel = emu2_load_kernel_text(dev, KERNEL.as_ptr());
            for (choice, number, size) in calls {
                let (some, tag) = (size as usize % bytes, size % 70);
                match choice {
                    0 => mnc2_send(dev, at, u64::from(number.unsigned_abs() % (5 << 20)), some & !7, tag),
                    1 => mnc2_recv(dev, at, u64::from(number.unsigned_abs() % (5 << 20)), some & !7, tag),
                    2 => mnc2_exec_kernel(kernel),
                    3 => mnc2_debug_read(dev, number % 9, ptr::null(), size as i32 % 4096, (some / 8) as i32, at.cast()),
                    4 => mnc2_debug_write(dev, number % 9, ptr::null(), size as i32 % 4096, (some / 64) as i32, at.cast()),
                    5 => mnc2_clear_wdbit(dev, tag),
                    6 => mnc2_reset(dev),
                    7 => mnc2_set_endian_ctrl(dev, number % 6),
                    8 => mnc2_wait_idma_idle(dev),
                    9 => mnc2_tag_alloc(dev, at.cast()) + mnc2_tag_wait(dev, tag),
                    10 => mnc2_capture_set_trigger(dev, number % 6, u64::from(size)),
                    _ => {
                        let handle = mnc2_async_recv(dev, at, u64::from(size % 4096) * 8, some & !7, tag);
                        let code = mnc2_async_poll(handle, at.cast());
                        mnc2_async_release(handle);
                        code
                    }
                };
            }
        }
        mnc2_close(dev);
    }
}

//! The functions for C with null, wild, closed and freed arguments: a code and a message, never a crash.

#![allow(unsafe_code, clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use emu2_capi::ffi::*;
use std::ffi::{c_int, c_void, CStr};
use std::ptr;

const KERNEL: &CStr = c"nop; wait i10\nmvp/n64i1e $p0@0 $p64@0\n";

fn pointer(number: usize) -> *mut c_void {
    ptr::without_provenance_mut(number)
}

fn message() -> String {
    // SAFETY: the message lives until the next error of this thread.
    unsafe { CStr::from_ptr(emu2_last_error()) }.to_string_lossy().into_owned()
}

#[test]
fn a_round_trip() {
    let dev = mnc2_open(0);
    assert!(!dev.is_null());
    // SAFETY: every pointer is one of the library, or of a local that lives.
    unsafe {
        let kernel = emu2_load_kernel_text(dev, KERNEL.as_ptr());
        let data: Vec<u64> = (0..64).collect();
        let mut out = vec![0u64; 64];
        let (mut waits, mut mvs, mut counts) = ([0u8; 4], [0u8; 4], [0 as c_int; 2]);
        let tags =
            mnc2_kernel_get_dma_tags(kernel, waits.as_mut_ptr(), mvs.as_mut_ptr(), 4, &mut counts[0], &mut counts[1]);
        assert_eq!((tags, counts, waits[0], mvs[0]), (0, [1, 1], 0x10, 0x1e));
        assert_eq!(mnc2_send(dev, data.as_ptr().cast(), 0, 512, 0x10), 0);
        assert_eq!(mnc2_exec_kernel(kernel), 0);
        mnc2_free_kernel(kernel);
        assert_eq!(mnc2_recv(dev, out.as_mut_ptr().cast(), 512, 512, 0x1e), 0);
        assert_eq!(out, data);
        assert_eq!(mnc2_exec_kernel(kernel), -8);
        assert!(message().starts_with("mnc2_exec_kernel: "));
        mnc2_close(dev);
        assert_eq!(mnc2_send(dev, data.as_ptr().cast(), 0, 512, 0), -7);
        assert_eq!(mnc2_reset(dev), -7);
        mnc2_close(dev);
    }
}

#[test]
fn buffers() {
    let dev = mnc2_open(3);
    let buffer = mnc2_alloc_host_buffer(dev, 64);
    // SAFETY: the buffer has 64 bytes. Calls that go past them are refused.
    unsafe {
        assert_eq!(mnc2_send(dev, buffer, 0, 64, 0), 0);
        assert_eq!(mnc2_send(dev, buffer, 0, 128, 0), -7);
        assert_eq!(mnc2_send(dev, buffer.byte_add(56), 0, 8, 0), 0);
        assert_eq!(mnc2_recv(dev, buffer.byte_add(56), 0, 16, 0), -7);
        assert_eq!(mnc2_send(dev, ptr::null(), 0, 8, 0), -7);
        assert_eq!(mnc2_recv(dev, pointer(16), 0, 8, 0), -7);
        assert_eq!(mnc2_send(dev, buffer, 4 << 20, 8, 0), -7);
        assert_eq!(mnc2_send(dev, buffer, u64::MAX - 7, 8, 0), -7);
        assert_eq!(mnc2_send(dev, buffer, 0, usize::MAX - 7, 0), -7);
        assert_eq!(mnc2_send(dev, buffer, 0, 8, 64), -7);
    }
    assert!(mnc2_alloc_host_buffer(dev, 0).is_null());
    assert!(mnc2_alloc_host_buffer(dev, usize::MAX / 2).is_null());
    mnc2_close(dev);
    mnc2_free_host_buffer(dev, buffer, 64);
    mnc2_free_host_buffer(dev, buffer, 64);
    assert!(message().contains("no buffer"));
}

#[test]
fn every_function_is_found_by_name() {
    // SAFETY: the names are texts.
    unsafe {
        assert!(!emu2_engine(c"mnc2_open".as_ptr()).is_null());
        assert!(!emu2_engine(c"gpfn3_kick_data_dma".as_ptr()).is_null());
        assert!(emu2_engine(c"mnc2_nothing".as_ptr()).is_null());
        assert!(emu2_engine(ptr::null()).is_null());
        for code in -12..3 {
            assert!(!CStr::from_ptr(emu2_strerror(code)).is_empty());
        }
    }
}

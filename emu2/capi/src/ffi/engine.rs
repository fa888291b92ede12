//! Which back end the process has, and how the libraries `libmnc2.so` and `libgpfn3.so` find this code. They hold none
//! themselves: they jump to the functions of the program, if it was linked with the archive, or else of `libemu2.so`. So a
//! process has one copy.

use std::ffi::{c_char, c_int, c_void, CStr};
use std::hint::black_box;
use std::sync::atomic::{AtomicI32, Ordering};

/// A back end of the interface. Both names are the same engine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Backend {
    EmuProcess,
    EmuLib,
}

impl Backend {
    pub(super) fn number(self) -> c_int {
        match self {
            Backend::EmuProcess => 1,
            Backend::EmuLib => 2,
        }
    }

    pub(super) fn name(self) -> &'static CStr {
        match self {
            Backend::EmuProcess => c"emu:process",
            Backend::EmuLib => c"emu:lib",
        }
    }
}

static BACKEND: AtomicI32 = AtomicI32::new(2);

pub(super) fn backend() -> Backend {
    match BACKEND.load(Ordering::Relaxed) {
        1 => Backend::EmuProcess,
        _ => Backend::EmuLib,
    }
}

/// The `libgpfn3.so` of a back end says at load time which one it is. Returns the number in effect.
#[no_mangle]
pub extern "C" fn emu2_set_backend(number: c_int) -> c_int {
    if matches!(number, 1 | 2) {
        BACKEND.store(number, Ordering::Relaxed);
    }
    BACKEND.load(Ordering::Relaxed)
}

macro_rules! functions {
    ($($name:ident)*) => {
        /// The functions of the interface by name.
        pub(super) fn functions() -> Vec<(&'static str, *const c_void)> {
            vec![$((stringify!($name), super::$name as *const c_void)),*]
        }
    };
}

functions! {
    mnc2_open mnc2_close mnc2_reset mnc2_get_backend_name mnc2_get_backend mnc2_read_pio mnc2_write_pio mnc2_wait_ddma_idle
    mnc2_wait_idma_idle mnc2_get_ddma_kick_verify_max mnc2_set_ddma_kick_verify_max mnc2_get_ddma_complete_max
    mnc2_set_ddma_complete_max mnc2_get_idma_kick_verify_max mnc2_set_idma_kick_verify_max mnc2_get_idma_complete_max
    mnc2_set_idma_complete_max mnc2_alloc_host_buffer mnc2_free_host_buffer mnc2_send mnc2_recv mnc2_set_endian_ctrl
    mnc2_get_endian_ctrl mnc2_load_kernel mnc2_exec_kernel mnc2_free_kernel mnc2_kernel_get_dma_tags mnc2_debug_read
    mnc2_debug_write mnc2_get_ddma_stat mnc2_get_idma_stat mnc2_get_wdbit_status mnc2_clear_wdbit mnc2_capture_get_inst
    mnc2_capture_set_trigger mnc2_capture_read mnc2_tag_alloc mnc2_tag_free mnc2_tag_set_size mnc2_tag_check_done
    mnc2_tag_wait mnc2_tag_clear mnc2_wd_alloc mnc2_wd_free mnc2_wd_wait mnc2_wd_clear mnc2_regset_alloc mnc2_regset_free
    mnc2_async_send mnc2_async_recv mnc2_async_poll mnc2_async_wait mnc2_async_release
    gpfn3_get_device_id gpfn3_close_device gpfn3_reset_device gpfn3_read_pio gpfn3_write_pio gpfn3_map_pdm gpfn3_unmap_pdm
    gpfn3_allocate_dma_memory gpfn3_free_dma_memory gpfn3_set_regset gpfn3_kick_data_dma gpfn3_kick_inst_dma
    gpfn3_kick_inst_dma2 gpfn3_write_descriptor gpfn3_set_descriptor_regset gpfn3_capture_set_inst gpfn3_capture_read
    gpfn3_capture_get_inst gpfn3_capture_get_all_nop
    emu2_strerror emu2_last_error emu2_version emu2_set_backend emu2_load_kernel_text
}

/// The function of the interface with this name, or NULL.
///
/// # Safety
/// `name` must be a text that ends with NUL.
#[no_mangle]
pub unsafe extern "C" fn emu2_engine(name: *const c_char) -> *const c_void {
    if name.is_null() {
        return std::ptr::null();
    }
    // SAFETY: the caller gives a text.
    let name = unsafe { CStr::from_ptr(name) };
    let found = functions().into_iter().find(|(known, _)| known.as_bytes() == name.to_bytes());
    found.map_or(std::ptr::null(), |(_, function)| function)
}

/// Refers to [`emu2_engine`], so that a linker that takes `mnc2_open` from the archive takes it too.
pub(super) fn keep() {
    black_box(emu2_engine as *const c_void);
}

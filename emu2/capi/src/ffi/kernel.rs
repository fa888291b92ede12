//! Kernels.

use super::guard::{code, value};
use crate::handles::{device, kernel, pointer, tables, KernelHandle};
use crate::message;
use crate::status::{Refusal, Status};
use crate::user;
use std::ffi::{c_char, c_int, c_void};

/// Puts a loaded kernel into the tables.
fn keep(dev: *mut c_void, loaded: crate::Loaded) -> Result<*mut c_void, Refusal> {
    let board = device(dev)?;
    let mut tables = tables();
    let number = tables.number();
    tables.kernels.insert(number, KernelHandle { loaded, board, device: dev.addr() });
    Ok(pointer(number))
}

/// Loads a kernel from a file. NULL on failure.
///
/// # Safety
/// `path` must be a text that no other thread changes meanwhile.
#[no_mangle]
pub unsafe extern "C" fn mnc2_load_kernel(dev: *mut c_void, path: *const c_char) -> *mut c_void {
    value("mnc2_load_kernel", std::ptr::null_mut(), || {
        let board = device(dev)?;
        // SAFETY: as for the caller.
        let path = unsafe { user::text(path)? };
        keep(dev, board.load_file(&path)?)
    })
}

/// Loads a kernel from the text of a source in memory. NULL on failure.
///
/// # Safety
/// `text` must be a text that no other thread changes meanwhile.
#[no_mangle]
pub unsafe extern "C" fn emu2_load_kernel_text(dev: *mut c_void, text: *const c_char) -> *mut c_void {
    value("emu2_load_kernel_text", std::ptr::null_mut(), || {
        let board = device(dev)?;
        // SAFETY: as for the caller.
        let text = unsafe { user::text(text)? };
        keep(dev, board.load(text.as_os_str().as_encoded_bytes(), "<text>.vsm")?)
    })
}

/// Queues a kernel.
#[no_mangle]
pub extern "C" fn mnc2_exec_kernel(handle: *mut c_void) -> c_int {
    code("mnc2_exec_kernel", || {
        let found = kernel(handle)?;
        found.board.launch(&found.loaded)
    })
}

/// Waits until all kernels have ended, then frees this one. It frees it too if one cannot end, with a warning.
#[no_mangle]
pub extern "C" fn mnc2_free_kernel(handle: *mut c_void) {
    if handle.is_null() {
        return;
    }
    code("mnc2_free_kernel", || {
        let found = kernel(handle)?;
        if let Err(refusal) = found.board.wait_kernels() {
            if refusal.status == Status::Timeout {
                message::show(&format!("mnc2_free_kernel: warning: {refusal}; the kernel is freed"));
            }
        }
        tables().kernels.remove(&handle.addr());
        Ok(())
    });
}

/// Stores the tags for which a kernel waits and those of its MVs: at most `max_tags` of each, and how many were stored.
///
/// guess: a tag is stored as often as it occurs, in the order of the program, and the counts are those of stored tags.
///
/// # Safety
/// No other thread may use the places during the call. The arrays have `max_tags` bytes.
#[no_mangle]
pub unsafe extern "C" fn mnc2_kernel_get_dma_tags(
    handle: *mut c_void,
    tags_wd: *mut u8,
    tags_mv: *mut u8,
    max_tags: c_int,
    out_wd_count: *mut c_int,
    out_mv_count: *mut c_int,
) -> c_int {
    code("mnc2_kernel_get_dma_tags", || {
        let most = usize::try_from(max_tags).ok().filter(|most| *most > 0);
        let most = most.ok_or_else(|| Refusal::param(format!("room for {max_tags} tags")))?;
        let (waits, mvs) = kernel(handle)?.loaded.tags();
        for (tags, target, count) in [(waits, tags_wd, out_wd_count), (mvs, tags_mv, out_mv_count)] {
            let stored: Vec<u8> = tags.iter().take(most).map(|tag| *tag as u8).collect();
            // SAFETY: as for the caller.
            unsafe {
                user::write(target.cast(), stored.len(), |out| {
                    out.copy_from_slice(&stored);
                    Ok(())
                })?;
                user::write_value(count, stored.len() as c_int)?;
            }
        }
        Ok(())
    })
}

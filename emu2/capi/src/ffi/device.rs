//! Opening, closing, resetting; byte order; limits; host buffers.

use super::engine::{backend, Backend};
use super::guard::{code, value};
use crate::board::Board;
use crate::environment;
use crate::handles::{self, device, pointer, tables, Buffer, DeviceHandle};
use crate::limits::Limit;
use crate::shared::Rules;
use crate::status::{Refusal, Status};
use crate::user;
use std::ffi::{c_char, c_int, c_void};
use std::sync::{Arc, Once};

/// Opens an emulated device. `device_number` is 0 to 63; each open gives a device of its own.
pub(super) fn open(device_number: c_int) -> Result<usize, Refusal> {
    if !(0..64).contains(&device_number) {
        return Err(Refusal::new(Status::Device, format!("there is no device {device_number}; use 0 to 63")));
    }
    let kind = backend();
    if kind == Backend::EmuProcess && environment::value(environment::CONFIG).is_none() {
        let message =
            format!("the back end emu:process needs the variable {} with the path of a JSON file", environment::CONFIG);
        return Err(Refusal::new(Status::Env, message));
    }
    let forget = environment::value(environment::FORGET).is_some();
    let sanitize = environment::value(environment::SANITIZE).is_some();
    let rules = Rules { refuse_double_tags: kind == Backend::EmuLib, forget, sanitize };
    let board = Arc::new(Board::open(rules)?);
    if let Some(mut path) = environment::value(environment::STATE) {
        if device_number > 0 {
            path.push(format!(".{device_number}"));
        }
        board.keep(path.as_ref())?;
    }
    close_at_exit();
    let mut tables = tables();
    let number = tables.number();
    tables.devices.insert(number, DeviceHandle { board });
    Ok(number)
}

/// Lets the end of the process close what the program leaves open, if something is written then.
fn close_at_exit() {
    extern "C" fn close_all() {
        let devices: Vec<usize> = handles::open_devices();
        devices.into_iter().for_each(|number| drop(close(pointer(number))));
    }
    static ONCE: Once = Once::new();
    let writes = [environment::STATE, environment::REPORT];
    if writes.iter().any(|name| environment::value(name).is_some()) {
        // SAFETY: the function takes no argument, and this library is not unloaded before the process ends.
        ONCE.call_once(|| _ = unsafe { libc::atexit(close_all) });
    }
}

/// Closes a device: what is queued runs first; its kernels and transfers are gone afterwards.
pub(super) fn close(handle: *mut c_void) -> Result<(), Refusal> {
    device(handle)?;
    let number = handle.addr();
    let mut tables = tables();
    let closed = tables.devices.remove(&number);
    let kernels: Vec<_> = tables.kernels.extract_if(|_, kernel| kernel.device == number).collect();
    let transfers: Vec<_> = tables.transfers.extract_if(|_, transfer| transfer.device == number).collect();
    drop(tables);
    // The last owner of the board waits for what is queued, so the tables are free for other threads.
    drop((kernels, transfers, closed));
    Ok(())
}

/// Opens a device. NULL on failure.
#[no_mangle]
pub extern "C" fn mnc2_open(device_number: c_int) -> *mut c_void {
    super::engine::keep();
    value("mnc2_open", std::ptr::null_mut(), || open(device_number).map(pointer))
}

/// Closes a device.
#[no_mangle]
pub extern "C" fn mnc2_close(dev: *mut c_void) {
    if !dev.is_null() {
        code("mnc2_close", || close(dev));
    }
}

/// Empties queues and clears flags. Memories keep their contents.
#[no_mangle]
pub extern "C" fn mnc2_reset(dev: *mut c_void) -> c_int {
    code("mnc2_reset", || {
        device(dev)?.reset();
        Ok(())
    })
}

/// The name of the back end: `"emu:lib"`, `"emu:process"`, or `"unknown"` for NULL.
#[no_mangle]
pub extern "C" fn mnc2_get_backend_name(dev: *mut c_void) -> *const c_char {
    let name = if device(dev).is_ok() { backend().name() } else { c"unknown" };
    name.as_ptr()
}

/// The number of the back end.
#[no_mangle]
pub extern "C" fn mnc2_get_backend() -> c_int {
    backend().number()
}

/// Sets the byte order of transfers, 0 to 4.
#[no_mangle]
pub extern "C" fn mnc2_set_endian_ctrl(dev: *mut c_void, endian_ctrl: c_int) -> c_int {
    code("mnc2_set_endian_ctrl", || {
        let mode =
            u8::try_from(endian_ctrl).map_err(|_| Refusal::param(format!("there is no byte order {endian_ctrl}")))?;
        device(dev)?.set_endian(mode)
    })
}

/// The byte order of transfers.
#[no_mangle]
pub extern "C" fn mnc2_get_endian_ctrl(dev: *mut c_void) -> c_int {
    value("mnc2_get_endian_ctrl", Status::Param.number(), || Ok(c_int::from(device(dev)?.endian())))
}

fn limit(function: &str, dev: *mut c_void, limit: Limit, count: Option<c_int>) -> c_int {
    value(function, -1, || Ok(device(dev)?.limit(limit, count)))
}

/// The limit of start checks of transfers.
#[no_mangle]
pub extern "C" fn mnc2_get_ddma_kick_verify_max(dev: *mut c_void) -> c_int {
    limit("mnc2_get_ddma_kick_verify_max", dev, Limit::DdmaKickVerify, None)
}

/// Sets the limit of start checks of transfers; returns the previous one.
#[no_mangle]
pub extern "C" fn mnc2_set_ddma_kick_verify_max(dev: *mut c_void, cnt: c_int) -> c_int {
    limit("mnc2_set_ddma_kick_verify_max", dev, Limit::DdmaKickVerify, Some(cnt))
}

/// The limit of waits for transfers.
#[no_mangle]
pub extern "C" fn mnc2_get_ddma_complete_max(dev: *mut c_void) -> c_int {
    limit("mnc2_get_ddma_complete_max", dev, Limit::DdmaComplete, None)
}

/// Sets the limit of waits for transfers; returns the previous one.
#[no_mangle]
pub extern "C" fn mnc2_set_ddma_complete_max(dev: *mut c_void, cnt: c_int) -> c_int {
    limit("mnc2_set_ddma_complete_max", dev, Limit::DdmaComplete, Some(cnt))
}

/// The limit of start checks of kernels.
#[no_mangle]
pub extern "C" fn mnc2_get_idma_kick_verify_max(dev: *mut c_void) -> c_int {
    limit("mnc2_get_idma_kick_verify_max", dev, Limit::IdmaKickVerify, None)
}

/// Sets the limit of start checks of kernels; returns the previous one.
#[no_mangle]
pub extern "C" fn mnc2_set_idma_kick_verify_max(dev: *mut c_void, cnt: c_int) -> c_int {
    limit("mnc2_set_idma_kick_verify_max", dev, Limit::IdmaKickVerify, Some(cnt))
}

/// The limit of waits for kernels.
#[no_mangle]
pub extern "C" fn mnc2_get_idma_complete_max(dev: *mut c_void) -> c_int {
    limit("mnc2_get_idma_complete_max", dev, Limit::IdmaComplete, None)
}

/// Sets the limit of waits for kernels; returns the previous one.
#[no_mangle]
pub extern "C" fn mnc2_set_idma_complete_max(dev: *mut c_void, cnt: c_int) -> c_int {
    limit("mnc2_set_idma_complete_max", dev, Limit::IdmaComplete, Some(cnt))
}

/// A new buffer of zeros that begins at a page of the host.
pub(super) fn new_buffer(bytes: usize) -> Result<*mut c_void, Refusal> {
    if bytes == 0 {
        return Err(Refusal::param("a buffer has at least one byte"));
    }
    let buffer = user::allocate(bytes);
    if buffer.is_null() {
        return Err(Refusal::new(Status::Dma, format!("the host has no {bytes} bytes")));
    }
    tables().buffers.insert(buffer.addr(), Buffer { bytes });
    Ok(buffer)
}

/// Frees a buffer, also after its device was closed.
pub(super) fn free_buffer(buffer: *mut c_void, bytes: usize) -> Result<(), Refusal> {
    let found = handles::tables().buffers.remove(&buffer.addr());
    let found = found.ok_or_else(|| Refusal::param("this is no buffer of the library, or it has been freed"))?;
    user::free(buffer, found.bytes);
    match found.bytes == bytes {
        true => Ok(()),
        false => Err(Refusal::param(format!("the buffer has {} bytes, not {bytes}; it is freed", found.bytes))),
    }
}

/// A buffer for transfers: zeros, aligned to pages of the host. NULL on failure.
#[no_mangle]
pub extern "C" fn mnc2_alloc_host_buffer(dev: *mut c_void, size: usize) -> *mut c_void {
    value("mnc2_alloc_host_buffer", std::ptr::null_mut(), || {
        device(dev)?;
        new_buffer(size)
    })
}

/// Frees a buffer for transfers. NULL is accepted.
#[no_mangle]
pub extern "C" fn mnc2_free_host_buffer(dev: *mut c_void, buf: *mut c_void, size: usize) {
    let _ = dev;
    if !buf.is_null() {
        code("mnc2_free_host_buffer", || free_buffer(buf, size));
    }
}

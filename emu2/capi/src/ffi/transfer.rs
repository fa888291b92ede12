//! Transfers: synchronous ones, and those beside the caller.

use super::guard::{code, value};
use crate::handles::{device, pointer, tables, transfer, TransferHandle};
use crate::status::Refusal;
use crate::user;
use std::ffi::{c_int, c_uint, c_void};

/// Copies to PDM 0, then signals the tag.
///
/// # Safety
/// No other thread may write the buffer during the call.
#[no_mangle]
pub unsafe extern "C" fn mnc2_send(
    dev: *mut c_void,
    buf: *const c_void,
    pdm_offset: u64,
    size: usize,
    send_wait_tag: c_uint,
) -> c_int {
    code("mnc2_send", || {
        let board = device(dev)?;
        check_size(&board, size)?;
        // SAFETY: as for the caller.
        let bytes = unsafe { user::read(buf, size)? };
        board.send(bytes, pdm_offset, send_wait_tag)
    })
}

/// No buffer is looked at for a size that no transfer has.
fn check_size(board: &crate::board::Board, size: usize) -> Result<(), Refusal> {
    match size as u64 > board.size() {
        true => Err(Refusal::param(format!("{size} bytes are more than the host reaches"))),
        false => Ok(()),
    }
}

/// Copies from PDM 0, once the tag was signalled.
///
/// # Safety
/// No other thread may use the buffer during the call.
#[no_mangle]
pub unsafe extern "C" fn mnc2_recv(
    dev: *mut c_void,
    buf: *mut c_void,
    pdm_offset: u64,
    size: usize,
    recv_wait_tag: c_uint,
) -> c_int {
    code("mnc2_recv", || {
        let board = device(dev)?;
        check_size(&board, size)?;
        // SAFETY: as for the caller.
        unsafe { user::write(buf, size, |out| board.receive(out, pdm_offset, recv_wait_tag)) }
    })
}

/// Starts a copy to PDM 0. NULL on failure.
///
/// # Safety
/// No other thread may write the buffer until the transfer has ended.
#[no_mangle]
pub unsafe extern "C" fn mnc2_async_send(
    dev: *mut c_void,
    buf: *const c_void,
    pdm_offset: u64,
    size: usize,
    send_wait_tag: c_uint,
) -> *mut c_void {
    value("mnc2_async_send", std::ptr::null_mut(), || {
        let board = device(dev)?;
        check_size(&board, size)?;
        // SAFETY: as for the caller.
        let bytes = unsafe { user::read(buf, size)? };
        let id = board.start_send(bytes, pdm_offset, send_wait_tag)?;
        let mut tables = tables();
        let number = tables.number();
        let device = dev.addr();
        tables.transfers.insert(number, TransferHandle { id, board, device, target: None, ended: None });
        Ok(pointer(number))
    })
}

/// Starts a copy from PDM 0. NULL on failure. The buffer is filled by the call that finds the transfer ended.
///
/// # Safety
/// The buffer must live, and no other thread may use it, until the transfer has ended.
#[no_mangle]
pub unsafe extern "C" fn mnc2_async_recv(
    dev: *mut c_void,
    buf: *mut c_void,
    pdm_offset: u64,
    size: usize,
    recv_wait_tag: c_uint,
) -> *mut c_void {
    value("mnc2_async_recv", std::ptr::null_mut(), || {
        let board = device(dev)?;
        check_size(&board, size)?;
        if buf.is_null() {
            return Err(Refusal::param("the buffer is NULL"));
        }
        let id = board.start_receive(size, pdm_offset, recv_wait_tag)?;
        let target = Some((buf.expose_provenance(), size));
        let mut tables = tables();
        let number = tables.number();
        tables.transfers.insert(number, TransferHandle { id, board, device: dev.addr(), target, ended: None });
        Ok(pointer(number))
    })
}

/// Looks whether a transfer has ended, and fills its buffer if so. `wait` runs what is queued first.
fn end(number: usize, found: &TransferHandle, wait: bool) -> Result<Option<Result<(), Refusal>>, Refusal> {
    if let Some(ended) = &found.ended {
        return Ok(Some(ended.clone()));
    }
    let Some(brought) = found.board.end(found.id, wait)? else { return Ok(None) };
    let ended = brought.and_then(|bytes| match found.target {
        None => Ok(()),
        Some((address, size)) => {
            let target = std::ptr::with_exposed_provenance_mut(address);
            // SAFETY: the caller of `mnc2_async_recv` keeps the buffer until the transfer has ended, which is now.
            unsafe {
                user::write(target, size, |out| {
                    out.copy_from_slice(&bytes);
                    Ok(())
                })
            }
        }
    });
    if let Some(kept) = tables().transfers.get_mut(&number) {
        kept.ended = Some(ended.clone());
    }
    Ok(Some(ended))
}

/// Stores 1 if the transfer has ended, else 0.
///
/// # Safety
/// No other thread may use `done`, or the transfer, during the call.
#[no_mangle]
pub unsafe extern "C" fn mnc2_async_poll(handle: *mut c_void, done: *mut c_int) -> c_int {
    code("mnc2_async_poll", || {
        let found = transfer(handle)?;
        let ended = end(handle.addr(), &found, false)?;
        // SAFETY: as for the caller.
        unsafe { user::write_value(done, c_int::from(ended.is_some()))? };
        ended.unwrap_or(Ok(()))
    })
}

/// Waits for a transfer.
///
/// # Safety
/// No other thread may use the transfer during the call.
#[no_mangle]
pub unsafe extern "C" fn mnc2_async_wait(handle: *mut c_void) -> c_int {
    code("mnc2_async_wait", || {
        let found = transfer(handle)?;
        end(handle.addr(), &found, true)?.unwrap_or(Ok(()))
    })
}

/// Frees the handle of a transfer. One that has not ended is given up.
#[no_mangle]
pub extern "C" fn mnc2_async_release(handle: *mut c_void) {
    if !handle.is_null() {
        code("mnc2_async_release", || {
            let found = transfer(handle)?;
            found.board.forget_transfer(found.id);
            tables().transfers.remove(&handle.addr());
            Ok(())
        });
    }
}

/// Fills the buffers of transfers of a device that have ended.
pub(super) fn deliver(dev: *mut c_void) -> Result<(), Refusal> {
    let open: Vec<(usize, TransferHandle)> = {
        let tables = tables();
        let of_device = tables.transfers.iter().filter(|(_, t)| t.device == dev.addr() && t.ended.is_none());
        of_device.map(|(number, transfer)| (*number, transfer.clone())).collect()
    };
    open.iter().try_for_each(|(number, transfer)| end(*number, transfer, false)?.unwrap_or(Ok(())))
}

/// Waits until all transfers have ended.
#[no_mangle]
pub extern "C" fn mnc2_wait_ddma_idle(dev: *mut c_void) -> c_int {
    code("mnc2_wait_ddma_idle", || {
        let board = device(dev)?;
        let waited = board.wait_transfers();
        deliver(dev)?;
        waited
    })
}

/// Waits until all kernels have ended.
#[no_mangle]
pub extern "C" fn mnc2_wait_idma_idle(dev: *mut c_void) -> c_int {
    code("mnc2_wait_idma_idle", || device(dev)?.wait_kernels())
}

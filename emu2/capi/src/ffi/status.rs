//! Status of queues, and counters of instructions.

use super::guard::code;
use crate::capture::{Capture, Snapshot};
use crate::handles::device;
use crate::status::Refusal;
use crate::user;
use std::ffi::{c_int, c_uint, c_void};

/// The state of a channel of transfers.
#[derive(Clone, Copy, Debug, Default)]
#[repr(C)]
pub struct ChannelStatus {
    /// 1: a transfer runs.
    pub active: c_int,
    /// The register set in use.
    pub regset: c_int,
    /// The queue has overflowed.
    pub overflow: c_int,
    /// Queued transfers.
    pub n_dma: c_int,
}

/// The state of all channels.
#[derive(Clone, Copy, Debug, Default)]
#[repr(C)]
pub struct TransferStatus {
    /// Channels to the device.
    pub host_to_pdm: [ChannelStatus; 2],
    /// Channels from the device.
    pub pdm_to_host: [ChannelStatus; 2],
}

/// The state of the queue of kernels.
#[derive(Clone, Copy, Debug, Default)]
#[repr(C)]
pub struct KernelStatus {
    /// Queued kernels.
    pub n_dma: c_int,
    /// Instructions in the buffer.
    pub inst_in_ibuf: c_int,
    /// The buffer has overflowed.
    pub overflow: c_int,
}

/// Counters. `tag[0]` is the power nop of the vendor's other name.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct CaptureData {
    /// Idle steps.
    pub all_nop: u64,
    /// Idle steps without work.
    pub empty_nop: u64,
    /// Idle steps by the tag for which they wait; 0: all.
    pub tag: [u64; 256],
}

/// Stores the state of all channels.
///
/// # Safety
/// No other thread may use `out` during the call.
#[no_mangle]
pub unsafe extern "C" fn mnc2_get_ddma_stat(dev: *mut c_void, out: *mut TransferStatus) -> c_int {
    code("mnc2_get_ddma_stat", || {
        let board = device(dev)?;
        board.poll();
        let channel = |queued: usize| ChannelStatus {
            active: c_int::from(queued > 0),
            n_dma: queued.min(31) as c_int,
            ..ChannelStatus::default()
        };
        let (_, [to, from]) = board.queued();
        let mut status = TransferStatus::default();
        (status.host_to_pdm[0], status.pdm_to_host[0]) = (channel(to), channel(from));
        // SAFETY: as for the caller.
        unsafe { user::write_value(out, status) }
    })
}

/// Stores the state of the queue of kernels.
///
/// # Safety
/// No other thread may use `out` during the call.
#[no_mangle]
pub unsafe extern "C" fn mnc2_get_idma_stat(dev: *mut c_void, out: *mut KernelStatus) -> c_int {
    code("mnc2_get_idma_stat", || {
        let board = device(dev)?;
        board.poll();
        let status = KernelStatus { n_dma: board.queued().0 as c_int, ..KernelStatus::default() };
        // SAFETY: as for the caller.
        unsafe { user::write_value(out, status) }
    })
}

/// Stores the tags for which the device waits, a bit each.
///
/// # Safety
/// No other thread may use `wait_mask` during the call.
#[no_mangle]
pub unsafe extern "C" fn mnc2_get_wdbit_status(dev: *mut c_void, wait_mask: *mut u64) -> c_int {
    code("mnc2_get_wdbit_status", || {
        let waiting = device(dev)?.waiting_for().map_or(0, |tag| 1u64.checked_shl(tag).unwrap_or(0));
        // SAFETY: as for the caller.
        unsafe { user::write_value(wait_mask, waiting) }
    })
}

/// Ends the wait for a tag.
#[no_mangle]
pub extern "C" fn mnc2_clear_wdbit(dev: *mut c_void, wd: c_uint) -> c_int {
    code("mnc2_clear_wdbit", || {
        if wd == 0 {
            return Err(Refusal::param("wait 0 does not exist"));
        }
        device(dev)?.signal(wd)
    })
}

/// Stores the number of steps since the device was opened.
///
/// # Safety
/// No other thread may use `inst` during the call.
#[no_mangle]
pub unsafe extern "C" fn mnc2_capture_get_inst(dev: *mut c_void, inst: *mut u64) -> c_int {
    code("mnc2_capture_get_inst", || {
        let count = device(dev)?.instructions();
        // SAFETY: as for the caller.
        unsafe { user::write_value(inst, count) }
    })
}

pub(super) fn capture(sel: c_int) -> Result<Capture, Refusal> {
    match sel {
        0 => Ok(Capture::Now),
        1..=4 => Ok(Capture::Snapshot(sel as usize - 1)),
        _ => Err(Refusal::param(format!("there is no capture {sel}; use 0 to 4"))),
    }
}

/// Arms a snapshot of the counters.
#[no_mangle]
pub extern "C" fn mnc2_capture_set_trigger(dev: *mut c_void, sel: c_int, inst_counter: u64) -> c_int {
    code("mnc2_capture_set_trigger", || device(dev)?.arm(capture(sel)?, inst_counter))
}

pub(super) fn capture_data(snapshot: &Snapshot) -> CaptureData {
    let mut data = CaptureData { all_nop: snapshot.all_nop, empty_nop: 0, tag: [0; 256] };
    for (tag, count) in &snapshot.waits {
        if let Some(place) = data.tag.get_mut(*tag as usize) {
            *place = *count;
        }
    }
    data.tag[0] = snapshot.all_nop;
    data
}

/// Stores a snapshot of the counters.
///
/// # Safety
/// No other thread may use `out` during the call.
#[no_mangle]
pub unsafe extern "C" fn mnc2_capture_read(dev: *mut c_void, sel: c_int, out: *mut CaptureData) -> c_int {
    code("mnc2_capture_read", || {
        let data = capture_data(&device(dev)?.snapshot(capture(sel)?));
        // SAFETY: as for the caller.
        unsafe { user::write_value(out, data) }
    })
}

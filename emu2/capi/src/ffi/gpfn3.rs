//! The lower library: one device by number, register sets, channels of transfers, registers.
//!
//! guess: all but the names, the channels, the device addresses and the registers that `docs/c.md` lists.

use super::device::{free_buffer, new_buffer, open};
use super::guard::value;
use super::status::{capture, capture_data, CaptureData};
use crate::board::Board;
use crate::capture::Capture;
use crate::handles::{device, pointer, tables, LowDevice};
use crate::status::{Refusal, Status};
use crate::user;
use std::ffi::{c_int, c_uint, c_void};
use std::sync::Arc;

/// Codes of the lower library: numbers of the host's errors.
const SUCCESS: c_int = 0;
const FAULT: c_int = 14;
/// Bytes of the window on the PDM.
const WINDOW: usize = 1 << 20;
/// Transfers count units of this many bytes.
const UNIT: usize = 4;
/// Bytes of a block of a kernel.
const BLOCK: usize = 128;
/// Device addresses from here on are descriptors.
const DESCRIPTORS: u64 = 0x10_0000_0000;

/// One transfer.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct DataDmaKick {
    /// 0: to the device, 1: from the device.
    pub direction: c_int,
    /// The register set with the addresses.
    pub regset: c_uint,
    /// The channel, 0 to 3.
    pub channel: c_int,
    /// The tag, 0: none.
    pub wd: c_uint,
    /// Units of 4 bytes.
    pub size: usize,
}

fn code(function: &str, body: impl FnOnce() -> Result<(), Refusal>) -> c_int {
    let mut status = Status::Device;
    let done = value(function, false, || body().map(|()| true).inspect_err(|refusal| status = refusal.status));
    match (done, status) {
        (true, _) => SUCCESS,
        (false, Status::Param) => libc::EINVAL,
        (false, Status::Timeout) => libc::ETIMEDOUT,
        (false, Status::Device) => libc::ENODEV,
        (false, _) => libc::EIO,
    }
}

fn low(dev: c_int) -> Result<(Arc<Board>, *mut c_void), Refusal> {
    let found = tables().low.get(&dev).map(|low| low.device);
    let handle = pointer(found.ok_or_else(|| Refusal::param(format!("there is no open device {dev}")))?);
    sync_window(dev, handle)?;
    Ok((device(handle)?, handle))
}

/// Writes what the program has changed in the window, and shows it what the device has changed.
fn sync_window(dev: c_int, handle: *mut c_void) -> Result<(), Refusal> {
    let Some((address, shown)) =
        tables().low.get_mut(&dev).and_then(|low| Some((low.window?, std::mem::take(&mut low.shown))))
    else {
        return Ok(());
    };
    let board = device(handle)?;
    let window: *mut c_void = std::ptr::with_exposed_provenance_mut(address);
    // SAFETY: the window is a buffer of the library, which is freed only by `gpfn3_unmap_pdm`.
    let now = unsafe { user::read(window, WINDOW)? }.to_vec();
    let granule = 64;
    for (at, (now, shown)) in now.chunks(granule).zip(shown.chunks(granule)).enumerate() {
        if now != shown {
            board.send(now, (at * granule) as u64, 0)?;
        }
    }
    let mut fresh = vec![0; WINDOW];
    board.receive(&mut fresh, 0, 0)?;
    // SAFETY: as above.
    unsafe {
        user::write(window, WINDOW, |out| {
            out.copy_from_slice(&fresh);
            Ok(())
        })?;
    }
    if let Some(low) = tables().low.get_mut(&dev) {
        low.shown = fresh;
    }
    Ok(())
}

/// Opens a device by number; -1 on failure.
#[no_mangle]
pub extern "C" fn gpfn3_get_device_id(number: c_int) -> c_int {
    value("gpfn3_get_device_id", -1, || {
        let opened = open(number)?;
        let mut tables = tables();
        let id = (0..c_int::MAX).find(|id| !tables.low.contains_key(id)).unwrap_or(0);
        tables.low.insert(id, LowDevice { device: opened, ..LowDevice::default() });
        Ok(id)
    })
}

/// Closes a device.
#[no_mangle]
pub extern "C" fn gpfn3_close_device(dev: c_int) -> c_int {
    code("gpfn3_close_device", || {
        let (_, handle) = low(dev)?;
        tables().low.remove(&dev);
        super::device::close(handle)
    })
}

/// Empties queues and clears flags. Memories keep their contents.
#[no_mangle]
pub extern "C" fn gpfn3_reset_device(dev: c_int) -> c_int {
    code("gpfn3_reset_device", || {
        low(dev)?.0.reset();
        Ok(())
    })
}

/// Reads a register.
///
/// # Safety
/// No other thread may use `val` during the call.
#[no_mangle]
pub unsafe extern "C" fn gpfn3_read_pio(dev: c_int, addr: c_uint, val: *mut u64) -> c_int {
    code("gpfn3_read_pio", || {
        let (board, _) = low(dev)?;
        board.poll();
        let (kernels, transfers) = board.queued();
        let found = match addr {
            0x018 => kernels as u64,
            0x038 => transfers.iter().zip([0, 32]).fold(0, |all, (queued, shift)| {
                all | ((*queued as u64 & 0x1f) | u64::from(*queued > 0) << 14) << shift
            }),
            0x040 => u64::from(board.endian()),
            0x070 => board.waiting_for().map_or(0, |tag| 1 << tag),
            _ => tables().low.get(&dev).and_then(|low| low.registers.get(&addr).copied()).unwrap_or(0),
        };
        // SAFETY: as for the caller.
        unsafe { user::write_value(val, found) }
    })
}

/// Writes a register.
#[no_mangle]
pub extern "C" fn gpfn3_write_pio(dev: c_int, addr: c_uint, val: u64) -> c_int {
    code("gpfn3_write_pio", || {
        let (board, _) = low(dev)?;
        match addr {
            0x040 => board.set_endian(u8::try_from(val).unwrap_or(u8::MAX))?,
            0x050 if val >> 61 != 0 => board.reset(),
            _ => {}
        }
        if let Some(low) = tables().low.get_mut(&dev) {
            low.registers.insert(addr, val);
        }
        Ok(())
    })
}

/// A window on the first MiB of PDM 0, in the byte order of transfers. NULL on failure. What the program writes reaches the
/// device with its next call.
#[no_mangle]
pub extern "C" fn gpfn3_map_pdm(dev: c_int) -> *mut u64 {
    value("gpfn3_map_pdm", std::ptr::null_mut(), || {
        let (_, handle) = low(dev)?;
        let window = new_buffer(WINDOW)?;
        if let Some(low) = tables().low.get_mut(&dev) {
            low.window = Some(window.expose_provenance());
            low.shown = vec![0; WINDOW];
        }
        sync_window(dev, handle)?;
        Ok(window.cast())
    })
}

/// Ends a window.
#[no_mangle]
pub extern "C" fn gpfn3_unmap_pdm(dev: c_int, window: *mut u64) -> c_int {
    code("gpfn3_unmap_pdm", || {
        low(dev)?;
        if let Some(low) = tables().low.get_mut(&dev).filter(|low| low.window == Some(window.addr())) {
            low.window = None;
        }
        free_buffer(window.cast(), WINDOW)
    })
}

/// A buffer for transfers. NULL on failure.
#[no_mangle]
pub extern "C" fn gpfn3_allocate_dma_memory(dev: c_int, size: usize) -> *mut c_void {
    value("gpfn3_allocate_dma_memory", std::ptr::null_mut(), || {
        low(dev)?;
        new_buffer(size)
    })
}

/// Frees a buffer.
#[no_mangle]
pub extern "C" fn gpfn3_free_dma_memory(dev: c_int, ptr: *mut c_void, size: usize) -> c_int {
    let _ = dev;
    code("gpfn3_free_dma_memory", || free_buffer(ptr, size))
}

/// Keeps a host buffer and a device address for a later transfer.
#[no_mangle]
pub extern "C" fn gpfn3_set_regset(dev: c_int, regset: c_uint, host: *const c_void, pdm: u64) -> c_int {
    code("gpfn3_set_regset", || {
        low(dev)?;
        if regset > 63 {
            return Err(Refusal::param(format!("there is no register set {regset}")));
        }
        if let Some(low) = tables().low.get_mut(&dev) {
            low.register_sets.insert(regset, (host.expose_provenance(), pdm));
        }
        Ok(())
    })
}

/// Transfers between a host buffer and PDM, or DRAM of group 0 with channel 3 and from channel 2.
///
/// # Safety
/// No other thread may use the buffer of the register set during the call.
#[no_mangle]
pub unsafe extern "C" fn gpfn3_kick_data_dma(dev: c_int, kick: DataDmaKick) -> c_int {
    code("gpfn3_kick_data_dma", || {
        let (board, _) = low(dev)?;
        let set = tables().low.get(&dev).and_then(|low| low.register_sets.get(&kick.regset).copied());
        let (host, address) = set.ok_or_else(|| Refusal::param(format!("register set {} was not set", kick.regset)))?;
        let bytes =
            kick.size.checked_mul(UNIT).filter(|bytes| *bytes as u64 <= board.size() && bytes.is_multiple_of(8));
        let bytes = bytes.ok_or_else(|| Refusal::param(format!("{} units of 4 bytes are no transfer", kick.size)))?;
        let host: *mut c_void = std::ptr::with_exposed_provenance_mut(host);
        let to_device = kick.direction == 0;
        match (kick.channel, to_device) {
            // SAFETY: as for the caller.
            (0 | 1, true) => board.send(unsafe { user::read(host, bytes)? }, address, kick.wd)?,
            // SAFETY: as for the caller.
            (0 | 1, false) => unsafe { user::write(host, bytes, |out| board.receive(out, address, kick.wd))? },
            (3, true) => {
                // SAFETY: as for the caller.
                let data = unsafe { user::read(host, bytes)? };
                board.dram_write(address, data)?;
            }
            // SAFETY: as for the caller.
            (2 | 3, false) => unsafe { user::write(host, bytes, |out| board.dram_read(address, out))? },
            _ => return Err(Refusal::param(format!("channel {} has no such direction", kick.channel))),
        }
        // Windows show what the transfer has changed.
        low(dev).map(|_| ())
    })
}

/// Starts the kernel in a host buffer, whose size is a multiple of 128 bytes.
///
/// # Safety
/// No other thread may write the buffer during the call.
#[no_mangle]
pub unsafe extern "C" fn gpfn3_kick_inst_dma(dev: c_int, ptr: *const c_void, size: usize) -> c_int {
    code("gpfn3_kick_inst_dma", || {
        let (board, _) = low(dev)?;
        if size == 0 || !size.is_multiple_of(BLOCK) {
            return Err(Refusal::param(format!("a kernel of {size} bytes; its size is a multiple of {BLOCK}")));
        }
        // SAFETY: as for the caller.
        let data = unsafe { user::read(ptr, size)? };
        let loaded = board.load(data, "<memory>.idma.dat")?;
        board.launch(&loaded)
    })
}

/// Starts a kernel in DRAM. Current boards refuse it, and so does this.
#[no_mangle]
pub extern "C" fn gpfn3_kick_inst_dma2(dev: c_int, dm_index: usize, dm_count: usize) -> c_int {
    let _ = (dev, dm_index, dm_count);
    FAULT
}

/// Writes a descriptor.
#[no_mangle]
pub extern "C" fn gpfn3_write_descriptor(dev: c_int, index: c_uint, descriptor: u64) -> c_int {
    gpfn3_write_pio(dev, 0x10000_u32.saturating_add(index.saturating_mul(8)), descriptor)
}

/// Keeps a table of descriptors for a later transfer.
#[no_mangle]
pub extern "C" fn gpfn3_set_descriptor_regset(dev: c_int, regset: c_uint, table: *mut u64, dm_index: usize) -> c_int {
    let address = DESCRIPTORS.saturating_add((dm_index as u64).saturating_mul(8));
    gpfn3_set_regset(dev, regset, table.wrapping_add(dm_index).cast(), address)
}

/// Arms a snapshot of the counters.
#[no_mangle]
pub extern "C" fn gpfn3_capture_set_inst(dev: c_int, sel: c_int, count: u64) -> c_int {
    code("gpfn3_capture_set_inst", || low(dev)?.0.arm(capture(sel)?, count))
}

/// Stores a snapshot of the counters.
///
/// # Safety
/// No other thread may use `out` during the call.
#[no_mangle]
pub unsafe extern "C" fn gpfn3_capture_read(dev: c_int, sel: c_int, out: *mut CaptureData) -> c_int {
    code("gpfn3_capture_read", || {
        let data = capture_data(&low(dev)?.0.snapshot(capture(sel)?));
        // SAFETY: as for the caller.
        unsafe { user::write_value(out, data) }
    })
}

/// Stores the number of steps since the device was opened.
///
/// # Safety
/// No other thread may use `out` during the call.
#[no_mangle]
pub unsafe extern "C" fn gpfn3_capture_get_inst(dev: c_int, out: *mut u64) -> c_int {
    // SAFETY: as for the caller.
    code("gpfn3_capture_get_inst", || unsafe { user::write_value(out, low(dev)?.0.instructions()) })
}

/// Stores the number of idle steps since the device was opened.
///
/// # Safety
/// No other thread may use `out` during the call.
#[no_mangle]
pub unsafe extern "C" fn gpfn3_capture_get_all_nop(dev: c_int, out: *mut u64) -> c_int {
    // SAFETY: as for the caller.
    code("gpfn3_capture_get_all_nop", || unsafe { user::write_value(out, low(dev)?.0.snapshot(Capture::Now).all_nop) })
}

//! A debugger's access to memories, and registers of the board.

use super::guard::code;
use crate::handles::device;
use crate::status::{Refusal, Status};
use crate::user;
use emu2::host::UnitNumbers;
use std::ffi::{c_int, c_void};

/// A place: group, L2B, L1B, MAB, PE.
#[derive(Clone, Copy, Debug, Default)]
#[repr(C)]
pub struct Location {
    /// The group.
    pub chip: c_int,
    /// The L2B in the group.
    pub l2b: c_int,
    /// The L1B in the L2B.
    pub l1b: c_int,
    /// The MAB in the L1B.
    pub mab: c_int,
    /// The PE in the MAB.
    pub pe: c_int,
}

/// Memories in the order of `MNC2_MEM_*`, and whether a program may write them.
///
/// guess: the order, and so the numbers.
const MEMORIES: [(&str, bool); 8] = [
    ("pdm", false),
    ("dram", false),
    ("l2bm", true),
    ("l1bm", true),
    ("lm0", true),
    ("lm1", true),
    ("grf0", true),
    ("grf1", true),
];
/// More long words than any memory has that a program may name at once.
const MOST_WORDS: u64 = 1 << 29;

fn memory(region: c_int) -> Result<(&'static str, bool), Refusal> {
    let found = usize::try_from(region).ok().and_then(|region| MEMORIES.get(region));
    found.copied().ok_or_else(|| Refusal::param(format!("there is no memory region {region}")))
}

/// # Safety
/// No other thread may write the place during the call.
unsafe fn place(loc: *const Location) -> Result<UnitNumbers, Refusal> {
    if loc.is_null() {
        return Ok([0; 5]);
    }
    // SAFETY: as for the caller. A location is five numbers.
    let loc = unsafe { user::read_value(loc)? };
    let numbers = [loc.chip, loc.l2b, loc.l1b, loc.mab, loc.pe];
    let wrong = numbers.iter().find(|number| **number < 0);
    match wrong {
        Some(number) => Err(Refusal::param(format!("there is no unit {number}"))),
        None => Ok(numbers.map(|number| number as u32)),
    }
}

fn range(addr: c_int, count: c_int) -> Result<(u64, u64), Refusal> {
    let bad = || Refusal::param(format!("{count} long words from {addr} on"));
    let (addr, count) = (u64::try_from(addr).map_err(|_| bad())?, u64::try_from(count).map_err(|_| bad())?);
    if count == 0 || count > MOST_WORDS {
        return Err(bad());
    }
    Ok((addr, count))
}

/// Reads long words of a memory of one unit.
///
/// # Safety
/// No other thread may use the places during the call. `out` has `count` numbers.
#[no_mangle]
pub unsafe extern "C" fn mnc2_debug_read(
    dev: *mut c_void,
    mem_region: c_int,
    loc: *const Location,
    addr: c_int,
    count: c_int,
    out: *mut u64,
) -> c_int {
    code("mnc2_debug_read", || {
        let board = device(dev)?;
        let ((memory, _), (addr, count)) = (memory(mem_region)?, range(addr, count)?);
        // SAFETY: as for the caller.
        let place = unsafe { place(loc)? };
        if out.is_null() {
            return Err(Refusal::param("the buffer is NULL"));
        }
        let words = board.debug_read(memory, place, addr, count)?;
        // SAFETY: as for the caller.
        unsafe {
            user::write(out.cast(), words.len() * size_of::<u64>(), |bytes| {
                bytes
                    .chunks_exact_mut(size_of::<u64>())
                    .zip(&words)
                    .for_each(|(b, w)| b.copy_from_slice(&w.to_ne_bytes()));
                Ok(())
            })
        }
    })
}

/// Writes long words of a memory of one unit, but for PDM and DRAM.
///
/// # Safety
/// No other thread may write the places during the call. `data` has `count` numbers.
#[no_mangle]
pub unsafe extern "C" fn mnc2_debug_write(
    dev: *mut c_void,
    mem_region: c_int,
    loc: *const Location,
    addr: c_int,
    count: c_int,
    data: *const u64,
) -> c_int {
    code("mnc2_debug_write", || {
        let board = device(dev)?;
        let ((memory, writable), (addr, count)) = (memory(mem_region)?, range(addr, count)?);
        if !writable {
            return Err(Refusal::param(format!(
                "`{memory}` cannot be written by a debugger; use mnc2_send, or a kernel"
            )));
        }
        // SAFETY: as for the caller.
        let place = unsafe { place(loc)? };
        // SAFETY: as for the caller.
        let bytes = unsafe { user::read(data.cast(), count as usize * size_of::<u64>())? };
        let (words, _) = bytes.as_chunks::<8>();
        let words: Vec<u64> = words.iter().map(|word| u64::from_ne_bytes(*word)).collect();
        board.debug_write(memory, place, addr, &words)
    })
}

fn no_registers(dev: *mut c_void) -> Result<(), Refusal> {
    device(dev)?;
    Err(Refusal::new(Status::Device, "only a board has registers"))
}

/// Reads a register of a board: an emulator has none.
#[no_mangle]
pub extern "C" fn mnc2_read_pio(dev: *mut c_void, addr: u64, val_out: *mut u64) -> c_int {
    let _ = (addr, val_out);
    code("mnc2_read_pio", || no_registers(dev))
}

/// Writes a register of a board: an emulator has none.
#[no_mangle]
pub extern "C" fn mnc2_write_pio(dev: *mut c_void, addr: u64, val: u64) -> c_int {
    let _ = (addr, val);
    code("mnc2_write_pio", || no_registers(dev))
}

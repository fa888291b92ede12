//! Pools of tags, waits and register sets.
//!
//! guess: `mnc2_tag_wait` ends when an MV has signalled the tag, as a receive does, and uses no signal up; `mnc2_wd_wait` ends
//! when no kernel waits for the number.

use super::guard::code;
use crate::board::Board;
use crate::handles::device;
use crate::shared::Pools;
use crate::status::{Refusal, Status};
use crate::user;
use std::ffi::{c_int, c_uint, c_void};

/// Sizes of tags have so many bits.
const SIZE_BITS: u32 = 23;

/// # Safety
/// No other thread may use `out` during the call.
unsafe fn take(
    function: &str,
    dev: *mut c_void,
    out: *mut c_uint,
    from: impl FnOnce(&mut Pools) -> Result<u32, Refusal>,
) -> c_int {
    code(function, || {
        let board = device(dev)?;
        if out.is_null() {
            return Err(Refusal::param("the place of the number is NULL"));
        }
        let number = board.with_pools(from)?;
        // SAFETY: as for the caller.
        unsafe { user::write_value(out, number) }
    })
}

fn with(
    function: &str,
    dev: *mut c_void,
    check: impl FnOnce(&mut Pools) -> Result<(), Refusal>,
    then: impl FnOnce(&Board) -> Result<(), Refusal>,
) -> c_int {
    code(function, || {
        let board = device(dev)?;
        board.with_pools(check)?;
        then(&board)
    })
}

/// Takes a tag.
///
/// # Safety
/// No other thread may use `tag` during the call.
#[no_mangle]
pub unsafe extern "C" fn mnc2_tag_alloc(dev: *mut c_void, tag: *mut c_uint) -> c_int {
    // SAFETY: as for the caller.
    unsafe { take("mnc2_tag_alloc", dev, tag, |pools| pools.tags.take()) }
}

/// Gives a tag back.
#[no_mangle]
pub extern "C" fn mnc2_tag_free(dev: *mut c_void, tag: c_uint) -> c_int {
    with("mnc2_tag_free", dev, |pools| pools.tags.give_back(tag), |_| Ok(()))
}

/// Gives a tag a size in bytes, of 23 bits.
#[no_mangle]
pub extern "C" fn mnc2_tag_set_size(dev: *mut c_void, tag: c_uint, size_bytes: u32) -> c_int {
    let check = |pools: &mut Pools| {
        pools.tags.check_taken(tag)?;
        match size_bytes >> SIZE_BITS {
            0 => Ok(()),
            _ => Err(Refusal::param(format!("{size_bytes} bytes have more than {SIZE_BITS} bits"))),
        }
    };
    with("mnc2_tag_set_size", dev, check, |_| Ok(()))
}

/// Stores 1 if the tag was signalled by an MV, else 0.
///
/// # Safety
/// No other thread may use `done` during the call.
#[no_mangle]
pub unsafe extern "C" fn mnc2_tag_check_done(dev: *mut c_void, tag: c_uint, done: *mut c_int) -> c_int {
    let check = |pools: &mut Pools| pools.tags.check_taken(tag);
    // SAFETY: as for the caller.
    let then = |board: &Board| unsafe { user::write_value(done, c_int::from(board.is_due(tag))) };
    with("mnc2_tag_check_done", dev, check, then)
}

/// Waits until an MV has signalled the tag.
#[no_mangle]
pub extern "C" fn mnc2_tag_wait(dev: *mut c_void, tag: c_uint) -> c_int {
    let check = |pools: &mut Pools| pools.tags.check_taken(tag);
    with("mnc2_tag_wait", dev, check, |board| match board.is_due(tag) {
        true => Ok(()),
        false => Err(Refusal::new(Status::Timeout, format!("no MV signals tag {tag:#04x}"))),
    })
}

/// Disables a tag.
#[no_mangle]
pub extern "C" fn mnc2_tag_clear(dev: *mut c_void, tag: c_uint) -> c_int {
    with("mnc2_tag_clear", dev, |pools| pools.tags.check_taken(tag), |_| Ok(()))
}

/// Takes a wait.
///
/// # Safety
/// No other thread may use `wd` during the call.
#[no_mangle]
pub unsafe extern "C" fn mnc2_wd_alloc(dev: *mut c_void, wd: *mut c_uint) -> c_int {
    // SAFETY: as for the caller.
    unsafe { take("mnc2_wd_alloc", dev, wd, |pools| pools.waits.take()) }
}

/// Gives a wait back.
#[no_mangle]
pub extern "C" fn mnc2_wd_free(dev: *mut c_void, wd: c_uint) -> c_int {
    with("mnc2_wd_free", dev, |pools| pools.waits.give_back(wd), |_| Ok(()))
}

/// Waits until no kernel waits for the number.
#[no_mangle]
pub extern "C" fn mnc2_wd_wait(dev: *mut c_void, wd: c_uint) -> c_int {
    let check = |pools: &mut Pools| pools.waits.check_taken(wd);
    with("mnc2_wd_wait", dev, check, |board| match board.waiting_for() {
        Some(tag) if tag == wd => Err(Refusal::new(Status::Timeout, format!("a kernel still waits for tag {wd:#04x}"))),
        _ => Ok(()),
    })
}

/// Ends a wait.
#[no_mangle]
pub extern "C" fn mnc2_wd_clear(dev: *mut c_void, wd: c_uint) -> c_int {
    super::status::mnc2_clear_wdbit(dev, wd)
}

/// Takes a register set.
///
/// # Safety
/// No other thread may use `regset` during the call.
#[no_mangle]
pub unsafe extern "C" fn mnc2_regset_alloc(dev: *mut c_void, regset: *mut c_uint) -> c_int {
    // SAFETY: as for the caller.
    unsafe { take("mnc2_regset_alloc", dev, regset, |pools| pools.register_sets.take()) }
}

/// Gives a register set back.
#[no_mangle]
pub extern "C" fn mnc2_regset_free(dev: *mut c_void, regset: c_uint) -> c_int {
    with("mnc2_regset_free", dev, |pools| pools.register_sets.give_back(regset), |_| Ok(()))
}

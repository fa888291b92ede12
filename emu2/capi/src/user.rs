//! Memory of the program that calls. A pointer into a buffer of the library is looked up. For other memory the kernel of the
//! host is asked whether it exists, so a wild pointer is an error and no crash.
#![allow(unsafe_code)]

use crate::handles;
use crate::status::Refusal;
use std::alloc::{alloc_zeroed, dealloc, Layout};
use std::ffi::{c_char, c_void, OsString};
use std::os::unix::ffi::OsStringExt;
use std::path::PathBuf;

/// Alignment of buffers: a page of the host.
const PAGE: usize = 4096;
/// The longest text that is read.
const LONGEST_TEXT: usize = 1 << 26;

fn layout(bytes: usize) -> Option<Layout> {
    Layout::from_size_align(bytes.max(1), PAGE).ok()
}

/// A buffer of zeros, or null.
pub(crate) fn allocate(bytes: usize) -> *mut c_void {
    let Some(layout) = layout(bytes) else { return std::ptr::null_mut() };
    // SAFETY: the layout has at least one byte.
    unsafe { alloc_zeroed(layout) }.cast()
}

/// Frees a buffer of [`allocate`]. The caller has just taken it from the table of buffers, so nobody frees it twice.
pub(crate) fn free(address: *mut c_void, bytes: usize) {
    if let Some(layout) = layout(bytes) {
        // SAFETY: the table of buffers holds what `allocate` returned, with the bytes that it was given.
        unsafe { dealloc(address.cast(), layout) };
    }
}

/// Whether a range lies in one buffer of the library.
fn is_ours(address: usize, bytes: usize) -> Result<bool, Refusal> {
    match handles::tables().room(address) {
        Some(room) if room < bytes => {
            Err(Refusal::param(format!("{bytes} bytes, of a buffer that has {room} bytes from there on")))
        }
        room => Ok(room.is_some()),
    }
}

fn check(pointer: *const c_void) -> Result<(), Refusal> {
    match pointer.is_null() {
        true => Err(Refusal::param("the buffer is NULL")),
        false => Ok(()),
    }
}

/// Checks that the program has memory at a range, and may write it: asks whether each page exists, reads the bytes at both
/// ends, and writes them back.
fn probe(address: usize, bytes: usize, writable: bool) -> Result<(), Refusal> {
    let missing = || Refusal::param(format!("{bytes} bytes at an address where the program has no such memory"));
    let last = address.checked_add(bytes - 1).ok_or_else(missing)?;
    let ends =
        [address, last].map(|end| libc::iovec { iov_base: std::ptr::with_exposed_provenance_mut(end), iov_len: 1 });
    let mut seen = [0u8; 2];
    let local = libc::iovec { iov_base: seen.as_mut_ptr().cast(), iov_len: seen.len() };
    // SAFETY: `local` names memory of `seen`, and the kernel of the host checks `ends`.
    let mut done = unsafe { libc::process_vm_readv(libc::getpid(), &local, 1, ends.as_ptr(), 2, 0) };
    if writable && done == seen.len() as isize {
        // SAFETY: as above. The bytes are those that were there.
        done = unsafe { libc::process_vm_writev(libc::getpid(), &local, 1, ends.as_ptr(), 2, 0) };
    }
    if done != seen.len() as isize {
        return match std::io::Error::last_os_error().raw_os_error() {
            // Some hosts forbid the call. Then the caller vouches for the range, as C requires.
            Some(libc::ENOSYS | libc::EPERM) if done < 0 => Ok(()),
            _ => Err(missing()),
        };
    }
    let (first, pages) = (address / PAGE, last / PAGE - address / PAGE + 1);
    let mut resident = vec![0u8; pages];
    // SAFETY: the call stores a byte for each page in `resident`, and touches no page.
    let found = unsafe {
        libc::mincore(std::ptr::with_exposed_provenance_mut(first * PAGE), pages * PAGE, resident.as_mut_ptr())
    };
    if pages > 2 && found != 0 {
        return Err(missing());
    }
    Ok(())
}

/// Bytes of the program.
///
/// # Safety
/// The bytes must not be freed or written while the result is in use.
pub(crate) unsafe fn read<'a>(pointer: *const c_void, bytes: usize) -> Result<&'a [u8], Refusal> {
    check(pointer)?;
    if bytes == 0 {
        return Ok(&[]);
    }
    if !is_ours(pointer.addr(), bytes)? {
        probe(pointer.expose_provenance(), bytes, false)?;
    }
    // SAFETY: the program has memory there, and the caller keeps it as it is.
    Ok(unsafe { std::slice::from_raw_parts(pointer.cast(), bytes) })
}

/// Lets `fill` write bytes of the program.
///
/// # Safety
/// Nobody else may use the range during the call.
pub(crate) unsafe fn write(
    pointer: *mut c_void,
    bytes: usize,
    fill: impl FnOnce(&mut [u8]) -> Result<(), Refusal>,
) -> Result<(), Refusal> {
    check(pointer)?;
    if bytes == 0 {
        return fill(&mut []);
    }
    if !is_ours(pointer.addr(), bytes)? {
        probe(pointer.expose_provenance(), bytes, true)?;
    }
    // SAFETY: the program has memory there that it may write, and the caller keeps others away.
    fill(unsafe { std::slice::from_raw_parts_mut(pointer.cast(), bytes) })
}

/// Reads a value of the program.
///
/// # Safety
/// `T` must be plain numbers, of which every row of bits is one.
pub(crate) unsafe fn read_value<T: Copy + Default>(pointer: *const T) -> Result<T, Refusal> {
    let mut value = T::default();
    // SAFETY: as for the caller.
    let bytes = unsafe { read(pointer.cast(), size_of::<T>())? };
    // SAFETY: both ranges have the size of `T`, and every row of bits is a value.
    unsafe { std::ptr::copy_nonoverlapping(bytes.as_ptr(), (&raw mut value).cast(), size_of::<T>()) };
    Ok(value)
}

/// Writes a value of the program.
///
/// # Safety
/// Nobody else may use the place during the call.
pub(crate) unsafe fn write_value<T: Copy>(pointer: *mut T, value: T) -> Result<(), Refusal> {
    // SAFETY: as for the caller. The bytes of `value` are read only, and `T` has no padding in the interface.
    unsafe {
        write(pointer.cast(), size_of::<T>(), |bytes| {
            std::ptr::copy_nonoverlapping((&raw const value).cast(), bytes.as_mut_ptr(), size_of::<T>());
            Ok(())
        })
    }
}

/// A text of the program.
///
/// # Safety
/// The text must not change during the call.
pub(crate) unsafe fn text(pointer: *const c_char) -> Result<PathBuf, Refusal> {
    if pointer.is_null() {
        return Err(Refusal::param("the text is NULL"));
    }
    let mut found = Vec::new();
    // One page at a time, because the text may end just before memory that does not exist.
    while found.len() < LONGEST_TEXT {
        let at = pointer.addr() + found.len();
        let piece = PAGE - at % PAGE;
        let piece = handles::tables().room(at).map_or(piece, |room| room.min(piece));
        // SAFETY: as for the caller.
        let bytes = unsafe { read(pointer.wrapping_add(found.len()).cast(), piece)? };
        match bytes.iter().position(|byte| *byte == 0) {
            Some(end) => {
                found.extend(&bytes[..end]);
                return Ok(OsString::from_vec(found).into());
            }
            None => found.extend(bytes.iter()),
        }
    }
    Err(Refusal::param("the text does not end"))
}

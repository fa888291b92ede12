//! Handles of C programs. A handle is a number that looks like a pointer. It is looked up, never dereferenced, so a wild one
//! is an error and no crash. The tables belong to a process: a forked child has none of its parent's handles.
#![allow(unsafe_code)]

use crate::board::Board;
use crate::kernel::Loaded;
use crate::queue::TransferId;
use crate::status::{Refusal, Status};
use std::collections::{BTreeMap, HashMap};
use std::ffi::c_void;
use std::sync::atomic::{AtomicPtr, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Handles begin here, and differ by this.
const FIRST: usize = 0x4d4e_4332_0000;
const STEP: usize = 16;

/// A kernel and its device.
#[derive(Clone)]
pub(crate) struct KernelHandle {
    pub(crate) loaded: Loaded,
    pub(crate) board: Arc<Board>,
    pub(crate) device: usize,
}

/// A transfer beside the caller, and where its bytes go.
#[derive(Clone)]
pub(crate) struct TransferHandle {
    pub(crate) id: TransferId,
    pub(crate) board: Arc<Board>,
    pub(crate) device: usize,
    /// Address and length of the buffer of a receive.
    pub(crate) target: Option<(usize, usize)>,
    /// How it ended.
    pub(crate) ended: Option<Result<(), Refusal>>,
}

/// A device and what programs keep with it.
#[derive(Clone)]
pub(crate) struct DeviceHandle {
    pub(crate) board: Arc<Board>,
}

/// A buffer: its bytes, and its device.
#[derive(Clone, Copy)]
pub(crate) struct Buffer {
    pub(crate) bytes: usize,
}

/// The tables of a process.
#[derive(Default)]
pub(crate) struct Tables {
    pub(crate) devices: HashMap<usize, DeviceHandle>,
    pub(crate) kernels: HashMap<usize, KernelHandle>,
    pub(crate) transfers: HashMap<usize, TransferHandle>,
    pub(crate) buffers: BTreeMap<usize, Buffer>,
    pub(crate) low: HashMap<i32, LowDevice>,
    made: usize,
}

/// A device of the lower library.
#[derive(Default)]
pub(crate) struct LowDevice {
    /// The number of its handle.
    pub(crate) device: usize,
    /// Host address and device address, by register set.
    pub(crate) register_sets: HashMap<u32, (usize, u64)>,
    pub(crate) registers: HashMap<u32, u64>,
    /// The address of the window on the PDM, and what it showed at the last call.
    pub(crate) window: Option<usize>,
    pub(crate) shown: Vec<u8>,
}

struct Owned {
    process: u32,
    tables: Mutex<Tables>,
}

/// The tables of this process, once it has asked for them.
static TABLES: AtomicPtr<Owned> = AtomicPtr::new(std::ptr::null_mut());

/// What a pointer refers to that was made here, or is null.
fn leaked(pointer: *mut Owned) -> Option<&'static Owned> {
    // SAFETY: the pointer is null or comes from `Box::into_raw` in `tables`, and is never freed.
    unsafe { pointer.as_ref() }
}

/// The tables of this process.
pub(crate) fn tables() -> MutexGuard<'static, Tables> {
    let process = std::process::id();
    let mut current = TABLES.load(Ordering::Acquire);
    loop {
        if let Some(owned) = leaked(current) {
            if owned.process == process {
                return owned.tables.lock().unwrap_or_else(PoisonError::into_inner);
            }
        }
        // The first call of a process. A child leaves its parent's tables alone, as a thread may have held them at the fork.
        let fresh = Box::into_raw(Box::new(Owned { process, tables: Mutex::default() }));
        current = match TABLES.compare_exchange(current, fresh, Ordering::AcqRel, Ordering::Acquire) {
            Ok(_) => fresh,
            Err(other) => other,
        };
    }
}

impl Tables {
    /// The number of a new handle.
    pub(crate) fn number(&mut self) -> usize {
        self.made += 1;
        FIRST + self.made * STEP
    }

    /// The buffer that holds an address, and the bytes from there to its end.
    pub(crate) fn room(&self, address: usize) -> Option<usize> {
        let (start, buffer) = self.buffers.range(..=address).next_back()?;
        (start + buffer.bytes).checked_sub(address).filter(|room| *room > 0)
    }
}

/// The pointer that stands for a number.
pub(crate) fn pointer(number: usize) -> *mut c_void {
    std::ptr::without_provenance_mut(number)
}

/// The devices that this process has open. None of them while another thread is inside of the tables.
pub(crate) fn open_devices() -> Vec<usize> {
    let owned = leaked(TABLES.load(Ordering::Acquire)).filter(|owned| owned.process == std::process::id());
    let tables = owned.and_then(|owned| owned.tables.try_lock().ok());
    tables.map_or_else(Vec::new, |tables| tables.devices.keys().copied().collect())
}

/// The device of a handle.
pub(crate) fn device(handle: *mut c_void) -> Result<Arc<Board>, Refusal> {
    if handle.is_null() {
        return Err(Refusal::param("the device is NULL"));
    }
    let found = tables().devices.get(&handle.addr()).map(|device| device.board.clone());
    found.ok_or_else(|| Refusal::param("this is no open device of this process"))
}

/// The kernel of a handle.
pub(crate) fn kernel(handle: *mut c_void) -> Result<KernelHandle, Refusal> {
    if handle.is_null() {
        return Err(Refusal::param("the kernel is NULL"));
    }
    let found = tables().kernels.get(&handle.addr()).cloned();
    found.ok_or_else(|| Refusal::new(Status::Kernel, "this is no loaded kernel of this process"))
}

/// The transfer of a handle.
pub(crate) fn transfer(handle: *mut c_void) -> Result<TransferHandle, Refusal> {
    if handle.is_null() {
        return Err(Refusal::param("the transfer is NULL"));
    }
    let found = tables().transfers.get(&handle.addr()).cloned();
    found.ok_or_else(|| Refusal::param("this is no transfer of this process"))
}

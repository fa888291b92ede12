//! A device: runs what is queued, in order.
//!
//! Kernels run in a thread of the device, or in the thread that waits for them, whichever comes first. Transfers, debug
//! accesses and waits see the device after every kernel that was launched before them, so results do not depend on time. A
//! kernel that waits for a tag of the host starts when the host has signalled it.

use crate::attach;
use crate::capture::{Capture, Counters, Snapshot};
use crate::kept;
use crate::kernel::{self, Loaded};
use crate::limits::{Limit, Limits};
use crate::message;
use crate::pool::Pool;
use crate::queue::{Brought, Queue, TransferId, Way, DEPTH};
use crate::record::Record;
use crate::shared::{Pools, Rules, Shared, State};
use crate::status::{Refusal, Status};
use emu2::host::{Device, Endian, TagRules};
use emu2::spec::Spec;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, OnceLock, Weak};

/// The machine of a device.
pub const DEFAULT_SPEC: &str = "mncore2";

/// A device with its queue. Dropping it closes it, after the kernels that can run have run.
pub struct Board {
    pub(crate) shared: Arc<Shared>,
    size: u64,
    /// The file that keeps the contents of all memories.
    pub(crate) kept: OnceLock<PathBuf>,
}

impl Board {
    /// Opens a device whose memories are zero.
    ///
    /// # Errors
    /// [`Status::Device`] if the machine's spec cannot be loaded.
    pub fn open(rules: Rules) -> Result<Board, Refusal> {
        Board::of(Arc::new(Spec::load(DEFAULT_SPEC)?), rules)
    }

    /// Opens a device of a machine.
    ///
    /// # Errors
    /// [`Status::Device`] for a machine without a memory that the host reaches.
    pub fn of(spec: Arc<Spec>, rules: Rules) -> Result<Board, Refusal> {
        let mut device = Box::new(Device::open(spec.clone())?);
        device.set_tag_rules(TagRules::UsedUp);
        let largest = spec.timing.tag_maximum.min(u64::BITS - 1);
        let pools = Pools {
            tags: Pool::new("tag", 1..=largest),
            waits: Pool::new("wait", 1..=largest),
            register_sets: Pool::new("register set", 0..=largest),
        };
        let size = device.size();
        let state = State {
            device: Some(device),
            queue: Queue::default(),
            fault: None,
            counters: Counters::default(),
            limits: Limits::default(),
            pools,
            record: Record::wanted(),
            has_thread: false,
            closing: false,
            run_ended: false,
        };
        let (state, changed, wanted) = (Mutex::new(state), Condvar::new(), Condvar::new());
        let shared = Arc::new(Shared { rules, spec, state, changed, wanted });
        let memories: Weak<Shared> = Arc::downgrade(&shared);
        attach::register(memories);
        Ok(Board { shared, size, kept: OnceLock::new() })
    }

    /// The machine.
    pub fn spec(&self) -> &Arc<Spec> {
        &self.shared.spec
    }

    /// Bytes that the host reaches.
    pub fn size(&self) -> u64 {
        self.size
    }

    /// The device after everything that can run has run.
    pub(crate) fn settled(&self) -> MutexGuard<'_, State> {
        self.shared.drive(|_| false)
    }

    /// Loads a kernel from a container, from assembled text or from a source. The end of `name` decides between the last two.
    ///
    /// # Errors
    /// [`Status::Kernel`] if it is none of them.
    pub fn load(&self, data: &[u8], name: &str) -> Result<Loaded, Refusal> {
        kernel::load(self.shared.drive(|_| true).device()?, data, name)
    }

    /// Loads a kernel from a file. Where a packed file does not exist, the assembled text beside it serves.
    ///
    /// # Errors
    /// [`Status::Io`] if the file cannot be read, else those of [`Board::load`].
    pub fn load_file(&self, path: &Path) -> Result<Loaded, Refusal> {
        kernel::load_file(self.shared.drive(|_| true).device()?, path)
    }

    /// Queues a kernel. If the queue is full, the call waits until a kernel has ended.
    ///
    /// # Errors
    /// [`Status::Kernel`] on a device that has stopped; [`Status::Timeout`] if the queue is full and its first kernel waits
    /// for a tag.
    pub fn launch(&self, kernel: &Loaded) -> Result<(), Refusal> {
        let mut state = self.shared.lock();
        if state.queue.kernels() >= DEPTH {
            drop(state);
            state = self.shared.drive(|state| state.queue.kernels() < DEPTH);
            if state.queue.kernels() >= DEPTH {
                return Err(Refusal::new(
                    Status::Timeout,
                    "the queue of kernels is full, and its first one waits for a tag",
                ));
            }
        }
        if let Some(fault) = &state.fault {
            return Err(Refusal::new(Status::Kernel, fault.message.clone()));
        }
        if self.shared.rules.forget {
            drop(state);
            state = self.settled();
            state.begin(self.shared.rules)?;
        }
        state.queue.launch(Arc::new(kernel.clone()));
        self.need_thread(&mut state);
        drop(state);
        self.shared.wanted.notify_one();
        Ok(())
    }

    /// Starts the thread of the device, if it has none. Without one, waits run the kernels.
    fn need_thread(&self, state: &mut State) {
        if !std::mem::replace(&mut state.has_thread, true) {
            let shared = self.shared.clone();
            let _ = std::thread::Builder::new().name("emu2-device".into()).spawn(move || shared.serve());
        }
    }

    /// Copies `data` to byte `offset` of the memory that the host reaches, then signals `tag` (0: nothing).
    ///
    /// # Errors
    /// [`Status::Param`] for an offset, a length or a tag that no transfer has; [`Status::Dma`] on a device that has stopped,
    /// and for a tag that an MV has signalled and nobody has used.
    pub fn send(&self, data: &[u8], offset: u64, tag: u32) -> Result<(), Refusal> {
        let mut state = self.settled();
        state.begin(self.shared.rules)?;
        state.usable(Status::Dma)?.send(data, offset, tag).map_err(Refusal::from)?;
        drop(state);
        self.shared.wanted.notify_one();
        Ok(())
    }

    /// Fills `out` from byte `offset` on, after an MV has signalled `tag` (0: at once).
    ///
    /// # Errors
    /// Those of [`Board::send`], and [`Status::Timeout`] if no MV signals the tag.
    pub fn receive(&self, out: &mut [u8], offset: u64, tag: u32) -> Result<(), Refusal> {
        let mut state = self.settled();
        state.run_ended = true;
        state.usable(Status::Dma)?.recv(out, offset, tag)?;
        if self.shared.rules.sanitize {
            state.shown(offset, out.len());
        }
        Ok(())
    }

    /// Checks the place of a transfer.
    fn check(&self, state: &mut State, bytes: usize, offset: u64, tag: u32) -> Result<(), Refusal> {
        let granule = state.usable(Status::Dma)?.endian().granule();
        let size = state.device()?.size();
        let whole = bytes > 0 && bytes.is_multiple_of(granule) && offset.is_multiple_of(granule as u64);
        if !whole || offset.checked_add(bytes as u64).is_none_or(|end| end > size) {
            return Err(Refusal::param(format!(
                "{bytes} bytes at {offset} are no transfer, in units of {granule} bytes"
            )));
        }
        if tag > self.shared.spec.timing.tag_maximum {
            return Err(Refusal::param(format!("there is no tag {tag}")));
        }
        Ok(())
    }

    fn start(&self, way: Way, bytes: usize, offset: u64, tag: u32) -> Result<TransferId, Refusal> {
        let mut state = self.shared.drive(|_| true);
        self.check(&mut state, bytes, offset, tag)?;
        state.begin(self.shared.rules)?;
        state.pools.register_sets.take().map(|set| state.pools.register_sets.give_back(set))??;
        let id = state.queue.start(way, offset, tag);
        self.need_thread(&mut state);
        drop(state);
        self.shared.wanted.notify_one();
        Ok(id)
    }

    /// Does the same as [`Board::send`], beside the caller. The bytes are copied before the call returns.
    ///
    /// # Errors
    /// [`Status::Param`], as [`Board::send`]. Other errors come when the transfer ends.
    pub fn start_send(&self, data: &[u8], offset: u64, tag: u32) -> Result<TransferId, Refusal> {
        self.start(Way::ToDevice(data.to_vec()), data.len(), offset, tag)
    }

    /// Does the same as [`Board::receive`], beside the caller.
    ///
    /// # Errors
    /// [`Status::Param`], as [`Board::send`]. Other errors come when the transfer ends.
    pub fn start_receive(&self, bytes: usize, offset: u64, tag: u32) -> Result<TransferId, Refusal> {
        self.start(Way::FromDevice(bytes), bytes, offset, tag)
    }

    /// What a transfer brought, if it has ended. It can be fetched once. `wait` runs what is queued first.
    ///
    /// # Errors
    /// [`Status::Timeout`] if `wait` and the transfer cannot end.
    pub fn end(&self, id: TransferId, wait: bool) -> Result<Option<Brought>, Refusal> {
        let mut state = self.shared.drive(|state| !wait || state.queue.is_done(id));
        if !wait && !state.queue.is_done(id) {
            drop(state);
            state = self.settled();
        }
        let brought = state.queue.collect(id);
        if wait && brought.is_none() {
            return Err(Refusal::new(Status::Timeout, "the transfer cannot end: nothing signals its tag"));
        }
        Ok(brought)
    }

    /// Forgets a transfer, also one that has not ended.
    pub fn forget_transfer(&self, id: TransferId) {
        self.shared.lock().queue.drop_transfer(id);
    }

    /// Waits until every transfer has ended.
    ///
    /// # Errors
    /// [`Status::Timeout`] if one cannot end.
    pub fn wait_transfers(&self) -> Result<(), Refusal> {
        match self.settled().queue.transfers() {
            [0, 0] => Ok(()),
            _ => Err(Refusal::new(Status::Timeout, "a transfer cannot end: nothing signals its tag")),
        }
    }

    /// Waits until every kernel has ended.
    ///
    /// # Errors
    /// [`Status::Timeout`] if one waits for a tag that nothing signals; [`Status::Device`] on a device that has stopped.
    pub fn wait_kernels(&self) -> Result<(), Refusal> {
        self.settled().usable(Status::Device)?;
        match self.waiting_for() {
            None => Ok(()),
            Some(tag) => {
                let message = format!("a kernel waits for tag {tag:#04x}, and nothing signals it");
                Err(Refusal::new(Status::Timeout, message))
            }
        }
    }

    /// Kernels that have not ended, and transfers to and from the device that have not.
    pub fn queued(&self) -> (usize, [usize; 2]) {
        let state = self.shared.lock();
        (state.queue.kernels(), state.queue.transfers())
    }

    /// Lets one piece of what is queued run, if the thread of the device is not at it. Pollers call this, so that queues get
    /// shorter on their own even where no thread could be started.
    pub fn poll(&self) {
        let state = self.shared.lock();
        if !state.has_thread {
            let mut first = true;
            drop(state);
            drop(self.shared.drive(|_| !std::mem::take(&mut first)));
        }
    }

    /// The tag for which the first kernel waits, if nothing has signalled it.
    pub fn waiting_for(&self) -> Option<u32> {
        let mut state = self.settled();
        let device = state.device.take()?;
        let blocked = state.queue.blocked_at(&device);
        state.device = Some(device);
        blocked
    }

    /// Empties queues, makes all tags unsignalled, and makes a device usable that has stopped. Memories keep their contents.
    pub fn reset(&self) {
        let mut state = self.settled();
        state.queue.clear(&Refusal::new(Status::Dma, "the device was reset"));
        state.fault = None;
        if let Some(device) = state.device.as_deref_mut() {
            device.reset_tags();
        }
        self.shared.changed.notify_all();
    }

    /// The byte order of transfers.
    pub fn endian(&self) -> u8 {
        self.shared.drive(|_| true).device.as_ref().map_or(0, |device| device.endian().mode())
    }

    /// Sets the byte order of transfers that start from now on.
    ///
    /// # Errors
    /// [`Status::Param`] for a number above 4.
    pub fn set_endian(&self, mode: u8) -> Result<(), Refusal> {
        let endian = Endian::new(mode)?;
        self.settled().device()?.set_endian(endian);
        Ok(())
    }

    /// The value of a limit; with a count, the previous one.
    pub fn limit(&self, limit: Limit, count: Option<i32>) -> i32 {
        let limits = &mut self.shared.lock().limits;
        count.map_or(limits.get(limit), |count| limits.set(limit, count))
    }

    /// Steps since the device was opened.
    pub fn instructions(&self) -> u64 {
        self.settled().counters.instructions()
    }

    /// Arms a snapshot of the counters.
    ///
    /// # Errors
    /// [`Status::Param`] for [`Capture::Now`].
    pub fn arm(&self, capture: Capture, at: u64) -> Result<(), Refusal> {
        self.settled().counters.arm(capture, at)
    }

    /// A snapshot of the counters.
    pub fn snapshot(&self, capture: Capture) -> Snapshot {
        self.settled().counters.read(capture).clone()
    }

    /// Calls `work` with the pools.
    pub(crate) fn with_pools<T>(&self, work: impl FnOnce(&mut Pools) -> T) -> T {
        work(&mut self.shared.lock().pools)
    }

    /// Signals a tag as a send does, without data.
    ///
    /// # Errors
    /// [`Status::Param`] for a tag that does not exist.
    pub fn signal(&self, tag: u32) -> Result<(), Refusal> {
        self.settled().device()?.signal(tag)?;
        self.shared.wanted.notify_one();
        Ok(())
    }

    /// Whether data could be received under `tag`, after everything that can run has run.
    pub fn is_due(&self, tag: u32) -> bool {
        self.settled().device.as_ref().is_some_and(|device| device.is_due(tag))
    }
}

impl Drop for Board {
    fn drop(&mut self) {
        let mut state = self.settled();
        state.closing = true;
        if let Some(record) = state.record.take() {
            record.write();
        }
        if let (Some(path), Some(device)) = (self.kept.get(), &state.device) {
            if let Err(refusal) = kept::save(device, path) {
                message::show(&format!("emu2: {refusal}"));
            }
        }
        drop(state);
        self.shared.wanted.notify_all();
    }
}

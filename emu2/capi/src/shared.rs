//! The state of a device, and the one place that runs what is queued.

use crate::capture::Counters;
use crate::environment;
use crate::limits::Limits;
use crate::pool::Pool;
use crate::queue::{Brought, Queue, Way, Work};
use crate::record::Record;
use crate::status::{Refusal, Status};
use emu2::error::{Code, Error};
use emu2::host::Device;
use emu2::spec::Spec;
use std::io::Write;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

/// How a device behaves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rules {
    /// An MV that signals a tag again, before anybody has used its last signal, stops the device. Else both count as one, as
    /// on a board.
    pub refuse_double_tags: bool,
    /// Memories are zero at the start of each run. A run begins with the first send, debug write or launch after a receive
    /// or a debug read.
    pub forget: bool,
}

impl Default for Rules {
    fn default() -> Self {
        Rules { refuse_double_tags: true, forget: false }
    }
}

/// The pools of a device.
#[derive(Debug)]
pub(crate) struct Pools {
    pub(crate) tags: Pool,
    pub(crate) waits: Pool,
    pub(crate) register_sets: Pool,
}

/// What the threads of a device share.
pub(crate) struct Shared {
    pub(crate) rules: Rules,
    pub(crate) spec: Arc<Spec>,
    pub(crate) state: Mutex<State>,
    /// A thread has brought the device back.
    pub(crate) changed: Condvar,
    /// There is work for the thread of the device.
    pub(crate) wanted: Condvar,
}

/// The state of a device.
pub(crate) struct State {
    /// None while a thread runs a kernel on it.
    pub(crate) device: Option<Box<Device>>,
    pub(crate) queue: Queue,
    /// Why the device has stopped.
    pub(crate) fault: Option<Refusal>,
    pub(crate) counters: Counters,
    pub(crate) limits: Limits,
    pub(crate) pools: Pools,
    /// What ran, if the caller wants it.
    pub(crate) record: Option<Record>,
    pub(crate) has_thread: bool,
    pub(crate) closing: bool,
    /// A receive or a debug read has ended a run.
    pub(crate) run_ended: bool,
}

impl Shared {
    pub(crate) fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Runs a piece of work on the device, which must be there. The lock is free while a kernel runs.
    fn perform<'a>(&'a self, mut state: MutexGuard<'a, State>, work: Work) -> MutexGuard<'a, State> {
        let kernel = match work {
            Work::Transfer(transfer) => {
                let brought = state.transfer(transfer.way, transfer.offset, transfer.tag);
                state.queue.transfer_ended(transfer.id, brought);
                return state;
            }
            Work::Kernel(kernel) => kernel,
        };
        let Some(mut device) = state.device.take() else { return state };
        drop(state);
        let ran = device.exec(&kernel.kernel, &mut dump);
        let mut state = self.lock();
        state.device = Some(device);
        state.queue.kernel_ended();
        match ran {
            Ok(report) => {
                state.counters.ran(kernel.kernel.program(), report.steps);
                if let Some(record) = &mut state.record {
                    record.launched(&kernel.kernel.program().name, &report);
                }
            }
            Err(e) if e.diagnostic.code == Code::TagInFlight && !self.rules.refuse_double_tags => {
                state.counters.ran(kernel.kernel.program(), kernel.kernel.report().steps);
            }
            Err(e) => {
                let place = format!("{}:{}", kernel.kernel.program().name, e.line);
                let why = Refusal::new(Status::Dma, format!("the device has stopped: {place}: {}", e.diagnostic));
                state.queue.clear(&why);
                state.fault = Some(why);
            }
        }
        self.changed.notify_all();
        state
    }

    /// Runs what is queued until nothing can run, or `enough`. The device is there afterwards.
    pub(crate) fn drive(&self, mut enough: impl FnMut(&State) -> bool) -> MutexGuard<'_, State> {
        let mut state = self.lock();
        loop {
            let Some(device) = state.device.take() else {
                state = self.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
                continue;
            };
            let work = if enough(&state) { None } else { state.queue.take(&device) };
            state.device = Some(device);
            match work {
                None => return state,
                Some(work) => state = self.perform(state, work),
            }
        }
    }

    /// The thread of the device.
    pub(crate) fn serve(&self) {
        let mut state = self.lock();
        while !state.closing {
            let work = match state.device.take() {
                None => None,
                Some(device) => {
                    let work = state.queue.take(&device);
                    state.device = Some(device);
                    work
                }
            };
            state = match work {
                Some(work) => self.perform(state, work),
                None => self.wanted.wait(state).unwrap_or_else(PoisonError::into_inner),
            };
        }
    }
}

/// Writes a line of `d get`.
fn dump(line: &str) -> Result<(), Error> {
    let Some(path) = environment::value(environment::DUMP) else {
        let _ = std::io::stderr().write_all(line.as_bytes());
        return Ok(());
    };
    let file = std::fs::OpenOptions::new().create(true).append(true).open(&path);
    file.and_then(|mut file| file.write_all(line.as_bytes()))
        .map_err(|e| Error::new(Code::Unwritable, format!("{}: {e}", path.to_string_lossy())))
}

impl State {
    /// The device, for an access. It is here, because [`Shared::drive`] was called.
    pub(crate) fn device(&mut self) -> Result<&mut Device, Refusal> {
        self.device.as_deref_mut().ok_or_else(|| Refusal::new(Status::Device, "the device is in use"))
    }

    pub(crate) fn usable(&mut self, status: Status) -> Result<&mut Device, Refusal> {
        match &self.fault {
            Some(fault) => Err(Refusal::new(status, fault.message.clone())),
            None => self.device(),
        }
    }

    fn transfer(&mut self, way: Way, offset: u64, tag: u32) -> Brought {
        let device = self.usable(Status::Dma)?;
        match way {
            Way::ToDevice(data) => device.send(&data, offset, tag).map(|()| Vec::new()).map_err(Refusal::from),
            Way::FromDevice(bytes) => {
                let mut out = device.alloc(bytes)?;
                device.recv(&mut out, offset, tag)?;
                Ok(out)
            }
        }
    }

    /// Begins a run: with [`Rules::forget`] the first one after an end of a run finds zeros.
    pub(crate) fn begin(&mut self, rules: Rules) -> Result<(), Refusal> {
        if std::mem::take(&mut self.run_ended) && rules.forget {
            self.device()?.reset();
        }
        Ok(())
    }
}

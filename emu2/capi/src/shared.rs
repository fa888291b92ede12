//! The state of a device, and the one place that runs what is queued.

use crate::attach::{self, Memories};
use crate::capture::Counters;
use crate::environment;
use crate::kernel::Loaded;
use crate::limits::Limits;
use crate::message;
use crate::pool::Pool;
use crate::queue::{Brought, Queue, Way, Work};
use crate::record::{self, Record};
use crate::status::{Refusal, Status};
use emu2::debug::HistoryLimits;
use emu2::error::{Code, Error};
use emu2::exec::{Finding, RunError};
use emu2::host::Device;
use emu2::machine::Machine;
use emu2::report::Report;
use emu2::spec::Spec;
use std::io::Write;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

/// The images of a kernel that a debugger has.
const HISTORY: HistoryLimits = HistoryLimits { bytes: 1 << 28, every: None };

/// How a device behaves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rules {
    /// An MV that signals a tag again, before anybody has used its last signal, stops the device. Else both count as one, as
    /// on a board.
    pub refuse_double_tags: bool,
    /// Memories are zero at the start of each run. A run begins with the first send, debug write or launch after a receive
    /// or a debug read.
    pub forget: bool,
    /// Kernels are checked for results that depend on undefined values, on timing or on the range of a format. Findings go to
    /// stderr and to the record.
    pub sanitize: bool,
}

impl Default for Rules {
    fn default() -> Self {
        Rules { refuse_double_tags: true, forget: false, sanitize: false }
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

impl Memories for Shared {
    fn look(&self, look: &mut dyn FnMut(&Machine)) -> bool {
        let state = self.lock();
        state.device.iter().for_each(|device| look(device.machine()));
        state.device.is_some()
    }
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
        let ran = self.exec(&mut device, &kernel);
        let mut state = self.lock();
        state.device = Some(device);
        state.queue.kernel_ended();
        match ran {
            Ok((report, findings)) => {
                let program = kernel.kernel.program();
                state.counters.ran(program, report.steps);
                if let Some(record) = &mut state.record {
                    record.launched(program, &report, &findings);
                } else {
                    let place = |finding: &Finding| record::place(program, finding.line);
                    findings.iter().for_each(|finding| message::show(&record::text(&place(finding), finding)));
                }
            }
            Err(e) if e.diagnostic.code == Code::TagInFlight && !self.rules.refuse_double_tags => {
                state.counters.ran(kernel.kernel.program(), kernel.kernel.report().steps);
            }
            Err(e) => {
                let place = record::place(kernel.kernel.program(), e.line);
                let why = Refusal::new(Status::Dma, format!("the device has stopped: {place}: {}", e.diagnostic));
                state.queue.clear(&why);
                state.fault = Some(why);
            }
        }
        self.changed.notify_all();
        state
    }

    /// Runs a kernel, in the way that the caller or a debugger wants.
    fn exec(&self, device: &mut Device, loaded: &Loaded) -> Result<(Report, Vec<Finding>), RunError> {
        let kernel = &loaded.kernel;
        if attach::wants() {
            let name = &kernel.program().name;
            let ran = device.exec_debugged(kernel, HISTORY, |session| attach::lend(session, name), &mut dump);
            return ran.map(|report| (report, Vec::new()));
        }
        match self.rules.sanitize {
            true => device.exec_sanitized(kernel, &mut dump),
            false => device.exec(kernel, &mut dump).map(|report| (report, Vec::new())),
        }
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
                self.shown(offset, bytes);
                Ok(out)
            }
        }
    }

    /// Notes what a sanitizer finds in bytes that the host has read.
    pub(crate) fn shown(&mut self, offset: u64, bytes: usize) {
        let found = self.device.as_mut().and_then(|device| device.undefined(offset, bytes).ok()).unwrap_or_default();
        for finding in &found {
            match &mut self.record {
                Some(record) => record.shown(finding, offset, bytes),
                None => message::show(&record::text(&record::receive(offset, bytes), finding)),
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

//! The one place where a kernel meets a debugger.

use super::run::{Run, Wanted};
use emu2::debug::Session;
use emu2::interrupt::Interrupt;
use emu2::machine::Machine;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

/// How often somebody who waits looks whether he was asked to stop.
const PAUSE: Duration = Duration::from_millis(20);

/// A device whose memories a debugger may read while it has no kernel.
pub(crate) trait Memories: Send + Sync {
    /// Calls `look` with the machine. Returns false while a kernel runs.
    fn look(&self, look: &mut dyn FnMut(&Machine)) -> bool;
}

/// What the threads of the devices and that of the socket share.
pub(super) struct Hub {
    process: u32,
    attached: AtomicBool,
    /// The first kernel waits for a debugger.
    first: AtomicBool,
    /// Stops the move that is at work.
    interrupt: Mutex<Interrupt>,
    state: Mutex<HubState>,
    changed: Condvar,
}

#[derive(Default)]
pub(super) struct HubState {
    /// The kernel that the debugger has.
    pub(super) run: Option<Run>,
    pub(super) wanted: Vec<Wanted>,
    pub(super) devices: Vec<Weak<dyn Memories>>,
    pub(super) next: u32,
    kernels: u64,
}

impl Hub {
    pub(super) fn new(first: bool) -> Hub {
        Hub {
            process: std::process::id(),
            attached: AtomicBool::new(false),
            first: AtomicBool::new(first),
            interrupt: Mutex::default(),
            state: Mutex::default(),
            changed: Condvar::new(),
        }
    }

    pub(super) fn is_ours(&self) -> bool {
        self.process == std::process::id()
    }

    pub(super) fn lock(&self) -> MutexGuard<'_, HubState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn wait<'a>(&self, state: MutexGuard<'a, HubState>) -> MutexGuard<'a, HubState> {
        self.changed.wait_timeout(state, PAUSE).unwrap_or_else(PoisonError::into_inner).0
    }

    pub(super) fn add_device(&self, device: Weak<dyn Memories>) {
        let mut state = self.lock();
        state.devices.retain(|device| device.strong_count() > 0);
        state.devices.push(device);
    }

    pub(super) fn wants(&self) -> bool {
        self.attached.load(Ordering::Acquire) || self.first.load(Ordering::Acquire)
    }

    /// Lends a kernel to the debugger, until it lets go of it or goes away.
    pub(super) fn lend(&self, session: Session, name: &str) -> Session {
        let mut state = self.lock();
        // The debugger has a kernel of another device, or is still to come.
        while self.wants() && (state.run.is_some() || !self.attached.load(Ordering::Acquire)) {
            state = self.wait(state);
        }
        if !self.wants() {
            return session;
        }
        state.kernels += 1;
        let run = Run::new(session, name, state.kernels, &state.wanted);
        state.run = Some(run);
        self.changed.notify_all();
        loop {
            match state.run.take_if(|run| run.released) {
                Some(run) => {
                    self.changed.notify_all();
                    return run.session;
                }
                None => state = self.wait(state),
            }
        }
    }

    /// Begins a session of a debugger.
    pub(super) fn attach(&self) {
        self.attached.store(true, Ordering::Release);
        self.first.store(false, Ordering::Release);
        self.changed.notify_all();
    }

    /// Ends it. The kernel that it has runs on.
    pub(super) fn detach(&self) {
        let mut state = self.lock();
        self.attached.store(false, Ordering::Release);
        state.wanted.clear();
        state.run.iter_mut().for_each(|run| run.released = true);
        self.changed.notify_all();
    }

    /// Asks the move that is at work to stop.
    pub(super) fn pause(&self) {
        self.interrupt.lock().unwrap_or_else(PoisonError::into_inner).request();
    }

    /// The interrupt of a move that begins now.
    pub(super) fn begin(&self) -> Interrupt {
        let fresh = Interrupt::default();
        self.interrupt.lock().unwrap_or_else(PoisonError::into_inner).clone_from(&fresh);
        fresh
    }

    /// Lets go of the kernel, and waits for the next one. None if there is none before `interrupt`.
    pub(super) fn next_kernel<'a>(
        &'a self,
        mut state: MutexGuard<'a, HubState>,
        interrupt: &Interrupt,
    ) -> (MutexGuard<'a, HubState>, bool) {
        state.run.iter_mut().for_each(|run| run.released = true);
        self.changed.notify_all();
        while state.run.as_ref().is_none_or(|run| run.released) {
            if interrupt.requested() {
                return (state, false);
            }
            state = self.wait(state);
        }
        (state, true)
    }
}

//! The state of a machine: arrays per L1B, sparse pages above, and access to them by unit and address.

mod access;
mod image;
mod layout;
mod memory_file;
mod outside_writes;
mod pages;
mod path;
mod saved;
mod state;
mod words;

pub(crate) use access::unit_name;
pub use access::{Region, Units};
pub use image::{Blocks, Difference, Image, Owner, Written};
pub use layout::{Layout, Slot};
pub use memory_file::MemoryFiles;
pub(crate) use outside_writes::{OutsideWrites, Part};
pub use pages::Pages;
pub use path::PathRows;
pub(crate) use path::{Out, Path};
pub(crate) use state::Decoded;
pub use state::{L1b, State};
pub use words::Words;

use crate::error::{Code, Error};
use crate::spec::Spec;
use std::sync::Arc;

/// A machine: a spec and the contents of all its memories. All memories start at zero.
#[derive(Debug)]
pub struct Machine {
    spec: Arc<Spec>,
    layout: Layout,
    pub(crate) state: State,
    poisoned: bool,
    written: OutsideWrites,
}

impl Machine {
    /// A machine with every memory zero. The host provides memory when it is touched.
    pub fn new(spec: Arc<Spec>) -> Machine {
        let layout = Layout::new(&spec);
        let state = State::new(&spec, &layout);
        Machine { spec, layout, state, poisoned: false, written: OutsideWrites::default() }
    }

    /// The spec from which the machine was made.
    pub fn spec(&self) -> &Arc<Spec> {
        &self.spec
    }

    /// The place of each memory of the spec in the state.
    pub fn layout(&self) -> &Layout {
        &self.layout
    }

    /// Bytes of the host that the sparse memories take: the written pages, of 32 KiB each.
    pub fn resident_bytes(&self) -> usize {
        self.state.group.iter().flatten().map(Pages::resident_bytes).sum()
    }

    /// Sets everything to zero. The machine is usable again after an error.
    pub fn reset(&mut self) {
        self.state = State::new(&self.spec, &self.layout);
        self.poisoned = false;
        self.written = OutsideWrites { resets: self.written.resets + 1, ..OutsideWrites::default() };
    }

    /// Notes that a program runs whose writes are not recorded.
    pub(crate) fn lose_written(&mut self) {
        self.written.lose();
    }

    /// The regions that were written from outside the engine since the last call.
    pub(crate) fn take_written(&mut self) -> OutsideWrites {
        self.written.take()
    }

    /// Marks the state as unusable, because an error left a program half done.
    pub(crate) fn poison(&mut self) {
        self.poisoned = true;
    }

    /// Marks the state as usable, because it was restored.
    pub(crate) fn unpoison(&mut self) {
        self.poisoned = false;
    }

    /// Marks the state as usable as it is, though a program stopped half way.
    pub(crate) fn recover(&mut self) {
        self.state.l1b.iter_mut().for_each(|l1b| l1b.settled = false);
        self.poisoned = false;
    }

    /// A machine with the same contents.
    #[must_use]
    pub fn copy(&self) -> Machine {
        Machine {
            spec: self.spec.clone(),
            layout: self.layout.clone(),
            state: self.state.clone(),
            poisoned: self.poisoned,
            written: self.written.clone(),
        }
    }

    /// Checks that no program stopped in the middle.
    ///
    /// # Errors
    /// [`Code::Poisoned`] if a program did, until [`Machine::reset`].
    pub fn check_usable(&self) -> Result<(), Error> {
        if self.poisoned {
            return Err(Error::new(Code::Poisoned, "an earlier error stopped a program half way"));
        }
        Ok(())
    }
}

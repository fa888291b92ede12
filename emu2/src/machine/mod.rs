//! The state of a machine: arrays per L1B, sparse pages above, and access to them by unit and address.

mod access;
mod layout;
mod memory_file;
mod pages;
mod path;
mod state;
mod words;
mod written;

pub(crate) use access::unit_name;
pub use access::{Region, Units};
pub use layout::{Layout, Slot};
pub use memory_file::MemoryFiles;
pub use pages::Pages;
pub use path::PathRows;
pub(crate) use path::{Out, Path};
pub(crate) use state::Decoded;
pub use state::{L1b, State};
pub use words::Words;
pub(crate) use written::Written;

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
    written: Written,
}

impl Machine {
    /// A machine with every memory zero. The host provides memory when it is touched.
    pub fn new(spec: Arc<Spec>) -> Machine {
        let layout = Layout::new(&spec);
        let state = State::new(&spec, &layout);
        Machine { spec, layout, state, poisoned: false, written: Written::default() }
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
        self.written = Written { resets: self.written.resets + 1, ..Written::default() };
    }

    /// Notes that a program runs whose writes nobody follows.
    pub(crate) fn lose_written(&mut self) {
        self.written.lose();
    }

    /// The regions that were written from outside the engine since the last call.
    pub(crate) fn take_written(&mut self) -> Written {
        self.written.take()
    }

    /// Marks the state as unusable, because an error left a program half done.
    pub(crate) fn poison(&mut self) {
        self.poisoned = true;
    }

    /// Checks that no program stopped half way.
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

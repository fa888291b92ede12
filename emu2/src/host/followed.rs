//! Runs of kernels that somebody follows: a sanitizer or a debugger. And devices whose state a file keeps.

use super::{Device, Kernel};
use crate::asm::Program;
use crate::debug::{HistoryLimits, Session};
use crate::error::{Code, Error};
use crate::exec::{Finding, RunError, Sanitizer, Tags};
use crate::machine::Machine;
use crate::report::{dump_lines, Report};
use crate::word::TagUse;

fn at_start(error: Error) -> RunError {
    RunError { line: 0, diagnostic: *error.0 }
}

impl Device {
    /// Does the same as [`Device::exec`], and looks for results that depend on undefined values, on timing or on the range of
    /// a format.
    ///
    /// # Errors
    /// Those of [`Device::exec`].
    pub fn exec_sanitized(
        &mut self,
        kernel: &Kernel,
        sink: &mut dyn FnMut(&str) -> Result<(), Error>,
    ) -> Result<(Report, Vec<Finding>), RunError> {
        if self.sanitizer.is_none() {
            let made = Sanitizer::new(self.spec().clone()).map_err(at_start)?;
            self.sanitizer = Some(Box::new(made));
        }
        let missing = || at_start(Error::new(Code::NoKernel, "the sanitizer cannot be made"));
        let sanitizer = self.sanitizer.as_mut().ok_or_else(missing)?;
        let on_get = &mut |get: &_, machine: &Machine| dump_lines(machine, get, sink);
        sanitizer.run(&mut self.machine, kernel.program(), &mut self.tags, on_get)?;
        let findings = sanitizer.findings(kernel.program());
        self.tags.check_doubled().map_err(at_start)?;
        Ok((kernel.report().clone(), findings))
    }

    /// Looks for words without a defined value in bytes that the host reads. Before the first sanitized run nothing is known.
    ///
    /// # Errors
    /// Those of [`Device::recv`] for the place.
    pub fn undefined(&mut self, offset: u64, bytes: usize) -> Result<Vec<Finding>, Error> {
        let region = self.region(offset, bytes)?;
        let Some(sanitizer) = &mut self.sanitizer else { return Ok(Vec::new()) };
        sanitizer.show(&mut self.machine, &region)?;
        Ok(sanitizer.findings(&Program::of(self.machine.spec().clone(), "<host>", Vec::new())))
    }

    /// Runs `kernel` under a debugger: `drive` moves the session as it likes, and what is left of the kernel runs behind it.
    /// `sink` takes the dump lines of that part.
    ///
    /// # Errors
    /// Those of [`Device::exec`].
    pub fn exec_debugged(
        &mut self,
        kernel: &Kernel,
        room: HistoryLimits,
        drive: impl FnOnce(Session) -> Session,
        sink: &mut dyn FnMut(&str) -> Result<(), Error>,
    ) -> Result<Report, RunError> {
        self.machine.check_usable().map_err(at_start)?;
        if kernel.program().spec.digest != self.spec().digest {
            return Err(at_start(Error::new(Code::WrongSpec, "the kernel is for another machine")));
        }
        let fresh = Machine::new(self.spec().clone());
        let machine = std::mem::replace(&mut self.machine, fresh);
        let mut session = drive(Session::new(kernel.shared(), machine, room).map_err(at_start)?);
        let ran = session.finish(sink);
        self.machine = session.into_machine();
        self.machine.lose_written();
        if ran.is_err() {
            self.machine.poison();
        }
        ran?;
        // A kernel has no branches, so its use of tags is known without a run.
        for used in kernel.tag_uses() {
            match *used {
                TagUse::Signal(tag) => self.tags.signal(tag),
                TagUse::Wait(tag) => self.tags.wait(tag).map_err(at_start)?,
            }
        }
        self.tags.check_doubled().map_err(at_start)?;
        Ok(kernel.report().clone())
    }

    /// The contents of all memories, for [`Device::load_state`].
    ///
    /// # Errors
    /// Those of [`Machine::save_state`].
    pub fn save_state(&self) -> Result<Vec<u8>, Error> {
        self.machine.save_state()
    }

    /// Makes the contents of all memories what they were when [`Device::save_state`] was called.
    ///
    /// # Errors
    /// Those of [`Machine::load_state`].
    pub fn load_state(&mut self, bytes: &[u8]) -> Result<(), Error> {
        self.machine.load_state(bytes)
    }
}

//! Completion tags: whether the transfer that a `wait` names is done.

use crate::asm::host_command::no_host;
use crate::error::Error;

/// The completion tags that are signalled. An MV completes when it is issued, so a `wait` is a check, never a delay.
pub trait Tags {
    /// An MV that carries `tag` has completed.
    fn signal(&mut self, tag: u32);

    /// A `wait` for `tag` is reached.
    ///
    /// # Errors
    /// If nothing has signalled the tag: the hardware would stop here for good.
    fn wait(&mut self, tag: u32) -> Result<(), Error>;

    /// A command of the host has read a long word; `line` shows it.
    ///
    /// # Errors
    /// If no host takes part in the run.
    fn read_by_host(&mut self, line: &str) -> Result<(), Error> {
        let _ = line;
        Err(no_host())
    }
}

/// The tags of a plain run as [`AssumedHost`], and what the commands of the host have read, a line for each long word.
#[derive(Clone, Debug, Default)]
pub struct HostLines {
    /// The lines.
    pub lines: Vec<String>,
}

impl Tags for HostLines {
    fn signal(&mut self, _: u32) {}

    fn wait(&mut self, _: u32) -> Result<(), Error> {
        Ok(())
    }

    fn read_by_host(&mut self, line: &str) -> Result<(), Error> {
        self.lines.push(line.to_string());
        Ok(())
    }
}

/// The tags of a plain run. A tag that no MV signals belongs to a host transfer that completed before the program began.
#[derive(Clone, Copy, Debug, Default)]
pub struct AssumedHost;

impl Tags for AssumedHost {
    fn signal(&mut self, _: u32) {}

    fn wait(&mut self, _: u32) -> Result<(), Error> {
        Ok(())
    }
}

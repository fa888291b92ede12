//! Completion tags: whether the transfer that a `wait` names is done.

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

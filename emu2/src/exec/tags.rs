//! Completion tags: who says that what a `wait` waits for is done.

use crate::error::Error;

/// What is known of completion tags. An MV completes when it is issued, so that a `wait` is a question, never a delay.
pub trait Tags {
    /// An MV that carries `tag` has completed.
    fn signal(&mut self, tag: u32);

    /// A `wait` for `tag` is reached.
    ///
    /// # Errors
    /// If nothing has signalled the tag: the hardware would stop here for good.
    fn wait(&mut self, tag: u32) -> Result<(), Error>;
}

/// A plain run: what no MV signals is taken as a host transfer that has completed before the program began.
#[derive(Clone, Copy, Debug, Default)]
pub struct AssumedHost;

impl Tags for AssumedHost {
    fn signal(&mut self, _: u32) {}

    fn wait(&mut self, _: u32) -> Result<(), Error> {
        Ok(())
    }
}

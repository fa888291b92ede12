//! Stopping a long call from another thread.

use crate::error::{Code, Error};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::Arc;

/// A request to stop, shared by the thread that works and the thread that asks it to stop. The work reads the request
/// between lines, statements and units, so it stops within milliseconds.
#[derive(Clone, Debug, Default)]
pub struct Interrupt(Arc<AtomicBool>);

impl Interrupt {
    /// Asks the work to stop.
    pub fn request(&self) {
        self.0.store(true, Ordering::Relaxed);
    }

    /// Whether the work must stop.
    pub fn requested(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }

    /// Returns an error if the work must stop.
    ///
    /// # Errors
    /// [`Code::Interrupted`] after a request.
    pub fn check(&self) -> Result<(), Error> {
        if self.requested() {
            return Err(Error::new(Code::Interrupted, "the call was stopped before its end"));
        }
        Ok(())
    }
}

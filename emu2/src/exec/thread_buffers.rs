//! Buffers for the threads that run a region.

use super::op::Scratch;
use std::sync::{Mutex, PoisonError};

/// Buffers for the threads: those that no thread uses, and others like them.
pub(super) struct ThreadBuffers<'a> {
    pub(super) scratch: &'a Scratch,
    pub(super) spare: &'a Mutex<Vec<Scratch>>,
}

impl ThreadBuffers<'_> {
    /// Calls `run` with buffers of its own.
    pub(super) fn with(&self, run: impl FnOnce(&mut Scratch)) {
        let free = self.spare.lock().unwrap_or_else(PoisonError::into_inner).pop();
        let mut scratch = free.unwrap_or_else(|| self.scratch.clone());
        run(&mut scratch);
        self.spare.lock().unwrap_or_else(PoisonError::into_inner).push(scratch);
    }
}

//! The counters of instructions, and snapshots of them.
//!
//! guess: an instruction is a step (a PE line, idle ones included). `all_nop` counts idle steps, and `tag[t]` the idle steps
//! with a wait for tag `t`. Nothing is empty and no power is saved, so `empty_nop` stays 0.

use crate::status::Refusal;
use emu2::asm::{ItemKind, Program};
use std::collections::BTreeMap;
use std::ops::ControlFlow;

/// Which snapshot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Capture {
    /// The counters now.
    Now,
    /// Snapshot B to E, by number from 0.
    Snapshot(usize),
}

/// Counters at some time.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Snapshot {
    /// Steps.
    pub instructions: u64,
    /// Idle steps.
    pub all_nop: u64,
    /// Idle steps with a wait, by tag.
    pub waits: BTreeMap<u32, u64>,
}

impl Snapshot {
    /// Counts the steps of `program`, up to `most` in all.
    fn count(&mut self, program: &Program, most: u64) {
        let _ = program.for_each(|item| {
            let room = most.saturating_sub(self.instructions);
            if room == 0 {
                return Err(ControlFlow::Break(()));
            }
            match &item.kind {
                ItemKind::Step(_) => self.instructions += 1,
                ItemKind::Nop { count, wait } => {
                    let count = room.min(*count);
                    self.instructions += count;
                    self.all_nop += count;
                    wait.iter().for_each(|tag| *self.waits.entry(*tag).or_default() += 1);
                }
                _ => {}
            }
            Ok::<(), ControlFlow<()>>(())
        });
    }
}

/// The counters of a device.
#[derive(Debug, Default)]
pub(crate) struct Counters {
    now: Snapshot,
    /// Where snapshots B to E are taken, and those that were.
    armed: [Option<u64>; 4],
    taken: [Snapshot; 4],
    /// Programs since the last exact count, with how many times each ran.
    steps: u64,
}

impl Counters {
    /// Counts a run of a program of `steps` steps.
    pub(crate) fn ran(&mut self, program: &Program, steps: u64) {
        self.steps += steps;
        for (armed, taken) in self.armed.iter_mut().zip(&mut self.taken) {
            if let Some(at) = armed.filter(|at| *at <= self.steps) {
                *taken = self.now.clone();
                taken.count(program, at);
                *armed = None;
            }
        }
        self.now.count(program, u64::MAX);
    }

    /// Steps since the device was opened.
    pub(crate) fn instructions(&self) -> u64 {
        self.steps
    }

    /// Arms a snapshot at a number of steps. One that has passed is taken at once.
    ///
    /// # Errors
    /// `Status::Param` for [`Capture::Now`].
    pub(crate) fn arm(&mut self, capture: Capture, at: u64) -> Result<(), Refusal> {
        let Capture::Snapshot(number) = capture else {
            return Err(Refusal::param("capture A is the counters now: it has no trigger"));
        };
        self.taken[number] = Snapshot::default();
        self.armed[number] = Some(at).filter(|at| *at > self.steps);
        if self.armed[number].is_none() {
            self.taken[number] = self.now.clone();
        }
        Ok(())
    }

    /// A snapshot; zeros if its trigger was not reached.
    pub(crate) fn read(&self, capture: Capture) -> &Snapshot {
        match capture {
            Capture::Now => &self.now,
            Capture::Snapshot(number) => &self.taken[number],
        }
    }
}

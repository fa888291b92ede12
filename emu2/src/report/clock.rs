//! Steps and cycles before every statement of a program.

use super::timeline::{Event, Timeline};
use crate::asm::Program;
use crate::error::Error;
use crate::interrupt::Interrupt;

/// The times of the statements of a program, by their numbers. The last entry is the end of the program.
#[derive(Clone, Debug, Default)]
pub struct Clock {
    steps: Vec<u64>,
    cycles: Vec<u64>,
}

impl Clock {
    /// Computes the times, until `interrupt` is requested.
    ///
    /// # Errors
    /// [`Code::Interrupted`](crate::error::Code::Interrupted).
    pub fn of_until(program: &Program, interrupt: &Interrupt) -> Result<Clock, Error> {
        let mut timeline = Timeline::new(program);
        let mut clock = Clock { steps: vec![0], cycles: vec![0] };
        let mut steps = 0u64;
        program.for_each(|item| {
            if let Event::Steps { count, .. } = timeline.item(item) {
                steps = steps.saturating_add(count);
            }
            clock.steps.push(steps);
            clock.cycles.push(timeline.now());
            interrupt.check()
        })?;
        Ok(clock)
    }

    /// Steps before statement `at`.
    pub fn steps(&self, at: usize) -> u64 {
        self.steps.get(at).copied().unwrap_or(0)
    }

    /// Cycles before statement `at`, stalls included.
    pub fn cycles(&self, at: usize) -> u64 {
        self.cycles.get(at).copied().unwrap_or(0)
    }

    /// The first statement before which at least `cycle` cycles pass. None if the program ends earlier.
    pub fn at_cycle(&self, cycle: u64) -> Option<usize> {
        Some(self.cycles.partition_point(|c| *c < cycle)).filter(|at| *at < self.cycles.len())
    }
}

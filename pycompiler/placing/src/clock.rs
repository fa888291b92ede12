//! The cycle model while a program is written: when MVs end, and how long waits stall.

use crate::rules::Name;
use crate::timeline::Transfer;
use rustc_hash::FxHashMap as Map;
use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// Follows a program in issue order; all times are cycles.
#[derive(Default)]
pub(crate) struct Clock {
    cycles: i64,
    /// The cycles of stalls: the MV waits for a port, its words move, or they are on their way.
    pub(crate) stalls: [i64; 3],
    /// When each MV starts, has released its memories, and ends, by tag.
    held: Map<i64, [i64; 3]>,
    /// When each memory is free for the next MV.
    free: Map<Name, i64>,
    /// The MVs that no line has waited for, by their end.
    by_end: BinaryHeap<Reverse<(i64, i64)>>,
}

impl Clock {
    /// Returns a clock of a machine whose steps take some cycles.
    pub(crate) fn new(cycles: i64) -> Self {
        Self { cycles, ..Self::default() }
    }

    /// The cycle in which the step after `steps` steps begins.
    pub(crate) fn now(&self, steps: i64) -> i64 {
        self.cycles * steps + self.stalls.iter().sum::<i64>()
    }

    /// Notes an MV; returns when it starts and when it ends.
    pub(crate) fn issue(&mut self, tag: i64, (ports, holds, latency): &Transfer, steps: i64) -> (i64, i64) {
        let free = ports.iter().filter_map(|port| self.free.get(port)).max();
        let start = free.copied().unwrap_or(0).max(self.now(steps));
        let (released, end) = (start + holds, start + holds + latency);
        self.free.extend(ports.iter().map(|&port| (port, released)));
        self.held.insert(tag, [start, released, end]);
        self.by_end.push(Reverse((end, tag)));
        (start, end)
    }

    /// Notes a wait: no line is issued until the MV has ended.
    pub(crate) fn wait(&mut self, tag: i64, steps: i64) {
        for (kind, until) in self.held.remove(&tag).into_iter().flatten().enumerate() {
            self.stalls[kind] += (until - self.now(steps)).max(0);
        }
    }

    /// The tag of an MV that has ended and that no line has waited for, if any.
    pub(crate) fn over(&mut self, steps: i64) -> Option<i64> {
        while let Some(&Reverse((end, tag))) = self.by_end.peek() {
            if self.held.get(&tag).is_some_and(|times| times[2] == end) {
                return (end <= self.now(steps)).then_some(tag);
            }
            self.by_end.pop();
        }
        None
    }
}

//! MVs in flight: those that no `wait` has waited for.

use super::extent::{meet, Extent};
use std::collections::VecDeque;

/// At most this many MVs in flight are tracked. The oldest are dropped first, so a program without a `wait` costs no
/// more than another.
const LIMIT: usize = 256;

/// An MV and the words that it writes.
#[derive(Clone, Debug)]
pub(super) struct Flight {
    /// Source and destination memory.
    pub(super) pair: (usize, usize),
    pub(super) tag: Option<u32>,
    /// The line of the MV in the source.
    pub(super) line: u32,
    pub(super) written: Extent,
    /// A read was already reported as too early. One finding per MV is enough.
    pub(super) reported: bool,
}

#[derive(Debug, Default)]
pub(super) struct Flights {
    list: VecDeque<Flight>,
}

impl Flights {
    pub(super) fn start(&mut self, flight: Flight) {
        if self.list.len() == LIMIT {
            self.list.pop_front();
        }
        self.list.push_back(flight);
    }

    /// Takes a `wait` for `tag`. MVs with the tag are done, and so are earlier MVs between the same two memories.
    pub(super) fn wait(&mut self, tag: u32) {
        while let Some(at) = self.list.iter().rposition(|f| f.tag == Some(tag)) {
            let pair = self.list[at].pair;
            let mut index = 0;
            self.list.retain(|f| {
                index += 1;
                index > at + 1 || f.pair != pair
            });
        }
    }

    /// Takes a `wait` whose tag is malformed: all MVs count as done.
    pub(super) fn clear(&mut self) {
        self.list.clear();
    }

    /// The latest MV that writes words that `read` reads from `memory`. `None` if that MV was already reported.
    pub(super) fn writing(&mut self, memory: usize, read: &Extent, size: u64, cycles: u32) -> Option<&Flight> {
        let writes = |f: &&mut Flight| f.pair.1 == memory && meet(&f.written, read, size, cycles).is_some();
        let flight = self.list.iter_mut().rev().find(writes)?;
        (!std::mem::replace(&mut flight.reported, true)).then_some(flight)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::asm::statement::Selected;

    #[test]
    fn waits() {
        let run = |start| Extent::Run { start, length: 64, units: Selected::default() };
        let flight = |pair, tag, start| Flight { pair, tag, line: 1, written: run(start), reported: false };
        let mut flights = Flights::default();
        flights.start(flight((0, 1), None, 0));
        flights.start(flight((2, 1), None, 64));
        flights.start(flight((0, 1), Some(1), 128));
        flights.start(flight((0, 1), None, 192));
        let pending = |flights: &mut Flights| -> Vec<u64> {
            flights.list.iter_mut().for_each(|f| f.reported = false);
            (0..4).map(|i| i * 64).filter(|s| flights.writing(1, &run(*s), 1024, 4).is_some()).collect()
        };
        assert_eq!(pending(&mut flights), [0, 64, 128, 192]);
        assert!(flights.writing(1, &run(0), 1024, 4).is_none(), "reported once");
        flights.wait(2);
        assert_eq!(pending(&mut flights), [0, 64, 128, 192]);
        flights.wait(1);
        assert_eq!(pending(&mut flights), [64, 192]);
        for _ in 0..2 * LIMIT {
            flights.start(flight((0, 1), Some(3), 256));
        }
        assert_eq!(flights.list.len(), LIMIT);
    }
}

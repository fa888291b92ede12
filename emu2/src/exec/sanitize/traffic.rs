//! MVs in flight and completion tags.

use super::finding::{Case, Findings, Key, What, Word};
use super::observed::PLAIN;
use crate::exec::transfer_mv::words::{SideWords, WordRange};
use crate::machine::Slot;
use std::collections::{BTreeMap, VecDeque};

/// At most this many MVs in flight are followed; the oldest are dropped first.
const LIMIT: usize = 256;

#[derive(Clone, Debug)]
struct Flight {
    line: u32,
    tag: Option<u32>,
    read: SideWords,
    written: SideWords,
}

/// The history of a tag.
#[derive(Clone, Copy, Debug)]
struct Signal {
    line: u32,
    waited: bool,
}

/// The transfers that no `wait` has waited for, and the tags that were signalled.
#[derive(Clone, Debug, Default)]
pub(super) struct Traffic {
    flights: VecDeque<Flight>,
    tags: BTreeMap<u32, Signal>,
}

fn memory(slot: Slot) -> (crate::spec::LevelName, usize) {
    (slot.level, slot.index)
}

impl Traffic {
    /// Forgets what the program before has left in flight: the host has waited for it.
    pub(super) fn start(&mut self) {
        self.fence();
    }

    /// A `wait` at `line`. `host`: no MV of the program carries the tag, so it belongs to a transfer of the host.
    pub(super) fn wait(&mut self, line: u32, tag: u32, host: bool, findings: &mut Findings) {
        match self.tags.get_mut(&tag) {
            Some(signal) => signal.waited = true,
            None if host => {}
            None => findings.add(Key { line, what: What::Unsignalled, memory: None, other: tag }, PLAIN),
        }
        while let Some(at) = self.flights.iter().rposition(|f| f.tag == Some(tag)) {
            let pair = |f: &Flight| (memory(f.read.slot), memory(f.written.slot));
            let done = pair(&self.flights[at]);
            let mut index = 0;
            self.flights.retain(|f| {
                index += 1;
                index > at + 1 || pair(f) != done
            });
        }
    }

    /// `line` signals a tag.
    pub(super) fn signal(&mut self, line: u32, tag: u32, findings: &mut Findings) {
        let before = self.tags.insert(tag, Signal { line, waited: false });
        if let Some(Signal { line: earlier, waited: false }) = before {
            let key = Key { line, what: What::SignalledTwice, memory: None, other: tag };
            findings.add(key, Case { earlier: Some(earlier), ..PLAIN });
        }
    }

    /// The host has waited for everything.
    pub(super) fn fence(&mut self) {
        self.flights.clear();
        self.tags.values_mut().for_each(|signal| signal.waited = true);
    }

    /// An MV at `line`.
    pub(super) fn start_mv(
        &mut self,
        line: u32,
        tag: Option<u32>,
        [read, written]: [SideWords; 2],
        findings: &mut Findings,
    ) {
        if let Some(tag) = tag {
            self.signal(line, tag, findings);
        }
        let mut found = |what, flight: &Flight, slot: Slot, (unit, address): (usize, u64)| {
            let key = Key { line, what, memory: Some(memory(slot)), other: flight.line };
            let word = Some(Word::above(slot, unit, address));
            findings.add(key, Case { word, earlier: Some(flight.line), ..PLAIN });
        };
        for flight in &self.flights {
            // MVs between the same two memories keep their order.
            let ordered =
                memory(flight.read.slot) == memory(read.slot) && memory(flight.written.slot) == memory(written.slot);
            if let (Some(at), false) = (flight.written.meets(&read), ordered) {
                found(What::ReadInFlight, flight, read.slot, at);
            }
            if ordered {
                continue;
            }
            if let Some(at) = flight.written.meets(&written).or_else(|| flight.read.meets(&written)) {
                found(What::WrittenInFlight, flight, written.slot, at);
            }
        }
        if self.flights.len() == LIMIT {
            self.flights.pop_front();
        }
        self.flights.push_back(Flight { line, tag, read, written });
    }

    /// Whether any MV is in flight.
    pub(super) fn quiet(&self) -> bool {
        self.flights.is_empty()
    }

    /// A step at `line` that reads or writes words of the L2Bs.
    pub(super) fn step(
        &mut self,
        line: u32,
        slot: Slot,
        ranges: Vec<WordRange>,
        writes: bool,
        findings: &mut Findings,
    ) {
        let words = SideWords { slot, ranges, wraps: None, twice: None, entries: None };
        for flight in &self.flights {
            let at = match writes {
                false => flight.written.meets(&words),
                true => flight.read.meets(&words).or_else(|| flight.written.meets(&words)),
            };
            if let Some((unit, address)) = at {
                let what = if writes { What::WrittenInFlight } else { What::ReadInFlight };
                let key = Key { line, what, memory: Some(memory(slot)), other: flight.line };
                let word = Some(Word::above(slot, unit, address));
                findings.add(key, Case { word, earlier: Some(flight.line), ..PLAIN });
            }
        }
    }
}

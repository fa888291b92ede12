//! Findings of a sanitized run: equal ones are counted, and the first place of each is kept.

use crate::error::Code;
use crate::machine::Slot;
use crate::spec::LevelName;
use std::collections::BTreeMap;

/// A word of one unit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Word {
    /// Level and slot of the memory.
    pub(super) level: LevelName,
    pub(super) slot: usize,
    /// Chip-wide number of the unit; of a PE memory, that of the L1B.
    pub(super) unit: usize,
    pub(super) lane: usize,
    /// Long-word address.
    pub(super) address: u64,
}

impl Word {
    /// A word above the PEs.
    pub(super) fn above(slot: Slot, unit: usize, address: u64) -> Word {
        Word { level: slot.level, slot: slot.index, unit, lane: 0, address }
    }
}

/// How an undefined value first took part.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Via {
    /// As an operand.
    Operand,
    /// As a mask: the bits under it may have been written or not.
    Mask,
    /// In an address: any word may have been read or written.
    Address,
}

/// Where an undefined value comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Origin {
    pub(super) via: Via,
    /// The line that masked or formed an address with it.
    pub(super) used: u32,
    /// The line that read a word that nothing had written.
    pub(super) line: u32,
    /// The word. None: a forwarding path.
    pub(super) word: Option<Word>,
}

impl Origin {
    /// The origin of a word that nothing has written, or of a forwarding path, that `line` reads.
    pub(super) fn new(line: u32, word: Option<Word>) -> Origin {
        Origin { via: Via::Operand, used: line, line, word }
    }

    /// The origin of what depends on the value as a mask or an address at `line`.
    pub(super) fn through(self, via: Via, line: u32) -> Origin {
        match self.via {
            Via::Operand => Origin { via, used: line, ..self },
            _ => self,
        }
    }

    /// The kind of finding when a word of this origin is shown.
    pub(super) fn shown(self) -> What {
        match self.via {
            Via::Operand => What::Shown,
            Via::Mask => What::Mask,
            Via::Address => What::Address,
        }
    }
}

/// What a finding is about, besides its line.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum What {
    /// A `d get`, a read of the host or of a saved file shows an undefined word.
    Shown,
    /// The word depends on undefined bits of a mask register.
    Mask,
    /// The word depends on undefined bits of a register that formed an address.
    Address,
    /// The address leaves the memory and wraps.
    Wrap,
    /// Two cycles or blocks write one word.
    WrittenTwice,
    /// Words that an MV still writes are read.
    ReadInFlight,
    /// Words that an MV still reads or writes are written.
    WrittenInFlight,
    /// A tag that nothing has signalled.
    Unsignalled,
    /// A tag that is signalled again before a `wait`.
    SignalledTwice,
    /// Finite values give an infinity.
    Overflow,
    /// A product of values that are not zero is zero.
    Underflow,
}

impl What {
    /// Its row of the table of diagnostics.
    pub(super) fn code(self) -> Code {
        match self {
            What::Shown => Code::UndefinedShown,
            What::Mask => Code::UndefinedMask,
            What::Address => Code::UndefinedAddress,
            What::Wrap => Code::WrapAtRun,
            What::WrittenTwice => Code::TwoWriters,
            What::ReadInFlight => Code::ReadInFlight,
            What::WrittenInFlight => Code::WrittenInFlight,
            What::Unsignalled => Code::TagNeverSignalled,
            What::SignalledTwice => Code::TagSignalledTwice,
            What::Overflow => Code::ValueOverflow,
            What::Underflow => Code::ValueUnderflow,
        }
    }
}

/// Findings with this key are equal.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Key {
    pub(super) line: u32,
    pub(super) what: What,
    /// Level and slot of the memory; none for tags and values.
    pub(super) memory: Option<(LevelName, usize)>,
    /// The earlier line, or the tag.
    pub(super) other: u32,
}

/// The first case of a finding, and the number of cases.
#[derive(Clone, Copy, Debug)]
pub(super) struct Case {
    pub(super) word: Option<Word>,
    /// The cycle, and a second one for two writers.
    pub(super) cycles: (usize, usize),
    pub(super) origin: Option<Origin>,
    /// The earlier line involved, if there is one.
    pub(super) earlier: Option<u32>,
    pub(super) count: u64,
}

/// All findings so far.
#[derive(Clone, Debug, Default)]
pub(super) struct Findings {
    pub(super) all: BTreeMap<Key, Case>,
}

impl Findings {
    /// Adds a case. The one at the lowest word is shown.
    pub(super) fn add(&mut self, key: Key, case: Case) {
        let held = self.all.entry(key).or_insert(Case { count: 0, ..case });
        let count = held.count + case.count;
        if case.word < held.word {
            *held = case;
        }
        held.count = count;
    }

    /// Moves all findings of `other` here.
    pub(super) fn take(&mut self, other: &mut Findings) {
        for (key, case) in std::mem::take(&mut other.all) {
            self.add(key, case);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_findings_are_counted() {
        let key = |line, what| Key { line, what, memory: Some((LevelName::Pe, 0)), other: 0 };
        let case = |lane| Case {
            word: Some(Word { level: LevelName::Pe, slot: 0, unit: 3, lane, address: 7 }),
            cycles: (0, 0),
            origin: None,
            earlier: None,
            count: 2,
        };
        let (mut one, mut other) = (Findings::default(), Findings::default());
        one.add(key(4, What::Wrap), case(9));
        other.add(key(4, What::Wrap), case(5));
        other.add(key(5, What::Wrap), case(1));
        other.add(key(4, What::Mask), case(1));
        one.take(&mut other);
        assert!(other.all.is_empty());
        let held = one.all[&key(4, What::Wrap)];
        assert_eq!((held.count, held.word.map(|w| w.lane), one.all.len()), (4, Some(5), 3));
    }
}

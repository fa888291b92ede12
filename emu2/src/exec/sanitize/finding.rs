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

/// Where an undefined value comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Origin {
    /// The line that read a word that nothing had written.
    pub(super) line: u32,
    /// The word. None: a forwarding path.
    pub(super) word: Option<Word>,
}

/// What a finding is about, besides its line.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum What {
    /// A `d get`, a read of the host or of a saved file shows an undefined word.
    Shown,
    /// A mask register has undefined bits.
    Mask,
    /// The T register, a base address register or the DAR has undefined bits.
    Address,
    /// The address leaves the memory and wraps.
    Wrap,
    /// Two cycles or blocks write one word.
    WrittenTwice,
    /// A step and an instruction on its line write one word.
    LineTwice,
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
            What::WrittenTwice | What::LineTwice => Code::TwoWriters,
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

//! The words that an MV reads and writes, with the DAR as it is when the MV runs.

use super::{l2b_index, MvTransfers, Side};
use crate::asm::Mv;
use crate::error::Error;
use crate::machine::{Machine, Slot};
use crate::spec::{LevelName, Place};

/// Long words of one unit: the number of the group, or the chip-wide number of the L2B.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(in crate::exec) struct WordRange {
    pub(in crate::exec) unit: usize,
    pub(in crate::exec) start: u64,
    pub(in crate::exec) end: u64,
}

/// The words that an MV reads, or those that it writes.
#[derive(Clone, Debug)]
pub(in crate::exec) struct SideWords {
    pub(in crate::exec) slot: Slot,
    /// Sorted; none overlaps or touches another.
    pub(in crate::exec) ranges: Vec<WordRange>,
    /// The first address from the DAR that is past the end of the memory, and its group.
    pub(in crate::exec) wraps: Option<(usize, u64)>,
    /// The first word that two blocks of the DAR share, and its group.
    pub(in crate::exec) twice: Option<(usize, u64)>,
    /// The DAR, the groups that look it up, and the entries that they use.
    pub(in crate::exec) entries: Option<(Slot, Vec<WordRange>)>,
}

impl SideWords {
    /// The first word that both sides touch: its unit and address.
    pub(in crate::exec) fn meets(&self, other: &SideWords) -> Option<(usize, u64)> {
        if (self.slot.level, self.slot.index) != (other.slot.level, other.slot.index) {
            return None;
        }
        first_common(&self.ranges, &other.ranges)
    }
}

/// The first word in both lists of sorted ranges.
pub(in crate::exec) fn first_common(ours: &[WordRange], theirs: &[WordRange]) -> Option<(usize, u64)> {
    let (mut ours, mut theirs) = (ours.iter().peekable(), theirs.iter().peekable());
    while let (Some(a), Some(b)) = (ours.peek(), theirs.peek()) {
        let start = a.start.max(b.start);
        if a.unit == b.unit && start < a.end.min(b.end) {
            return Some((a.unit, start));
        }
        if (a.unit, a.end) <= (b.unit, b.end) {
            ours.next();
        } else {
            theirs.next();
        }
    }
    None
}

/// Sorts ranges and joins those that overlap or touch. Returns the first word that two of them share.
fn settle(ranges: &mut Vec<WordRange>) -> Option<(usize, u64)> {
    ranges.sort_unstable();
    let mut twice = None;
    ranges.dedup_by(|next, kept| {
        let joins = next.unit == kept.unit && next.start <= kept.end;
        if joins {
            if next.start < kept.end && twice.is_none() {
                twice = Some((next.unit, next.start));
            }
            kept.end = kept.end.max(next.end);
        }
        joins
    });
    twice
}

impl Side {
    fn words(&self) -> SideWords {
        SideWords { slot: self.slot, ranges: Vec::new(), wraps: None, twice: None, entries: None }
    }

    /// Adds the `length` long words at `offset`.
    fn touch(&self, machine: &Machine, place: &Place, offset: u64, length: u64, words: &mut SideWords) {
        let unit = if self.slot.level == LevelName::Group { place.group as usize } else { l2b_index(machine, place) };
        let size = self.slot.words;
        let mut add = |address: u64, length: u64| {
            let start = address % size;
            let end = start + length;
            words.ranges.push(WordRange { unit, start, end: end.min(size) });
            if end > size {
                words.ranges.push(WordRange { unit, start: 0, end: end - size });
            }
        };
        match &self.indirect {
            None => add(self.address + offset, length),
            Some(lookup) => {
                let mut wraps = None;
                lookup.each(machine, unit, offset, length as usize, |address, from, to| {
                    if address + (to - from) as u64 > size {
                        wraps.get_or_insert((unit, address));
                    }
                    add(address, (to - from) as u64);
                });
                words.wraps = words.wraps.or(wraps);
                let (dar, first, last) = lookup.entries(offset, length);
                let entries = &mut words.entries.get_or_insert((dar, Vec::new())).1;
                entries.push(WordRange { unit, start: first, end: last + 1 });
            }
        }
    }
}

impl MvTransfers {
    /// The words that `mv` reads and those that it writes.
    ///
    /// # Errors
    /// [`Code::NoKernel`](crate::error::Code::NoKernel) for an MV that the engine cannot run.
    pub(in crate::exec) fn words(&mut self, machine: &Machine, mv: &Mv) -> Result<[SideWords; 2], Error> {
        let plan = self.plan(machine, mv)?;
        let spec = machine.spec();
        let form = &spec.forms[mv.form.transfer][mv.form.form];
        let total = mv.size / plan.unit;
        let (blocks, times) = if plan.dense { (total.min(1), total) } else { (total, 1) };
        let source = Side::new(machine, plan.source, &form.source, mv.source, mv.source_dar)?;
        let destination = Side::new(machine, plan.destination, &form.destination, mv.destination, mv.destination_dar)?;
        let (mut read, mut written) = (source.words(), destination.words());
        for block in 0..blocks {
            for run in &plan.runs {
                let length = run.length * times;
                for place in run.from.iter().flatten() {
                    source.touch(machine, place, block * plan.strides.0 + place.addr, length, &mut read);
                }
                destination.touch(machine, &run.to, block * plan.strides.1 + run.to.addr, length, &mut written);
            }
        }
        settle(&mut read.ranges);
        let twice = settle(&mut written.ranges);
        // Index maps write no word twice. The DAR may.
        written.twice = twice.filter(|_| written.entries.is_some());
        for (_, entries) in [&mut read, &mut written].into_iter().filter_map(|side| side.entries.as_mut()) {
            settle(entries);
        }
        Ok([read, written])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ranges(all: &[(usize, u64, u64)]) -> Vec<WordRange> {
        all.iter().map(|(unit, start, end)| WordRange { unit: *unit, start: *start, end: *end }).collect()
    }

    #[test]
    fn ranges_join_and_meet() {
        let mut all = ranges(&[(1, 4, 8), (0, 16, 32), (0, 0, 16), (1, 6, 7), (1, 9, 10)]);
        assert_eq!(settle(&mut all), Some((1, 6)));
        assert_eq!(all, ranges(&[(0, 0, 32), (1, 4, 8), (1, 9, 10)]));
        let table: [(&[(usize, u64, u64)], Option<(usize, u64)>); 5] = [
            (&[(0, 31, 40)], Some((0, 31))),
            (&[(0, 32, 40), (1, 8, 9)], None),
            (&[(0, 40, 50), (1, 0, 5)], Some((1, 4))),
            (&[(2, 0, 99)], None),
            (&[], None),
        ];
        for (other, met) in table {
            assert_eq!(first_common(&all, &ranges(other)), met, "{other:?}");
            assert_eq!(first_common(&ranges(other), &all), met, "{other:?}");
        }
    }
}

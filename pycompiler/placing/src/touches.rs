//! When the words of memories above the PEs were last touched, and when ports are free.

use crate::rules::{Name, Rules};
use rustc_hash::FxHashMap as Map;

/// Past the end of any memory.
pub(crate) const NO_END: i64 = 1 << 32;

/// A unit of a memory: its group and its L2B, in one number; None stands for all units.
pub(crate) type Unit = Option<i64>;

/// A group and an L2B of it; None stands for all.
pub type Site = (Option<i64>, Option<i64>);

/// Long words of a memory that an operand touches.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Access {
    /// The memory.
    pub memory: Name,
    /// Where the words lie, if the memory is above the PEs.
    pub unit: Site,
    /// From the first word to before the last; None if only a register knows which.
    pub range: Option<(i64, i64)>,
    /// For an operand in a PE, the word of each cycle.
    pub cycles: Vec<i64>,
    /// The issue slot of the instruction.
    pub slot: Name,
    /// The memory above the PEs from which the written data comes.
    pub source: Option<Name>,
    /// Whether the words belong to a value.
    pub named: bool,
}

impl Access {
    /// Whether both touch a common long word.
    pub fn touches(&self, other: &Self) -> bool {
        let meet = |one: Option<i64>, other: Option<i64>| one.is_none() || other.is_none() || one == other;
        let apart = |(low, high): (i64, i64), (first, last): (i64, i64)| low >= last || first >= high;
        self.memory == other.memory
            && !self.range.zip(other.range).is_some_and(|(own, theirs)| apart(own, theirs))
            && meet(self.unit.0, other.unit.0)
            && meet(self.unit.1, other.unit.1)
    }

    pub(crate) fn units(&self, rules: &Rules) -> Vec<Unit> {
        let (groups, l2bs) = rules.l2bs;
        let each = |one: Option<i64>, all: i64| one.map_or(0..all, |one| one..one + 1);
        each(self.unit.0, groups).flat_map(|g| each(self.unit.1, l2bs).map(move |l| Some(g * l2bs + l))).collect()
    }
}

/// The last touches of one memory of one unit; before, -1.
struct Memory {
    blocks: Map<i64, i64>,
    /// The last touch of any block, and of all blocks.
    any: i64,
    all: i64,
}

/// The last time at which each block of some long words was touched.
pub(crate) struct TouchTimes {
    granule: i64,
    memories: Map<(Name, Unit), Memory>,
}

impl TouchTimes {
    pub(crate) fn new(granule: i64) -> Self {
        Self { granule, memories: Map::default() }
    }

    fn blocks(&self, (low, high): (i64, i64)) -> std::ops::RangeInclusive<i64> {
        low.div_euclid(self.granule)..=(high - 1).div_euclid(self.granule)
    }

    /// The last time at which a block of `words` was touched.
    pub(crate) fn last(&self, words: &Access, units: &[Unit]) -> i64 {
        let mut most = -1;
        for &unit in units {
            let Some(memory) = self.memories.get(&(words.memory, unit)) else { continue };
            let Some(range) = words.range else {
                most = most.max(memory.any);
                continue;
            };
            most = most.max(memory.all);
            if memory.any > most {
                for block in self.blocks(range) {
                    most = most.max(memory.blocks.get(&block).copied().unwrap_or(-1));
                }
            }
        }
        most
    }

    /// Notes that `words` are touched at a time.
    pub(crate) fn note(&mut self, words: &Access, units: &[Unit], at: i64) {
        for &unit in units {
            let blocks = words.range.map(|range| self.blocks(range));
            let new = || Memory { blocks: Map::default(), any: -1, all: -1 };
            let memory = self.memories.entry((words.memory, unit)).or_insert_with(new);
            memory.any = memory.any.max(at);
            let Some(blocks) = blocks else {
                memory.all = memory.all.max(at);
                continue;
            };
            for block in blocks {
                let last = memory.blocks.entry(block).or_insert(-1);
                *last = at.max(*last);
            }
        }
    }
}

/// The cycles in which a memory serves MVs, one at a time.
#[derive(Default)]
pub(crate) struct Port {
    starts: Vec<i64>,
    ends: Vec<i64>,
}

impl Port {
    /// The first cycle from `at` on at which the port is free for some cycles.
    pub(crate) fn free(&self, mut at: i64, cycles: i64) -> i64 {
        let first = self.ends.partition_point(|&end| end <= at);
        for (&start, &end) in self.starts.iter().zip(&self.ends).skip(first) {
            if start >= at + cycles {
                break;
            }
            at = at.max(end);
        }
        at
    }

    /// Takes the port for some cycles from `at` on.
    pub(crate) fn hold(&mut self, at: i64, cycles: i64) {
        let number = self.starts.partition_point(|&start| start <= at);
        self.starts.insert(number, at);
        self.ends.insert(number, at + cycles);
    }
}

//! Gives what nodes keep in registers and in transfer memories words that are free.
//!
//! Layers use register files, mask registers, L1BM, L2BM and the PDMs from the first word on. In a merged program, a line would
//! wait until other lines have read what its words held before. What a node puts there is gone when the node ends, so it may use
//! any words. Each live range (`live_ranges.rs`) gets the nearest words that are free when its first line can start.

use crate::code::Shift;
use crate::live_ranges::{ranges, whole, LiveRange, Ranges};
use crate::machine::{lcm, Machine};
use crate::ready::Ready;
use crate::rules::Name;
use crate::timeline::{Needs, Timeline};
use crate::units::Kind;
use rustc_hash::FxHashSet as Set;
use std::ops::Range;
use std::sync::Arc;

/// At most how many places are tried for a live range.
const PLACES: i64 = 64;
/// A node that needs more than this part of a transfer memory at once has no room there to move live ranges.
const FULL: i64 = 2;

/// What is known of a memory.
struct Memory {
    /// The first word that a live range may have, and the one behind the last.
    first: i64,
    end: i64,
    /// Words are compared in blocks of this many.
    granule: i64,
    /// Addresses move by multiples of this.
    unit: i64,
    /// The last step that touches each block; before, -1.
    last: Vec<i64>,
    /// How many live ranges that are in use hold each block.
    held: Vec<i64>,
}

impl Memory {
    fn new(first: i64, end: i64, granule: i64, unit: i64) -> Self {
        let count = usize::try_from(-(-end).div_euclid(granule)).unwrap_or(0);
        Self { first, end, granule, unit, last: vec![-1; count], held: vec![0; count] }
    }

    fn blocks(&self, (low, high): (i64, i64)) -> Range<usize> {
        let at = |block: i64| usize::try_from(block).unwrap_or(0).min(self.last.len());
        at(low.div_euclid(self.granule))..at(-(-high).div_euclid(self.granule))
    }

    fn hold(&mut self, live: &LiveRange, more: i64, count: i64) {
        for block in self.blocks((live.range.0 + more, live.range.1 + more)) {
            self.held[block] += count;
        }
    }

    /// Returns how far the words of a live range move, which stay below `end`: the nearest place that is free at `start`.
    ///
    /// If there is none, the place that is free first. None if live ranges in use hold all places.
    fn best(&self, live: &LiveRange, end: i64, start: i64) -> Option<i64> {
        let (low, high) = live.range;
        let unit = lcm(self.unit, live.unit);
        let each = -(-end).div_euclid(PLACES * unit) * unit;
        let below = (low - self.first).div_euclid(each).max(0);
        let mut places: Vec<i64> = (-below..).map(|at| at * each).take_while(|more| high + more <= end).collect();
        sorting::sort_by_key(&mut places, |more| more.abs());
        let mut best: Option<(i64, i64)> = None;
        for more in places {
            let blocks = self.blocks((low + more, high + more));
            if self.held[blocks].iter().any(|&count| count != 0) {
                continue;
            }
            let last =
                |(low, high): (i64, i64)| self.last[self.blocks((low + more, high + more))].iter().copied().max();
            let at = live.parts.iter().map(|(words, line)| last(*words).unwrap_or(-1) - line).max().unwrap_or(-1);
            if best.is_none_or(|(least, _)| at < least) {
                best = Some((at, more));
                if at <= start {
                    break;
                }
            }
        }
        best.map(|(_, more)| more)
    }
}

/// A live range of a node, and what is known of it while its lines are placed.
struct Own {
    memory: Name,
    live: LiveRange,
    /// Where its words must end, if there is room.
    end: i64,
    /// Whether it is all that the node does in the memory.
    whole: bool,
    /// How far it moved, and how many of its instructions are left, once it has a place.
    placed: Option<(i64, usize)>,
}

/// The live ranges of one node, and those of each instruction of each of its lines.
pub(crate) struct Usage {
    ranges: Vec<Own>,
    of: Vec<Vec<Vec<usize>>>,
}

/// A node that had no place for all its live ranges of a memory at once: they move as a whole.
pub(crate) type Crowded = (usize, Name);

/// The choice of words. Words of L2BM stay below `limit` if they can.
pub(crate) struct Allocator<'a> {
    machine: &'a Machine,
    limit: i64,
    memories: Vec<(Name, Memory)>,
}

impl<'a> Allocator<'a> {
    /// With `masks_stay`, mask registers keep their words: nodes read what others have left there.
    pub(crate) fn new(machine: &'a Machine, limit: i64, masks_stay: bool) -> Self {
        let (cycles, row) = (machine.rules.cycles, lcm(machine.rules.unit, machine.row));
        let passed = machine.passed().map(|name| {
            let granule = if name == machine.blocks { machine.rules.unit } else { row };
            (name, Memory::new(0, machine.words(name), granule, granule))
        });
        let files =
            machine.files.iter().map(|&file| (file, Memory::new(0, machine.words(file), 1, machine.wide * cycles)));
        // The first mask register is none.
        let masks = (machine.masks, Memory::new(cycles, machine.registers * cycles, 1, cycles));
        let memories = passed.into_iter().chain(files).chain((!masks_stay).then_some(masks)).collect();
        Self { machine, limit, memories }
    }

    fn memory(&mut self, name: Name) -> Option<&mut Memory> {
        self.memories.iter_mut().find(|(own, _)| *own == name).map(|(_, memory)| memory)
    }

    /// Returns the live ranges of a node of a kind.
    pub(crate) fn usage(&self, node: usize, lines: &[Arc<Ready>], kind: Kind, crowded: &Set<Crowded>) -> Usage {
        let needs: Vec<&Needs> = lines.iter().map(|one| &one.needs).collect();
        let mut all = Usage { ranges: Vec::new(), of: lines.iter().map(|one| vec![Vec::new(); one.parts()]).collect() };
        for (name, memory) in &self.memories {
            // Downloads have registers of their own, and choose their words of L2BM for all MVs of a chunk.
            if kind == Kind::Download && *name != self.machine.blocks {
                continue;
            }
            let (rules, transfers) = (&self.machine.rules, self.machine.passed().contains(name));
            let mut new =
                if crowded.contains(&(node, *name)) { Ranges::default() } else { ranges(rules, *name, &needs) };
            // Most nodes touch their registers in every line, so each live range would wait for those of others.
            let files = self.machine.files.contains(name);
            let together = new.0.is_empty() || files || transfers && most(&new) * FULL > memory.end;
            if together {
                new = whole(rules, *name, &needs);
            }
            let part = left(self.machine, kind, *name);
            let end = if part == 0 { memory.end } else { memory.end - memory.end / part };
            let (first, mut number) = (all.ranges.len(), 0);
            let ranges = new.0.into_iter();
            all.ranges.extend(ranges.map(|live| Own { memory: *name, live, end, whole: together, placed: None }));
            for part in all.of.iter_mut().flatten() {
                part.extend(new.1.get(&number).map(|live| first + live));
                number += 1;
            }
        }
        all
    }

    /// Returns line `number` of a node with words that are free when it can start.
    ///
    /// The error is a memory in which live ranges of the node hold so many words that there is no place for another one.
    pub(crate) fn of(
        &mut self,
        ready: &Arc<Ready>,
        number: usize,
        usage: &mut Usage,
        steps: &Timeline,
    ) -> Result<Arc<Ready>, Name> {
        let (limit, above) = (self.limit, self.machine.above);
        let mut shifts = vec![Shift::new(); ready.parts()];
        let mut over: Vec<usize> = Vec::new();
        for (parts, shift) in usage.of[number].iter().zip(&mut shifts) {
            for &live in parts {
                let own = &mut usage.ranges[live];
                let Some(memory) = self.memory(own.memory) else { continue };
                if own.placed.is_none() {
                    let start = steps.soonest(&ready.needs);
                    let low = own.memory == above && own.live.range.1 <= limit;
                    let ends = [own.end, memory.end].map(|end| if low { end.min(limit) } else { end });
                    let found = ends.into_iter().find_map(|end| memory.best(&own.live, end, start));
                    let more = found.or(own.whole.then_some(0)).ok_or(own.memory)?;
                    memory.hold(&own.live, more, 1);
                    own.placed = Some((more, own.live.count));
                }
                if let Some((more, left)) = &mut own.placed {
                    shift.extend((*more != 0).then_some((own.memory, *more)));
                    *left -= 1;
                    over.extend((*left == 0).then_some(live));
                }
            }
        }
        for live in over {
            let own = &usage.ranges[live];
            let more = own.placed.map_or(0, |(more, _)| more);
            if let Some(memory) = self.memory(own.memory) {
                memory.hold(&own.live, more, -1);
            }
        }
        if shifts.iter().all(Vec::is_empty) {
            return Ok(Arc::clone(ready));
        }
        Ok(Arc::new(ready.moved(self.machine, &shifts)))
    }

    /// Notes the step in which a line stands or in which an MV ends at `end`.
    pub(crate) fn note(&mut self, ready: &Ready, step: i64, end: i64) {
        let at = step.max(-(-end).div_euclid(self.machine.rules.cycles) - 1);
        for access in ready.touched() {
            let Some(memory) = self.memory(access.memory) else { continue };
            for block in memory.blocks(access.range.unwrap_or((0, memory.end))) {
                memory.last[block] = memory.last[block].max(at);
            }
        }
    }
}

/// The part of a memory that a node leaves to others; 0 is nothing. Downloads may run ahead in theirs. A product would fill all
/// of a memory with what it needs later, and transfers beside it would wait.
fn left(machine: &Machine, kind: Kind, memory: Name) -> i64 {
    match kind {
        Kind::Transfer if memory == machine.blocks => machine.ring,
        Kind::Transfer if memory == machine.above => 4,
        Kind::Other if [machine.blocks, machine.above].contains(&memory) => 2,
        _ => 0,
    }
}

/// The most long words that the live ranges of a node hold at the same time.
fn most((all, of_number): &Ranges) -> i64 {
    let mut order: Vec<_> = of_number.iter().collect();
    sorting::sort(&mut order);
    let mut left: Vec<usize> = all.iter().map(|live| live.count).collect();
    let (mut held, mut most) = (0, 0);
    for (_, &live) in order {
        let words = all[live].range.1 - all[live].range.0;
        if left[live] == all[live].count {
            held += words;
            most = most.max(held);
        }
        left[live] -= 1;
        if left[live] == 0 {
            held -= words;
        }
    }
    most
}

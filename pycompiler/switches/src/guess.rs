//! Guesses of the steps of a switch, from the levels that it must settle and the long words that it moves.

use indexmap::IndexSet;
use rustc_hash::FxHashMap;

use crate::digits::{axis_segments, copied_digits, is_subset, parts, primes, Part, PrimeDigit, Segment};
use crate::layout::{up, Layout, Level, Machine};
use crate::masks::MASK;

/// Guesses the steps of switches of a tensor without a search for their passes.
///
/// Each layout meets many others, and many layouts have the same digits on an axis: two lists of digits are compared once.
pub struct Guesses {
    shape: Vec<i64>,
    machine: Machine,
    layouts: IndexSet<Layout>,
    placed: Vec<Placed>,
    axes: Vec<Axis>,
    /// The digits of each level of [`Level::SETTLED`] over which there are copies.
    copies: IndexSet<[Vec<PrimeDigit>; 5]>,
}

/// The numbers of what a layout has.
struct Placed {
    axes: Vec<usize>,
    copies: usize,
    words: i64,
}

/// The lists of digits that an axis has in all layouts.
struct Axis {
    size: i64,
    digits: IndexSet<Vec<Part>>,
    /// What happens between two lists.
    changes: FxHashMap<(usize, usize), AxisChange>,
}

impl Axis {
    fn change(&mut self, before: usize, after: usize) -> &AxisChange {
        let change = || AxisChange::new(&self.digits[before], &self.digits[after], self.size);
        self.changes.entry((before, after)).or_insert_with(change)
    }
}

impl Guesses {
    /// Guesses for a tensor of `shape`.
    pub fn new(shape: Vec<i64>, machine: Machine) -> Guesses {
        let axis = |&size: &i64| Axis { size, digits: IndexSet::new(), changes: FxHashMap::default() };
        let axes = shape.iter().map(axis).collect();
        Guesses { shape, machine, layouts: IndexSet::new(), placed: Vec::new(), axes, copies: IndexSet::new() }
    }

    /// Returns the number of a layout; None if it is not [valid](Layout::is_valid) for the shape.
    pub fn number(&mut self, layout: Layout) -> Option<usize> {
        if !layout.is_valid(&self.shape) {
            return None;
        }
        let (number, new) = self.layouts.insert_full(layout);
        if new {
            let layout = &self.layouts[number];
            let numbered = self.axes.iter_mut().zip(&layout.axes);
            self.placed.push(Placed {
                axes: numbered.map(|(axis, own)| axis.digits.insert_full(parts(own, axis.size)).0).collect(),
                copies: self
                    .copies
                    .insert_full(Level::SETTLED.map(|level| copied_digits(layout, level, &self.machine)))
                    .0,
                words: layout.address_words(),
            });
        }
        Some(number)
    }

    /// Guesses the steps of a switch between two layouts, by their numbers; None if one is the number of no layout.
    pub fn steps(&mut self, source: usize, result: usize) -> Option<i64> {
        let (ours, theirs) = (self.placed.get(source)?, self.placed.get(result)?);
        if source == result {
            return Some(0);
        }
        let mut changes: Vec<&AxisChange> = Vec::with_capacity(self.axes.len());
        let (have, want) = (&self.copies[ours.copies], &self.copies[theirs.copies]);
        for (axis, (&before, &after)) in self.axes.iter_mut().zip(ours.axes.iter().zip(&theirs.axes)) {
            if before != after {
                changes.push(axis.change(before, after));
            }
        }
        Some(guess(&changes, have, want, (ours.words, theirs.words), &self.machine))
    }
}

/// What happens to digits that change their places: a bit of a mask stands for a level.
#[derive(Default)]
struct AxisChange {
    moved: bool,
    /// Levels that get or lose digits, and those that lose some.
    open: u8,
    lost: u8,
    /// The digits that L1Bs and L2Bs get.
    gained: [Vec<PrimeDigit>; 2],
    /// For each level, those that give digits to it.
    from: [u8; 7],
}

impl AxisChange {
    fn new(before: &[Part], after: &[Part], size: i64) -> AxisChange {
        let mut segments: Vec<Segment> = Vec::new();
        axis_segments(0, before, after, size, &mut segments);
        segments.retain(|segment| segment.source != segment.result);
        let mut made = AxisChange { moved: !segments.is_empty(), ..AxisChange::default() };
        for segment in &segments {
            for (one, other) in segment.source.iter().flat_map(|a| segment.result.iter().map(move |b| (a, b))) {
                if one.level != other.level && one.level != Level::Addr && other.level != Level::Addr {
                    made.from[other.level as usize] |= bit(one.level);
                }
            }
            for part in segment.source.iter().filter(|p| !segment.result.contains(p)) {
                made.open |= bit(part.level);
                made.lost |= bit(part.level);
            }
            for part in segment.result.iter().filter(|p| !segment.source.contains(p)) {
                made.open |= bit(part.level);
                if let Some(gained) = copyable(part.level) {
                    let digits = primes(part.size);
                    made.gained[gained]
                        .extend(digits.iter().map(|d| PrimeDigit { stride: part.stride * d.stride, size: d.size }));
                }
            }
        }
        made
    }
}

fn bit(level: Level) -> u8 {
    1 << level as u8
}

/// The number of a level whose units may keep parts of which they hold copies.
fn copyable(level: Level) -> Option<usize> {
    [Level::L1b, Level::L2b].iter().position(|&one| one == level)
}

/// Guesses the steps of a switch between two layouts that differ. `changes` are those of its axes, `have` and `want` the digits of
/// each settled level over which there are copies before and after, `words` the long words of a PE before and after.
fn guess(
    changes: &[&AxisChange],
    have: &[Vec<PrimeDigit>; 5],
    want: &[Vec<PrimeDigit>; 5],
    words: (i64, i64),
    machine: &Machine,
) -> i64 {
    let any = |of: &dyn Fn(&AxisChange) -> u8| changes.iter().fold(0, |all, own| all | of(own));
    let (opened, lost) = (any(&|own| own.open), any(&|own| own.lost));
    let mut open: Vec<(Level, i64)> = Vec::new();
    for level in Level::SETTLED {
        let number = level as usize;
        let spreads = is_subset(&want[number], &have[number]);
        if spreads && opened & bit(level) == 0 {
            continue;
        }
        // Units that hold copies keep their parts: nothing leaves its unit.
        let at = copyable(level).filter(|_| spreads && lost & bit(level) == 0);
        let gained = at.map(|at| changes.iter().flat_map(move |own| &own.gained[at]));
        let stays = gained.filter(|gained| gained.clone().all(|digit| have[number].contains(digit)));
        open.push((level, stays.map_or(0, |gained| gained.map(|digit| digit.size).product())));
    }
    let (fewer, more) = (words.0.min(words.1), words.0.max(words.1));
    if open.is_empty() {
        return if changes.iter().any(|own| own.moved) { 2 * machine.cycles } else { 0 };
    }
    let least = |&(level, sets): &(Level, i64)| match sets {
        0 => least(level, fewer, more, machine),
        sets => 2 * machine.cycles + sets * (MASK + up(fewer, machine.cycles)),
    };
    let steps = open.iter().map(least).sum::<i64>();
    if open.len() == 1 {
        return steps;
    }
    // Whether a level gives digits to another level that gives digits to it, by way of others if need be.
    let mut from: [u8; 7] = std::array::from_fn(|level| any(&|own| own.from[level]));
    for other in 0..7 {
        let given = from[other];
        from.iter_mut().filter(|own| **own >> other & 1 == 1).for_each(|own| *own |= given);
    }
    let crosses = (0..7).any(|level| from[level] >> level & 1 == 1);
    // Passes in the middle move more data. In most networks that costs half as much again. Digits that go round a
    // ring of levels need a second pass over one of them, and more data in between.
    if crosses {
        return 5 * steps / 2;
    }
    3 * steps / 2
}

/// Estimates the steps of a pass over `level`. `fewer` and `more` are the long words per PE of the smaller and of the
/// larger layout.
fn least(level: Level, fewer: i64, more: i64, machine: &Machine) -> i64 {
    let steps = 2 * machine.cycles;
    match level {
        Level::L2b => {
            let moved = fewer * machine.row * machine.count(Level::L1b) * machine.count(Level::L2b);
            steps + 2 * machine.mv_latency + crossing(moved, machine)
        }
        Level::L1b => steps + 2 * fewer * machine.count(Level::L1b),
        _ => steps + up(fewer, machine.cycles) + up(more, machine.cycles),
    }
}

/// Steps in which `words` long words go to the PDMs and DRAMs of all groups and from there to L2BMs.
fn crossing(words: i64, machine: &Machine) -> i64 {
    let (by_pdm, by_dram) = machine.crossing_parts();
    let each = if machine.has_drams() { by_pdm * by_dram / (by_pdm + by_dram) } else { by_pdm };
    each * words / (machine.parts() * machine.groups() * machine.cycles)
}

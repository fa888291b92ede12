//! Live ranges: which accesses of a node to a memory need common words, and which need not.
//!
//! A node sends block after block through the same words. Nothing flows from one block to the next, so each of them could lie
//! elsewhere. A *live range* is a set of such accesses: all writes and reads between which data flows.

use crate::machine::gcd;
use crate::rules::{Name, Rules};
use crate::timeline::{Filler, Needs};
use crate::touches::Access;
use rustc_hash::{FxHashMap as Map, FxHashSet as Set};
use std::collections::BTreeSet;

/// Where accesses have no coarser unit, a node would take too long.
const MOST_CELLS: i64 = 1 << 14;

/// Instructions that need common words of a memory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LiveRange {
    /// The first word, and the one behind the last.
    pub range: (i64, i64),
    /// Their addresses may grow by multiples of this.
    pub unit: i64,
    /// How many instructions there are.
    pub count: usize,
    /// All ranges of words that they touch, each with its first line, counted from that of the first one.
    pub parts: Vec<((i64, i64), i64)>,
}

/// A part of a memory: a unit, or what a name behind the mnemonic of a transfer selects.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Part {
    Unit(i64),
    Named(Name),
}

/// What a write fills; None stands for all units.
type Parts = Option<BTreeSet<Part>>;

/// Whether `other` covers all that `one` fills.
fn within(one: &Parts, other: &Parts) -> bool {
    match (one, other) {
        (_, None) => true,
        (None, Some(_)) => false,
        (Some(one), Some(other)) => one.is_subset(other),
    }
}

fn joined(one: &Parts, other: &Parts) -> Parts {
    Some(one.as_ref()?.union(other.as_ref()?).copied().collect())
}

/// What the lines so far have done with some words.
struct Cell {
    /// The instruction that last began to fill them, and what has been filled since.
    live: usize,
    parts: Parts,
    /// The same of the live range that was there when it began.
    before: Option<(usize, Parts)>,
    read: bool,
}

/// The live ranges of a node in one memory, and the live range of each instruction that has one.
///
/// Instructions are counted through all lines; an MV is one.
pub type Ranges = (Vec<LiveRange>, Map<usize, usize>);

/// Returns the live ranges of a node in one memory. There are none if the node reads what an earlier one left, or words that only a
/// value or a register knows.
pub fn ranges(rules: &Rules, memory: Name, lines: &[&Needs]) -> Ranges {
    instructions(rules, memory, lines).and_then(|known| find(&known)).unwrap_or_default()
}

/// Returns one live range of all that a node does in a memory; none if some words are not known.
pub fn whole(rules: &Rules, memory: Name, lines: &[&Needs]) -> Ranges {
    let known = instructions(rules, memory, lines).unwrap_or_default();
    grouped(&known, |_| 0)
}

/// An access of a line with known words.
struct Known {
    line: i64,
    range: (i64, i64),
    /// Whether it begins at a multiple of its words, as those of lines to memories above the PEs do.
    aligned: bool,
    /// What it fills if it writes.
    fills: Option<Parts>,
}

/// The accesses of each instruction to a memory, reads first; None if some are not known.
fn instructions(rules: &Rules, memory: Name, lines: &[&Needs]) -> Option<Vec<(usize, Known)>> {
    let mut out = Vec::new();
    let all = (0..).zip(lines).flat_map(|(line, one)| one.instructions().map(move |own| (line, own)));
    for (number, (line, ([reads, writes], filler))) in all.enumerate() {
        let filled = |access: &Access| match filler {
            Filler::All => None,
            Filler::Part(part) => Some([Part::Named(part)].into()),
            Filler::Units if access.unit == (None, None) => None,
            Filler::Units => Some(access.units(rules).into_iter().flatten().map(Part::Unit).collect()),
        };
        let each = reads.iter().map(|one| (one, false)).chain(writes.iter().map(|one| (one, true)));
        for (access, written) in each.filter(|(access, _)| access.memory == memory) {
            let range = access.range.filter(|_| !access.named)?;
            let aligned = access.cycles.is_empty() && !matches!(filler, Filler::Units);
            out.push((number, Known { line, range, aligned, fills: written.then(|| filled(access)) }));
        }
    }
    Some(out)
}

fn find(known: &[(usize, Known)]) -> Option<Ranges> {
    let words = known.iter().fold(0, |words, (_, one)| gcd(gcd(words, one.range.0), one.range.1));
    let last = known.iter().map(|(_, one)| one.range.1).max()?;
    if words == 0 || last > words * MOST_CELLS {
        return None;
    }
    let mut sets: Map<usize, usize> = Map::default();
    let mut cells: Map<i64, Cell> = Map::default();
    for (number, Known { range, fills, .. }) in known {
        for place in range.0 / words..range.1 / words {
            let cell = match (fills, cells.remove(&place)) {
                (None, cell) => read(cell?, &mut sets),
                (Some(parts), None) => Cell { live: *number, parts: parts.clone(), before: None, read: false },
                (Some(parts), Some(cell)) if cell.read => {
                    let before = Some((cell.live, cell.parts));
                    Cell { live: *number, parts: parts.clone(), before, read: false }
                }
                (Some(parts), Some(cell)) => Cell { parts: joined(&cell.parts, parts), ..cell },
            };
            join(&mut sets, *number, cell.live);
            cells.insert(place, cell);
        }
    }
    Some(grouped(known, |number| root(&mut sets, number)))
}

/// Returns a live range for all instructions of the same root.
fn grouped(known: &[(usize, Known)], mut root: impl FnMut(usize) -> usize) -> Ranges {
    let (mut made, mut of_number) = (Vec::new(), Map::default());
    let mut of_root: Map<usize, usize> = Map::default();
    let mut seen: Set<(usize, (i64, i64))> = Set::default();
    let mut first: Vec<i64> = Vec::new();
    for (number, Known { line, range: (low, high), aligned, .. }) in known {
        let live = *of_root.entry(root(*number)).or_insert(made.len());
        if live == made.len() {
            made.push(LiveRange { range: (*low, *high), unit: 1, count: 0, parts: Vec::new() });
            first.push(*line);
        }
        let LiveRange { range, unit, count, parts } = &mut made[live];
        if seen.insert((live, (*low, *high))) {
            parts.push(((*low, *high), line - first[live]));
        }
        *range = (range.0.min(*low), range.1.max(*high));
        if *aligned {
            *unit *= (high - low) / gcd(*unit, high - low);
        }
        *count += usize::from(of_number.insert(*number, live).is_none());
    }
    (made, of_number)
}

/// Notes a read. What the last writes did not fill is still there from before.
fn read(mut cell: Cell, sets: &mut Map<usize, usize>) -> Cell {
    if let Some((live, parts)) = cell.before.as_ref().filter(|(_, parts)| !cell.read && !within(parts, &cell.parts)) {
        join(sets, *live, cell.live);
        cell.parts = joined(&cell.parts, parts);
    }
    cell.read = true;
    cell
}

fn root(sets: &mut Map<usize, usize>, mut one: usize) -> usize {
    while let Some(&next) = sets.get(&one) {
        if let Some(&after) = sets.get(&next) {
            sets.insert(one, after);
        }
        one = next;
    }
    one
}

fn join(sets: &mut Map<usize, usize>, one: usize, other: usize) {
    let (one, other) = (root(sets, one), root(sets, other));
    if one != other {
        sets.insert(one.max(other), one.min(other));
    }
}

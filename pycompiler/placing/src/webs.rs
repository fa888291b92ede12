//! Webs: which accesses of a node to a memory need common words, and which need not.
//!
//! A node sends block after block through the same words. Nothing flows from one block to the next, so each of them could lie
//! elsewhere. Compilers that give registers to variables call such a set of accesses a *web*: all writes and reads between
//! which data flows.

use crate::rules::{Name, Rules};
use crate::timeline::{Filler, Needs};
use crate::touches::Access;
use rustc_hash::FxHashMap as Map;
use std::collections::BTreeSet;

/// Where accesses have no coarser unit, a node would take too long.
const MOST_CELLS: i64 = 1 << 14;

/// Instructions that need common words of a memory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Web {
    /// The first word, and the one behind the last.
    pub range: (i64, i64),
    /// Their addresses may grow by multiples of this.
    pub unit: i64,
    /// How many instructions there are.
    pub count: usize,
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
    web: usize,
    parts: Parts,
    /// The same of the web that was there when it began.
    before: Option<(usize, Parts)>,
    read: bool,
}

/// Returns the webs of a node in one memory, and the web of each instruction that has one.
///
/// Instructions are counted through all lines; an MV is one. In a memory of `blocks`, addresses are multiples of the words of
/// an access. There are none if the node reads what an earlier one left, or words that only a value or a register knows.
pub fn webs(rules: &Rules, memory: Name, blocks: bool, lines: &[&Needs]) -> (Vec<Web>, Map<usize, usize>) {
    let all: Vec<_> = instructions(rules, memory, lines).collect();
    find(&all, blocks).unwrap_or_default()
}

/// An access: its words, and what it fills if it writes them. None if they are not known.
type Own = Option<((i64, i64), Option<Parts>)>;

/// The accesses of each instruction to a memory, reads first.
fn instructions<'a>(
    rules: &'a Rules,
    memory: Name,
    lines: &'a [&Needs],
) -> impl Iterator<Item = (usize, Vec<Own>)> + 'a {
    let all = lines.iter().flat_map(|line| line.instructions());
    all.enumerate().filter_map(move |(number, ([reads, writes], filler))| {
        let own = |access: &&Access| access.memory == memory;
        let range = |access: &Access| access.range.filter(|_| !access.named);
        let filled = |access: &Access| match filler {
            Filler::All => None,
            Filler::Part(part) => Some([Part::Named(part)].into()),
            Filler::Units if access.unit == (None, None) => None,
            Filler::Units => Some(access.units(rules).into_iter().flatten().map(Part::Unit).collect()),
        };
        let reads = reads.iter().filter(own).map(|one| range(one).map(|words| (words, None)));
        let writes = writes.iter().filter(own).map(|one| range(one).map(|words| (words, Some(filled(one)))));
        let found: Vec<Own> = reads.chain(writes).collect();
        (!found.is_empty()).then_some((number, found))
    })
}

fn find(all: &[(usize, Vec<Own>)], blocks: bool) -> Option<(Vec<Web>, Map<usize, usize>)> {
    let mut known = Vec::new();
    for (number, own) in all {
        for access in own {
            known.push((*number, access.as_ref()?));
        }
    }
    let words = known.iter().fold(0, |words, (_, ((low, high), _))| gcd(gcd(words, *low), *high));
    let last = known.iter().map(|(_, ((_, high), _))| *high).max()?;
    if words == 0 || last > words * MOST_CELLS {
        return None;
    }
    let mut sets: Map<usize, usize> = Map::default();
    let mut cells: Map<i64, Cell> = Map::default();
    for (number, ((low, high), parts)) in &known {
        for place in low / words..high / words {
            let cell = match (parts, cells.remove(&place)) {
                (None, cell) => read(cell?, &mut sets),
                (Some(parts), None) => Cell { web: *number, parts: parts.clone(), before: None, read: false },
                (Some(parts), Some(cell)) if cell.read => {
                    let before = Some((cell.web, cell.parts));
                    Cell { web: *number, parts: parts.clone(), before, read: false }
                }
                (Some(parts), Some(cell)) => Cell { parts: joined(&cell.parts, parts), ..cell },
            };
            join(&mut sets, *number, cell.web);
            cells.insert(place, cell);
        }
    }
    let mut made: Vec<Web> = Vec::new();
    let mut of_root: Map<usize, usize> = Map::default();
    let mut of_number: Map<usize, usize> = Map::default();
    for (number, ((low, high), _)) in &known {
        let next = made.len();
        let web = *of_root.entry(root(&mut sets, *number)).or_insert(next);
        if web == next {
            made.push(Web { range: (*low, *high), unit: 1, count: 0 });
        }
        let Web { range, unit, count } = &mut made[web];
        *range = (range.0.min(*low), range.1.max(*high));
        if blocks {
            *unit *= (high - low) / gcd(*unit, high - low);
        }
        *count += usize::from(of_number.insert(*number, web).is_none());
    }
    Some((made, of_number))
}

/// Notes a read. What the last writes did not fill is still there from before.
fn read(mut cell: Cell, sets: &mut Map<usize, usize>) -> Cell {
    if let Some((web, parts)) = cell.before.as_ref().filter(|(_, parts)| !cell.read && !within(parts, &cell.parts)) {
        join(sets, *web, cell.web);
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

fn gcd(one: i64, other: i64) -> i64 {
    if other == 0 {
        one.abs()
    } else {
        gcd(other, one % other)
    }
}

//! Passes between L1Bs whose rows go straight from L1BM to L1BM.
//!
//! One instruction serves all L1Bs of an L2B. Some of them send, all the same row. If the L1Bs of a result row take different
//! rows, several instructions send it, and masks let each L1B write what it shall take.

use crate::code::{late, vector, Line, Sink};
use crate::layout::{up, Level, Machine};
use crate::moves::Move;
use crate::rows::Rows;
use rustc_hash::FxHashMap;
use std::collections::{BTreeMap, BTreeSet};

/// A unit and the unit that it takes a row from.
type Wanted = (i64, i64);

/// An instruction. Each L1B takes from the sender that agrees with it in some bits of its number, `free`. In the other bits,
/// all senders have those of `first`. A test holds this against the specification's index map.
#[derive(Clone, Copy, Debug, Default)]
struct Sending {
    /// The number of one sender.
    first: i64,
    /// The bits in which senders differ.
    free: i64,
}

/// Row `row` of the senders goes to row `at` of `units`.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Sent {
    /// The row of the result.
    at: i64,
    /// The row of the source.
    row: i64,
    by: Sending,
    /// The L1Bs that write it, a bit for each; 0 means all.
    units: u64,
    times: i64,
}

/// How rows go straight: those of each result row together, in the order of their sources. None if the machine sends other
/// pieces than single rows, or if L1BM has no room for a vector of each L1B.
pub(crate) fn sent(found: &Rows, machine: &Machine) -> Option<Vec<Sent>> {
    if machine.block > 1 || machine.half() < machine.count(Level::L1b) {
        return None;
    }
    let mut known: FxHashMap<Vec<Wanted>, Vec<(Sending, u64)>> = FxHashMap::default();
    let mut out: Vec<Sent> = Vec::new();
    let (mut moves, mut wanted): (Vec<Move>, Vec<Wanted>) = (Vec::new(), Vec::new());
    for of_result in found.each() {
        let begin = out.len();
        moves.clear();
        moves.extend(of_result);
        sorting::sort_by_key(&mut moves, |m| m.source_at);
        for of_row in moves.chunk_by(|one, other| one.source_at == other.source_at) {
            wanted.clear();
            wanted.extend(of_row.iter().map(|m| (m.result, m.source)));
            if !known.contains_key(&wanted) {
                known.insert(wanted.clone(), cover(&wanted, machine.count(Level::L1b))?);
            }
            let Move { result_at: at, source_at: row, times, .. } = of_row[0];
            out.extend(known[&wanted].iter().map(|&(by, units)| Sent { at, row, by, units, times }));
        }
        // The one that most units take writes everywhere; of equals, the first.
        let ways = &mut out[begin..];
        sorting::sort_by_key(ways, |way| -i64::from(way.units.count_ones()));
        ways.iter_mut().take(1).for_each(|way| way.units = 0);
    }
    Some(out)
}

/// The code: as many rows at once as L1BM holds, going up and coming down.
pub(crate) fn straight<S: Sink>(sent: &[Sent], found: &Rows, machine: &Machine, code: &mut S) {
    let mut order: Vec<&[Sent]> = sent.chunk_by(|one, other| one.at == other.at).collect();
    if !S::COUNTS {
        // Rows that take from the same rows come together, so that each goes up once.
        let rows = |ways: &[Sent]| -> BTreeSet<i64> { ways.iter().map(|one| one.row).collect() };
        sorting::sort_by_cached_key(&mut order, |ways| (rows(ways), ways[0].at));
    }
    let mut batch = Batch::default();
    for rows in order {
        if !S::COUNTS && !batch.has_room(rows, machine) {
            std::mem::take(&mut batch).code(found, machine, code);
        }
        batch.put(rows);
    }
    batch.code(found, machine, code);
}

/// Rows that have room in L1BM together.
#[derive(Default)]
struct Batch {
    /// The rows that go up, in order, and how often.
    reads: Vec<i64>,
    count: i64,
    known: FxHashMap<i64, i64>,
    /// What comes down to each set of units.
    downs: BTreeMap<u64, Vec<Sent>>,
}

impl Batch {
    fn has_room(&self, rows: &[Sent], machine: &Machine) -> bool {
        let new: BTreeSet<i64> = rows.iter().map(|one| one.row).filter(|row| !self.known.contains_key(row)).collect();
        let mut sizes: BTreeMap<u64, i64> =
            self.downs.iter().map(|(&units, those)| (units, those.len() as i64)).collect();
        rows.iter().for_each(|one| *sizes.entry(one.units).or_default() += 1);
        let down: i64 = sizes.values().map(|&size| up(size, machine.cycles)).sum();
        let reads = (self.reads.len() + new.len()) as i64;
        self.reads.is_empty() || (reads <= machine.half() * machine.cycles && down <= machine.half())
    }

    fn put(&mut self, rows: &[Sent]) {
        for one in rows {
            if self.known.insert(one.row, 0).is_none() {
                self.reads.push(one.row);
                self.count += one.times;
            }
            self.downs.entry(one.units).or_default().push(*one);
        }
    }

    fn code<S: Sink>(mut self, found: &Rows, machine: &Machine, code: &mut S) {
        let words = machine.row * machine.cycles;
        code.runs(&self.reads, self.count * found.times, machine.cycles, |code, number, part| {
            code.line(Line::Lift { read: vector(part, machine, |&at| at), at: number * words });
        });
        (0..).zip(&self.reads).for_each(|(index, &row)| {
            self.known.insert(row, index * machine.row);
        });
        let mut at = machine.half() * words;
        let mut lowered: Vec<(u64, i64)> = Vec::new();
        for (&units, those) in &self.downs {
            lowered.push((units, at));
            for part in those.chunks(machine.cycles as usize) {
                // A vector that is not full begins with rows that its last ones overwrite.
                let spare = machine.cycles - part.len() as i64;
                for (index, one) in (spare..).zip(part) {
                    let (from, to) = (self.known[&one.row], at + index * machine.row);
                    code.times(one.times * found.times, |code| {
                        machine.pieces(machine.row).for_each(|piece| {
                            let Sending { first, free } = one.by;
                            let (from, to, words) = (from + piece, to + piece, machine.piece(machine.row));
                            code.line(Line::Inside { first, free, from, to, words });
                        })
                    });
                }
                at += words;
            }
        }
        for ((units, first), those) in lowered.into_iter().zip(self.downs.values()) {
            let register = code.choose(units);
            let count = those.iter().map(|one| one.times).sum::<i64>() * found.times;
            code.runs(those, count, machine.cycles, |code, number, part| {
                let write = late(part, machine, |one| one.at);
                code.line(Line::Lower { at: first + number * words, by: 0, write, register });
            });
        }
    }
}

/// Returns instructions that together bring all of `wanted`, and the units that each serves. None if some unit stays out.
fn cover(wanted: &[Wanted], count: i64) -> Option<Vec<(Sending, u64)>> {
    let bits = i64::BITS - (count - 1).leading_zeros();
    let mut left = wanted.to_vec();
    let mut out = Vec::new();
    while !left.is_empty() {
        let mut best = (Sending::default(), 0u64);
        // If all bits were free, each L1B would send to itself: the assembler refuses that.
        for free in 0..(1i64 << bits) - 1 {
            for first in (0..count).filter(|first| first & free == 0) {
                let serves = |&&(unit, origin): &&Wanted| (unit & free | first & !free) == origin;
                let units = left.iter().filter(serves).fold(0, |units, &(unit, _)| units | 1 << unit);
                if u64::count_ones(units) > best.1.count_ones() {
                    best = (Sending { first, free }, units);
                }
            }
        }
        if best.1 == 0 {
            return None;
        }
        out.push(best);
        left.retain(|&(unit, _)| best.1 >> unit & 1 == 0);
    }
    Some(out)
}

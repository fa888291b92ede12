//! Passes between MABs as casts: long words of neighbouring MABs go to all MABs, and some of them write them.

use crate::code::{late, vector, Line, Place, Sink};
use crate::layout::{Level, Machine};
use crate::moves::{leaders, takers, Moves};
use rustc_hash::FxHashMap;
use std::collections::BTreeSet;

/// A unit, and an address to which its long word goes.
type Pair = (i64, i64);

/// Long words of neighbouring MABs that go to all MABs.
struct Cast {
    /// Their address.
    at: i64,
    /// The first of the MABs.
    first: i64,
    /// The addresses to which those of the MABs go.
    results: Vec<i64>,
    /// The MABs that write them; 0 means all.
    units: u64,
    /// The MABs whose long words go to one of the addresses and those behind it.
    each: i64,
    times: i64,
}

/// The code of a pass by casts: as many rows at once as L1BM holds.
pub(crate) fn casts<S: Sink>(found: &Moves, place: &Place, machine: &Machine, code: &mut S) {
    let (ordered, vector_words) = (ordered(found, place.even.1, machine), machine.row * machine.cycles);
    let most = if S::COUNTS { i64::MAX } else { machine.vectors * machine.cycles };
    let mut left = ordered.as_slice();
    while !left.is_empty() {
        let (mut slots, mut rows, mut count) = (FxHashMap::default(), Vec::new(), 0);
        let fits = |cast: &&Cast| {
            let room = slots.contains_key(&cast.at) || (rows.len() as i64) < most;
            if room && !slots.contains_key(&cast.at) {
                // The first row stays free: a cast may begin before its row.
                slots.insert(cast.at, vector_words + rows.len() as i64 * machine.row);
                rows.push(cast.at);
                count += cast.times * found.times;
            }
            room
        };
        let (batch, rest) = left.split_at(left.iter().take_while(fits).count());
        left = rest;
        code.runs(&rows, count, machine.cycles, |code, number, part| {
            code.line(Line::Lift { read: vector(part, machine, |&at| at), at: (number + 1) * vector_words });
        });
        for cast in batch {
            let register = code.choose(cast.units);
            let spare = (machine.cycles - cast.results.len() as i64) * cast.each;
            let at = slots[&cast.at] + (cast.first - spare) * machine.count(Level::Pe);
            let write = late(&cast.results, machine, |&at| at);
            let line = Line::Cast { at, write, register, wide: cast.each > 1 };
            code.times(cast.times * found.times, |code| code.line(line));
        }
    }
}

/// Returns at least how many steps casts take: each brings at most one wide vector of results.
pub(crate) fn least(found: &Moves, machine: &Machine) -> i64 {
    let results = found.distinct(|m| (m.source_at, m.result_at, m.source)) * found.times;
    let read = found.distinct(|m| m.source_at) * found.times;
    crate::layout::up(read, machine.cycles) + crate::layout::up(results, machine.wide * machine.cycles)
}

/// The moves as casts, those without a mask first.
fn ordered(found: &Moves, even: bool, machine: &Machine) -> Vec<Cast> {
    let (cycles, wide) = (machine.cycles, machine.wide);
    let even = even && machine.count(Level::Mab) % wide == 0;
    let rows = takers(found, |m| (m.source_at, m.result_at, m.source));
    let first = leaders(rows.iter().map(|&((_, at, _), set, _)| (at, -i64::from(set.count_ones()))));
    let mut places: FxHashMap<(i64, u64), usize> = FxHashMap::default();
    let mut groups: Vec<(i64, u64, i64, Vec<Pair>)> = Vec::new();
    for (&((at, result, unit), set, times), everywhere) in rows.iter().zip(first) {
        let units = if everywhere { 0 } else { set };
        let place = *places.entry((at, units)).or_insert(groups.len());
        if place == groups.len() {
            groups.push((at, units, times, Vec::new()));
        }
        groups[place].3.push((unit, result));
    }
    groups.sort_by_key(|group| group.1);
    let mut out = Vec::new();
    for (at, units, times, mut pairs) in groups {
        pairs.sort_unstable();
        let joined = if even { joined(&pairs, wide).map(|firsts| runs(firsts, wide, cycles)) } else { None };
        let narrow = runs(pairs, 1, cycles);
        let (runs, each) = match joined {
            Some(joined) if joined.len() < narrow.len() => (joined, wide),
            _ => (narrow, 1),
        };
        let cast = |run: Vec<Pair>| {
            let results = run.iter().map(|pair| pair.1).collect();
            Cast { at, first: run.first().map_or(0, |pair| pair.0), results, units, each, times }
        };
        out.extend(runs.into_iter().map(cast));
    }
    out
}

/// Returns the first unit and address of `wide` neighbours each; None if some unit is alone.
fn joined(pairs: &[Pair], wide: i64) -> Option<Vec<Pair>> {
    let found: BTreeSet<Pair> = pairs.iter().copied().collect();
    let even = |&(unit, at): &Pair| unit % wide == 0 && at % wide == 0;
    let firsts: Vec<Pair> = pairs.iter().copied().filter(even).collect();
    let both: BTreeSet<Pair> =
        firsts.iter().flat_map(|&(unit, at)| (0..wide).map(move |more| (unit + more, at + more))).collect();
    (both == found).then_some(firsts)
}

/// Cuts pairs of units and addresses into runs of at most `most` units that lie `apart`.
fn runs(mut waiting: Vec<Pair>, apart: i64, most: i64) -> Vec<Vec<Pair>> {
    let mut out = Vec::new();
    while !waiting.is_empty() {
        let mut run: Vec<Pair> = Vec::new();
        waiting.retain(|&pair| {
            let follows = run.last().is_none_or(|last| pair.0 == last.0 + apart) && (run.len() as i64) < most;
            if follows {
                run.push(pair);
            }
            !follows
        });
        out.push(run);
    }
    out
}

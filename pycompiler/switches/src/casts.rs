//! Passes between MABs as casts: long words of neighbouring MABs go to all MABs, and some of them write them.

use crate::code::{late, vector, Line, Place, Sink};
use crate::layout::{up, Level, Machine};
use crate::rows::{lead, sorted, taken, Rows, Take};
use rustc_hash::{FxHashMap, FxHashSet};

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
pub(crate) fn casts<S: Sink>(found: &Rows, takes: &[Take], place: &Place, machine: &Machine, code: &mut S) {
    let (ordered, vector_words) = (ordered(takes, place.even.1, machine), machine.row * machine.cycles);
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
pub(crate) fn least(found: &Rows, takes: &[Take], machine: &Machine) -> i64 {
    let mut read = FxHashSet::default();
    let times: i64 = takes.iter().filter(|one| read.insert(one.source_at)).map(|one| one.times).sum();
    up(times * found.times, machine.cycles) + up(taken(takes, found.times), machine.wide * machine.cycles)
}

/// What is taken as casts, those without a mask first.
fn ordered(takes: &[Take], even: bool, machine: &Machine) -> Vec<Cast> {
    let (cycles, wide) = (machine.cycles, machine.wide);
    let even = even && machine.count(Level::Mab) % wide == 0;
    let mut takes = takes.to_vec();
    lead(&mut takes, |one| (-i64::from(one.units.count_ones()), one.source_at, one.from));
    let mut groups: Vec<(i64, u64, i64, Vec<Pair>)> = Vec::new();
    for of_source in sorted(&takes, |one| one.source_at).chunk_by(|one, other| one.source_at == other.source_at) {
        let begin = groups.len();
        for &Take { at: result, source_at: at, from: unit, units, times } in of_source {
            match groups[begin..].iter_mut().find(|group| group.1 == units) {
                Some(group) => group.3.push((unit, result)),
                None => groups.push((at, units, times, vec![(unit, result)])),
            }
        }
    }
    sorting::sort_by_key(&mut groups, |group| group.1);
    let mut out = Vec::new();
    for (at, units, times, mut pairs) in groups {
        sorting::sort(&mut pairs);
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

/// Returns the first unit and address of `wide` neighbours each; None if some unit is alone. `pairs` are in order.
fn joined(pairs: &[Pair], wide: i64) -> Option<Vec<Pair>> {
    let even = |&(unit, at): &Pair| unit % wide == 0 && at % wide == 0;
    let firsts: Vec<Pair> = pairs.iter().copied().filter(even).collect();
    let joins = |&(unit, at): &Pair| (1..wide).all(|more| pairs.binary_search(&(unit + more, at + more)).is_ok());
    (firsts.len() as i64 * wide == pairs.len() as i64 && firsts.iter().all(joins)).then_some(firsts)
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

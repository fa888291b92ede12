//! Passes between L2Bs, through the PDMs.
//!
//! Rows come to L2BM as in passes between L1Bs, cross over in MVs, and come down to new addresses.

use crate::code::{late, vector, Line, Sink, TooSmall};
use crate::layout::{up, Level, Machine};
use crate::moves::{rows, Moves, Row};
use rustc_hash::{FxHashMap, FxHashSet};
use std::collections::{BTreeMap, BTreeSet};

type Rows = BTreeMap<i64, Row>;

/// Long words that go from `start` in one L2BM to `goal` in another, by the PDM `home`.
#[derive(Clone, Copy)]
struct Run {
    /// Where they go; None if all units take them.
    unit: Option<i64>,
    /// The group of `unit`, or, if all take them, that of `origin`.
    home: i64,
    /// The unit that they come from.
    origin: i64,
    start: i64,
    goal: i64,
    words: i64,
    times: i64,
}

/// The code. Rows come from one half of L2BM to the other.
pub(crate) fn crossing<S: Sink>(found: &Moves, machine: &Machine, code: &mut S) -> Result<(), TooSmall> {
    let rows = rows(found, machine.count(Level::L2b));
    let (row, half) = (machine.row * machine.count(Level::L1b), machine.l2bm / 2);
    if !S::COUNTS && row * machine.cycles > half {
        return Err(TooSmall { level: Level::L2b, words: row * machine.cycles, room: half });
    }
    let most = (machine.crossing() * machine.cycles) as usize;
    // Rows that take from the same rows come together, so each row goes up once. Then all L2Bs give and take in every batch.
    let reads = |at: &i64| -> BTreeSet<i64> { rows[at].origins.iter().flatten().map(|origin| origin.1).collect() };
    let mut results: Vec<i64> = rows.keys().copied().collect();
    let register = code.choose(0);
    if S::COUNTS {
        together(&results, &rows, register, found.times, machine, code);
        return Ok(());
    }
    results.sort_by_cached_key(|at| (reads(at), *at));
    let mut left = results.as_slice();
    while !left.is_empty() {
        let (mut read, mut taken) = (FxHashSet::default(), 0);
        for at in left {
            let new: FxHashSet<i64> = reads(at).into_iter().filter(|at| !read.contains(at)).collect();
            let fits = read.len() + new.len() <= most;
            if taken > 0 && (!fits || taken == most) {
                break;
            }
            if !fits {
                return Err(TooSmall { level: Level::L2b, words: new.len() as i64 * row, room: most as i64 * row });
            }
            read.extend(new);
            taken += 1;
        }
        let mut batch = left[..taken].to_vec();
        left = &left[taken..];
        // Beside each other stand those from the same L2Bs: runs are long.
        let units = |at: &i64| -> Vec<i64> { rows[at].origins.iter().map(|o| o.map_or(-1, |o| o.0)).collect() };
        batch.sort_by_cached_key(|at| (units(at), *at));
        together(&batch, &rows, register, found.times, machine, code);
    }
    Ok(())
}

/// The code of rows for which there is room.
fn together<S: Sink>(batch: &[i64], rows: &Rows, register: i64, times: i64, machine: &Machine, code: &mut S) {
    let (row, size) = (machine.row * machine.count(Level::L1b), machine.row * machine.cycles);
    // Rows go up in the order of the first unit that takes them, and of their place there: runs are long.
    let mut first: FxHashMap<i64, (usize, usize, i64)> = FxHashMap::default();
    for (place, at) in batch.iter().enumerate() {
        for (unit, origin) in rows[at].origins.iter().enumerate() {
            if let Some((_, read)) = origin {
                let here = (unit, place, rows[at].times);
                first.entry(*read).and_modify(|known| *known = here.min(*known)).or_insert(here);
            }
        }
    }
    let mut lifted: Vec<i64> = first.keys().copied().collect();
    lifted.sort_unstable_by_key(|at| first[at]);
    let starts: FxHashMap<i64, i64> = lifted.iter().zip(0..).map(|(&at, index)| (at, index * row)).collect();
    let count = first.values().map(|here| here.2).sum::<i64>() * times;
    code.runs(&lifted, count, machine.cycles, |code, number, part| {
        code.line(Line::Lift { read: vector(part, machine, |&at| at), at: number * size });
    });
    spread(true, count, (0, 0), machine, code);
    let below = machine.l2bm / 2 / row * row;
    // Only whole vectors come down: the last one begins with rows that its own rows overwrite.
    let whole = batch.len() as i64 / machine.cycles * machine.cycles;
    let spare = (machine.cycles - batch.len() as i64 % machine.cycles) % machine.cycles;
    let place = |index: i64| below + (index + if index < whole { 0 } else { spare }) * row;
    let crossing = ordered(runs::<S>(batch, place, &starts, rows, row, machine), machine);
    cross(crossing, times, machine, code);
    let count = batch.iter().map(|at| rows[at].times).sum::<i64>() * times;
    let l1bm = machine.half() * size;
    spread(false, count, (l1bm, below), machine, code);
    code.runs(batch, count, machine.cycles, |code, number, part| {
        code.line(Line::Lower { at: l1bm + number * size, by: 0, write: late(part, machine, |&at| at), register });
    });
}

/// Brings so many rows, in whole vectors, from the L1BMs to L2BM or back. `from` has the first words of both.
fn spread<S: Sink>(upwards: bool, rows: i64, from: (i64, i64), machine: &Machine, code: &mut S) {
    let pieces = up(up(rows, machine.cycles) * machine.cycles * machine.row, machine.spread.0);
    for piece in 0..if S::COUNTS { 1 } else { pieces } {
        let (l1bm, l2bm) = (from.0 + piece * machine.spread.0, from.1 + piece * machine.spread.1);
        code.times(pieces, |code| code.line(Line::Spread { upwards, l1bm, l2bm }));
    }
}

/// The runs of L2BM. Rows come to their `place`. A walk that counts takes each row as a run.
fn runs<S: Sink>(
    batch: &[i64],
    place: impl Fn(i64) -> i64,
    starts: &FxHashMap<i64, i64>,
    rows: &Rows,
    row: i64,
    machine: &Machine,
) -> Vec<Run> {
    let mut out: Vec<Run> = Vec::new();
    for unit in 0..machine.count(Level::L2b) {
        let (home, begin) = (unit / machine.l2bs_per_group, out.len());
        for (index, at) in (0..).zip(batch) {
            let Row { origins, times } = &rows[at];
            let Some((origin, read)) = origins[unit as usize] else { continue };
            let (start, goal) = (starts[&read], place(index));
            match out[begin..].last_mut() {
                Some(last)
                    if !S::COUNTS
                        && (last.origin, last.start + last.words, last.goal + last.words) == (origin, start, goal) =>
                {
                    last.words += row;
                }
                _ => out.push(Run { unit: Some(unit), home, origin, start, goal, words: row, times: *times }),
            }
        }
    }
    out
}

/// Joins runs that differ only in the unit, if there is one for each unit, and puts runs into the order of their MVs.
///
/// In each turn all PDMs take from L2BMs of their own: a memory serves one MV at a time, and MVs wait for those before them.
fn ordered(runs: Vec<Run>, machine: &Machine) -> Vec<Run> {
    let units = machine.count(Level::L2b);
    let mut alike: FxHashMap<(i64, i64, i64, i64), (usize, i64)> = FxHashMap::default();
    let mut found: Vec<((i64, usize), Run)> = Vec::with_capacity(runs.len());
    let key = |run: &Run| (run.origin, run.start, run.goal, run.words);
    for (place, run) in runs.iter().enumerate() {
        alike.entry(key(run)).or_insert((place, 0)).1 += 1;
    }
    for (place, mut run) in runs.into_iter().enumerate() {
        let (first, count) = alike[&key(&run)];
        if count == units {
            run = Run { unit: None, home: run.origin / machine.l2bs_per_group, ..run };
        }
        if count < units || place == first {
            found.push((((run.origin - run.home * machine.l2bs_per_group).rem_euclid(units), first), run));
        }
    }
    found.sort_by_key(|run| run.0);
    found.into_iter().map(|run| run.1).collect()
}

/// Brings runs to the PDMs, as many as they hold, and from there to their places.
fn cross<S: Sink>(runs: Vec<Run>, times: i64, machine: &Machine, code: &mut S) {
    let room = if S::COUNTS { i64::MAX } else { machine.pdm };
    let (mut filled, mut waiting) = (0, Vec::new());
    // The L2Bs of a group may need the same.
    let mut there: FxHashMap<(i64, i64, i64, i64), i64> = FxHashMap::default();
    for run in runs {
        let key = (run.home, run.origin, run.start, run.words);
        if !there.contains_key(&key) {
            if filled + run.words > room {
                come_down(&mut waiting, times, code);
                there.clear();
                filled = 0;
            }
            let Run { origin: unit, home, start: l2bm, words, .. } = run;
            let pdm = *there.entry(key).or_insert(filled);
            filled += words;
            code.times(run.times * times, |code| code.line(Line::Mv { upwards: true, unit, home, l2bm, pdm, words }));
        }
        waiting.push((run, there[&key]));
    }
    come_down(&mut waiting, times, code);
}

fn come_down<S: Sink>(waiting: &mut Vec<(Run, i64)>, times: i64, code: &mut S) {
    for (run, pdm) in waiting.drain(..) {
        let Run { home, goal: l2bm, words, .. } = run;
        code.times(run.times * times, |code| match run.unit {
            None => code.line(Line::MvAll { home, l2bm, pdm, words }),
            Some(unit) => code.line(Line::Mv { upwards: false, unit, home, l2bm, pdm, words }),
        });
    }
}

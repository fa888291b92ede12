//! Passes between L2Bs, through the PDMs.
//!
//! Rows come to L2BM as in passes between L1Bs, cross over in MVs, and come down to new addresses.

use crate::code::{late, vector, Line, Sink, TooSmall};
use crate::layout::{up, Level, Machine};
use crate::moves::Move;
use crate::rows::Rows;
use rustc_hash::{FxHashMap, FxHashSet};
use std::collections::BTreeSet;

/// The moves that make a row.
type Row<'a> = &'a [Move];

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

/// The code. Rows come from one half of L2BM to the other. If only the L1B `of` writes, only its words cross.
pub(crate) fn crossing<S: Sink>(
    found: &Rows,
    of: Option<i64>,
    machine: &Machine,
    code: &mut S,
) -> Result<(), TooSmall> {
    let (row, half) = (row_of(of, machine), machine.l2bm / 2);
    if !S::COUNTS && row * machine.cycles > half {
        return Err(TooSmall { level: Level::L2b, words: row * machine.cycles, room: half });
    }
    let most = (machine.crossing() * machine.cycles) as usize;
    // Rows that take from the same rows come together, so each row goes up once. Then all L2Bs give and take in every batch.
    let reads = |row: &Row| -> BTreeSet<i64> { row.iter().map(|m| m.source_at).collect() };
    let mut rows: Vec<Row> = found.each().collect();
    let register = code.choose(0);
    if S::COUNTS {
        together(&rows, register, found.times, of, machine, code);
        return Ok(());
    }
    rows.sort_by_cached_key(|row| (reads(row), row[0].result_at));
    let mut left = rows.as_slice();
    while !left.is_empty() {
        let (mut read, mut taken) = (FxHashSet::default(), 0);
        for one in left {
            let new: FxHashSet<i64> = reads(one).into_iter().filter(|at| !read.contains(at)).collect();
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
        let count = machine.count(Level::L2b);
        let from = |row: &Row, unit: i64| row.iter().find(|m| m.result == unit).map_or(-1, |m| m.source);
        let units = |row: &Row| -> Vec<i64> { (0..count).map(|unit| from(row, unit)).collect() };
        batch.sort_by_cached_key(|row| (units(row), row[0].result_at));
        together(&batch, register, found.times, of, machine, code);
    }
    Ok(())
}

/// The long words of a row that cross.
fn row_of(of: Option<i64>, machine: &Machine) -> i64 {
    machine.row * of.map_or(machine.count(Level::L1b), |_| 1)
}

/// The code of rows for which there is room.
fn together<S: Sink>(batch: &[Row], register: i64, times: i64, of: Option<i64>, machine: &Machine, code: &mut S) {
    let (row, size) = (row_of(of, machine), machine.row * machine.cycles);
    // Rows go up in the order of the first unit that takes them, and of their place there: runs are long.
    let mut first: FxHashMap<i64, (i64, i64, i64)> = FxHashMap::default();
    for (place, row) in (0..).zip(batch) {
        for m in row.chunk_by(|one, other| one.source_at == other.source_at).map(|same| same[0]) {
            let here = (m.result, place, m.times);
            first.entry(m.source_at).and_modify(|known| *known = here.min(*known)).or_insert(here);
        }
    }
    let mut lifted: Vec<((i64, i64, i64), i64)> = first.into_iter().map(|(at, here)| (here, at)).collect();
    lifted.sort_unstable();
    let starts: FxHashMap<i64, i64> = lifted.iter().zip(0..).map(|(one, index)| (one.1, index * row)).collect();
    let count = lifted.iter().map(|one| one.0 .2).sum::<i64>() * times;
    code.runs(&lifted, count, machine.cycles, |code, number, part| {
        code.line(Line::Lift { read: vector(part, machine, |one| one.1), at: number * size });
    });
    spread(true, count, (0, 0), of, machine, code);
    let below = machine.l2bm / 2 / row * row;
    // Only whole vectors come down: the last one begins with rows that its own rows overwrite.
    let whole = batch.len() as i64 / machine.cycles * machine.cycles;
    let spare = (machine.cycles - batch.len() as i64 % machine.cycles) % machine.cycles;
    let place = |index: i64| below + (index + if index < whole { 0 } else { spare }) * row;
    let crossing = ordered::<S>(runs::<S>(batch, place, &starts, row, machine), machine);
    cross(crossing, times, machine, code);
    let count = batch.iter().map(|row| row[0].times).sum::<i64>() * times;
    let l1bm = machine.half() * size;
    spread(false, count, (l1bm, below), of, machine, code);
    code.runs(batch, count, machine.cycles, |code, number, part| {
        let write = late(part, machine, |row| row[0].result_at);
        code.line(Line::Lower { at: l1bm + number * size, by: 0, write, register });
    });
}

/// Brings so many rows, in whole vectors, from the L1BMs to L2BM or back. `from` has the first words of both.
fn spread<S: Sink>(upwards: bool, rows: i64, from: (i64, i64), of: Option<i64>, machine: &Machine, code: &mut S) {
    let words = up(rows, machine.cycles) * machine.cycles * machine.row;
    if let Some(unit) = of {
        for at in machine.pieces(words) {
            let (l1bm, l2bm, words) = (from.0 + at, from.1 + at, machine.l2bm_words);
            code.line(if upwards {
                Line::ToL2bm { unit, l1bm, l2bm, words }
            } else {
                Line::FromL2bm { units: Some((unit, 0)), l1bm, l2bm, words }
            });
        }
        return;
    }
    let pieces = up(words, machine.spread.0);
    for piece in 0..if S::COUNTS { 1 } else { pieces } {
        let (l1bm, l2bm) = (from.0 + piece * machine.spread.0, from.1 + piece * machine.spread.1);
        code.times(pieces, |code| code.line(Line::Spread { upwards, l1bm, l2bm }));
    }
}

/// The runs of L2BM. Rows come to their `place`. A walk that counts takes each row as a run.
fn runs<S: Sink>(
    batch: &[Row],
    place: impl Fn(i64) -> i64,
    starts: &FxHashMap<i64, i64>,
    words: i64,
    machine: &Machine,
) -> Vec<Run> {
    let mut out: Vec<Vec<Run>> = vec![Vec::new(); machine.count(Level::L2b) as usize];
    for (index, m) in (0..).zip(batch).flat_map(|(index, row)| row.iter().map(move |m| (index, m))) {
        let (unit, origin, start, goal) = (m.result, m.source, starts[&m.source_at], place(index));
        let home = unit / machine.l2bs_per_group;
        let follows = |last: &&mut Run| {
            !S::COUNTS && (last.origin, last.start + last.words, last.goal + last.words) == (origin, start, goal)
        };
        match out[unit as usize].last_mut().filter(follows) {
            Some(last) => last.words += words,
            None => out[unit as usize].push(Run { unit: Some(unit), home, origin, start, goal, words, times: m.times }),
        }
    }
    out.concat()
}

/// Joins runs that differ only in the unit, if there is one for each unit, and puts runs into the order of their MVs.
///
/// In each turn all PDMs take from L2BMs of their own: a memory serves one MV at a time, and MVs wait for those before them.
fn ordered<S: Sink>(runs: Vec<Run>, machine: &Machine) -> Vec<Run> {
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
    if !S::COUNTS {
        found.sort_by_key(|run| run.0);
    }
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

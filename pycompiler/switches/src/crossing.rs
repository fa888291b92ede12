//! Passes between L2Bs, through the PDMs and DRAMs.
//!
//! Rows come to L2BM as in passes between L1Bs, cross over in MVs, and come down to new addresses. The L2Bs of a group share its
//! PDM. So the MVs of some of them go through the DRAM of the group instead, at the same time.

use crate::code::{late, vector, Line, Lines, Place, Sink, TooSmall};
use crate::layout::{up, Level, Machine};
use crate::moves::{Chosen, Move};
use crate::rows::Rows;
use rustc_hash::{FxHashMap, FxHashSet};
use std::collections::BTreeSet;

/// The moves that make a row.
type Row<'a> = &'a [Move];

/// Rows that cross together.
struct Batch<'a> {
    rows: Vec<Row<'a>>,
    /// How often, each time at other addresses.
    times: i64,
    /// The L1B that writes, if one does. Then only its words cross.
    of: Option<i64>,
    /// The mask register of the PEs that write.
    register: i64,
    /// The vectors of other batches before it, in L1BM and in L2BM.
    first: i64,
}

/// Long words that go from `start` in one L2BM to `goal` in another, by the PDM or the DRAM of the group `home`.
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

/// Whether all parts cross at once: if there are several, the same words of all cross, and there is room.
pub(crate) fn fit(parts: &[(Rows, &Chosen)], machine: &Machine) -> bool {
    let vectors: i64 = parts.iter().map(|(found, _)| vectors(found, machine)).sum();
    let far = |(found, part): &(Rows, &Chosen)| {
        row_of(part.l1b, machine) == row_of(parts[0].1.l1b, machine) && !found.stays()
    };
    parts.len() > 1 && parts.len() as i64 <= machine.masks && vectors <= machine.crossing() && parts.iter().all(far)
}

/// The vectors in which rows go up or come down, whichever are more.
fn vectors(found: &Rows, machine: &Machine) -> i64 {
    let read: FxHashSet<i64> = found.moves().iter().map(|m| m.source_at).collect();
    up(read.len().max(found.each().count()) as i64, machine.cycles)
}

/// The code of parts that [`fit`].
pub(crate) fn at_once(parts: &[(Rows, &Chosen)], dram: bool, machine: &Machine, code: &mut Lines) {
    let (mut batches, mut first) = (Vec::new(), 0);
    for (number, (found, part)) in parts.iter().enumerate() {
        code.part = number;
        let (rows, register) = (beside(found.each().collect(), machine), code.choose(0));
        batches.push(Batch { rows, times: found.times, of: part.l1b, register, first });
        first += vectors(found, machine);
    }
    together(batches, dram, machine, code);
}

/// The code. Rows come from one half of L2BM to the other. If only the L1B `of` writes, only its words cross.
pub(crate) fn crossing<S: Sink>(found: &Rows, place: &Place, machine: &Machine, code: &mut S) -> Result<(), TooSmall> {
    let of = place.l1b;
    let (row, half) = (row_of(of, machine), machine.l2bm / 2);
    if !S::COUNTS && row * machine.cycles > half {
        return Err(TooSmall { level: Level::L2b, words: row * machine.cycles, room: half });
    }
    let most = (machine.crossing() * machine.cycles) as usize;
    // Rows that take from the same rows come together, so each row goes up once. Then all L2Bs give and take in every batch.
    let reads = |row: &Row| -> BTreeSet<i64> { row.iter().map(|m| m.source_at).collect() };
    let mut rows: Vec<Row> = found.each().collect();
    let register = code.choose(0);
    let batch = |rows| vec![Batch { rows, times: found.times, of, register, first: 0 }];
    if S::COUNTS {
        together(batch(rows), place.dram, machine, code);
        return Ok(());
    }
    sorting::sort_by_cached_key(&mut rows, |row| (reads(row), row[0].result_at));
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
        together(batch(beside(left[..taken].to_vec(), machine)), place.dram, machine, code);
        left = &left[taken..];
    }
    Ok(())
}

/// Puts rows from the same L2Bs beside each other: runs are long.
fn beside<'a>(mut rows: Vec<Row<'a>>, machine: &Machine) -> Vec<Row<'a>> {
    let from = |row: &Row, unit: i64| row.iter().find(|m| m.result == unit).map_or(-1, |m| m.source);
    let units = |row: &Row| -> Vec<i64> { (0..machine.count(Level::L2b)).map(|unit| from(row, unit)).collect() };
    sorting::sort_by_cached_key(&mut rows, |row| (units(row), row[0].result_at));
    rows
}

/// The long words of a row that cross.
fn row_of(of: Option<i64>, machine: &Machine) -> i64 {
    machine.row * of.map_or(machine.count(Level::L1b), |_| 1)
}

/// The code of rows for which there is room; all go up before one comes down.
fn together<S: Sink>(batches: Vec<Batch>, dram: bool, machine: &Machine, code: &mut S) {
    let dram = dram && machine.has_drams();
    let alone = batches.len() == 1;
    let runs = batches.iter().flat_map(|batch| lift(batch, alone, dram, machine, code)).collect();
    cross(runs, batches[0].times, dram, machine, code);
    for Batch { rows, times, of, register, first } in batches {
        let count = rows.iter().map(|row| row[0].times).sum::<i64>() * times;
        let (half, size) = (machine.half() + first, machine.row * machine.cycles);
        let above = machine.l2bm / 2 / row_of(of, machine) + first * machine.cycles;
        spread(false, count, (half * size, above * row_of(of, machine)), of, machine, code);
        code.runs(&rows, count, machine.cycles, |code, number, part| {
            let write = late(part, machine, |row| row[0].result_at);
            code.line(Line::Lower { at: (half + number) * size, by: 0, write, register });
        });
    }
}

/// Brings rows to L2BM; returns the runs in which they cross. If the batch is not `alone`, rows that units keep cross too.
fn lift<S: Sink>(from: &Batch, alone: bool, dram: bool, machine: &Machine, code: &mut S) -> Vec<Run> {
    let Batch { rows: batch, of, times, first: before, .. } = from;
    let (of, times, row, size) = (*of, *times, row_of(*of, machine), machine.row * machine.cycles);
    // Rows go up in the order of the first unit that takes them, and of their place there: runs are long.
    let mut first: FxHashMap<i64, (i64, i64, i64)> = FxHashMap::default();
    for (place, row) in (0..).zip(batch) {
        for m in row.chunk_by(|one, other| one.source_at == other.source_at).map(|same| same[0]) {
            let here = (m.result, place, m.times);
            first.entry(m.source_at).and_modify(|known| *known = here.min(*known)).or_insert(here);
        }
    }
    let mut lifted: Vec<((i64, i64, i64), i64)> = first.into_iter().map(|(at, here)| (here, at)).collect();
    sorting::sort(&mut lifted);
    let (start, below) = (before * machine.cycles * row, machine.l2bm / 2 / row * row);
    // Only whole vectors come down: the last one begins with rows that its own rows overwrite.
    let whole = batch.len() as i64 / machine.cycles * machine.cycles;
    let spare = (machine.cycles - batch.len() as i64 % machine.cycles) % machine.cycles;
    let place = |index: i64| start + below + (index + if index < whole { 0 } else { spare }) * row;
    let stays = if alone { stays::<S>(batch, of, machine) } else { vec![None; batch.len()] };
    // Where each row goes up to: for the units that keep it, where it comes down from.
    let mut goals: FxHashMap<i64, Vec<i64>> = FxHashMap::default();
    for (index, at) in (0..).zip(&stays).filter_map(|(index, at)| Some((index, (*at)?))) {
        goals.entry(at).or_default().push(place(index));
    }
    for ((_, at), index) in lifted.iter().zip(0..) {
        goals.entry(*at).or_insert_with(|| vec![start + index * row]);
    }
    let starts: FxHashMap<i64, i64> = goals.iter().map(|(&at, goals)| (at, goals[0])).collect();
    let count = lifted.iter().map(|one| one.0 .2).sum::<i64>() * times;
    code.runs(&lifted, count, machine.cycles, |code, number, part| {
        code.line(Line::Lift { read: vector(part, machine, |one| one.1), at: (before + number) * size });
    });
    if stays.iter().all(Option::is_none) {
        spread(true, count, (before * size, start), of, machine, code);
    } else {
        for (&((.., often), at), index) in lifted.iter().zip(0..) {
            for goal in &goals[&at] {
                code.times(often * times, |code| {
                    pieces(true, machine.row, (index * machine.row, *goal), machine, code)
                });
            }
        }
    }
    ordered::<S>(runs::<S>(batch, place, &starts, &stays, row, machine), dram, machine)
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
    pieces(upwards, words, from, machine, code);
}

/// Brings so many words of each L1BM to L2BM or back.
fn pieces<S: Sink>(upwards: bool, words: i64, from: (i64, i64), machine: &Machine, code: &mut S) {
    let pieces = up(words, machine.spread.0);
    for piece in 0..if S::COUNTS { 1 } else { pieces } {
        let (l1bm, l2bm) = (from.0 + piece * machine.spread.0, from.1 + piece * machine.spread.1);
        code.times(pieces, |code| code.line(Line::Spread { upwards, l1bm, l2bm }));
    }
}

/// The row that units keep, for each row of the result: the address in the source, or None.
///
/// It goes up to where it comes down from, so it need not cross. The other L2Bs overwrite it there, so all that crosses must
/// have gone up before: the PDMs must hold it.
fn stays<S: Sink>(batch: &[Row], of: Option<i64>, machine: &Machine) -> Vec<Option<i64>> {
    let words = batch.len() as i64 * row_of(of, machine) * machine.l2bs_per_group;
    let apart = of.is_some() || machine.row % machine.spread.0 != 0 || !S::COUNTS && words > machine.pdm;
    let kept = |row: &Row| row.iter().find(|m| m.result == m.source).filter(|_| !apart).map(|m| m.source_at);
    batch.iter().map(kept).collect()
}

/// The runs of L2BM. Rows come to their `place`. What stays is none, unless all units take the same: then an MV serves all of
/// them. A walk that counts takes each row as a run.
fn runs<S: Sink>(
    batch: &[Row],
    place: impl Fn(i64) -> i64,
    starts: &FxHashMap<i64, i64>,
    stays: &[Option<i64>],
    words: i64,
    machine: &Machine,
) -> Vec<Run> {
    let units = machine.count(Level::L2b);
    let mut out: Vec<Vec<Run>> = vec![Vec::new(); units as usize];
    let crossing = |(index, (row, &stay)): (i64, (&Row, &Option<i64>))| {
        let from = (row[0].source, row[0].source_at);
        let all = row.len() as i64 == units && row.iter().all(|m| (m.source, m.source_at) == from);
        row.iter()
            .filter(move |m| all || m.result != m.source || stay != Some(m.source_at))
            .map(move |m| (index, *m))
            .collect::<Vec<_>>()
    };
    for (index, m) in (0..).zip(batch.iter().zip(stays)).flat_map(crossing) {
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
/// In each turn all L2Bs take from L2BMs of their own: a memory serves one MV at a time, and MVs wait for those before them.
fn ordered<S: Sink>(runs: Vec<Run>, dram: bool, machine: &Machine) -> Vec<Run> {
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
            let unit = if dram { run.unit } else { None }.unwrap_or(run.home * machine.l2bs_per_group);
            found.push((((run.origin - unit).rem_euclid(units), first), run));
        }
    }
    if !S::COUNTS {
        sorting::sort_by_key(&mut found, |run| run.0);
    }
    found.into_iter().map(|run| run.1).collect()
}

/// Brings runs to the PDMs and DRAMs, as many as they hold, and from there to their places.
///
/// What comes from one L2BM for L2Bs of one group goes up once. It takes the memory that is free first. A walk that counts gives
/// each of both what lets both end at the same time.
fn cross<S: Sink>(runs: Vec<Run>, times: i64, dram: bool, machine: &Machine, code: &mut S) {
    let groups = machine.groups();
    let room = if S::COUNTS { i64::MAX } else { machine.pdm.min(machine.l2bs_per_group * machine.l2bm / 2) };
    let (mut filled, mut busy) = (vec![0; 2 * groups as usize], vec![0; 2 * groups as usize]);
    let mut waiting = Vec::new();
    let mut there: FxHashMap<(i64, i64, i64, i64), (i64, i64)> = FxHashMap::default();
    for run in runs {
        let key = (run.home, run.origin, run.start, run.words);
        if !there.contains_key(&key) {
            let Run { origin: unit, start: l2bm, words, .. } = run;
            let free = |&home: &i64| busy[home as usize] + words * machine.mv_time(unit, home);
            let homes = [run.home, run.home + groups];
            let count = if dram && run.unit.is_some() && !S::COUNTS { 2 } else { 1 };
            let home = homes[..count].iter().copied().min_by_key(free).unwrap_or(run.home);
            if filled[home as usize] + words > room {
                come_down(&mut waiting, times, dram, machine, code);
                there.clear();
                filled.fill(0);
            }
            let at = filled[home as usize];
            there.insert(key, (home, at));
            filled[home as usize] += words;
            busy[home as usize] += words * machine.mv_time(unit, home);
            let up = Line::Mv { upwards: true, unit, home, l2bm, at, words };
            code.times(run.times * times, |code| moved(up, dram && run.unit.is_some(), machine, code));
        }
        let (home, at) = there[&key];
        busy[home as usize] += run.words * run.unit.map_or(0, |unit| machine.mv_time(unit, home));
        waiting.push((run, home, at));
    }
    come_down(&mut waiting, times, dram, machine, code);
}

fn come_down<S: Sink>(waiting: &mut Vec<(Run, i64, i64)>, times: i64, dram: bool, machine: &Machine, code: &mut S) {
    for (run, home, at) in waiting.drain(..) {
        let Run { goal: l2bm, words, .. } = run;
        code.times(run.times * times, |code| match run.unit {
            None => code.line(Line::MvAll { home, l2bm, pdm: at, words }),
            Some(unit) => moved(Line::Mv { upwards: false, unit, home, l2bm, at, words }, dram, machine, code),
        });
    }
}

/// An MV; a walk that counts parts it between a PDM and a DRAM.
fn moved<S: Sink>(mv: Line, dram: bool, machine: &Machine, code: &mut S) {
    let Line::Mv { upwards, unit, home, l2bm, at, words } = mv else { return };
    if !S::COUNTS || !dram {
        code.line(mv);
        return;
    }
    let (by_pdm, by_dram) = machine.crossing_parts();
    let other = words * by_pdm / (by_pdm + by_dram);
    code.line(Line::Mv { upwards, unit, home, l2bm, at, words: words - other });
    code.line(Line::Mv { upwards, unit, home: home + machine.groups(), l2bm, at, words: other });
}

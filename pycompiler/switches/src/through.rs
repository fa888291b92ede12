//! Passes between L1Bs through L2BM: rows go up to L1BM and L2BM, and come down to L1Bs and to their new addresses.

use crate::code::{Line, Sink, TooSmall};
use crate::layout::{up, Level, Machine};
use crate::moves::{rows, Moves};
use rustc_hash::{FxHashMap, FxHashSet};

/// A unit, and the rows that go together.
type Origin = (i64, Vec<i64>);

/// Rows that come down together. For each unit, where its data comes from, if it takes some.
struct Block {
    results: Vec<i64>,
    origins: Vec<Option<Origin>>,
    times: i64,
}

/// Groups result rows that take their data from the same units, as many as one instruction moves.
fn blocks(found: &Moves, machine: &Machine) -> Vec<Block> {
    let rows = rows(found, machine.count(Level::L1b));
    let mut places: FxHashMap<Vec<Option<i64>>, usize> = FxHashMap::default();
    let mut groups: Vec<Vec<i64>> = Vec::new();
    for (&at, row) in &rows {
        let place = *places.entry(row.origins.iter().map(|o| o.map(|o| o.0)).collect()).or_insert(groups.len());
        if place == groups.len() {
            groups.push(Vec::new());
        }
        groups[place].push(at);
    }
    let block = |part: &[i64]| {
        // The last row is repeated to fill a block.
        let results: Vec<i64> = (0..machine.block as usize).map(|index| part[index.min(part.len() - 1)]).collect();
        let from = |unit: usize| rows[&part[0]].origins[unit].map(|o| o.0);
        let own = |unit: usize| results.iter().filter_map(|at| rows[at].origins[unit].map(|o| o.1)).collect();
        let origins =
            (0..machine.count(Level::L1b) as usize).map(|unit| from(unit).map(|from| (from, own(unit)))).collect();
        Block { origins, times: if machine.block == 1 { rows[&part[0]].times } else { 1 }, results }
    };
    groups.iter().flat_map(|group| group.chunks(machine.block as usize)).map(block).collect()
}

/// The code: as many blocks at once as L1BM and L2BM hold.
pub(crate) fn through<S: Sink>(found: &Moves, machine: &Machine, code: &mut S) -> Result<(), TooSmall> {
    let (blocks, size) = (blocks(found, machine), machine.row * machine.block);
    let most = if S::COUNTS { usize::MAX } else { (machine.half() * machine.cycles / machine.block) as usize };
    let room = if S::COUNTS { i64::MAX } else { machine.l2bm };
    let register = code.choose(0);
    let mut left = blocks.as_slice();
    while !left.is_empty() {
        let (mut lifted, mut reads, mut taken) = (FxHashSet::default(), FxHashSet::default(), 0);
        for block in left {
            let new: FxHashSet<&Origin> = block.origins.iter().flatten().filter(|one| !lifted.contains(one)).collect();
            let rows: FxHashSet<&Vec<i64>> =
                new.iter().map(|one| &one.1).filter(|rows| !reads.contains(rows)).collect();
            let words = (lifted.len() + new.len()) as i64 * size;
            let fits = reads.len() + rows.len() <= most;
            if taken > 0 && (!fits || taken == most || words > room) {
                break;
            }
            if !fits {
                let (words, room) = (rows.len() as i64 * size, most as i64 * size);
                return Err(TooSmall { level: Level::L1b, words, room });
            }
            if words > room {
                return Err(TooSmall { level: Level::L2b, words, room });
            }
            lifted.extend(new);
            reads.extend(rows);
            taken += 1;
        }
        let (batch, rest) = left.split_at(taken);
        left = rest;
        together(batch, register, found.times, machine, code);
    }
    Ok(())
}

/// Returns at least how many steps the way takes: each row goes up to L2BM, and comes down to those that take it.
pub(crate) fn least(found: &Moves, machine: &Machine) -> i64 {
    let rows = found.distinct(|m| (m.source, m.source_at)) + found.distinct(|m| (m.result_at, m.source, m.source_at));
    up(rows * found.times, machine.block)
}

/// The code of blocks for which there is room.
fn together<S: Sink>(batch: &[Block], register: i64, times: i64, machine: &Machine, code: &mut S) {
    let (size, together) = (machine.row * machine.block, machine.cycles / machine.block);
    let mut slots: FxHashMap<&Vec<i64>, i64> = FxHashMap::default();
    let (mut reads, mut count) = (Vec::new(), 0);
    for (block, (_, rows)) in batch.iter().flat_map(|block| block.origins.iter().flatten().map(move |o| (block, o))) {
        if !slots.contains_key(rows) {
            slots.insert(rows, reads.len() as i64 * size);
            reads.push(rows);
            count += block.times * times;
        }
    }
    code.runs(&reads, count, together, |code, number, part| {
        let filled = (0..together as usize).flat_map(|index| part[index.min(part.len() - 1)].iter().copied());
        code.line(Line::Lift { read: filled.collect(), at: number * together * size });
    });
    let mut lifted: FxHashMap<&Origin, i64> = FxHashMap::default();
    for (block, origin) in batch.iter().flat_map(|block| block.origins.iter().flatten().map(move |o| (block, o))) {
        let place = lifted.len() as i64 * size;
        if lifted.contains_key(origin) {
            continue;
        }
        lifted.insert(origin, place);
        code.times(block.times * times, |code| {
            machine.pieces(size).for_each(|piece| {
                let (l1bm, l2bm, words) = (slots[&origin.1] + piece, place + piece, machine.l2bm_words);
                code.line(Line::ToL2bm { unit: origin.0, l1bm, l2bm, words });
            })
        });
    }
    let below = machine.half() * machine.cycles * machine.row;
    // Only whole vectors come down: the last one begins with rows that its own rows overwrite.
    let whole = batch.len() as i64 / together * together;
    let spare = (together - batch.len() as i64 % together) % together;
    for (index, block) in (0..).zip(batch) {
        let at = below + (index + if index < whole { 0 } else { spare }) * size;
        let mut goes: Vec<(&Origin, Vec<i64>)> = Vec::new();
        for (unit, origin) in (0..).zip(&block.origins) {
            let Some(origin) = origin else { continue };
            match goes.iter_mut().find(|one| one.0 == origin) {
                Some(one) => one.1.push(unit),
                None => goes.push((origin, vec![unit])),
            }
        }
        for (origin, units) in goes {
            for units in subsets(&units, machine.count(Level::L1b)) {
                code.times(block.times * times, |code| {
                    machine.pieces(size).for_each(|piece| {
                        let (l1bm, l2bm, words) = (at + piece, lifted[origin] + piece, machine.l2bm_words);
                        code.line(Line::FromL2bm { units, l1bm, l2bm, words });
                    })
                });
            }
        }
    }
    let count = batch.iter().map(|block| block.times).sum::<i64>() * times;
    code.runs(batch, count, together, |code, number, part| {
        let spare = together as usize - part.len();
        let rows = (0..together as usize).flat_map(|index| part[index.saturating_sub(spare)].results.iter().copied());
        let at = below + number * together * size;
        code.line(Line::Lower { at, by: 0, write: rows.collect(), register });
    });
}

/// Returns the sets that instructions can name and that together are `units` of `count`: None for all, or the number of one
/// and the bits in which the others differ from it.
fn subsets(units: &[i64], count: i64) -> Vec<Option<(i64, i64)>> {
    if units.len() as i64 == count {
        return vec![None];
    }
    let free = units.iter().fold(0, |free, unit| free | unit ^ units[0]);
    if units.len() == 1 << free.count_ones() {
        return vec![Some((units[0] & !free, free))];
    }
    units.iter().map(|&unit| Some((unit, 0))).collect()
}

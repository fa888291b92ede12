//! Passes between L1Bs through L2BM: rows go up to L1BM and L2BM, and come down to L1Bs and to their new addresses.

use crate::code::{Line, Sink, TooSmall};
use crate::layout::{up, Level, Machine};
use crate::moves::Move;
use crate::rows::{taken, Groups, Rows};
use rustc_hash::FxHashSet;

/// A unit, and the rows that go together.
type Origin = (i64, Vec<i64>);

/// Rows that come down together. For each unit, where its data comes from, if it takes some.
struct Block {
    results: Vec<i64>,
    origins: Vec<Option<Origin>>,
    times: i64,
}

/// Groups result rows that take their data from the same units, as many as one instruction moves.
fn blocks(found: &Rows, machine: &Machine) -> Vec<Block> {
    let mut groups: Groups<Vec<(i64, i64)>, Vec<&[Move]>> = Groups::default();
    for row in found.each() {
        groups.entry(row.iter().map(|m| (m.result, m.source)).collect()).or_default().push(row);
    }
    let block = |part: &[&[Move]]| {
        // The last row is repeated to fill a block.
        let rows: Vec<&[Move]> = (0..machine.block as usize).map(|index| part[index.min(part.len() - 1)]).collect();
        let mut origins = vec![None; machine.count(Level::L1b) as usize];
        for (index, m) in part[0].iter().enumerate() {
            origins[m.result as usize] = Some((m.source, rows.iter().map(|row| row[index].source_at).collect()));
        }
        let results = rows.iter().map(|row| row[0].result_at).collect();
        Block { origins, times: if machine.block == 1 { part[0][0].times } else { 1 }, results }
    };
    groups.values().flat_map(|group| group.chunks(machine.block as usize)).map(block).collect()
}

/// The code: as many blocks at once as L1BM and L2BM hold.
pub(crate) fn through<S: Sink>(found: &Rows, machine: &Machine, code: &mut S) -> Result<(), TooSmall> {
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
pub(crate) fn least(found: &Rows, machine: &Machine) -> i64 {
    let (takes, mut read) = (found.takes(|m| m.source), FxHashSet::default());
    let rows: i64 = takes.iter().filter(|one| read.insert((one.from, one.source_at))).map(|one| one.times).sum();
    up(rows * found.times + taken(&takes, found.times), machine.block)
}

/// The code of blocks for which there is room.
fn together<S: Sink>(batch: &[Block], register: i64, times: i64, machine: &Machine, code: &mut S) {
    let (size, together) = (machine.row * machine.block, machine.cycles / machine.block);
    // How often each is lifted, by its rows, and how often it goes up from a unit.
    let mut slots: Groups<&Vec<i64>, i64> = Groups::default();
    let mut lifted: Groups<&Origin, i64> = Groups::default();
    for (block, origin) in batch.iter().flat_map(|block| block.origins.iter().flatten().map(move |o| (block, o))) {
        slots.entry(&origin.1).or_insert(block.times * times);
        lifted.entry(origin).or_insert(block.times * times);
    }
    let (reads, count): (Vec<&Vec<i64>>, i64) = (slots.keys().copied().collect(), slots.values().sum());
    let place = |index: Option<usize>| index.unwrap_or(0) as i64 * size;
    code.runs(&reads, count, together, |code, number, part| {
        let filled = (0..together as usize).flat_map(|index| part[index.min(part.len() - 1)].iter().copied());
        code.line(Line::Lift { read: filled.collect(), at: number * together * size });
    });
    for (index, ((unit, rows), &often)) in lifted.iter().enumerate() {
        code.times(often, |code| {
            machine.pieces(size).for_each(|piece| {
                let (l1bm, l2bm) = (place(slots.get_index_of(rows)) + piece, place(Some(index)) + piece);
                code.line(Line::ToL2bm { unit: *unit, l1bm, l2bm, words: machine.l2bm_words });
            })
        });
    }
    let below = machine.half() * machine.cycles * machine.row;
    // Only whole vectors come down: the last one begins with rows that its own rows overwrite.
    let whole = batch.len() as i64 / together * together;
    let spare = (together - batch.len() as i64 % together) % together;
    for (index, block) in (0..).zip(batch) {
        let at = below + (index + if index < whole { 0 } else { spare }) * size;
        let mut goes: Groups<&Origin, Vec<i64>> = Groups::default();
        for (unit, origin) in (0..).zip(&block.origins).filter_map(|(unit, origin)| Some((unit, origin.as_ref()?))) {
            goes.entry(origin).or_default().push(unit);
        }
        for (origin, units) in goes {
            for units in subsets(&units, machine.count(Level::L1b)) {
                code.times(block.times * times, |code| {
                    machine.pieces(size).for_each(|piece| {
                        let (l1bm, l2bm) = (at + piece, place(lifted.get_index_of(origin)) + piece);
                        code.line(Line::FromL2bm { units, l1bm, l2bm, words: machine.l2bm_words });
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

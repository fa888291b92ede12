//! Passes between MABs as fills: long words of one MAB, from any addresses, go to the places of neighbouring MABs in a row of
//! L1BM. The row then comes down to all MABs.
//!
//! No masks are needed, so this is the shortest way if each MAB takes from others and few rows do the same.

use crate::code::{late, vector, Line, Place, Sink};
use crate::layout::{up, Level, Machine};
use crate::moves::Move;
use crate::rows::Rows;

struct Fill {
    /// The first of the places.
    first: i64,
    /// The MAB that has the long words.
    unit: i64,
    /// Their addresses.
    words: Vec<i64>,
    /// Whether each comes with the one behind it.
    wide: bool,
}

/// The address of the result to which a row goes, its fills, and how often it is moved. Later fills overwrite earlier ones.
pub(crate) struct FillRow {
    at: i64,
    fills: Vec<Fill>,
    times: i64,
}

/// The code of a pass by fills: as many rows at once as L1BM holds.
pub(crate) fn fills<S: Sink>(rows: &[FillRow], found: &Rows, machine: &Machine, code: &mut S) {
    let (cycles, vector_words) = (machine.cycles, machine.row * machine.cycles);
    let most = if S::COUNTS { rows.len().max(1) } else { (machine.vectors * cycles) as usize };
    for batch in rows.chunks(most) {
        for (number, part) in (0..).zip(batch.chunks(cycles as usize)) {
            // A vector that is not full begins with rows that its last ones overwrite.
            let first = (number + 1) * cycles - part.len() as i64;
            for (index, row) in (0..).zip(part) {
                for fill in &row.fills {
                    let at = (first + index) * machine.row + fill.first * machine.count(Level::Pe);
                    let (unit, wide) = (fill.unit, fill.wide);
                    let line = Line::Fill { unit, read: vector(&fill.words, machine, |&at| at), at, wide };
                    code.times(row.times * found.times, |code| code.line(line));
                }
            }
        }
        let count = batch.iter().map(|row| row.times).sum::<i64>() * found.times;
        code.runs(batch, count, cycles, |code, number, part| {
            let write = late(part, machine, |row| row.at);
            code.line(Line::Lower { at: number * vector_words, by: 0, write, register: 0 });
        });
    }
}

/// The rows of fills. None if they take `most` steps or more, or if a fill may not reach behind its row.
pub(crate) fn rows(found: &Rows, most: i64, place: &Place, machine: &Machine) -> Option<Vec<FillRow>> {
    let (count, cycles, wide) = (machine.count(Level::Mab), machine.cycles, machine.wide);
    // Each row takes at least one fill, and comes down.
    let least = found.each().map(|row| row[0].times).sum::<i64>() * found.times;
    let mut steps = least + up(least, cycles);
    if wide > count || steps >= most {
        return None;
    }
    let even = place.even.0 && count % wide == 0;
    let mut rows = Vec::new();
    for row in found.each() {
        let (mut left, mut fills) = (row, Vec::new());
        while let Some(start) = left.first() {
            let pairs = if even { pairs(left, wide, cycles) } else { 0 };
            let (taken, each) = if wide * pairs > cycles { (wide * pairs, wide) } else { (run(left, cycles), 1) };
            let words = left.iter().take(taken as usize).step_by(each as usize).map(|m| m.source_at).collect();
            fills.push(Fill { first: start.result, unit: start.source, words, wide: each > 1 });
            left = left.get(taken as usize..).unwrap_or_default();
        }
        steps += (fills.len() as i64 - 1) * row[0].times * found.times;
        if steps >= most {
            return None;
        }
        rows.push(FillRow { at: row[0].result_at, fills, times: row[0].times });
    }
    Some(rows)
}

/// Counts the moves from the first on that go from one unit to neighbours, at most `most`.
fn run(moves: &[Move], most: i64) -> i64 {
    let follows = |one: &Move, other: &Move| one.source == other.source && one.result + 1 == other.result;
    moves.chunk_by(follows).next().map_or(0, |run| (run.len() as i64).min(most))
}

/// Counts how often, from the first move on, neighbouring long words go to neighbours, at most `most` times.
fn pairs(moves: &[Move], wide: i64, most: i64) -> i64 {
    let mut found = 0;
    let Some(first) = moves.first() else { return 0 };
    for pair in moves.chunks_exact(wide as usize) {
        let unit = first.result + found * wide;
        let Some(start) = pair.first().map(|m| m.source_at) else { break };
        let wanted =
            |(more, m): (i64, &Move)| (m.source, m.result, m.source_at) == (first.source, unit + more, start + more);
        if found == most || unit % wide != 0 || start % wide != 0 || !(0..).zip(pair).all(wanted) {
            break;
        }
        found += 1;
    }
    found
}

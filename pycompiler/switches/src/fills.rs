//! The steps of passes between MABs that fill rows of L1BM word by word, as in `mab_fills.py`.

use crate::layout::{up, Level, Machine};
use crate::moves::{Move, Moves};

/// Counts the steps. None if there are at least `most`, or if a fill may not reach behind its row.
pub(crate) fn fills(found: &Moves, most: i64, machine: &Machine) -> Option<i64> {
    let (count, cycles, wide) = (machine.count(Level::Mab), machine.cycles, machine.wide);
    if wide * cycles > count * cycles {
        return None;
    }
    let down = up(found.distinct(|m| m.result_at) * found.times, cycles);
    // Each row takes at least so many fills.
    let least = found.distinct(|m| m.result_at) * found.times;
    if least + down >= most {
        return None;
    }
    let mut rows: Vec<&Move> = found.list.iter().collect();
    rows.sort_unstable_by_key(|m| (m.result_at, m.result));
    let even = count % wide == 0;
    let mut fills = 0;
    for row in rows.chunk_by(|one, other| one.result_at == other.result_at) {
        let mut left = row;
        while let Some(first) = left.first() {
            let pairs = if even { pairs(left, wide, cycles) } else { 0 };
            let taken = if wide * pairs > cycles { wide * pairs } else { run(left, cycles) };
            left = left.get(taken as usize..).unwrap_or_default();
            fills += first.times;
        }
    }
    Some(fills * found.times + down)
}

/// Counts the moves from the first on that go from one unit to neighbours, at most `most`.
fn run(moves: &[&Move], most: i64) -> i64 {
    let follows = |one: &&Move, other: &&Move| one.source == other.source && one.result + 1 == other.result;
    moves.chunk_by(follows).next().map_or(0, |run| (run.len() as i64).min(most))
}

/// Counts how often, from the first move on, neighbouring long words go to neighbours, at most `most` times.
fn pairs(moves: &[&Move], wide: i64, most: i64) -> i64 {
    let mut found = 0;
    let Some(first) = moves.first() else { return 0 };
    for pair in moves.chunks_exact(wide as usize) {
        let unit = first.result + found * wide;
        let Some(start) = pair.first().map(|m| m.source_at) else { break };
        let wanted =
            |(more, m): (i64, &&Move)| (m.source, m.result, m.source_at) == (first.source, unit + more, start + more);
        if found == most || unit % wide != 0 || start % wide != 0 || !(0..).zip(pair).all(wanted) {
            break;
        }
        found += 1;
    }
    found
}

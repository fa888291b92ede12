//! Passes between L1Bs whose rows go straight from L1BM to L1BM.

use crate::layout::{up, Level, Machine};
use crate::moves::{Moves, MASK};
use std::collections::HashMap;

/// A unit and the unit that it takes a row from.
type Wanted = (i64, i64);

/// Row `row` of the senders goes to row `at` of `units`.
#[derive(Clone, Copy, Debug)]
pub struct Sent {
    /// The row of the result.
    pub at: i64,
    /// The row of the source.
    pub row: i64,
    /// The instruction.
    pub by: Sending,
    /// The L1Bs that write it, a bit for each; 0 means all.
    pub units: u64,
    times: i64,
}

/// An instruction. Each L1B takes from the sender that agrees with it in some bits of its number, `free`. In the other bits,
/// all senders have those of `first`. A test holds this against the specification's index map.
#[derive(Clone, Copy, Debug, Default)]
pub struct Sending {
    /// The number of one sender.
    pub first: i64,
    /// The bits in which senders differ.
    pub free: i64,
}

/// How rows go straight. None if the machine sends other pieces than single rows, or if L1BM has no room for a vector of each
/// L1B.
pub(crate) fn sent(found: &Moves, machine: &Machine) -> Option<Vec<Sent>> {
    if machine.block > 1 || (machine.vectors + 1) / 2 < machine.count(Level::L1b) {
        return None;
    }
    let mut rows: Vec<(i64, i64, Wanted, i64)> =
        found.list.iter().map(|m| (m.result_at, m.source_at, (m.result, m.source), m.times)).collect();
    rows.sort_unstable();
    let mut known: HashMap<Vec<Wanted>, Option<Vec<(Sending, u64)>>> = HashMap::new();
    let mut out = Vec::new();
    for of_result in rows.chunk_by(|one, other| one.0 == other.0) {
        let mut ways: Vec<Sent> = Vec::new();
        for of_row in of_result.chunk_by(|one, other| one.1 == other.1) {
            let wanted: Vec<Wanted> = of_row.iter().map(|row| row.2).collect();
            let found = match known.get(&wanted) {
                Some(found) => found.clone(),
                None => {
                    let found = cover(&wanted, machine.count(Level::L1b));
                    known.entry(wanted).or_insert(found).clone()
                }
            };
            let (at, row, _, times) = of_row[0];
            ways.extend(found?.into_iter().map(|(by, units)| Sent { at, row, by, units, times }));
        }
        // The one that most units take writes everywhere; of equals, the first.
        ways.sort_by_key(|way| -i64::from(way.units.count_ones()));
        ways.iter_mut().take(1).for_each(|way| way.units = 0);
        out.extend(ways);
    }
    Some(out)
}

pub(crate) fn straight_steps(sent: &[Sent], found: &Moves, machine: &Machine) -> i64 {
    let mut sizes = HashMap::<u64, i64>::new();
    sent.iter().for_each(|one| *sizes.entry(one.units).or_default() += one.times);
    let wide = (machine.row / machine.l2bm_words).max(1);
    let read = up(found.distinct(|m| m.source_at) * found.times, machine.cycles);
    let down: i64 = sizes.values().map(|size| up(size * found.times, machine.cycles)).sum();
    let masks = sizes.keys().filter(|&&units| units != 0).count() as i64;
    let lines: i64 = sent.iter().map(|one| one.times).sum();
    wide * lines * found.times + read + down + MASK * masks
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

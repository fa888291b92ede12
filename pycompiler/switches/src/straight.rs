//! The steps of passes between L1Bs whose rows go straight from L1BM to L1BM, as in `straight_rows.py`.

use crate::layout::{up, Level, Machine};
use crate::moves::{Moves, MASK};
use std::collections::HashMap;

/// A unit and the unit that it takes a row from.
type Wanted = (i64, i64);

/// Counts the steps; None if the machine sends other pieces than single rows, or if L1BM has no room for a vector of each L1B.
///
/// One instruction serves all L1Bs: each takes from the sender that agrees with it in some bits of its number, `free`. In
/// the other bits, all senders have those of `first`. A test holds this against the counts from the specification's index map.
pub(crate) fn straight(found: &Moves, machine: &Machine) -> Option<i64> {
    if machine.block > 1 || (machine.vectors + 1) / 2 < machine.count(Level::L1b) {
        return None;
    }
    let mut rows: Vec<(i64, i64, Wanted, i64)> =
        found.list.iter().map(|m| (m.result_at, m.source_at, (m.result, m.source), m.times)).collect();
    rows.sort_unstable();
    let mut known: HashMap<Vec<Wanted>, Option<Vec<u64>>> = HashMap::new();
    let (mut sent, mut sizes) = (0, HashMap::<u64, i64>::new());
    for of_result in rows.chunk_by(|one, other| one.0 == other.0) {
        let mut ways: Vec<u64> = Vec::new();
        for of_row in of_result.chunk_by(|one, other| one.1 == other.1) {
            let wanted: Vec<Wanted> = of_row.iter().map(|row| row.2).collect();
            let found = match known.get(&wanted) {
                Some(found) => found.clone(),
                None => {
                    let found = cover(&wanted, machine.count(Level::L1b));
                    known.entry(wanted).or_insert(found).clone()
                }
            };
            ways.extend(found?);
        }
        // The one that most units take writes everywhere; of equals, the first.
        ways.sort_by_key(|units| -i64::from(units.count_ones()));
        let times = of_result.first().map_or(1, |row| row.3);
        for (index, &units) in ways.iter().enumerate() {
            *sizes.entry(if index == 0 { 0 } else { units }).or_default() += times;
            sent += times;
        }
    }
    let wide = (machine.row / machine.l2bm_words).max(1);
    let read = up(found.distinct(|m| m.source_at) * found.times, machine.cycles);
    let down: i64 = sizes.values().map(|size| up(size * found.times, machine.cycles)).sum();
    let masks = sizes.keys().filter(|&&units| units != 0).count() as i64;
    Some(wide * sent * found.times + read + down + MASK * masks)
}

/// Returns the units that each of the instructions serves which together bring all of `wanted`. None if some unit stays out.
fn cover(wanted: &[Wanted], count: i64) -> Option<Vec<u64>> {
    let bits = i64::BITS - (count - 1).leading_zeros();
    let mut left = wanted.to_vec();
    let mut out = Vec::new();
    while !left.is_empty() {
        let mut best = 0u64;
        // If all bits were free, each L1B would send to itself: the assembler refuses that.
        for free in 0..(1i64 << bits) - 1 {
            for first in (0..count).filter(|first| first & free == 0) {
                let serves = |&&(unit, origin): &&Wanted| (unit & free | first & !free) == origin;
                let units = left.iter().filter(serves).fold(0, |units, &(unit, _)| units | 1 << unit);
                if u64::count_ones(units) > best.count_ones() {
                    best = units;
                }
            }
        }
        if best == 0 {
            return None;
        }
        out.push(best);
        left.retain(|&(unit, _)| best >> unit & 1 == 0);
    }
    Some(out)
}

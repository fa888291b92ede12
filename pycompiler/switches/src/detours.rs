//! Detours: digits that wait on units while others pass through LM.
//!
//! A segment that the two layouts cut differently must be in Addr in one piece. If LM has no room for it beside the other
//! digits in Addr, some of these wait on units that the segment leaves, or that hold copies. They come back when their
//! level is settled. Digits are cut into primes first, so that any part of one can wait.

use crate::digits::{primes, Part, Segment};
use crate::layout::Level;

/// Returns the segments with all parts cut into parts of prime size.
pub(crate) fn in_primes(segments: Vec<Segment>) -> Vec<Segment> {
    let cut = |parts: &[Part]| -> Vec<Part> {
        let pieces = |part: &Part| {
            let part = *part;
            primes(part.size).into_iter().map(move |d| Part {
                lo: part.lo * d.stride,
                size: d.size,
                level: part.level,
                stride: part.stride * d.stride,
            })
        };
        parts.iter().flat_map(pieces).collect()
    };
    segments.into_iter().map(|s| Segment { source: cut(&s.source), result: cut(&s.result), ..s }).collect()
}

/// Whether a part uses coordinates of the digits from `low` up to `high` of its level.
pub(crate) fn meets(part: &Part, low: i64, high: i64) -> bool {
    part.stride < high && low < part.stride * part.size
}

/// Puts parts from Addr on free digits of a level of `count` units, until Addr has at most `most` long words.
///
/// `parts` has the parts of all segments; `waits` says which of them may wait, by segment and number.
pub(crate) fn park(parts: &mut [Vec<Part>], level: Level, count: i64, waits: &dyn Fn(usize, usize) -> bool, most: i64) {
    let used: Vec<Part> = parts.iter().flatten().filter(|p| p.level == level).copied().collect();
    let mut words =
        parts.iter().flatten().filter(|p| p.level == Level::Addr).fold(1i64, |n, p| n.saturating_mul(p.size));
    let mut free: Vec<(i64, i64)> = Vec::new();
    for digit in primes(count) {
        let end = digit.stride * digit.size;
        if used.iter().any(|part| meets(part, digit.stride, end)) {
            continue;
        }
        match free.last_mut() {
            Some(last) if last.1 == digit.stride => last.1 = end,
            _ => free.push((digit.stride, end)),
        }
    }
    while words > most {
        // The part that leaves the fewest units unused, then the largest, goes to the smallest place.
        let mut best: Option<(i64, i64, usize, usize, usize, i64)> = None;
        for (place, &(low, high)) in free.iter().enumerate() {
            for (index, own) in parts.iter().enumerate() {
                for (which, part) in own.iter().enumerate() {
                    if part.level != Level::Addr || !waits(index, which) {
                        continue;
                    }
                    let Some(end) = end_of(low, high, part.size, count) else { continue };
                    let waste = end / low * 64 / part.size;
                    if best.is_none_or(|(least, size, ..)| (waste, -part.size) < (least, -size)) {
                        best = Some((waste, part.size, place, index, which, end));
                    }
                }
            }
        }
        let Some((_, size, place, index, which, end)) = best else { return };
        let part = &mut parts[index][which];
        (part.level, part.stride) = (level, free[place].0);
        free[place].0 = end;
        free.retain(|&(low, high)| low < high);
        words /= size;
    }
}

/// Returns where the digits end that hold `size` values from stride `low` on; None if they reach past `high`.
fn end_of(low: i64, high: i64, size: i64, count: i64) -> Option<i64> {
    let digits = primes(count);
    digits.iter().map(|d| d.stride * d.size).find(|&end| end <= high && low * size <= end && low < end)
}

//! Guesses of the steps of a switch, from the levels that it must settle and the long words that it moves.

use crate::costs::crossing;
use crate::digits::{axis_segments, copied_digits, is_subset, parts, primes, Part, PrimeDigit, Segment};
use crate::layout::{up, Layout, Level, Machine};
use crate::moves::MASK;

/// A layout of a tensor, prepared for guesses: each layout meets many others.
#[derive(Clone, Debug)]
pub struct Placed {
    /// The parts of each axis.
    axes: Vec<Vec<Part>>,
    /// The digits of each level of [`Level::SETTLED`] over which there are copies.
    copies: [Vec<PrimeDigit>; 5],
    address_words: i64,
    layout: Layout,
}

impl Placed {
    /// Prepares the layout of a tensor of `shape`.
    pub fn new(layout: Layout, shape: &[i64], machine: &Machine) -> Placed {
        let axes = layout.axes.iter().zip(shape).map(|(axis, &size)| parts(axis, size)).collect();
        let copies = Level::SETTLED.map(|level| copied_digits(&layout, level, machine));
        Placed { axes, copies, address_words: layout.address_words(), layout }
    }
}

/// Guesses the steps of a switch of a tensor of `shape` without a search for its passes.
pub fn guess(source: &Placed, result: &Placed, shape: &[i64], machine: &Machine) -> i64 {
    if source.layout == result.layout {
        return 0;
    }
    let mut segments: Vec<Segment> = Vec::new();
    for (axis, (ours, theirs)) in source.axes.iter().zip(&result.axes).enumerate() {
        if ours != theirs {
            axis_segments(axis, ours, theirs, shape[axis], &mut segments);
        }
    }
    let mut open = [false; 7];
    // The digits that a level gets, and whether it loses digits.
    let mut gained: [Vec<PrimeDigit>; 7] = Default::default();
    let mut lost = [false; 7];
    let mut moved = false;
    let mut from = [0u8; 7];
    for segment in segments {
        if segment.source == segment.result {
            continue;
        }
        moved = true;
        for (one, other) in segment.source.iter().flat_map(|a| segment.result.iter().map(move |b| (a, b))) {
            if one.level != other.level && one.level != Level::Addr && other.level != Level::Addr {
                from[other.level as usize] |= 1 << one.level as u8;
            }
        }
        let ours = segment.source.iter().filter(|p| !segment.result.contains(p));
        let theirs = segment.result.iter().filter(|p| !segment.source.contains(p));
        for part in ours {
            open[part.level as usize] = true;
            lost[part.level as usize] = true;
        }
        for part in theirs {
            open[part.level as usize] = true;
            let digits = primes(part.size);
            gained[part.level as usize]
                .extend(digits.iter().map(|d| PrimeDigit { stride: part.stride * d.stride, size: d.size }));
        }
    }
    // Units that hold copies keep their parts: nothing leaves its unit.
    let mut stays = [0; 7];
    for level in Level::SETTLED {
        let number = level as usize;
        let (have, want) = (&source.copies[number], &result.copies[number]);
        open[number] |= !is_subset(want, have);
        if matches!(level, Level::L1b | Level::L2b)
            && !lost[number]
            && is_subset(want, have)
            && is_subset(&gained[number], have)
        {
            stays[number] = gained[number].iter().map(|digit| digit.size).product();
        }
    }
    let (one, other) = (source.address_words, result.address_words);
    let least = |&level: &Level| match stays[level as usize] {
        0 => least(level, one.min(other), one.max(other), machine),
        sets => 2 * machine.cycles + sets * (MASK + up(one.min(other), machine.cycles)),
    };
    let open: Vec<Level> = Level::SETTLED.into_iter().filter(|&level| open[level as usize]).collect();
    if open.is_empty() {
        return if moved { 2 * machine.cycles } else { 0 };
    }
    // Whether a level gives digits to another level that gives digits to it, by way of others if need be.
    for _ in 0..7 {
        for level in 0..7 {
            for other in 0..7 {
                if from[level] >> other & 1 == 1 {
                    from[level] |= from[other];
                }
            }
        }
    }
    let crosses = (0..7).any(|level| from[level] >> level & 1 == 1);
    let steps = open.iter().map(least).sum::<i64>();
    if open.len() == 1 {
        return steps;
    }
    // Passes in the middle move more data. In most networks that costs half as much again. Digits that go round a
    // ring of levels need a second pass over one of them, and more data in between.
    if crosses {
        return 5 * steps / 2;
    }
    3 * steps / 2
}

/// Estimates the steps of a pass over `level`. `fewer` and `more` are the long words per PE of the smaller and of the
/// larger layout.
fn least(level: Level, fewer: i64, more: i64, machine: &Machine) -> i64 {
    let steps = 2 * machine.cycles;
    match level {
        Level::L2b => {
            let moved = fewer * machine.row * machine.count(Level::L1b) * machine.count(Level::L2b);
            steps + 2 * machine.mv_latency + crossing(moved, machine)
        }
        Level::L1b => steps + 2 * fewer * machine.count(Level::L1b),
        _ => steps + up(fewer, machine.cycles) + up(more, machine.cycles),
    }
}

//! The moves of one pass.
//!
//! A pass changes digits of one level and of Addr. All units of the other levels do the same. So a pass is a list of moves
//! from a unit and an address to a unit and an address, where the unit (or word) is one of the level.

use crate::digits::{copied_digits, is_subset, segments, Part, PrimeDigit};
use crate::layout::{Change, Level, Machine};

/// A pass with more moves is refused: no LM has so many words.
const MOST_MOVES: i64 = 1 << 22;

/// One move: address `result_at` of unit `result` takes address `source_at` of unit `source`.
#[derive(Clone, Copy, Debug, Default)]
pub struct Move {
    /// The unit (or word) that takes the value.
    pub result: i64,
    /// The long word of it.
    pub result_at: i64,
    /// The unit (or word) that has the value.
    pub source: i64,
    /// The long word of it.
    pub source_at: i64,
}

/// Moves that are done `times` times, each time at other addresses.
#[derive(Debug)]
pub struct Moves {
    /// The moves of one time.
    pub list: Vec<Move>,
    /// How often all of them are done.
    pub times: i64,
}

/// What the values of one digit add to a move, and to the index on an axis.
struct Dim {
    moves: Vec<Move>,
    axis: Option<usize>,
    lo: i64,
}

impl Dim {
    fn new(size: i64, axis: Option<usize>, lo: i64) -> Dim {
        Dim { moves: vec![Move::default(); size as usize], axis, lo }
    }

    fn put_source(&mut self, level: Level, place: impl Fn(i64) -> i64) {
        for (index, entry) in (0..).zip(&mut self.moves) {
            *(if level == Level::Addr { &mut entry.source_at } else { &mut entry.source }) += place(index);
        }
    }

    fn put_result(&mut self, level: Level, place: impl Fn(i64) -> i64) {
        for (index, entry) in (0..).zip(&mut self.moves) {
            *(if level == Level::Addr { &mut entry.result_at } else { &mut entry.result }) += place(index);
        }
    }
}

/// Returns the moves of the pass over `level`; None if one pass cannot make the change.
///
/// Without `whole`, digits that only change their addresses are left out, and `times` counts their values.
pub(crate) fn moves(change: &Change, level: Level, machine: &Machine, whole: bool) -> Option<Moves> {
    let (source, result, shape) = (&change.source, &change.result, &change.shape);
    for other in Level::SETTLED {
        let (have, want) = (copied_digits(source, other, machine), copied_digits(result, other, machine));
        if other != level && !is_subset(&want, &have) {
            return None;
        }
    }
    let (have, want) = (copied_digits(source, level, machine), copied_digits(result, level, machine));
    let open = |part: &Part| part.level == level || part.level == Level::Addr;
    let found = segments(source, result, shape);
    let mut reach = vec![1; shape.len()];
    for segment in &found {
        reach[segment.axis] *= segment.size;
    }
    let mut dims: Vec<Dim> = Vec::new();
    let mut times = 1i64;
    let mut count = 1i64;
    let mut grow = |size: i64| {
        count = count.saturating_mul(size);
        (count <= MOST_MOVES).then_some(())
    };
    for segment in &found {
        let mut places = segment.source.iter().chain(&segment.result);
        let in_addr = places.clone().all(|p| p.level == Level::Addr);
        if in_addr && !whole && reach[segment.axis] == shape[segment.axis] {
            times = times.saturating_mul(segment.size);
        } else if segment.alike() {
            for (ours, theirs) in segment.source.iter().zip(&segment.result) {
                if open(ours) && open(theirs) {
                    grow(ours.size)?;
                    dims.push(digit(segment.axis, *ours, *theirs, &have));
                } else if open(ours) || open(theirs) || (ours.level, ours.stride) != (theirs.level, theirs.stride) {
                    return None;
                }
            }
        } else {
            if !places.all(open) {
                return None;
            }
            grow(segment.size)?;
            let mut dim = Dim::new(segment.size, Some(segment.axis), segment.lo);
            let digit = |index: i64, part: &Part| index / (part.lo / segment.lo) % part.size * part.stride;
            for part in &segment.source {
                dim.put_source(part.level, |index| digit(index, part));
            }
            for part in &segment.result {
                dim.put_result(part.level, |index| digit(index, part));
            }
            dims.push(dim);
        }
    }
    for copy in &want {
        grow(copy.size)?;
        let mut dim = Dim::new(copy.size, None, 0);
        dim.put_result(level, |index| index * copy.stride);
        if have.contains(copy) {
            dim.put_source(level, |index| index * copy.stride);
        }
        dims.push(dim);
    }
    Some(Moves { list: combined(&dims, shape), times })
}

fn digit(axis: usize, ours: Part, theirs: Part, have: &[PrimeDigit]) -> Dim {
    let mut dim = Dim::new(ours.size, Some(axis), ours.lo);
    dim.put_source(ours.level, |index| index * ours.stride);
    dim.put_result(theirs.level, |index| index * theirs.stride);
    if ours.level == Level::Addr && theirs.level != Level::Addr {
        // The source has copies on these units, so each unit takes the value from its own copy.
        let mut reach = vec![0];
        for copy in have {
            reach = reach.iter().flat_map(|at| (0..copy.size).map(move |value| at + copy.stride * value)).collect();
        }
        if (0..ours.size).all(|index| reach.contains(&(index * theirs.stride))) {
            dim.put_source(theirs.level, |index| index * theirs.stride);
        }
    }
    dim
}

/// Returns the moves for all combinations of the digits' values that lie inside of the axes.
fn combined(dims: &[Dim], shape: &[i64]) -> Vec<Move> {
    let mut out = vec![Move::default()];
    // Digits may reach past the end of an axis. Another element may lie there, so such moves are dropped.
    let last = |axis: usize| -> i64 {
        dims.iter().filter(|d| d.axis == Some(axis)).map(|d| (d.moves.len() as i64 - 1) * d.lo).sum()
    };
    let past: Vec<usize> = (0..shape.len()).filter(|&axis| last(axis) >= shape[axis]).collect();
    let mut indices: Vec<Vec<i64>> = vec![vec![0]; past.len()];
    for dim in dims {
        let next = out.iter().flat_map(|a| {
            dim.moves.iter().map(|b| Move {
                result: a.result + b.result,
                result_at: a.result_at + b.result_at,
                source: a.source + b.source,
                source_at: a.source_at + b.source_at,
            })
        });
        out = next.collect();
        for (&axis, index) in past.iter().zip(&mut indices) {
            let lo = if dim.axis == Some(axis) { dim.lo } else { 0 };
            let next = index.iter().flat_map(|at| (0..dim.moves.len() as i64).map(move |value| at + value * lo));
            *index = next.collect();
        }
    }
    let mut place = 0;
    out.retain(|_| {
        let inside = past.iter().zip(&indices).all(|(&axis, index)| index[place] < shape[axis]);
        place += 1;
        inside
    });
    out
}

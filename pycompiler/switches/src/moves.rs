//! The moves of one pass.
//!
//! A pass changes digits of one level and of Addr. All units of the other levels do the same. So a pass is a list of moves
//! from a unit and an address to a unit and an address, where the unit (or word) is one of the level.
//!
//! [`Digits`] describes the moves by the digits that differ, without listing them. Passes of many switches have the same
//! description.

use crate::digits::{copied_digits, is_subset, segments, Part, PrimeDigit};
use crate::layout::{up, Change, Level, Machine};

/// A pass with more moves is refused: no LM has so many words.
const MOST_MOVES: i64 = 1 << 22;

/// One move: address `result_at` of unit `result` takes address `source_at` of unit `source`.
#[derive(Clone, Copy, Debug)]
pub struct Move {
    /// The unit (or word) that takes the value.
    pub result: i64,
    /// The long word of it.
    pub result_at: i64,
    /// The unit (or word) that has the value.
    pub source: i64,
    /// The long word of it.
    pub source_at: i64,
    /// How often it is done, each time at other addresses. Moves with a common address are done equally often.
    pub times: i64,
}

impl Move {
    /// The move from address 0 of unit 0 to the same place, done once.
    pub const HERE: Move = Move { result: 0, result_at: 0, source: 0, source_at: 0, times: 1 };

    /// The move that combines the values of two digits.
    fn with(&self, other: &Move) -> Move {
        Move {
            result: self.result + other.result,
            result_at: self.result_at + other.result_at,
            source: self.source + other.source,
            source_at: self.source_at + other.source_at,
            times: self.times * other.times,
        }
    }
}

/// Moves that are done `times` times, each time at other addresses.
#[derive(Debug)]
pub struct Moves {
    /// The moves of one time.
    pub list: Vec<Move>,
    /// How often all of them are done.
    pub times: i64,
}

/// Moves of chosen PEs.
#[derive(Debug)]
pub struct Chosen {
    /// The moves.
    pub moves: Moves,
    /// Whether only some PEs may write, whatever their units on the level of the moves.
    pub around: bool,
    /// The L1B in each L2B whose PEs write, if only one does.
    pub l1b: Option<i64>,
}

impl Moves {
    /// Whether they are between units of the level, and no address or number of times is negative.
    pub(crate) fn is_valid(&self, level: Level, machine: &Machine) -> bool {
        let count = machine.counts.get(level as usize).copied().unwrap_or(0);
        let legal = |m: &Move| {
            (0..count).contains(&m.result)
                && (0..count).contains(&m.source)
                && m.result_at.min(m.source_at).min(m.times) >= 0
        };
        count > 0 && self.times >= 0 && self.list.iter().all(legal)
    }
}

/// A term that a digit of index `value` adds to a place: `value / by % size * stride`, to the address or to the unit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
struct Term {
    by: i64,
    size: i64,
    stride: i64,
    address: bool,
}

/// What the values of one digit add to a move, and to the index on an axis. `axis` counts only axes that digits reach past.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
struct Digit {
    size: i64,
    source: Vec<Term>,
    result: Vec<Term>,
    axis: Option<usize>,
    lo: i64,
}

/// The moves of a pass, as combinations of the values of digits.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Digits {
    /// The digits in a fixed order, whatever their axes.
    digits: Vec<Digit>,
    /// The axes that the digits reach past, with their sizes. Another element may lie there, so such moves are dropped.
    past: Vec<(usize, i64)>,
    /// How often all moves are done, each time at other addresses.
    pub(crate) times: i64,
    /// Whether one move may stand for moves at several addresses.
    join: bool,
}

impl Digits {
    /// Returns the digits of the pass over `level`; None if one pass cannot make the change.
    ///
    /// Without `whole`, digits that only change their addresses are left out, and `times` counts their values.
    pub(crate) fn new(change: &Change, level: Level, machine: &Machine, whole: bool) -> Option<Digits> {
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
        let mut copies = Copies::new(&have);
        let mut reach = vec![1; shape.len()];
        for segment in &found {
            reach[segment.axis] *= segment.size;
        }
        let mut digits: Vec<Digit> = Vec::new();
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
                        digits.push(digit(segment.axis, shape[segment.axis], *ours, *theirs, &mut copies));
                    } else if open(ours) || open(theirs) || (ours.level, ours.stride) != (theirs.level, theirs.stride) {
                        return None;
                    }
                }
            } else {
                if !places.all(open) {
                    return None;
                }
                grow(segment.size)?;
                let term = |part: &Part| Term {
                    by: part.lo / segment.lo,
                    size: part.size,
                    stride: part.stride,
                    address: part.level == Level::Addr,
                };
                let terms = |parts: &[Part]| parts.iter().map(term).collect();
                let (source, result) = (terms(&segment.source), terms(&segment.result));
                digits.push(Digit { size: segment.size, source, result, axis: Some(segment.axis), lo: segment.lo });
            }
        }
        for copy in &want {
            grow(copy.size)?;
            let unit = vec![Term { by: 1, size: copy.size, stride: copy.stride, address: false }];
            let source = if have.contains(copy) { unit.clone() } else { Vec::new() };
            digits.push(Digit { size: copy.size, source, result: unit, axis: None, lo: 0 });
        }
        let mut made = Digits { digits, past: Vec::new(), times, join: !whole };
        let past = (0..shape.len()).filter(|&axis| made.last(axis) >= shape[axis]);
        made.past = past.map(|axis| (axis, shape[axis])).collect();
        for digit in &mut made.digits {
            if !made.past.iter().any(|&(axis, _)| digit.axis == Some(axis)) {
                (digit.axis, digit.lo) = (None, 0);
            }
        }
        if !whole {
            // Wide accesses between MABs tell apart only addresses that differ by less.
            made.fold(if level == Level::Mab { machine.wide } else { 1 });
        }
        sorting::sort(&mut made.digits);
        Some(made)
    }

    /// Takes out digits whose values all do the same at other addresses, `apart` or a multiple of it from each other.
    fn fold(&mut self, apart: i64) {
        let mut times = self.times;
        self.digits.retain_mut(|digit| {
            let mut terms = digit.source.iter().chain(&digit.result);
            let copies = digit.source.is_empty() || digit.result.is_empty();
            if digit.axis.is_some() || copies || !terms.clone().all(|term| term.address) {
                return true;
            }
            if terms.all(|term| term.stride % apart == 0) {
                times = times.saturating_mul(digit.size);
                return false;
            }
            let [source, result] = [&mut digit.source, &mut digit.result].map(|terms| terms.as_mut_slice());
            if let ([one], [other]) = (source, result) {
                if digit.size % apart == 0 && digit.size > apart {
                    times = times.saturating_mul(digit.size / apart);
                    (digit.size, one.size, other.size) = (apart, apart, apart);
                }
            }
            true
        });
        self.times = times;
    }

    /// Returns the moves for all combinations of the digits' values that lie inside of the axes.
    ///
    /// If all values of a digit only change addresses, and lie inside of their axis with all values of the other digits,
    /// one move stands for them.
    pub(crate) fn moves(&self) -> Moves {
        let mut list = vec![Move::HERE];
        // The index on each axis in `past`, for each move.
        let mut indices: Vec<Vec<i64>> = vec![vec![0]; self.past.len()];
        let mut left: Vec<i64> = self.past.iter().map(|&(axis, _)| self.last(axis)).collect();
        // Where a major digit is known to lie inside, the minor ones do too.
        let mut order: Vec<&Digit> = self.digits.iter().collect();
        sorting::sort_by_key(&mut order, |digit| (!self.joins(digit), -digit.lo));
        for digit in order {
            let own = self.past.iter().position(|&(axis, _)| digit.axis == Some(axis));
            let values: Vec<Move> = (0..digit.size).map(|value| digit.at(value)).collect();
            own.iter().for_each(|&place| left[place] -= (digit.size - 1) * digit.lo);
            let mut next = Vec::with_capacity(list.len() * values.len());
            let mut from: Vec<(usize, i64)> = Vec::new();
            for (number, before) in list.iter().enumerate() {
                // So many values lie inside with all values of the digits that are left.
                let sure = match own.filter(|_| self.joins(digit)) {
                    Some(place) => inside(self.past[place].1 - left[place] - indices[place][number], digit),
                    None => 0,
                };
                if sure > 1 {
                    next.push(Move { times: before.times * sure, ..before.with(&values[0]) });
                    from.push((number, 0));
                }
                let apart = if sure > 1 { sure } else { 0 };
                for value in apart..digit.size {
                    let at = |place: usize| indices[place][number] + value * digit.lo < self.past[place].1;
                    if own.is_none_or(at) {
                        next.push(before.with(&values[value as usize]));
                        from.push((number, value));
                    }
                }
            }
            list = next;
            for (place, index) in indices.iter_mut().enumerate() {
                let lo = if own == Some(place) { digit.lo } else { 0 };
                *index = from.iter().map(|&(number, value)| index[number] + value * lo).collect();
            }
        }
        Moves { list, times: self.times }
    }

    /// Whether one value of a digit may stand for several.
    fn joins(&self, digit: &Digit) -> bool {
        let mut terms = digit.source.iter().chain(&digit.result);
        self.join && digit.axis.is_some() && terms.all(|term| term.address)
    }

    /// The largest index that the digits reach on an axis.
    fn last(&self, axis: usize) -> i64 {
        self.digits.iter().filter(|d| d.axis == Some(axis)).map(|d| (d.size - 1) * d.lo).sum()
    }
}

/// Returns how many values of a digit lie below `end`.
fn inside(end: i64, digit: &Digit) -> i64 {
    up(end.max(0), digit.lo).min(digit.size)
}

impl Digit {
    /// Returns what a value of the digit adds to a move.
    fn at(&self, value: i64) -> Move {
        let place = |terms: &[Term], address: bool| -> i64 {
            let own = terms.iter().filter(|term| term.address == address);
            own.map(|term| value / term.by % term.size * term.stride).sum()
        };
        Move {
            result: place(&self.result, false),
            result_at: place(&self.result, true),
            source: place(&self.source, false),
            source_at: place(&self.source, true),
            times: 1,
        }
    }
}

/// The units, beside one, that have copies of its values, and those that digits take together.
struct Copies {
    reach: Vec<i64>,
    /// Each unit with the index of its element on the last axis that was looked at.
    taken: Vec<(i64, i64)>,
    axis: usize,
}

impl Copies {
    fn new(have: &[PrimeDigit]) -> Copies {
        let more = |reach: Vec<i64>, copy: &PrimeDigit| {
            reach.iter().flat_map(|at| (0..copy.size).map(move |value| at + copy.stride * value)).collect()
        };
        Copies { reach: have.iter().fold(vec![0], more), taken: vec![(0, 0)], axis: 0 }
    }

    /// Whether there are copies for all values of one more digit, beside those that are taken. Then it takes them.
    ///
    /// `ours` is the digit of an axis of `length`: nothing lies behind its last element.
    fn take(&mut self, axis: usize, length: i64, ours: &Part, stride: i64) -> bool {
        let same = self.axis == axis;
        let with = |&(unit, index): &(i64, i64)| {
            let index = if same { index } else { 0 };
            (0..ours.size).map(move |value| (unit + stride * value, index + ours.lo * value))
        };
        let taken: Vec<_> = self.taken.iter().flat_map(with).filter(|&(_, index)| index < length).collect();
        let found = taken.iter().all(|(unit, _)| self.reach.contains(unit));
        if found {
            (self.taken, self.axis) = (taken, axis);
        }
        found
    }
}

fn digit(axis: usize, length: i64, ours: Part, theirs: Part, copies: &mut Copies) -> Digit {
    let term = |part: &Part| Term { by: 1, size: ours.size, stride: part.stride, address: part.level == Level::Addr };
    let (mut source, result) = (vec![term(&ours)], vec![term(&theirs)]);
    if ours.level == Level::Addr && theirs.level != Level::Addr {
        // The source has copies on these units, so each unit takes the value from its own copy.
        if copies.take(axis, length, &ours, theirs.stride) {
            source.push(term(&theirs));
        }
    }
    Digit { size: ours.size, source, result, axis: Some(axis), lo: ours.lo }
}

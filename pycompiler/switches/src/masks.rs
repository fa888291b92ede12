//! Masks of units of a level, and the registers that keep them.

use std::collections::VecDeque;
use std::ops::Range;

/// The most lines that make a mask, when the number of the unit is at hand.
pub(crate) const MASK: i64 = 3;

/// Instructions whose last flags choose units by their number, and the literal that the first joins with the number.
///
/// The instructions are numbered: exclusive or, and, minimum, maximum; and followed by not (flags of zero); or followed by
/// not. None if no such flags choose these of `count` units.
pub fn comparison(units: u64, count: i64) -> Option<(usize, i64)> {
    let forms: [fn(i64, i64) -> bool; 6] = [
        |unit, literal| unit == literal,
        |unit, literal| unit & literal == 0,
        |unit, literal| unit <= literal,
        |unit, literal| unit >= literal,
        |unit, literal| unit & literal != 0,
        |unit, literal| unit & literal == literal,
    ];
    let chosen =
        |number: usize, literal| (0..count).all(|unit| (units >> unit & 1 == 1) == forms[number](unit, literal));
    let found = |mut numbers: Range<usize>, literal| Some((numbers.find(|&number| chosen(number, literal))?, literal));
    let first = |numbers: Range<usize>| (0..count).find_map(|literal| found(numbers.clone(), literal));
    first(0..4).or_else(|| first(4..6))
}

/// Counts the lines that make the mask of units. Without a comparison the first such mask also copies the units' number.
pub(crate) fn choosing_lines(units: u64, count: i64, registers: &mut Registers) -> i64 {
    match comparison(units, count) {
        Some((number, _)) => 2 + i64::from(number >= 4),
        None => MASK + i64::from(!std::mem::replace(&mut registers.numbered, true)),
    }
}

/// The mask registers of a pass. Register 0 masks nothing.
pub(crate) struct Registers {
    most: i64,
    /// For each part, whether only some PEs may write. Such parts have a register each.
    around: Vec<bool>,
    made: VecDeque<((usize, u64), i64)>,
    numbered: bool,
}

impl Registers {
    pub(crate) fn new(most: i64, around: Vec<bool>) -> Registers {
        Registers { most, around, made: VecDeque::new(), numbered: false }
    }

    /// Returns the register of units for a part, and whether their mask must be made. The oldest mask gives way.
    pub(crate) fn choose(&mut self, part: usize, units: u64) -> (i64, bool) {
        let own = self.around.iter().filter(|&&around| around).count() as i64;
        if units == 0 && (own == 0 || !self.around[part]) {
            return (0, false);
        }
        if let Some(&(_, register)) = self.made.iter().find(|known| known.0 == (part, units)) {
            return (register, false);
        }
        let most = if own > 0 { own.min(self.most) } else { self.most };
        let oldest = if (self.made.len() as i64) < most { None } else { self.made.pop_front() };
        let register = oldest.map_or(self.made.len() as i64 + 1, |known| known.1);
        self.made.push_back(((part, units), register));
        (register, true)
    }
}

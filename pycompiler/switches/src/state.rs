//! The states of the search: where the digits are between two passes.

use crate::detours::meets;
use crate::digits::{Part, PrimeDigit};
use crate::layout::Level;

/// The places of all digits. Strides in Addr do not count.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct State {
    /// The parts of each segment.
    pub(crate) parts: Vec<Vec<Part>>,
    /// Whether a segment is cut as the wanted layout cuts it.
    pub(crate) wanted_form: Vec<bool>,
    /// For each level of `SETTLED`, the digits over which there are copies.
    pub(crate) copies: [Vec<PrimeDigit>; 5],
}

impl State {
    /// Brings the parts that belong on `level` from Addr, if nothing takes their places.
    pub(crate) fn bring(&mut self, level: Level, wanted: &[Vec<Part>]) {
        for (index, goals) in wanted.iter().enumerate() {
            if !self.wanted_form[index] {
                continue;
            }
            for (which, goal) in goals.iter().enumerate().filter(|(_, goal)| goal.level == level) {
                let taken = |p: &Part| p.level == level && meets(p, goal.stride, goal.stride * goal.size);
                if self.parts[index][which].level == Level::Addr && !self.parts.iter().flatten().any(taken) {
                    self.parts[index][which] = *goal;
                }
            }
        }
    }
}

/// Joins neighbours that continue each other.
pub(crate) fn joined(parts: &mut Vec<Part>) {
    sorting::sort_by_key(parts, |p| p.lo);
    parts.dedup_by(|next, last| {
        let follows = last.level == next.level && last.lo * last.size == next.lo;
        let continues = follows && last.stride * last.size == next.stride;
        if continues {
            last.size *= next.size;
        }
        continues
    });
}

pub(crate) fn moved(mut part: Part, wanted: Part, level: Level) -> Part {
    if part.level == level && part != wanted {
        part = part.in_addr();
    }
    if part.level == Level::Addr && wanted.level == level {
        return wanted;
    }
    part
}

/// Returns the parts with stride 0 in Addr.
pub(crate) fn placed(parts: &[Part]) -> Vec<Part> {
    parts.iter().map(|p| if p.level == Level::Addr { p.in_addr() } else { *p }).collect()
}

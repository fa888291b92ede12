//! Places of words in an index map, and their order as numbers.

use super::expr::ExprError;
use super::model::Counts;

/// One end of one moved long word. Coordinates that the map does not name are 0 here and stand for the unit that runs
/// the map. `addr` is the offset from the written address in long words.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[allow(missing_docs)] // the levels' names
pub struct Place {
    pub group: u32,
    pub l2b: u32,
    pub l1b: u32,
    pub mab: u32,
    pub pe: u32,
    pub cycle: u32,
    /// The number of the long word in a PE operand of two long words. For a narrowed result, the number of the word in
    /// its long word.
    pub half: u32,
    pub addr: u64,
}

/// The coordinates that a map may name, in the order of [`Place`].
pub const COORDINATES: [&str; 8] = ["group", "l2b", "l1b", "mab", "pe", "cycle", "half", "addr"];

/// Long words of the widest PE operand. `half` counts them.
pub const HALVES: u32 = 2;

/// One moved long word: source and destination.
pub type Move = (Place, Place);

/// A destination of a reduction and the elements that are reduced into it, in the order of the tree. `None` is the
/// neutral element.
pub type Meeting = (Place, Vec<Option<Place>>);

impl Place {
    /// The unit that the place lies in: the place with offset 0.
    pub fn unit(&self) -> Place {
        Place { addr: 0, ..*self }
    }

    /// Returns the place with these values of the coordinates.
    pub(super) fn from_values(values: [i64; COORDINATES.len()]) -> Result<Place, ExprError> {
        let low = |v: i64| u32::try_from(v).map_err(|_| ExprError(format!("a coordinate is {v}")));
        let [group, l2b, l1b, mab, pe, cycle, half, addr] = values;
        Ok(Place {
            group: low(group)?,
            l2b: low(l2b)?,
            l1b: low(l1b)?,
            mab: low(mab)?,
            pe: low(pe)?,
            cycle: low(cycle)?,
            half: low(half)?,
            addr: u64::try_from(addr).map_err(|_| ExprError(format!("an offset is {addr}")))?,
        })
    }
}

/// The places of a machine in a memory of a size. A place is also a number: numbers are sorted like places, and faster.
pub(super) struct Places {
    extents: [u32; 7],
    size: u64,
}

impl Places {
    pub(super) fn new(counts: &Counts, size: u64) -> Places {
        let Counts { group, l2b, l1b, mab, pe, cycle } = *counts;
        Places { extents: [group, l2b, l1b, mab, pe, cycle, HALVES], size }
    }

    /// The number of a place; `None` if the machine has no such place.
    pub(super) fn number(&self, at: &Place) -> Option<u128> {
        let units = [at.group, at.l2b, at.l1b, at.mab, at.pe, at.cycle, at.half];
        let mut number = 0u128;
        for (unit, extent) in units.iter().zip(self.extents) {
            if *unit >= extent {
                return None;
            }
            number = number * u128::from(extent) + u128::from(*unit);
        }
        (at.addr < self.size).then(|| number * u128::from(self.size) + u128::from(at.addr))
    }

    /// The place with a number.
    pub(super) fn place(&self, number: u128) -> Place {
        let (mut rest, addr) = (number / u128::from(self.size), (number % u128::from(self.size)) as u64);
        let mut units = [0u32; 7];
        for (unit, extent) in units.iter_mut().zip(self.extents).rev() {
            *unit = (rest % u128::from(extent)) as u32;
            rest /= u128::from(extent);
        }
        let [group, l2b, l1b, mab, pe, cycle, half] = units;
        Place { group, l2b, l1b, mab, pe, cycle, half, addr }
    }

    /// The number of the unit and the offset in it.
    pub(super) fn split(&self, number: u128) -> (u128, u128) {
        (number / u128::from(self.size), number % u128::from(self.size))
    }
}

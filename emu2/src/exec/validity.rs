//! Validity of words: a bit is 1 where something has written the bit of the value. It travels as values do. A lane of a
//! result is valid if all lanes that it depends on are.

use super::access::UPPER;
use super::source::Conversion;
use crate::num::lane::Lane;

/// The validity of a long word all of whose bits are valid.
pub(super) const VALID: u64 = u64::MAX;

/// The bits of lanes that are valid as a whole.
#[inline]
pub(super) fn whole_lanes(word: u64, lane: Lane) -> u64 {
    match lane.width() {
        64 => {
            if word == VALID {
                VALID
            } else {
                0
            }
        }
        width => {
            let lane = VALID >> (u64::BITS - width);
            let keeps = |at: u32| word >> at & lane == lane;
            (0..u64::BITS / width).map(|k| k * width).filter(|at| keeps(*at)).fold(0, |bits, at| bits | lane << at)
        }
    }
}

/// The validity of a converted source.
pub(super) fn converted(conversion: Option<Conversion>, l0: u64, l1: u64) -> (u64, u64) {
    let half = |word: u64, k: u32| word >> (48 - 16 * k) & 0xFFFF == 0xFFFF;
    let pair = |one: bool, other: bool| if one { UPPER } else { 0 } | if other { !UPPER } else { 0 };
    let single = |word: u64, k: u32| word >> (32 - 32 * k) & !UPPER == !UPPER;
    match conversion {
        None => (l0, l1),
        Some(Conversion::ExtendHalves) => (pair(half(l0, 0), half(l0, 1)), pair(half(l0, 2), half(l0, 3))),
        Some(Conversion::ExtendHalfPair) => (pair(half(l0, 0), half(l0, 1)), VALID),
        Some(Conversion::ExtendSingle) => (if single(l0, 0) { VALID } else { 0 }, VALID),
        Some(Conversion::ReduceSingles) => {
            let from = [single(l0, 0), single(l0, 1), single(l1, 0), single(l1, 1)];
            let halves = from.iter().enumerate().filter(|(_, valid)| **valid);
            (halves.fold(0, |bits, (k, _)| bits | 0xFFFF << (48 - 16 * k)), VALID)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lanes() {
        let table = [
            (0xFFFF_FFFF_FFFF_FFFF, Lane::D, VALID),
            (0xFFFF_FFFF_FFFF_FFFE, Lane::L, 0),
            (0xFFFF_FFFF_FFFF_0000, Lane::F, 0xFFFF_FFFF_0000_0000),
            (0xFFFF_0FFF_FFFF_FFFF, Lane::I, 0x0000_0000_FFFF_FFFF),
            (0xFFFF_0FFF_FFFF_7FFF, Lane::H, 0xFFFF_0000_FFFF_0000),
        ];
        for (word, lane, expected) in table {
            assert_eq!(whole_lanes(word, lane), expected, "{word:x} {lane:?}");
        }
    }

    #[test]
    fn conversions() {
        let word = 0xFFFF_0000_FFFF_FFFF;
        let table = [
            (Conversion::ExtendHalves, (UPPER, VALID)),
            (Conversion::ExtendHalfPair, (UPPER, VALID)),
            (Conversion::ExtendSingle, (0, VALID)),
            (Conversion::ReduceSingles, (0x0000_FFFF_FFFF_0000, VALID)),
        ];
        for (conversion, expected) in table {
            assert_eq!(converted(Some(conversion), word, UPPER), expected, "{conversion:?}");
        }
    }
}

//! Element types of tensors on the host and their words on the device.

use crate::num::convert::{half_to_single, single_to_half};

/// The type of an element on the host, by ONNX's name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Elem {
    Float,
    Double,
    Float16,
    Bfloat16,
    Bool,
    /// Bytes, and whether it is signed.
    Whole(usize, bool),
}

const ELEMS: [(&str, Elem, &str); 13] = [
    ("float", Elem::Float, "f4"),
    ("double", Elem::Double, "f8"),
    ("float16", Elem::Float16, "f2"),
    ("bfloat16", Elem::Bfloat16, ""),
    ("bool", Elem::Bool, "b1"),
    ("int8", Elem::Whole(1, true), "i1"),
    ("uint8", Elem::Whole(1, false), "u1"),
    ("int16", Elem::Whole(2, true), "i2"),
    ("uint16", Elem::Whole(2, false), "u2"),
    ("int32", Elem::Whole(4, true), "i4"),
    ("uint32", Elem::Whole(4, false), "u4"),
    ("int64", Elem::Whole(8, true), "i8"),
    ("uint64", Elem::Whole(8, false), "u8"),
];

impl Elem {
    /// The type that ONNX calls `name`.
    pub(super) fn named(name: &str) -> Option<Elem> {
        ELEMS.iter().find(|row| row.0 == name).map(|row| row.1)
    }

    /// The type that numpy calls `name`, without its byte order: `f4`.
    pub(super) fn of_numpy(name: &str) -> Option<Elem> {
        ELEMS.iter().find(|row| !row.2.is_empty() && row.2 == name).map(|row| row.1)
    }

    /// numpy's name; empty if numpy has no such type.
    pub(super) fn numpy(self) -> &'static str {
        ELEMS.iter().find(|row| row.1 == self).map_or("", |row| row.2)
    }

    /// ONNX's name.
    pub(super) fn name(self) -> &'static str {
        ELEMS.iter().find(|row| row.1 == self).map_or("", |row| row.0)
    }

    pub(super) fn bytes(self) -> usize {
        match self {
            Elem::Float => 4,
            Elem::Double => 8,
            Elem::Float16 | Elem::Bfloat16 => 2,
            Elem::Bool => 1,
            Elem::Whole(bytes, _) => bytes,
        }
    }

    fn is_float(self) -> bool {
        !matches!(self, Elem::Bool | Elem::Whole(..))
    }
}

/// The type of a word on the device: its bits, and whether it is a half.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Dtype {
    pub(super) bits: u32,
    half: bool,
    float: bool,
}

impl Dtype {
    /// The type that apps call `name`, if values of it lie in DRAM.
    pub(super) fn named(name: &str) -> Option<Dtype> {
        let (bits, half, float) = match name {
            "Half" => (16, true, true),
            "Float" => (32, false, true),
            "Double" => (64, false, true),
            "SingleBool" | "Int" | "UInt" => (32, false, false),
            "Long" | "ULong" => (64, false, false),
            _ => return None,
        };
        Some(Dtype { bits, half, float })
    }

    /// Whether words of this type hold elements of `elem`.
    pub(super) fn holds(self, elem: Elem) -> bool {
        let width = elem.bytes() as u32 * 8;
        match elem {
            Elem::Bfloat16 | Elem::Float16 | Elem::Float => self.float && (self.half || self.bits == 32),
            Elem::Double => self.float && self.bits == 64,
            Elem::Bool => !self.float && self.bits == 32,
            Elem::Whole(..) => !self.float && (width == self.bits || (width < 32 && self.bits == 32)),
        }
    }

    /// The word of an element, given as its little-endian bytes.
    pub(super) fn word(self, elem: Elem, bytes: &[u8]) -> u64 {
        let raw = number(bytes);
        match elem {
            Elem::Bool => mask(self.bits, if raw != 0 { u64::MAX } else { 0 }),
            Elem::Whole(size, signed) => {
                let shift = 64 - 8 * size as u32;
                let wide = if signed { ((raw << shift) as i64 >> shift) as u64 } else { raw };
                mask(self.bits, wide)
            }
            Elem::Double => raw,
            _ => {
                let single = match elem {
                    Elem::Float16 => widened(raw as u16),
                    Elem::Bfloat16 => (raw as u32) << 16,
                    _ => raw as u32,
                };
                u64::from(if self.half { u32::from(to_half(single)) } else { single })
            }
        }
    }

    /// Appends the little-endian bytes of the element in a word.
    pub(super) fn element(self, elem: Elem, word: u64, out: &mut Vec<u8>) {
        if elem == Elem::Bool {
            return out.push(u8::from(word != 0));
        }
        if !elem.is_float() || elem == Elem::Double {
            return out.extend_from_slice(&word.to_le_bytes()[..elem.bytes()]);
        }
        let single = if self.half { half_to_single(word as u16) } else { word as u32 };
        match elem {
            Elem::Float16 => out.extend_from_slice(&narrowed(single).to_le_bytes()),
            Elem::Bfloat16 => out.extend_from_slice(&((rounded(single, 16) >> 16) as u16).to_le_bytes()),
            _ => out.extend_from_slice(&single.to_le_bytes()),
        }
    }
}

fn number(bytes: &[u8]) -> u64 {
    bytes.iter().rev().fold(0, |found, byte| found << 8 | u64::from(*byte))
}

fn mask(bits: u32, value: u64) -> u64 {
    if bits == 64 {
        value
    } else {
        value & ((1 << bits) - 1)
    }
}

/// The chip's half; a NaN is an infinity there.
fn to_half(single: u32) -> u16 {
    single_to_half(if single & 0x7FFF_FFFF > 0x7F80_0000 { single & 0xFF80_0000 } else { single })
}

/// `bits` with the lowest `dropped` ones rounded away, to nearest, ties to even.
fn rounded(bits: u32, dropped: u32) -> u32 {
    bits.wrapping_add((1 << (dropped - 1)) - 1 + (bits >> dropped & 1)) >> dropped << dropped
}

/// The single that equals an IEEE half.
fn widened(half: u16) -> u32 {
    let (sign, exponent, fraction) = (u32::from(half >> 15) << 31, u32::from(half >> 10 & 31), u32::from(half & 0x3FF));
    match (exponent, fraction) {
        (0, 0) => sign,
        (0, fraction) => sign | (fraction as f32 / 16_777_216.0).to_bits(),
        (31, fraction) => sign | 0x7F80_0000 | fraction << 13,
        _ => sign | (exponent + 112) << 23 | fraction << 13,
    }
}

/// A single rounded to an IEEE half, to nearest, ties to even.
fn narrowed(single: u32) -> u16 {
    let (sign, size) = ((single >> 16 & 0x8000) as u16, single & 0x7FFF_FFFF);
    if size > 0x7F80_0000 {
        return sign | 0x7E00 | (size >> 13 & 0x3FF) as u16;
    }
    if size < 0x3880_0000 {
        // Below the smallest normal half: 2^-24 is the unit. The sum rounds to nearest even.
        let units = f32::from_bits(size) * 16_777_216.0;
        return sign | units.round_ties_even() as u16;
    }
    let found = (rounded(size, 13) - 0x3800_0000) >> 13;
    sign | found.min(0x7C00) as u16
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn halves_of_ieee_come_back() {
        for half in 0..=u16::MAX {
            let nan = half & 0x7C00 == 0x7C00 && half & 0x3FF != 0;
            assert!(nan || narrowed(widened(half)) == half, "{half:04x}");
        }
    }

    #[test]
    fn rounding_is_to_nearest_even() {
        let table = [
            (1.0f32, 0x3C00u16),
            (1.0 + 1.0 / 2048.0, 0x3C00),
            (1.0 + 3.0 / 2048.0, 0x3C02),
            (65_519.0, 0x7BFF),
            (65_520.0, 0x7C00),
            (f32::INFINITY, 0x7C00),
            (-5.960_464_5e-8, 0x8001),
            (2.980_232_2e-8, 0x0000),
            (3.0e-8, 0x0001),
        ];
        for (single, half) in table {
            assert_eq!(narrowed(single.to_bits()), half, "{single}");
        }
    }

    #[test]
    fn words_hold_what_they_should() {
        let int = Dtype::named("Int").unwrap();
        assert_eq!(int.word(Elem::Whole(1, true), &[0xFF]), 0xFFFF_FFFF);
        assert_eq!(int.word(Elem::Whole(1, false), &[0xFF]), 0xFF);
        let masks = Dtype::named("SingleBool").unwrap();
        assert_eq!(masks.word(Elem::Bool, &[1]), 0xFFFF_FFFF);
        let mut out = Vec::new();
        masks.element(Elem::Bool, 0xFFFF_FFFF, &mut out);
        assert_eq!(out, [1]);
        assert!(Dtype::named("Long").unwrap().holds(Elem::Whole(8, true)));
        assert!(!int.holds(Elem::Float));
    }
}

//! A machine word: a row of bits. Bit 0 is the first digit printed.

use crate::spec::{Encoding, EncodingField};
use std::fmt;

const LIMBS: usize = 8;
const LIMB_BITS: u32 = u64::BITS;

/// A machine word of up to 512 bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Word {
    limbs: [u64; LIMBS],
    bits: u32,
}

impl Word {
    /// A word of `bits` zeros.
    pub fn zero(bits: u32) -> Word {
        Word { limbs: [0; LIMBS], bits: bits.min(LIMBS as u32 * LIMB_BITS) }
    }

    /// The word of an idle step.
    pub fn idle(encoding: &Encoding) -> Word {
        let mut word = Word::zero(encoding.bits);
        for field in &encoding.fields {
            word.set_field(field, field.idle);
        }
        word
    }

    /// The word that the digits `0` and `1` spell. `None` for another digit, and for more than 512 digits.
    pub fn from_digits(digits: &[u8]) -> Option<Word> {
        let bits = u32::try_from(digits.len()).ok().filter(|n| *n <= LIMBS as u32 * LIMB_BITS)?;
        let mut word = Word::zero(bits);
        for (at, digit) in digits.iter().enumerate() {
            match digit {
                b'0' => {}
                b'1' => word.limbs[at / LIMB_BITS as usize] |= 1 << (LIMB_BITS - 1 - at as u32 % LIMB_BITS),
                _ => return None,
            }
        }
        Some(word)
    }

    /// The number of bits of the word.
    pub fn bits(&self) -> u32 {
        self.bits
    }

    /// The bit at `at`. It is 0 past the end.
    pub fn bit(&self, at: u32) -> bool {
        at < self.bits && self.limbs[(at / LIMB_BITS) as usize] >> (LIMB_BITS - 1 - at % LIMB_BITS) & 1 == 1
    }

    /// `width` bits from `first` on, most significant first.
    pub fn get(&self, first: u32, width: u32) -> u64 {
        (first..first + width).fold(0, |value, at| value << 1 | u64::from(self.bit(at)))
    }

    /// Sets `width` bits from `first` on to the low bits of `value`.
    pub fn set(&mut self, first: u32, width: u32, value: u64) {
        for (at, shift) in (first..first + width).zip((0..width).rev()).filter(|(at, _)| *at < self.bits) {
            let bit = 1 << (LIMB_BITS - 1 - at % LIMB_BITS);
            let limb = &mut self.limbs[(at / LIMB_BITS) as usize];
            *limb = if value >> shift & 1 == 1 { *limb | bit } else { *limb & !bit };
        }
    }

    /// The value of a field.
    pub fn field(&self, field: &EncodingField) -> u64 {
        self.get(field.first, field.width)
    }

    /// Sets a field.
    pub fn set_field(&mut self, field: &EncodingField, value: u64) {
        self.set(field.first, field.width, value);
    }

    /// The word in hex digits, most significant first. If the number of bits is no multiple of 4, the first digit holds
    /// the odd bits.
    pub fn hex(&self) -> String {
        let first = self.bits % 4;
        let lead = (first > 0).then(|| format!("{:x}", self.get(0, first)));
        let rest = (first..self.bits).step_by(4).map(|at| format!("{:x}", self.get(at, 4)));
        lead.into_iter().chain(rest).collect()
    }
}

/// Writes the word in binary digits.
impl fmt::Display for Word {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let digits: String = (0..self.bits).map(|at| if self.bit(at) { '1' } else { '0' }).collect();
        f.write_str(&digits)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn digits_and_fields(digits in "[01]{1,512}", first in 0u32..512, width in 1u32..=64) {
            let word = Word::from_digits(digits.as_bytes()).unwrap();
            prop_assert_eq!(word.to_string(), digits.clone());
            let first = first % word.bits();
            let width = width.min(word.bits() - first);
            let text = &digits[first as usize..(first + width) as usize];
            prop_assert_eq!(word.get(first, width), u64::from_str_radix(text, 2).unwrap());
            let mut other = Word::zero(word.bits());
            other.set(first, width, word.get(first, width));
            prop_assert_eq!(other.get(first, width), word.get(first, width));
            prop_assert_eq!(other.to_string().matches('1').count(), text.matches('1').count());
        }
    }

    #[test]
    fn hex_of_a_length_that_is_no_multiple_of_four() {
        let word = Word::from_digits(b"100001111").unwrap();
        assert_eq!(word.hex(), "10f");
        assert_eq!(Word::from_digits(b"10x"), None);
        assert_eq!(Word::from_digits(&[b'0'; 513]), None);
    }
}

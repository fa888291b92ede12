//! Where the elements of a value lie in DRAM, and the way there and back.

use super::elements::{Dtype, Elem};

/// Words have the width of the dtype and are counted over the long words of all groups, or, if `alike`, of one of them.
/// The word of an element is the sum over `axes`, its copies lie `copies` behind that. Or `elements` has the words, and
/// `owners` the element of each word plus 1.
#[derive(Clone, Debug, Default)]
pub(super) struct Place {
    pub(super) alike: bool,
    pub(super) axes: Vec<Vec<u64>>,
    pub(super) copies: Vec<i64>,
    pub(super) elements: Vec<u64>,
    pub(super) owners: Vec<u64>,
}

impl Place {
    /// Why the place does not fit a value of `shape` in `total` words; None if it does.
    pub(super) fn fault(&self, shape: &[u64], total: u64) -> Option<&'static str> {
        let size: u64 = shape.iter().product();
        if !self.elements.is_empty() || !self.owners.is_empty() {
            let fits = self.elements.len() as u64 == size && self.owners.len() as u64 == total;
            let inside = self.elements.iter().all(|word| *word < total) && self.owners.iter().all(|e| *e <= size);
            return (!fits || !inside).then_some("has a list of words that does not fit it");
        }
        if size == 0 {
            return None;
        }
        let lengths: Vec<u64> = self.axes.iter().map(|axis| axis.len() as u64).collect();
        let scalar: &[u64] = &[1];
        if lengths != if shape.is_empty() { scalar } else { shape } {
            return Some("has a place of another shape");
        }
        let sum = |of: fn(&Vec<u64>) -> Option<&u64>| {
            self.axes.iter().try_fold(0u64, |sum, axis| sum.checked_add(of(axis).copied().unwrap_or(0)))
        };
        let (Some(low), Some(high)) = (sum(|axis| axis.iter().min()), sum(|axis| axis.iter().max())) else {
            return Some("has a place outside of its words");
        };
        let inside = |copy: &i64| {
            let low = low.checked_add_signed(*copy);
            low.is_some() && high.checked_add_signed(*copy).is_some_and(|end| end < total)
        };
        let few = size.checked_mul(self.copies.len() as u64).is_some_and(|words| words <= total);
        (high >= total || self.copies.is_empty() || !few || !self.copies.iter().all(inside))
            .then_some("has a place outside of its words")
    }

    /// The word of each element, in order.
    fn words<'a>(&'a self, shape: &[u64]) -> Box<dyn Iterator<Item = u64> + 'a> {
        if !self.elements.is_empty() {
            return Box::new(self.elements.iter().copied());
        }
        let size: u64 = shape.iter().product();
        Box::new((0..size).map(|element| {
            let mut rest = element as usize;
            self.axes.iter().rev().fold(0, |sum, axis| {
                let word = axis[rest % axis.len()];
                rest /= axis.len();
                sum + word
            })
        }))
    }

    /// The long words that hold the elements in `data`; `count` long words.
    pub(super) fn pack(&self, shape: &[u64], elem: Elem, dtype: Dtype, data: &[u8], count: usize) -> Vec<u64> {
        let mut longs = vec![0u64; count];
        let mut put = |at: u64, element: usize| {
            let bytes = &data[element * elem.bytes()..(element + 1) * elem.bytes()];
            let (long, shift) = split(at, dtype);
            longs[long] |= dtype.word(elem, bytes) << shift;
        };
        if self.owners.is_empty() {
            for (element, word) in self.words(shape).enumerate() {
                self.copies.iter().for_each(|copy| put(word.wrapping_add_signed(*copy), element));
            }
        } else {
            for (word, owner) in self.owners.iter().enumerate().filter(|(_, owner)| **owner > 0) {
                put(word as u64, *owner as usize - 1);
            }
        }
        longs
    }

    /// The elements in `longs`, as little-endian bytes.
    pub(super) fn unpack(&self, shape: &[u64], elem: Elem, dtype: Dtype, longs: &[u64]) -> Vec<u8> {
        let mut out = Vec::new();
        for word in self.words(shape) {
            let (long, shift) = split(word, dtype);
            let bits = longs[long] >> shift;
            let bits = if dtype.bits == 64 { bits } else { bits & ((1 << dtype.bits) - 1) };
            dtype.element(elem, bits, &mut out);
        }
        out
    }
}

/// The long word and the shift of a word: the first word of a long word is its highest.
fn split(word: u64, dtype: Dtype) -> (usize, u32) {
    let each = u64::from(64 / dtype.bits);
    ((word / each) as usize, 64 - dtype.bits * (word % each + 1) as u32)
}

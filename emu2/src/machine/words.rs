//! Arrays of long words that begin at a cache line of the host.

use bytes::BytesMut;
use std::ops::{Deref, DerefMut};

/// Bytes of a cache line.
const LINE: usize = 64;

/// A fixed number of long words, aligned to a cache line. So aligned vectors of the host never cross two cache lines,
/// which would slow down stores most of all.
#[derive(Debug, Default)]
pub struct Words(BytesMut);

/// Zeros from which arrays are cut. The host provides one large piece page by page, when it is touched. Many small pieces
/// would come from used memory, which the allocator must clear.
#[derive(Debug)]
pub(crate) struct Zeros(BytesMut);

impl Zeros {
    /// Reserves memory for arrays of these lengths in long words.
    pub(crate) fn new(lengths: impl IntoIterator<Item = usize>) -> Zeros {
        let bytes: usize = lengths.into_iter().map(lines).sum();
        let mut zeros = BytesMut::zeroed(bytes + LINE);
        let first = zeros.as_ptr().align_offset(LINE);
        let _ = zeros.split_to(first.min(LINE));
        Zeros(zeros)
    }

    /// Cuts the next array. If too little is left, the array gets its own piece.
    pub(crate) fn cut(&mut self, length: usize) -> Words {
        let bytes = lines(length);
        if bytes > self.0.len() {
            return Words::zeros(length);
        }
        let mut words = self.0.split_to(bytes);
        words.truncate(length * size_of::<u64>());
        Words(words)
    }
}

/// Bytes of whole cache lines that hold `length` long words.
fn lines(length: usize) -> usize {
    (length * size_of::<u64>()).next_multiple_of(LINE)
}

impl Words {
    /// An array of zeros.
    pub(crate) fn zeros(length: usize) -> Words {
        Zeros::new([length]).cut(length)
    }
}

impl Deref for Words {
    type Target = [u64];

    #[inline]
    fn deref(&self) -> &[u64] {
        // Only an empty array may be unaligned.
        bytemuck::try_cast_slice(&self.0).unwrap_or_default()
    }
}

impl DerefMut for Words {
    #[inline]
    fn deref_mut(&mut self) -> &mut [u64] {
        bytemuck::try_cast_slice_mut(&mut self.0).unwrap_or_default()
    }
}

impl Clone for Words {
    fn clone(&self) -> Words {
        let mut other = Words::zeros(self.len());
        other.copy_from_slice(self);
        other
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn clones_begin_at_a_line_too() {
        for length in [0, 1, 7, 8, 100] {
            let mut rows = Words::zeros(length);
            rows.iter_mut().enumerate().for_each(|(k, word)| *word = k as u64);
            let other = rows.clone();
            assert_eq!(rows[..], other[..]);
            assert_eq!((rows.as_ptr() as usize % 64, other.as_ptr() as usize % 64), (0, 0));
        }
    }

    #[test]
    fn arrays_cut_from_one_piece_do_not_touch() {
        let lengths = [3, 0, 8, 17];
        let mut zeros = Zeros::new(lengths);
        let mut all = lengths.map(|length| zeros.cut(length));
        for (k, words) in all.iter_mut().enumerate() {
            assert_eq!((words.len(), words.as_ptr() as usize % 64), (lengths[k], 0));
            assert!(words.iter().all(|word| *word == 0));
            words.fill(k as u64 + 1);
        }
        assert!(all.iter().enumerate().all(|(k, words)| words.iter().all(|word| *word == k as u64 + 1)));
        // This is more than is left.
        assert_eq!(zeros.cut(5)[..], [0; 5]);
    }
}

//! Arrays of long words that begin where a cache line of the host does.

use std::ops::{Deref, DerefMut};

/// Long words of a cache line.
const LINE: usize = 64 / size_of::<u64>();

/// A fixed number of long words. Vectors of the host that begin at a multiple of their length never lie across two cache
/// lines, which costs stores most of all.
#[derive(Debug, Default)]
pub struct Words {
    /// The long words, behind as many others as bring the first one to a line.
    words: Vec<u64>,
    first: usize,
    length: usize,
}

impl Words {
    /// Zeros. Memory is taken from the host as it is touched.
    pub(crate) fn zeros(length: usize) -> Words {
        let words = vec![0; length + LINE - 1];
        // The standard library may decline to say; any place is right then.
        let first = words.as_ptr().align_offset(LINE * size_of::<u64>());
        let first = if first < LINE { first } else { 0 };
        Words { words, first, length }
    }
}

impl Deref for Words {
    type Target = [u64];

    #[inline]
    fn deref(&self) -> &[u64] {
        &self.words[self.first..self.first + self.length]
    }
}

impl DerefMut for Words {
    #[inline]
    fn deref_mut(&mut self) -> &mut [u64] {
        &mut self.words[self.first..self.first + self.length]
    }
}

impl Clone for Words {
    fn clone(&self) -> Words {
        let mut other = Words::zeros(self.length);
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
}

//! Addresses that wrap at the end of a memory.

/// Writes `words` from `addr` on and wraps at the end of the memory.
pub(super) fn write_wrapped(memory: &mut [u64], addr: u64, words: &[u64]) {
    wrapped(addr, words.len(), memory.len(), |at, from, n| memory[at..at + n].copy_from_slice(&words[from..from + n]));
}

/// Wraps an address in a memory of `words` long words. Most addresses need no wrap, and a division takes as long as a whole
/// row.
#[inline(always)]
pub(super) fn inside(addr: u64, words: usize) -> usize {
    (if addr < words as u64 { addr } else { addr % words as u64 }) as usize
}

/// Calls `piece(memory offset, buffer offset, length)` for `length` long words from `addr` on in a memory of `words`
/// long words, cut where the address wraps.
pub(super) fn wrapped(addr: u64, length: usize, words: usize, mut piece: impl FnMut(usize, usize, usize)) {
    let mut done = 0;
    while done < length {
        let at = inside(addr + done as u64, words);
        let n = (length - done).min(words - at);
        piece(at, done, n);
        done += n;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wrapping_cuts_the_copy() {
        let mut pieces = Vec::new();
        wrapped(14, 5, 8, |at, from, n| pieces.push((at, from, n)));
        assert_eq!(pieces, [(6, 0, 2), (0, 2, 3)]);
    }
}

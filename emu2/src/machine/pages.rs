//! A sparse memory: a page exists once it has been written. Copies of a memory share the pages that neither has written
//! since.

use std::sync::Arc;

/// Long words of a page: 32 KiB, small enough that scattered accesses stay cheap.
const PAGE: usize = 4096;

/// A memory of `words` long words. The host stores only the pages that have been written. Addresses wrap.
#[derive(Clone, Debug)]
pub struct Pages {
    words: u64,
    /// Grows to the highest page written.
    pages: Vec<Option<Arc<[u64]>>>,
}

impl Pages {
    /// A memory of zeros.
    pub fn new(words: u64) -> Pages {
        Pages { words, pages: Vec::new() }
    }

    /// Size in long words.
    pub fn words(&self) -> u64 {
        self.words
    }

    /// Bytes of the host that the written pages take.
    pub fn resident_bytes(&self) -> usize {
        self.pages.iter().flatten().count() * PAGE * size_of::<u64>()
    }

    /// Reads `out.len()` long words from `addr` on.
    pub fn read(&self, addr: u64, out: &mut [u64]) {
        let mut done = 0;
        while done < out.len() {
            let (page, offset, length) = self.piece(addr + done as u64, out.len() - done);
            let target = &mut out[done..done + length];
            match self.page(page) {
                Some(words) => target.copy_from_slice(&words[offset..offset + length]),
                None => target.fill(0),
            }
            done += length;
        }
    }

    /// Writes `words` from `addr` on.
    pub fn write(&mut self, addr: u64, words: &[u64]) {
        let mut done = 0;
        while done < words.len() {
            let (page, offset, length) = self.piece(addr + done as u64, words.len() - done);
            let missing = self.pages.get(page).is_none_or(Option::is_none);
            if missing && words[done..done + length].iter().all(|word| *word == 0) {
                done += length;
                continue;
            }
            if page >= self.pages.len() {
                self.pages.resize(page + 1, None);
            }
            let source = &words[done..done + length];
            let held = &mut self.pages[page];
            // Zeros on a page that does not exist change nothing.
            if held.is_some() || source.iter().any(|word| *word != 0) {
                let target = Arc::make_mut(held.get_or_insert_with(|| vec![0; PAGE].into()));
                target[offset..offset + length].copy_from_slice(source);
            }
            done += length;
        }
    }

    /// The pages that exist: the address of each, and its words.
    pub(super) fn held(&self) -> impl Iterator<Item = (u64, &[u64])> {
        let held = self.pages.iter().enumerate().filter_map(|(number, page)| Some((number, page.as_ref()?)));
        held.map(|(number, page)| {
            let addr = (number * PAGE) as u64;
            (addr, &page[..self.page_size(addr)])
        })
    }

    /// Long words of the page that begins at `addr`; 0 where none begins.
    pub(super) fn page_size(&self, addr: u64) -> usize {
        let left = if addr.is_multiple_of(PAGE as u64) { self.words.saturating_sub(addr) } else { 0 };
        usize::try_from(left).map_or(PAGE, |left| left.min(PAGE))
    }

    fn page(&self, number: usize) -> Option<&Arc<[u64]>> {
        self.pages.get(number).and_then(Option::as_ref)
    }

    /// Bytes of the pages that `other` does not share.
    pub(crate) fn unshared(&self, other: &Pages) -> usize {
        let alone = |number: &usize| match (self.page(*number), other.page(*number)) {
            (Some(ours), Some(theirs)) => !Arc::ptr_eq(ours, theirs),
            (ours, _) => ours.is_some(),
        };
        (0..self.pages.len()).filter(alone).count() * PAGE * size_of::<u64>()
    }

    /// Calls `visit` on each word that differs from `other`: address, word here, word there. Both have the same size.
    pub(crate) fn each_difference(&self, other: &Pages, visit: &mut dyn FnMut(u64, u64, u64)) {
        const ZEROS: &[u64] = &[0; PAGE];
        for number in 0..self.pages.len().max(other.pages.len()) {
            let (ours, theirs) = (self.page(number), other.page(number));
            if let (Some(ours), Some(theirs)) = (ours, theirs) {
                if Arc::ptr_eq(ours, theirs) {
                    continue;
                }
            }
            let (ours, theirs) = (ours.map_or(ZEROS, |page| page), theirs.map_or(ZEROS, |page| page));
            for (k, (one, two)) in ours.iter().zip(theirs).enumerate().filter(|(_, (one, two))| one != two) {
                visit((number * PAGE + k) as u64, *one, *two);
            }
        }
    }

    /// Page, offset and length of the longest piece at `addr` (wrapped) that is inside one page and the memory.
    fn piece(&self, addr: u64, left: usize) -> (usize, usize, usize) {
        let addr = addr % self.words;
        let offset = (addr % PAGE as u64) as usize;
        let room = (PAGE - offset).min(usize::try_from(self.words - addr).unwrap_or(usize::MAX));
        ((addr / PAGE as u64) as usize, offset, left.min(room))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pages_wrap_and_stay_sparse() {
        let mut pages = Pages::new(1 << 29);
        pages.write((1 << 29) - 2, &[1, 2, 3]);
        let mut out = [9; 4];
        pages.read((1 << 29) - 3, &mut out);
        assert_eq!(out, [0, 1, 2, 3]);
        let mut first = [9; 2];
        pages.read(0, &mut first);
        assert_eq!(first, [3, 0]);
        assert_eq!(pages.resident_bytes(), 2 * PAGE * 8);
        // Zeros make no page.
        pages.write(1 << 20, &[0; 3 * PAGE]);
        assert_eq!(pages.resident_bytes(), 2 * PAGE * 8);
        pages.write(0, &[0]);
        pages.read(0, &mut first);
        assert_eq!(first, [0, 0]);
    }

    #[test]
    fn copies_share_pages_until_one_is_written() {
        let mut pages = Pages::new(1 << 20);
        pages.write(5, &[1]);
        pages.write(PAGE as u64, &[2]);
        let copy = pages.clone();
        assert_eq!(pages.unshared(&copy), 0);
        pages.write(6, &[3]);
        pages.write(3 * PAGE as u64, &[4]);
        assert_eq!((pages.unshared(&copy), copy.unshared(&pages)), (2 * PAGE * 8, PAGE * 8));
        let mut seen = Vec::new();
        copy.each_difference(&pages, &mut |at, one, two| seen.push((at, one, two)));
        assert_eq!(seen, [(6, 0, 3), (3 * PAGE as u64, 0, 4)]);
        let mut out = [9; 2];
        copy.read(5, &mut out);
        assert_eq!(out, [1, 0]);
    }

    #[test]
    fn zeros_over_nothing_take_nothing() {
        let mut pages = Pages::new(1 << 20);
        pages.write(0, &[0; 3 * PAGE]);
        assert_eq!(pages.resident_bytes(), 0);
        pages.write(PAGE as u64 - 1, &[0, 7]);
        assert_eq!(pages.resident_bytes(), PAGE * 8);
        pages.write(PAGE as u64, &[0]);
        let mut out = [9];
        pages.read(PAGE as u64, &mut out);
        assert_eq!((out, pages.resident_bytes()), ([0], PAGE * 8));
    }

    #[test]
    fn a_memory_smaller_than_a_page_wraps_inside_it() {
        let mut pages = Pages::new(10);
        pages.write(8, &[1, 2, 3, 4]);
        let mut out = [0; 10];
        pages.read(0, &mut out);
        assert_eq!(out, [3, 4, 0, 0, 0, 0, 0, 0, 1, 2]);
    }
}

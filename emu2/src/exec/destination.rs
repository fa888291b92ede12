//! Destinations of PE instructions: how a result is written to PE memories and to base address registers.

use super::access::{shift, Access, UPPER};
use super::mask::{LoweredMask, MaskRows, Through};
use super::source::Fetch;
use crate::machine::{L1b, Path};
use crate::spec::WORDS_PER_LONG;

/// A lowered destination in a PE memory.
#[derive(Clone, Debug)]
pub(super) struct Write {
    pub(super) access: Access,
    pub(super) mask: LoweredMask,
    /// L0 of all cycles goes to contiguous rows of the memory.
    block: bool,
    /// The whole T register is written, a pair of long words for each cycle.
    pairs: bool,
}

impl Write {
    /// `register`: the destination is the T register.
    pub(super) fn new(access: Access, mask: LoweredMask, register: bool) -> Write {
        let mut write = Write { access, mask, block: false, pairs: false };
        let plain = write.plain();
        write.block = plain && write.access.contiguous();
        write.pairs = plain && register && write.access.words > WORDS_PER_LONG;
        write
    }

    /// Whether L0 of all cycles goes to contiguous rows while base addresses are zero.
    pub(super) fn block(&self) -> bool {
        self.block
    }

    /// Whether whole rows are written while base addresses are zero.
    pub(super) fn plain(&self) -> bool {
        let access = &self.access;
        access.offset.is_none() && access.words >= WORDS_PER_LONG && self.mask.passes_all(access.at.len())
    }

    /// Stores the result path of a step under the mask. `narrow`: the second long words of the result are zero.
    pub(super) fn store(
        &self,
        l1b: &mut L1b,
        lanes: usize,
        (result, narrow): (Path<'_>, bool),
        tmp: &mut Fetch,
        rows: &mut MaskRows,
    ) {
        let slot = 1 << self.access.slot;
        if self.pairs && narrow && l1b.narrow & slot != 0 && !self.access.per_pe(l1b) {
            let pairs = l1b.pe[self.access.slot].chunks_exact_mut(2 * lanes);
            return pairs.zip(result.0.chunks_exact(lanes)).for_each(|(to, from)| to[..lanes].copy_from_slice(from));
        }
        l1b.narrow &= !slot;
        if self.pairs && narrow && !self.access.per_pe(l1b) {
            l1b.narrow |= slot;
        }
        if self.block && !self.access.per_pe(l1b) {
            let first = self.access.row(0) * lanes;
            return l1b.pe[self.access.slot][first..first + result.0.len()].copy_from_slice(result.0);
        }
        let same_rows = self.access.words >= WORDS_PER_LONG && !self.access.per_pe(l1b);
        if same_rows && !rows.general && self.mask.slot() != Some(self.access.slot) {
            return self.store_whole_rows(l1b, lanes, result);
        }
        for (c, path) in result.0.chunks_exact(lanes).zip(result.1.chunks_exact(lanes)).enumerate() {
            let through = self.mask.rows(l1b, c, rows);
            if through == Through::Nothing {
                continue;
            }
            let per_pe = self.access.per_pe(l1b);
            if through == Through::All && !per_pe {
                self.store_rows(&mut l1b.pe[self.access.slot], c, lanes, path);
                continue;
            }
            if per_pe {
                self.access.addresses(l1b, c, &mut tmp.addresses);
            } else {
                tmp.addresses.fill(self.access.at[c]);
            }
            if through == Through::All {
                rows.fill(u64::MAX);
            }
            self.store_lanes(&mut l1b.pe[self.access.slot], lanes, path, &tmp.addresses, rows);
        }
    }

    /// Stores under a mask where no address differs between PEs and an access has whole long words.
    fn store_whole_rows(&self, l1b: &mut L1b, lanes: usize, result: Path<'_>) {
        let mut memory = std::mem::take(&mut l1b.pe[self.access.slot]);
        for (c, path) in result.0.chunks_exact(lanes).zip(result.1.chunks_exact(lanes)).enumerate() {
            let (l0, rest) = memory[self.access.row(c) * lanes..].split_at_mut(lanes);
            let l1 = if self.access.words > WORDS_PER_LONG { &mut rest[..lanes] } else { &mut [] };
            self.mask.store_rows(l1b, c, path, [l0, l1]);
        }
        l1b.pe[self.access.slot] = memory;
    }

    pub(super) fn store_rows(&self, memory: &mut [u64], c: usize, lanes: usize, (l0, l1): Path<'_>) {
        let word = self.access.at[c];
        let rows = &mut memory[(word / WORDS_PER_LONG) as usize * lanes..];
        match self.access.words {
            1 => {
                let shift = shift(word);
                for (long, value) in rows.iter_mut().zip(l0) {
                    *long = (*long & !(UPPER >> shift)) | ((value & UPPER) >> shift);
                }
            }
            2 => rows[..lanes].copy_from_slice(l0),
            _ => {
                rows[..lanes].copy_from_slice(l0);
                rows[lanes..2 * lanes].copy_from_slice(l1);
            }
        }
    }

    pub(super) fn store_lanes(
        &self,
        memory: &mut [u64],
        lanes: usize,
        path: Path<'_>,
        addresses: &[u32],
        rows: &MaskRows,
    ) {
        for (lane, word) in addresses.iter().enumerate() {
            let at = (word / WORDS_PER_LONG) as usize * lanes + lane;
            let (value, mask) = (path.0[lane], rows.l0[lane]);
            let (value, mask) = match self.access.words {
                1 => ((value & UPPER) >> shift(*word), (mask & UPPER) >> shift(*word)),
                _ => (value, mask),
            };
            memory[at] = (memory[at] & !mask) | (value & mask);
            if self.access.words > WORDS_PER_LONG {
                let (value, mask) = (path.1[lane], rows.l1[lane]);
                memory[at + lanes] = (memory[at + lanes] & !mask) | (value & mask);
            }
        }
    }
}

/// A lowered write of a base address register.
#[derive(Clone, Debug)]
pub(super) struct BaseWrite {
    pub(super) slot: usize,
    /// Position of the value's low end in the first long word of the path, and the bits that are kept.
    pub(super) shift: u32,
    pub(super) bits: u64,
    pub(super) mask: LoweredMask,
}

impl BaseWrite {
    pub(super) fn store(&self, l1b: &mut L1b, lanes: usize, result: &[u64], rows: &mut MaskRows) {
        for (c, row) in result.chunks_exact(lanes).enumerate() {
            match self.mask.rows(l1b, c, rows) {
                Through::All => rows.fill(u64::MAX),
                Through::Nothing => continue,
                Through::Rows => {}
            }
            for ((base, value), mask) in l1b.pe[self.slot].iter_mut().zip(row).zip(&rows.l0) {
                let mask = (mask >> self.shift) & self.bits;
                *base = (*base & !mask) | ((value >> self.shift) & mask);
            }
        }
    }
}

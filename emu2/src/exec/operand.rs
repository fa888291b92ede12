//! Lowered PE operands: which words of the state an access touches in each cycle, on each PE.

use super::mask::{MaskRows, Masked, Through};
use crate::machine::L1b;
use crate::num::convert;
use crate::num::level::kernel;
use crate::spec::WORDS_PER_LONG;
use smallvec::SmallVec;
use std::sync::Arc;

/// A row pair: the 128-bit data path of every PE of an L1B in one cycle.
pub(super) type Path<'a> = (&'a [u64], &'a [u64]);

/// The upper word of a long word: where a word-wide value lies on the path.
const UPPER: u64 = 0xFFFF_FFFF_0000_0000;

/// Where a source comes from.
#[derive(Clone, Debug)]
pub(super) enum Origin {
    /// A PE memory.
    Memory(Access),
    /// A forwarding path.
    Forward(usize),
    /// A fixed value per PE: rows of all L1Bs, the same in both long words and all cycles.
    Fixed(Arc<[u64]>),
}

/// Word addresses per cycle in one PE memory.
#[derive(Clone, Debug)]
pub(super) struct Access {
    /// Slot among the PE memories.
    pub(super) slot: usize,
    /// Words of 32 bits per access.
    pub(super) words: u32,
    /// Word address of each cycle, wrapped and truncated to the access width, before anything per PE is added.
    pub(super) at: SmallVec<[u32; 4]>,
    /// Words of the memory.
    pub(super) size: u32,
    /// Slot of the base address register, if the memory has one.
    pub(super) base: Option<usize>,
    /// What differs from PE to PE besides the base address.
    pub(super) offset: Option<Offset>,
}

/// Parts of an address that differ from PE to PE.
#[derive(Clone, Copy, Debug)]
pub(super) struct Offset {
    /// Slot of the T register and the bits of it that count, for indirect addressing.
    pub(super) indirect: Option<(usize, u64)>,
    /// One access width more on the PEs of a MAB up to this number, of how many.
    pub(super) modify: Option<(u32, u32)>,
}

impl Access {
    /// First row of cycle `c` where no address differs between PEs.
    #[inline]
    pub(super) fn row(&self, c: usize) -> usize {
        (self.at[c] / WORDS_PER_LONG) as usize
    }

    /// Whether the rows of all cycles are one long word each and follow each other.
    pub(super) fn contiguous(&self) -> bool {
        let follow = |pair: &[u32]| pair[0] + WORDS_PER_LONG == pair[1];
        self.words == WORDS_PER_LONG && self.at.windows(2).all(follow)
    }

    /// Whether the rows of each cycle lie behind those of the cycle before.
    pub(super) fn ascending(&self) -> bool {
        self.at.windows(2).all(|pair| pair[0] + self.words <= pair[1])
    }

    /// The rows of each cycle, L0 and L1; L1 is empty where the access has one long word. They must be [`Access::ascending`].
    pub(super) fn rows_mut<'a>(
        &'a self,
        memory: &'a mut [u64],
        lanes: usize,
    ) -> impl Iterator<Item = [&'a mut [u64]; 2]> + 'a {
        let (mut rest, mut first) = (memory, 0);
        let length = (self.words / WORDS_PER_LONG) as usize * lanes;
        (0..self.at.len()).map(move |c| {
            let row = self.row(c) * lanes;
            let (taken, behind) = std::mem::take(&mut rest)[row - first..].split_at_mut(length);
            (rest, first) = (behind, row + length);
            taken.split_at_mut(lanes).into()
        })
    }

    /// The rows that it touches where no address differs between PEs: the first one, and the one behind the last.
    pub(super) fn reach(&self) -> (u32, u32) {
        let rows = self.at.iter().map(|word| word / WORDS_PER_LONG);
        let first = rows.clone().min().unwrap_or(0);
        (first, rows.max().unwrap_or(0) + self.words.div_ceil(WORDS_PER_LONG))
    }

    /// Whether it touches the rows that `other` touches, and all of them. Base addresses count as zero.
    pub(super) fn same_rows(&self, other: &Access) -> bool {
        let plain = self.offset.is_none() && other.offset.is_none();
        plain && (self.slot, self.words, &self.at) == (other.slot, other.words, &other.at)
    }

    /// Whether it may touch rows that `other` touches. Base addresses count as zero.
    pub(super) fn meets(&self, other: &Access) -> bool {
        if self.slot != other.slot {
            return false;
        }
        let ((first, end), (other_first, other_end)) = (self.reach(), other.reach());
        let anywhere = self.offset.is_some() || other.offset.is_some();
        anywhere || (first < other_end && other_first < end)
    }

    /// Slot of the T register if addresses depend on it.
    pub(super) fn indirect_slot(&self) -> Option<usize> {
        Some(self.offset?.indirect?.0)
    }

    /// Whether PEs may differ in their addresses.
    pub(super) fn per_pe(&self, l1b: &L1b) -> bool {
        self.offset.is_some() || self.base.is_some_and(|slot| l1b.live_bases >> slot & 1 == 1)
    }

    /// The word address of every PE in cycle `c`.
    fn addresses(&self, l1b: &L1b, c: usize, out: &mut [u32]) {
        let lanes = out.len();
        out.fill(self.at[c]);
        if let Some(base) = self.base {
            for (out, base) in out.iter_mut().zip(l1b.pe[base].iter()) {
                *out += *base as u32;
            }
        }
        if let Some((slot, bits)) = self.offset.and_then(|o| o.indirect) {
            for (out, entry) in out.iter_mut().zip(&l1b.pe[slot][2 * c * lanes..]) {
                *out += (entry & bits) as u32;
            }
        }
        if let Some((last, pes)) = self.offset.and_then(|o| o.modify) {
            for (lane, out) in out.iter_mut().enumerate() {
                *out += if lane as u32 % pes <= last { self.words } else { 0 };
            }
        }
        for out in out {
            *out %= self.size;
            *out -= *out % self.words;
        }
    }
}

/// A conversion between fetching and computing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Conversion {
    /// Half in each lane of L0 to four singles on the path.
    ExtendHalves,
    /// Two halves in the first word to two singles in L0.
    ExtendHalfPair,
    /// A single in the first word to a double in L0.
    ExtendSingle,
    /// Four singles on the path to four halves in L0.
    ReduceSingles,
}

/// A lowered source.
#[derive(Clone, Debug)]
pub(super) struct Source {
    pub(super) origin: Origin,
    pub(super) conversion: Option<Conversion>,
}

/// Buffers for fetching one source.
#[derive(Clone, Debug)]
pub(super) struct Fetch {
    /// Four rows: two for what is gathered, two for what is converted.
    rows: Vec<u64>,
    addresses: Vec<u32>,
}

impl Fetch {
    pub(super) fn new(lanes: usize) -> Fetch {
        Fetch { rows: vec![0; 4 * lanes], addresses: vec![0; lanes] }
    }
}

impl Source {
    /// The access, if it is a memory.
    pub(super) fn access(&self) -> Option<&Access> {
        match &self.origin {
            Origin::Memory(access) => Some(access),
            _ => None,
        }
    }

    /// Whether the rows may be read where they lie, base addresses apart.
    pub(super) fn plain(&self) -> bool {
        let whole = |access: &Access| access.offset.is_none() && access.words >= WORDS_PER_LONG;
        self.conversion.is_none() && self.access().is_none_or(whole)
    }

    /// Whether the rows of all cycles follow each other where they lie.
    pub(super) fn whole(&self) -> bool {
        match &self.origin {
            Origin::Memory(access) => access.contiguous(),
            Origin::Forward(_) => true,
            Origin::Fixed(_) => false,
        }
    }

    /// Whether L1 is zero.
    pub(super) fn narrow(&self, l1b: &L1b) -> bool {
        match (self.conversion, &self.origin) {
            (Some(Conversion::ExtendHalves), _) => false,
            (Some(_), _) => true,
            (None, Origin::Memory(access)) => access.words <= WORDS_PER_LONG,
            (None, Origin::Forward(path)) => l1b.forward[*path].narrow(),
            (None, Origin::Fixed(_)) => false,
        }
    }

    /// The rows of a plain source: as many as `zeros` is long, those of call `c`.
    #[inline]
    pub(super) fn rows<'a>(&'a self, l1b: &'a L1b, index: usize, c: usize, lanes: usize, zeros: &'a [u64]) -> Path<'a> {
        let length = zeros.len();
        match &self.origin {
            Origin::Memory(access) => {
                let rows = &l1b.pe[access.slot][access.row(c) * lanes..];
                (&rows[..length], if access.words > WORDS_PER_LONG { &rows[length..2 * length] } else { zeros })
            }
            Origin::Forward(path) => {
                let (l0, l1) = l1b.forward[*path].planes();
                (&l0[c * length..][..length], &l1[c * length..][..length])
            }
            Origin::Fixed(rows) => {
                let row = &rows[index * lanes..][..lanes];
                (row, row)
            }
        }
    }

    /// Brings the rows of a plain source together in two planes; the second one only if it is `wide` and there is more than one
    /// long word.
    pub(super) fn gather(&self, l1b: &L1b, index: usize, lanes: usize, wide: bool, planes: &mut [u64]) {
        let length = planes.len() / 2;
        let (p0, p1) = planes.split_at_mut(length);
        if let Origin::Memory(access) = &self.origin {
            if access.words <= WORDS_PER_LONG && access.at.iter().all(|word| *word == access.at[0]) {
                return every_cycle(&l1b.pe[access.slot][access.row(0) * lanes..][..lanes], p0);
            }
        }
        let rows = p0.chunks_exact_mut(lanes).zip(p1.chunks_exact_mut(lanes));
        for (c, (p0, p1)) in rows.enumerate() {
            match &self.origin {
                Origin::Memory(access) => {
                    let rows = &l1b.pe[access.slot][access.row(c) * lanes..];
                    p0.copy_from_slice(&rows[..lanes]);
                    if wide && access.words > WORDS_PER_LONG {
                        p1.copy_from_slice(&rows[lanes..2 * lanes]);
                    }
                }
                Origin::Forward(path) => {
                    let (l0, l1) = l1b.forward[*path].planes();
                    p0.copy_from_slice(&l0[c * lanes..][..lanes]);
                    p1.copy_from_slice(&l1[c * lanes..][..lanes]);
                }
                Origin::Fixed(rows) => {
                    p0.copy_from_slice(&rows[index * lanes..][..lanes]);
                    if wide {
                        p1.copy_from_slice(&rows[index * lanes..][..lanes]);
                    }
                }
            }
        }
    }

    /// The path in cycle `c`. Narrow reads are left-aligned; the rest of the path is 0 (guess).
    pub(super) fn fetch<'a>(
        &'a self,
        l1b: &'a L1b,
        index: usize,
        c: usize,
        zeros: &'a [u64],
        tmp: &'a mut Fetch,
    ) -> Path<'a> {
        let lanes = zeros.len();
        let (gathered, converted) = tmp.rows.split_at_mut(2 * lanes);
        let (l0, l1): Path<'a> = match &self.origin {
            Origin::Forward(path) => {
                let (l0, l1) = l1b.forward[*path].planes();
                (&l0[c * lanes..][..lanes], &l1[c * lanes..][..lanes])
            }
            Origin::Fixed(rows) => {
                let row = &rows[index * lanes..(index + 1) * lanes];
                (row, row)
            }
            Origin::Memory(access) if access.per_pe(l1b) => {
                access.addresses(l1b, c, &mut tmp.addresses);
                gather(&l1b.pe[access.slot], access.words, &tmp.addresses, gathered);
                (&gathered[..lanes], if access.words > WORDS_PER_LONG { &gathered[lanes..] } else { zeros })
            }
            Origin::Memory(access) => {
                let word = access.at[c];
                let rows = &l1b.pe[access.slot][(word / WORDS_PER_LONG) as usize * lanes..];
                match access.words {
                    1 => {
                        let shift = shift(word);
                        for (out, long) in gathered[..lanes].iter_mut().zip(rows) {
                            *out = (long << shift) & UPPER;
                        }
                        (&gathered[..lanes], zeros)
                    }
                    2 => (&rows[..lanes], zeros),
                    _ => (&rows[..lanes], &rows[lanes..2 * lanes]),
                }
            }
        };
        let (c0, c1) = converted.split_at_mut(lanes);
        match self.conversion {
            None => (l0, l1),
            Some(Conversion::ExtendHalves) => {
                convert::extend_h4(l0, c0, c1);
                (c0, c1)
            }
            Some(Conversion::ExtendHalfPair) => {
                convert::extend_h2(l0, c0);
                (c0, zeros)
            }
            Some(Conversion::ExtendSingle) => {
                convert::extend_f(l0, c0);
                (c0, zeros)
            }
            Some(Conversion::ReduceSingles) => {
                convert::reduce_f4(l0, l1, c0);
                (c0, zeros)
            }
        }
    }
}

kernel! {
    /// One row for every cycle.
    fn every_cycle(row: &[u64], plane: &mut [u64]) {
        let (pieces, rest) = row.as_chunks::<PIECE>();
        for (k, piece) in pieces.iter().enumerate() {
            for to in plane.chunks_exact_mut(row.len()) {
                if let Some(to) = to[k * PIECE..].first_chunk_mut::<PIECE>() {
                    *to = *piece;
                }
            }
        }
        for to in plane.chunks_exact_mut(row.len()) {
            to[pieces.len() * PIECE..].copy_from_slice(rest);
        }
    }
}

/// Long words that stay in registers on their way to every cycle.
const PIECE: usize = 16;

/// By how much the word at an address lies below the upper word of its long word.
fn shift(word: u32) -> u32 {
    u64::BITS / WORDS_PER_LONG * (word % WORDS_PER_LONG)
}

/// Reads every PE at an address of its own.
fn gather(memory: &[u64], words: u32, addresses: &[u32], out: &mut [u64]) {
    let lanes = addresses.len();
    let (l0, l1) = out.split_at_mut(lanes);
    for (lane, word) in addresses.iter().enumerate() {
        let at = (word / WORDS_PER_LONG) as usize * lanes + lane;
        l0[lane] = match words {
            1 => (memory[at] << shift(*word)) & UPPER,
            _ => memory[at],
        };
        if words > WORDS_PER_LONG {
            l1[lane] = memory[at + lanes];
        }
    }
}

/// A lowered destination in a PE memory.
#[derive(Clone, Debug)]
pub(super) struct Write {
    pub(super) access: Access,
    pub(super) mask: Masked,
    /// L0 of all cycles goes into one stretch of the memory.
    block: bool,
    /// All of the T register is written, a pair of long words for each cycle.
    pairs: bool,
}

impl Write {
    /// `register`: it is the T register that is written.
    pub(super) fn new(access: Access, mask: Masked, register: bool) -> Write {
        let mut write = Write { access, mask, block: false, pairs: false };
        let plain = write.plain();
        write.block = plain && write.access.contiguous();
        write.pairs = plain && register && write.access.words > WORDS_PER_LONG;
        write
    }

    /// Whether L0 of all cycles goes into one stretch of the memory, base addresses apart.
    pub(super) fn block(&self) -> bool {
        self.block
    }

    /// Whether whole rows are written, base addresses apart.
    pub(super) fn plain(&self) -> bool {
        let access = &self.access;
        access.offset.is_none() && access.words >= WORDS_PER_LONG && self.mask.passes_all(access.at.len())
    }

    /// Stores the result path of a step under the mask. `narrow`: its second long words are zero.
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

    fn store_rows(&self, memory: &mut [u64], c: usize, lanes: usize, (l0, l1): Path<'_>) {
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

    fn store_lanes(&self, memory: &mut [u64], lanes: usize, path: Path<'_>, addresses: &[u32], rows: &MaskRows) {
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

//! Lowered PE operands: which words of the state an access touches in each cycle, on each PE.

use super::mask::{MaskRows, Masked, Through};
use crate::machine::L1b;
use crate::num::convert;
use crate::spec::WORDS_PER_LONG;
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
    pub(super) at: Box<[u32]>,
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
    /// Whether PEs may differ in their addresses.
    fn per_pe(&self, l1b: &L1b) -> bool {
        self.offset.is_some() || self.base.is_some_and(|slot| l1b.live_bases >> slot & 1 == 1)
    }

    /// The word address of every PE in cycle `c`.
    fn addresses(&self, l1b: &L1b, c: usize, out: &mut [u32]) {
        let lanes = out.len();
        out.fill(self.at[c]);
        if let Some(base) = self.base {
            for (out, base) in out.iter_mut().zip(&l1b.pe[base]) {
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
                let rows = &l1b.forward[*path][2 * c * lanes..];
                (&rows[..lanes], &rows[lanes..2 * lanes])
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
}

impl Write {
    /// Stores the result path `[cycle][half][lane]` of a step under the mask.
    pub(super) fn store(&self, l1b: &mut L1b, lanes: usize, result: &[u64], tmp: &mut Fetch, rows: &mut MaskRows) {
        for (c, path) in result.chunks_exact(2 * lanes).enumerate() {
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

    fn store_rows(&self, memory: &mut [u64], c: usize, lanes: usize, path: &[u64]) {
        let word = self.access.at[c];
        let rows = &mut memory[(word / WORDS_PER_LONG) as usize * lanes..];
        match self.access.words {
            1 => {
                let shift = shift(word);
                for (long, value) in rows.iter_mut().zip(&path[..lanes]) {
                    *long = (*long & !(UPPER >> shift)) | ((value & UPPER) >> shift);
                }
            }
            2 => rows[..lanes].copy_from_slice(&path[..lanes]),
            _ => rows[..2 * lanes].copy_from_slice(path),
        }
    }

    fn store_lanes(&self, memory: &mut [u64], lanes: usize, path: &[u64], addresses: &[u32], rows: &MaskRows) {
        for (lane, word) in addresses.iter().enumerate() {
            let at = (word / WORDS_PER_LONG) as usize * lanes + lane;
            let (value, mask) = (path[lane], rows.l0[lane]);
            let (value, mask) = match self.access.words {
                1 => ((value & UPPER) >> shift(*word), (mask & UPPER) >> shift(*word)),
                _ => (value, mask),
            };
            memory[at] = (memory[at] & !mask) | (value & mask);
            if self.access.words > WORDS_PER_LONG {
                let (value, mask) = (path[lanes + lane], rows.l1[lane]);
                memory[at + lanes] = (memory[at + lanes] & !mask) | (value & mask);
            }
        }
    }
}

//! Sources of PE instructions: their addresses, and how the rows of a cycle are fetched.

use super::access::{shift, Access, UPPER};
use crate::machine::{L1b, Path};
use crate::num::convert;
use crate::num::level::kernel;
use crate::spec::WORDS_PER_LONG;
use std::sync::Arc;

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

/// A conversion of a fetched source.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Conversion {
    /// One half in each lane of L0 becomes four singles on the path.
    ExtendHalves,
    /// Two halves in the first word become two singles in L0.
    ExtendHalfPair,
    /// A single in the first word becomes a double in L0.
    ExtendSingle,
    /// Four singles on the path become four halves in L0.
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
    /// Four rows: two for gathered words, two for converted words.
    rows: Vec<u64>,
    pub(super) addresses: Vec<u32>,
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

    /// The number of the forwarding path, if it is one.
    pub(super) fn path(&self) -> Option<usize> {
        match self.origin {
            Origin::Forward(path) => Some(path),
            _ => None,
        }
    }

    /// Whether the rows can be read in place while base addresses are zero.
    pub(super) fn plain(&self) -> bool {
        let whole = |access: &Access| access.offset.is_none() && access.words >= WORDS_PER_LONG;
        self.conversion.is_none() && self.access().is_none_or(whole)
    }

    /// Whether the rows can be copied together and converted, all cycles at once, while base addresses are zero.
    pub(super) fn converts(&self) -> bool {
        let whole = |access: &Access| access.offset.is_none() && access.words >= WORDS_PER_LONG;
        self.conversion.is_some() && self.access().is_none_or(whole)
    }

    /// Whether rows that are copied together have a second long word.
    pub(super) fn gathers_wide(&self) -> bool {
        match self.conversion {
            Some(conversion) => conversion == Conversion::ExtendHalves,
            None => self.access().is_none_or(|access| access.words > WORDS_PER_LONG),
        }
    }

    /// Whether the rows of all cycles are contiguous.
    pub(super) fn whole(&self) -> bool {
        match &self.origin {
            _ if self.conversion.is_some() => false,
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

    /// The rows of a plain source in call `c`, as many long words as `zeros` has.
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

    /// Copies the rows of a plain source to two contiguous planes. The second plane is filled only if `wide` and if the
    /// source has a second long word.
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

    /// Does the same as [`Source::gather`] for a source that is converted. `spare`: at least two planes.
    pub(super) fn gather_converted(
        &self,
        l1b: &L1b,
        index: usize,
        lanes: usize,
        spare: &mut [u64],
        planes: &mut [u64],
    ) {
        let Some(conversion) = self.conversion else { return };
        let length = planes.len() / 2;
        let raw = &mut spare[..2 * length];
        self.gather(l1b, index, lanes, true, raw);
        if self.access().is_some_and(|access| access.words <= WORDS_PER_LONG) {
            raw[length..].fill(0);
        }
        let ((l0, l1), (c0, c1)) = (raw.split_at(length), planes.split_at_mut(length));
        match conversion {
            Conversion::ExtendHalves => convert::extend_h4(l0, c0, c1),
            Conversion::ExtendHalfPair => convert::extend_h2(l0, c0),
            Conversion::ExtendSingle => convert::extend_f(l0, c0),
            Conversion::ReduceSingles => convert::reduce_f4(l0, l1, c0),
        }
    }

    /// The rows of the path in cycle `c`. Narrow reads are left-aligned; the rest of the path is 0 (guess).
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
    /// Copies one row to every cycle.
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

/// Long words that stay in registers while they are copied to every cycle.
const PIECE: usize = 16;

/// Reads one address for every PE.
pub(super) fn gather(memory: &[u64], words: u32, addresses: &[u32], out: &mut [u64]) {
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

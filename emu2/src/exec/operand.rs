//! Lowered PE operands: which rows of the state an access touches in each cycle.

use crate::machine::L1b;
use crate::num::convert;
use crate::spec::WORDS_PER_LONG;
use std::sync::Arc;

/// A row pair: the 128-bit data path of every PE of an L1B in one cycle.
pub(super) type Path<'a> = (&'a [u64], &'a [u64]);

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

/// Word addresses per cycle in one PE memory, wrapped and truncated to the access width.
#[derive(Clone, Debug)]
pub(super) struct Access {
    /// Slot among the PE memories.
    pub(super) slot: usize,
    /// Words of 32 bits per access.
    pub(super) words: u32,
    /// Word address of each cycle.
    pub(super) at: Box<[u32]>,
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

impl Source {
    /// The path in cycle `c`. Narrow reads are left-aligned; the rest of the path is 0. `tmp` holds four rows.
    pub(super) fn fetch<'a>(
        &'a self,
        l1b: &'a L1b,
        index: usize,
        c: usize,
        zeros: &'a [u64],
        tmp: &'a mut [u64],
    ) -> Path<'a> {
        let lanes = zeros.len();
        let (narrow, converted) = tmp.split_at_mut(2 * lanes);
        let (l0, l1): Path<'a> = match &self.origin {
            Origin::Forward(path) => {
                let rows = &l1b.forward[*path][2 * c * lanes..];
                (&rows[..lanes], &rows[lanes..2 * lanes])
            }
            Origin::Fixed(rows) => {
                let row = &rows[index * lanes..(index + 1) * lanes];
                (row, row)
            }
            Origin::Memory(access) => {
                let word = access.at[c];
                let rows = &l1b.pe[access.slot][(word / WORDS_PER_LONG) as usize * lanes..];
                match access.words {
                    1 => {
                        let shift = if word % WORDS_PER_LONG == 0 { 0 } else { 32 };
                        for (out, long) in narrow[..lanes].iter_mut().zip(rows) {
                            *out = (long << shift) & 0xFFFF_FFFF_0000_0000;
                        }
                        (&narrow[..lanes], zeros)
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

/// A lowered destination.
#[derive(Clone, Debug)]
pub(super) struct Write {
    pub(super) access: Access,
    /// Cycles that write: bit c is cycle c.
    pub(super) mask: u32,
}

impl Write {
    /// Stores the result path `[cycle][half][lane]` of a step.
    pub(super) fn store(&self, pe: &mut [Vec<u64>], lanes: usize, result: &[u64]) {
        let memory = &mut pe[self.access.slot];
        for (c, (word, path)) in self.access.at.iter().zip(result.chunks_exact(2 * lanes)).enumerate() {
            if self.mask >> c & 1 == 0 {
                continue;
            }
            let rows = &mut memory[(word / WORDS_PER_LONG) as usize * lanes..];
            match self.access.words {
                1 => {
                    let shift = if word % WORDS_PER_LONG == 0 { 0 } else { 32 };
                    let keep = !(0xFFFF_FFFF_0000_0000u64 >> shift);
                    for (long, value) in rows.iter_mut().zip(&path[..lanes]) {
                        *long = (*long & keep) | ((value & 0xFFFF_FFFF_0000_0000) >> shift);
                    }
                }
                2 => rows[..lanes].copy_from_slice(&path[..lanes]),
                _ => rows[..2 * lanes].copy_from_slice(path),
            }
        }
    }
}

//! What a step on the validity works on: an L1B with its validity, buffers, and questions about addresses and masks.

use super::decided_bits::DecidedBits;
use super::finding::{Case, Findings, Key, Origin, Via, What, Word};
use super::shadow::Summary;
use crate::exec::access::Access;
use crate::exec::l1bm_map::ReduceBuffers;
use crate::exec::mask::{LoweredMask, MaskRows};
use crate::exec::op::MAX_SOURCES;
use crate::exec::source::Fetch;
use crate::exec::validity::VALID;
use crate::machine::L1b;
use crate::num::reduce::ReduceKernel;
use crate::spec::{LevelName, WORDS_PER_LONG};

/// Buffers of bitwise operations: the values of the sources, and what these values decide.
#[derive(Clone, Debug)]
pub(super) struct BitBuffers {
    pub(super) fetch: [Fetch; 2],
    pub(super) rows: DecidedBits,
}

/// Buffers of one thread.
#[derive(Clone, Debug)]
pub(super) struct Buffers {
    pub(super) lanes: usize,
    pub(super) cycles: usize,
    /// Both planes of the validity of each result.
    pub(super) results: Vec<[Vec<u64>; 2]>,
    /// For each result, which of its flags are defined.
    pub(super) flags: Vec<Vec<u64>>,
    /// Rows of the sources of a cycle.
    pub(super) sources: [[Vec<u64>; 2]; MAX_SOURCES],
    pub(super) addresses: Vec<u32>,
    pub(super) mask: MaskRows,
    /// The validity of the bits of a mask, and a result under it.
    pub(super) mask_validity: MaskRows,
    pub(super) masked: [Vec<u64>; 2],
    pub(super) bits: BitBuffers,
    pub(super) reduce: ReduceBuffers,
    /// A plane of valid words, and one of zeros.
    pub(super) valid: Vec<u64>,
    pub(super) zeros: Vec<u64>,
    /// The addresses of all cycles, and whether a PE writes there.
    pub(super) written: Vec<(u32, bool)>,
    /// The result of each instruction: None if it is valid as a whole, else the origin of what is not.
    pub(super) verdicts: Vec<Option<Origin>>,
    /// Bitwise and.
    pub(super) and: ReduceKernel,
}

impl Buffers {
    pub(super) fn new(lanes: usize, cycles: usize, and: ReduceKernel) -> Buffers {
        let plane = lanes * cycles;
        Buffers {
            lanes,
            cycles,
            results: Vec::new(),
            flags: Vec::new(),
            sources: std::array::from_fn(|_| [vec![0; lanes], vec![0; lanes]]),
            addresses: vec![0; lanes],
            mask: MaskRows::new(lanes),
            mask_validity: MaskRows::new(lanes),
            masked: [vec![0; lanes], vec![0; lanes]],
            bits: BitBuffers { fetch: std::array::from_fn(|_| Fetch::new(lanes)), rows: DecidedBits::new(lanes) },
            reduce: ReduceBuffers::default(),
            valid: vec![VALID; plane],
            zeros: vec![0; plane],
            written: vec![(0, false); plane],
            verdicts: Vec::new(),
            and,
        }
    }
}

/// The L1B that a step runs on: its state, its validity and what is found.
pub(super) struct On<'a> {
    pub(super) real: &'a L1b,
    pub(super) shadow: &'a mut L1b,
    pub(super) summary: &'a mut Summary,
    /// Chip-wide number.
    pub(super) index: usize,
    pub(super) line: u32,
    pub(super) findings: &'a mut Findings,
}

impl On<'_> {
    /// Adds a finding about a word of a PE memory.
    pub(super) fn found(&mut self, what: What, slot: usize, (row, lane): (usize, usize), case: Case) {
        let word = Word { level: LevelName::Pe, slot, unit: self.index, lane, address: row as u64 };
        let key = Key { line: self.line, what, memory: Some((LevelName::Pe, slot)), other: 0 };
        self.findings.add(key, Case { word: Some(word), ..case });
    }

    /// Whether addresses may differ between PEs: because they do, or because the base addresses are undefined.
    pub(super) fn per_pe(&self, access: &Access) -> bool {
        access.per_pe(self.real) || access.base.is_some_and(|slot| !self.summary.row(slot, 0))
    }

    pub(super) fn origin(&self, slot: usize, row: usize, lane: usize) -> Origin {
        self.summary.origin(slot, row, (self.index, lane), self.line)
    }
}

/// A case without details.
pub(super) const PLAIN: Case = Case { word: None, cycles: (0, 0), origin: None, earlier: None, count: 1 };

/// Whether the registers that form the address of a PE in cycle `c` are valid.
pub(super) fn defined_address(access: &Access, on: &On<'_>, c: usize, lane: usize, lanes: usize) -> bool {
    let valid = |slot: usize, row: usize, bits: u64| {
        on.summary.row(slot, row) || on.shadow.pe[slot][row * lanes + lane] & bits == bits
    };
    access.base.is_none_or(|slot| valid(slot, 0, VALID))
        && access.offset.and_then(|o| o.indirect).is_none_or(|(slot, bits)| valid(slot, 2 * c, bits))
}

/// The first PE whose address is formed with undefined bits, and the origin of these.
pub(super) fn undefined_address(access: &Access, on: &On<'_>, buffers: &Buffers) -> Option<(usize, Origin)> {
    let lanes = buffers.lanes;
    let first = |slot: usize, row: usize, bits: u64| {
        if on.summary.row(slot, row) {
            return None;
        }
        let lane = on.shadow.pe[slot][row * lanes..][..lanes].iter().position(|word| word & bits != bits)?;
        Some((lane, on.origin(slot, row, lane).through(Via::Address, on.line)))
    };
    let base = access.base.and_then(|slot| first(slot, 0, VALID));
    let indirect = access.offset.and_then(|o| o.indirect);
    base.or_else(|| indirect.and_then(|(slot, bits)| (0..buffers.cycles).find_map(|c| first(slot, 2 * c, bits))))
}

/// Checks that addresses that registers give do not leave the memory.
pub(super) fn check_wrap(access: &Access, on: &mut On<'_>, buffers: &Buffers) {
    let lanes = buffers.lanes;
    for c in 0..buffers.cycles {
        let leaves =
            |lane: &usize| access.leaves(on.real, c, *lane, lanes) && defined_address(access, on, c, *lane, lanes);
        if let Some(lane) = (0..lanes).find(leaves) {
            let count = (lane..lanes).filter(leaves).count() as u64;
            let case = Case { cycles: (c, c), count, ..PLAIN };
            on.found(What::Wrap, access.slot, ((access.at[c] / WORDS_PER_LONG) as usize, lane), case);
        }
    }
}

/// The origin of undefined bits of the mask register of a mask.
pub(super) fn undefined_mask(mask: &LoweredMask, on: &On<'_>, buffers: &Buffers) -> Option<Origin> {
    let (slot, entry) = mask.register()?;
    let row = (0..buffers.cycles).map(|c| entry * buffers.cycles + c).find(|row| !on.summary.row(slot, *row))?;
    let words = &on.shadow.pe[slot][row * buffers.lanes..][..buffers.lanes];
    let lane = words.iter().position(|word| *word != VALID)?;
    Some(on.origin(slot, row, lane).through(Via::Mask, on.line))
}

//! What is known of the validity of an L1B's words besides the bits themselves: the rows that are valid on every PE, and
//! where undefined words come from.

use super::finding::{Origin, Word};
use crate::exec::validity::VALID;
use crate::machine::L1b;
use crate::spec::LevelName;
use std::collections::HashMap;

/// Bits of a word of a bit set.
const BITS: usize = u64::BITS as usize;

/// A summary of the validity of an L1B.
#[derive(Clone, Debug)]
pub(super) struct Summary {
    /// For each PE memory, a bit for each row that is valid on every PE.
    full: Vec<Vec<u64>>,
    /// For each PE memory, the number of other rows.
    missing: Vec<usize>,
    /// For each forwarding path, whether it is valid.
    pub(super) paths: Vec<bool>,
    pub(super) path_origins: Vec<Option<Origin>>,
    /// Origins of the words of rows that are not valid but were written.
    origins: HashMap<(usize, usize), Origin>,
    /// The origin of the last undefined words that the PEs sent to L1BM.
    pub(super) sent: Option<Origin>,
}

impl Summary {
    /// The summary of an L1B of which nothing is valid. `paths`: number of forwarding paths.
    pub(super) fn new(l1b: &L1b, lanes: usize, paths: usize) -> Summary {
        let rows: Vec<usize> = l1b.pe.iter().map(|memory| memory.len() / lanes).collect();
        Summary {
            full: rows.iter().map(|rows| vec![0; rows.div_ceil(BITS)]).collect(),
            missing: rows,
            paths: vec![false; paths],
            path_origins: vec![None; paths],
            origins: HashMap::new(),
            sent: None,
        }
    }

    /// Whether a row is valid on every PE.
    #[inline]
    pub(super) fn row(&self, slot: usize, row: usize) -> bool {
        self.full[slot][row / BITS] >> (row % BITS) & 1 == 1
    }

    /// Whether rows are valid on every PE.
    #[inline]
    pub(super) fn rows(&self, slot: usize, first: usize, count: usize) -> bool {
        (first..first + count).all(|row| self.row(slot, row))
    }

    /// Whether a memory is valid as a whole.
    #[inline]
    pub(super) fn whole(&self, slot: usize) -> bool {
        self.missing[slot] == 0
    }

    /// Makes a row valid on every PE.
    #[inline]
    pub(super) fn fill(&mut self, shadow: &mut L1b, slot: usize, row: usize, lanes: usize) {
        if !self.row(slot, row) {
            shadow.pe[slot][row * lanes..][..lanes].fill(VALID);
            self.set(slot, row, true);
        }
    }

    /// Looks at a row after a write. `origin`: that of the undefined words that were written, if there were any.
    pub(super) fn refresh(&mut self, shadow: &L1b, slot: usize, row: usize, lanes: usize, origin: Option<Origin>) {
        let valid = shadow.pe[slot][row * lanes..][..lanes].iter().all(|word| *word == VALID);
        self.set(slot, row, valid);
        if let (false, Some(origin)) = (valid, origin) {
            self.origins.insert((slot, row), origin);
        }
    }

    fn set(&mut self, slot: usize, row: usize, valid: bool) {
        let bit = 1 << (row % BITS);
        let held = &mut self.full[slot][row / BITS];
        match (*held & bit != 0, valid) {
            (false, true) => {
                *held |= bit;
                self.missing[slot] -= 1;
                self.origins.remove(&(slot, row));
            }
            (true, false) => {
                *held &= !bit;
                self.missing[slot] += 1;
            }
            _ => {}
        }
    }

    /// The origin of an undefined word of a PE memory that `line` reads.
    pub(super) fn origin(&self, slot: usize, row: usize, (unit, lane): (usize, usize), line: u32) -> Origin {
        let word = Word { level: LevelName::Pe, slot, unit, lane, address: row as u64 };
        self.origins.get(&(slot, row)).copied().unwrap_or(Origin::new(line, Some(word)))
    }
}

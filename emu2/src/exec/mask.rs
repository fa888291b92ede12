//! Write and zero-flush masks as rows of bits.

use crate::asm::{Mask, MaskEntry};
use crate::machine::{L1b, Out, Path};
use crate::num::level::kernel;

/// A lowered mask.
#[derive(Clone, Copy, Debug)]
pub(super) struct LoweredMask {
    /// The mask bits control words of the path, not halves of the first long word.
    wide: bool,
    /// Cycles with any bit set: bit c is cycle c.
    cycles: u32,
    /// Slot of the mask registers and the entry.
    register: Option<(usize, usize)>,
}

/// The bits that a mask lets through, per PE, for both long words of the path.
#[derive(Clone, Debug)]
pub(super) struct MaskRows {
    pub(super) l0: Vec<u64>,
    pub(super) l1: Vec<u64>,
    /// Every masked write goes PE by PE, which is the general form.
    pub(super) general: bool,
}

/// How much a mask lets through in a cycle.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Through {
    All,
    Nothing,
    /// The bits in the rows.
    Rows,
}

impl MaskRows {
    pub(super) fn new(lanes: usize) -> MaskRows {
        MaskRows { l0: vec![0; lanes], l1: vec![0; lanes], general: false }
    }

    pub(super) fn fill(&mut self, bits: u64) {
        self.l0.fill(bits);
        self.l1.fill(bits);
    }
}

impl LoweredMask {
    /// `slot`: the slot of the mask registers.
    pub(super) fn new(mask: Option<&Mask>, slot: usize) -> LoweredMask {
        let all = LoweredMask { wide: false, cycles: u32::MAX, register: None };
        match mask {
            None => all,
            Some(Mask { wide, entry: MaskEntry::Cycles(cycles) }) => {
                LoweredMask { wide: *wide, cycles: *cycles, ..all }
            }
            // Entry 0 is all ones.
            Some(Mask { entry: MaskEntry::Register(0), .. }) => all,
            Some(Mask { wide, entry: MaskEntry::Register(entry) }) => {
                LoweredMask { wide: *wide, register: Some((slot, *entry as usize)), ..all }
            }
        }
    }

    /// The mask register's row of cycle `c`.
    fn row<'a>(&self, l1b: &'a L1b, c: usize, lanes: usize) -> Option<&'a [u64]> {
        let (slot, entry) = self.register?;
        let cycles = l1b.cycles;
        Some(&l1b.pe[slot][(entry * cycles + c) * lanes..][..lanes])
    }

    fn pattern(&self, c: usize) -> bool {
        self.cycles >> c & 1 == 1
    }

    /// How much the mask lets through in cycle `c`. If PEs or long words differ, the bits are in `rows`.
    pub(super) fn rows(&self, l1b: &L1b, c: usize, rows: &mut MaskRows) -> Through {
        let Some(bits) = self.row(l1b, c, rows.l0.len()) else {
            return match (self.pattern(c), self.wide) {
                (true, _) => Through::All,
                (false, true) => Through::Nothing,
                (false, false) => {
                    // A mask without `wide` leaves the second long word alone.
                    rows.l0.fill(0);
                    rows.l1.fill(u64::MAX);
                    Through::Rows
                }
            };
        };
        if self.wide {
            for ((bits, l0), l1) in bits.iter().zip(&mut rows.l0).zip(&mut rows.l1) {
                *l0 = spread(bits >> 3, 32, 32) | spread(bits >> 2, 0, 32);
                *l1 = spread(bits >> 1, 32, 32) | spread(*bits, 0, 32);
            }
        } else {
            for (bits, l0) in bits.iter().zip(&mut rows.l0) {
                let half = |k: u32| spread(bits >> k, 16 * k, 16);
                *l0 = half(3) | half(2) | half(1) | half(0);
            }
            rows.l1.fill(u64::MAX);
        }
        Through::Rows
    }

    /// Writes what the mask lets through in cycle `c` to whole rows. `to`: the rows of both long words; the second one is
    /// empty if it is not written.
    pub(super) fn store_rows(&self, l1b: &L1b, c: usize, from: Path<'_>, to: [&mut [u64]; 2]) {
        let [l0, l1] = to;
        let second = &from.1[..l1.len()];
        match (self.row(l1b, c, l0.len()), self.pattern(c)) {
            (None, true) => {
                l0.copy_from_slice(from.0);
                l1.copy_from_slice(second);
            }
            (None, false) if self.wide => {}
            // A mask without `wide` leaves the second long word alone.
            (None, false) => l1.copy_from_slice(second),
            (Some(bits), _) if self.wide => {
                select_words(bits, 2, from.0, l0);
                select_words(bits, 0, second, l1);
            }
            (Some(bits), _) => {
                select_halves(bits, from.0, l0);
                l1.copy_from_slice(second);
            }
        }
    }

    /// Whether the mask lets everything through in the first `cycles` cycles.
    pub(super) fn passes_all(&self, cycles: usize) -> bool {
        let all = (1u64 << cycles) - 1;
        self.register.is_none() && u64::from(self.cycles) & all == all
    }

    /// Slot of the mask registers and the entry, if the mask comes from one.
    pub(super) fn register(&self) -> Option<(usize, usize)> {
        self.register
    }

    /// Slot of the mask registers, if the mask comes from one.
    pub(super) fn slot(&self) -> Option<usize> {
        self.register.map(|(slot, _)| slot)
    }

    /// Clears the masked-out bits of the result of cycle `c`.
    pub(super) fn flush(&self, l1b: &L1b, c: usize, path: Out<'_>, rows: &mut MaskRows) {
        match self.rows(l1b, c, rows) {
            Through::All => return,
            Through::Nothing => rows.fill(0),
            Through::Rows => {}
        }
        let clear = |row: &mut [u64], mask: &[u64]| row.iter_mut().zip(mask).for_each(|(word, mask)| *word &= mask);
        clear(path.l0, &rows.l0);
        if let Some(l1) = path.l1 {
            clear(l1, &rows.l1);
        }
    }

    /// Clears the flags that the mask does not let through.
    pub(super) fn flags(&self, l1b: &L1b, c: usize, flags: &mut [u64]) {
        if !self.pattern(c) {
            flags.fill(0);
        } else if let Some(bits) = self.row(l1b, c, flags.len()) {
            for (flag, bits) in flags.iter_mut().zip(bits) {
                *flag &= bits;
            }
        }
    }
}

kernel! {
    /// Replaces the halves of `to` whose mask bits are set.
    fn select_halves(bits: &[u64], from: &[u64], to: &mut [u64]) {
        for ((bits, from), to) in bits.iter().zip(from).zip(to) {
            // Bit k moves to the low end of half k, and becomes the whole half.
            let apart = (bits | bits << 15 | bits << 30 | bits << 45) & 0x0001_0001_0001_0001;
            let mask = (apart << 16).wrapping_sub(apart);
            *to = (*to & !mask) | (from & mask);
        }
    }

    /// Replaces the words of `to` whose mask bits are set: bit `at` is that of the lower word.
    fn select_words(bits: &[u64], at: u32, from: &[u64], to: &mut [u64]) {
        for ((bits, from), to) in bits.iter().zip(from).zip(to) {
            let bits = bits >> at;
            let apart = (bits | bits << 31) & 0x0000_0001_0000_0001;
            let mask = (apart << 32).wrapping_sub(apart);
            *to = (*to & !mask) | (from & mask);
        }
    }
}

/// Repeats the lowest bit of `bit` over `width` bits, from bit `at` on.
#[inline(always)]
fn spread(bit: u64, at: u32, width: u32) -> u64 {
    (0u64.wrapping_sub(bit & 1) >> (u64::BITS - width)) << at
}

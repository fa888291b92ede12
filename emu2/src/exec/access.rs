//! Word addresses of an operand in a PE memory: one per cycle, and the parts that differ from PE to PE.

use crate::machine::L1b;
use crate::spec::WORDS_PER_LONG;
use smallvec::SmallVec;

/// The upper word of a long word. It holds a value of one word on the path.
pub(super) const UPPER: u64 = 0xFFFF_FFFF_0000_0000;

/// Word addresses per cycle in one PE memory.
#[derive(Clone, Debug)]
pub(super) struct Access {
    /// Slot among the PE memories.
    pub(super) slot: usize,
    /// Words of 32 bits per access.
    pub(super) words: u32,
    /// Word address of each cycle, wrapped and truncated to the access width, before the parts that differ from PE to PE
    /// are added.
    pub(super) at: SmallVec<[u32; 4]>,
    /// Words of the memory.
    pub(super) size: u32,
    /// Slot of the base address register, if the memory has one.
    pub(super) base: Option<usize>,
    /// Bits of a register that is added to the address.
    pub(super) bits: u32,
    /// Parts that differ from PE to PE besides the base address.
    pub(super) offset: Option<Offset>,
}

/// Parts of an address that differ from PE to PE.
#[derive(Clone, Copy, Debug)]
pub(super) struct Offset {
    /// Slot of the T register for indirect addressing, and the bits of it that form the address.
    pub(super) indirect: Option<(usize, u64)>,
    /// The first number is the last PE of a MAB whose address is one access width higher, the second the number of PEs in a
    /// MAB.
    pub(super) modify: Option<(u32, u32)>,
}

impl Access {
    /// First row of cycle `c`. No address may differ between PEs.
    #[inline]
    pub(super) fn row(&self, c: usize) -> usize {
        (self.at[c] / WORDS_PER_LONG) as usize
    }

    /// Whether the rows of all cycles are contiguous, one long word each.
    pub(super) fn contiguous(&self) -> bool {
        let follow = |pair: &[u32]| pair[0] + WORDS_PER_LONG == pair[1];
        self.words == WORDS_PER_LONG && self.at.windows(2).all(follow)
    }

    /// Whether the rows of each cycle directly follow those of the previous cycle.
    pub(super) fn ascending(&self) -> bool {
        self.at.windows(2).all(|pair| pair[0] + self.words <= pair[1])
    }

    /// Whether no row is touched in two cycles. Where one is, a write leaves the words of the last of them.
    pub(super) fn apart(&self) -> bool {
        let apart = |one: u32, other: u32| one.abs_diff(other) >= self.words;
        self.at.iter().enumerate().all(|(c, one)| self.at[..c].iter().all(|other| apart(*one, *other)))
    }

    /// The rows of each cycle, L0 and L1. L1 is empty if the access has one long word. The access must be
    /// [`Access::ascending`].
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

    /// The rows that the access touches if no address differs between PEs: the first row, and the row behind the last one.
    pub(super) fn reach(&self) -> (u32, u32) {
        let rows = self.at.iter().map(|word| word / WORDS_PER_LONG);
        let first = rows.clone().min().unwrap_or(0);
        (first, rows.max().unwrap_or(0) + self.words.div_ceil(WORDS_PER_LONG))
    }

    /// Whether both accesses touch exactly the same rows. Base addresses count as zero.
    pub(super) fn same_rows(&self, other: &Access) -> bool {
        let plain = self.offset.is_none() && other.offset.is_none();
        plain && (self.slot, self.words, &self.at) == (other.slot, other.words, &other.at)
    }

    /// Whether the accesses may touch a common row. Base addresses count as zero.
    pub(super) fn meets(&self, other: &Access) -> bool {
        if self.slot != other.slot {
            return false;
        }
        let ((first, end), (other_first, other_end)) = (self.reach(), other.reach());
        let anywhere = self.offset.is_some() || other.offset.is_some();
        anywhere || (first < other_end && other_first < end)
    }

    /// Slot of the T register, if addresses depend on it.
    pub(super) fn indirect_slot(&self) -> Option<usize> {
        Some(self.offset?.indirect?.0)
    }

    /// Whether addresses may differ between PEs.
    pub(super) fn per_pe(&self, l1b: &L1b) -> bool {
        self.offset.is_some() || self.base.is_some_and(|slot| l1b.live_bases >> slot & 1 == 1)
    }

    /// Whether the address of a PE leaves the memory in cycle `c`. The registers may hold negative offsets in two's
    /// complement, so a sum that is inside with them is no wrap.
    pub(super) fn leaves(&self, l1b: &L1b, c: usize, lane: usize, lanes: usize) -> bool {
        let base = self.base.map_or(0, |slot| l1b.pe[slot][lane]);
        let indirect = self.offset.and_then(|o| o.indirect);
        let indirect = indirect.map_or(0, |(slot, bits)| l1b.pe[slot][2 * c * lanes + lane] & bits);
        let modify = self.offset.and_then(|o| o.modify);
        let step = modify.map_or(0, |(last, pes)| if lane as u32 % pes <= last { self.words } else { 0 });
        let fixed = i64::from(self.at[c] + step);
        let size = i64::from(self.size);
        let values = 1 << self.bits;
        let signed = |value: u64| if value as i64 >= values / 2 { value as i64 - values } else { value as i64 };
        let inside = |address: i64| (0..size).contains(&address);
        !inside(fixed + base as i64 + indirect as i64) && !inside(fixed + signed(base) + signed(indirect))
    }

    /// The word address of every PE in cycle `c`.
    pub(super) fn addresses(&self, l1b: &L1b, c: usize, out: &mut [u32]) {
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

/// How many bits the upper word of a long word is shifted right to reach the word at an address.
pub(super) fn shift(word: u32) -> u32 {
    u64::BITS / WORDS_PER_LONG * (word % WORDS_PER_LONG)
}

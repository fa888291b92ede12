//! Memory contents that make odd cases likely. Both machines start with the same contents.

use super::chip::Chip;
use super::choices::Choices;
use super::num_reference::gen::word;
use super::num_reference::{pack_lanes, D, F, H};
use emu2::machine::{Machine, Region};
use emu2::spec::{LevelName, Unit};

/// Number of long words at either end of a large memory that are filled.
const HEAD: u64 = 48;
const TAIL: u64 = 8;

/// A long word: floats of some format with boundary fractions and exponents, or small integers, or any bits.
pub fn long_word(choices: &mut Choices) -> u64 {
    let fmt = match choices.bits() % 8 {
        0 => return choices.bits(),
        1 => return choices.bits() % 9,
        2 => return ((choices.bits() % 64) << 32) | (choices.bits() % 64),
        3 | 4 => H,
        5 | 6 => F,
        _ => D,
    };
    let lanes: Vec<u64> = (0..64 / fmt.width())
        .map(|_| match choices.bits() % 8 {
            0 => choices.bits() & 1 << (fmt.width() - 1),
            _ => word(fmt, [choices.bits(), choices.bits()]),
        })
        .collect();
    pack_lanes(fmt.width(), &lanes)
}

/// The contents of the memories before a program.
#[derive(Clone, Debug, PartialEq)]
pub struct Fill {
    /// Seed of the contents.
    pub seed: u64,
    /// Memories that are filled, by number; the others are zero.
    pub memories: Vec<usize>,
}

impl Fill {
    /// All memories.
    pub fn all(chip: &Chip, seed: u64) -> Fill {
        Fill { seed, memories: (0..chip.spec.memories.len()).collect() }
    }

    /// Writes the contents to both machines.
    pub fn apply(&self, machine: &mut Machine, chip: &mut Chip) {
        let spec = chip.spec.clone();
        for memory in &self.memories {
            let entry = &spec.memories[*memory];
            let mut choices = Choices::seeded(self.seed ^ (*memory as u64) << 56);
            let tail = entry.words.saturating_sub(TAIL);
            let head = HEAD.min(tail);
            let ranges = match entry.unit {
                // Entry 0 of the mask registers is all ones and cannot be written.
                Unit::Mask => [u64::from(spec.counts.cycle)..entry.words, 0..0],
                Unit::Word | Unit::Long => [0..head, tail..entry.words],
                _ => [0..entry.words, 0..0],
            };
            // Half of the time base address registers and the T register hold small values.
            let small = choices.chance(50);
            for range in ranges.into_iter().filter(|r| !r.is_empty()) {
                let count = range.end - range.start;
                let total = spec.units(entry.level) * count;
                let words: Vec<u64> = (0..total).map(|_| content(&mut choices, entry.unit, small)).collect();
                let region = Region { memory: *memory, units: [None; 5], addr: range.start, count };
                machine.write(&region, &words).expect("a range of the memory");
                for (at, word) in words.iter().enumerate() {
                    let (unit, k) = (at as u64 / count, at as u64 % count);
                    chip.set_long(*memory, unit as usize, range.start + k, *word);
                }
            }
        }
    }
}

fn content(choices: &mut Choices, unit: Unit, small: bool) -> u64 {
    match unit {
        Unit::Mask => choices.bits() % 16,
        Unit::Base if small => 0,
        Unit::Base => choices.bits() % 4 * 2 + choices.bits() % 2 * (choices.bits() % 4096),
        Unit::Cycle if small => choices.bits() % 64,
        _ => long_word(choices),
    }
}

/// Long words of a memory of all units, in the order of [`Machine::read`].
pub fn naive_words(chip: &Chip, memory: usize, addr: u64, count: u64) -> Vec<u64> {
    let entry = &chip.spec.memories[memory];
    let units = chip.spec.units(entry.level);
    if entry.level == LevelName::Pe {
        let all = (0..units as usize).flat_map(|unit| (addr..addr + count).map(move |at| (unit, at)));
        return all.map(|(unit, at)| chip.long(memory, unit, at)).collect();
    }
    let mut words = vec![0; (units * count) as usize];
    for ((_, unit, at), word) in chip.upper.iter().filter(|((m, ..), _)| *m == memory) {
        if (addr..addr + count).contains(at) {
            words[*unit * count as usize + (at - addr) as usize] = *word;
        }
    }
    words
}

/// Ranges of a memory that may hold something other than zero, in long words.
pub fn used(chip: &Chip, memory: usize) -> Vec<(u64, u64)> {
    const PIECE: u64 = 4096;
    let entry = &chip.spec.memories[memory];
    if entry.level == LevelName::Pe || entry.words <= 4 * PIECE {
        return vec![(0, entry.words)];
    }
    let mut pieces: Vec<u64> = chip.upper.keys().filter(|(m, ..)| *m == memory).map(|(.., at)| at / PIECE).collect();
    pieces.extend([0, (entry.words - 1) / PIECE]);
    pieces.sort_unstable();
    pieces.dedup();
    pieces.iter().map(|p| (p * PIECE, PIECE.min(entry.words - p * PIECE))).collect()
}

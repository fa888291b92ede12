//! Debug statements (manual, chapters on `d set` and `d get`).

use super::chip::Chip;
use super::letters::Letter;
use super::num_reference::{lane, Fmt};
use emu2::asm::{DebugGet, DebugSet, Location};
use emu2::report::general;
use emu2::spec::{LevelName, Unit};

/// The levels in tree order.
const TREE: [LevelName; 5] = [LevelName::Group, LevelName::L2b, LevelName::L1b, LevelName::Mab, LevelName::Pe];

/// Places of all units that a location selects, in the order of dump lines.
fn places(chip: &Chip, location: &Location) -> Vec<[usize; 5]> {
    let level = chip.spec.memories[location.memory].level;
    let range = |at: usize| match location.units[at] {
        Some(unit) => unit as usize..unit as usize + 1,
        None if TREE[at] <= level => 0..chip.spec.count(TREE[at]) as usize,
        None => 0..1,
    };
    let mut all = Vec::new();
    for g in range(0) {
        for l in range(1) {
            for b in range(2) {
                for m in range(3) {
                    all.extend(range(4).map(|p| [g, l, b, m, p]));
                }
            }
        }
    }
    all
}

/// `d set`
pub fn set(chip: &mut Chip, set: &DebugSet) {
    let location = &set.location;
    let (memory, address) = (location.memory, location.address);
    let entry = chip.spec.memories[memory].clone();
    for place in places(chip, location) {
        let unit = chip.unit(entry.level, place);
        for (k, value) in set.payload.iter().enumerate() {
            let at = address as usize + k;
            let (high, low) = ((value >> 32) as u32, *value as u32);
            match (entry.unit, location.words) {
                // Only the upper word counts.
                (Unit::Word, 1) => chip.pes[unit].words[memory][at] = high,
                (Unit::Word, _) => {
                    let at = address as usize + 2 * k;
                    chip.pes[unit].words[memory][at..at + 2].copy_from_slice(&[high, low]);
                }
                (Unit::Cycle, _) => chip.pes[unit].words[memory][4 * at..4 * at + 2].copy_from_slice(&[high, low]),
                _ => chip.set_long(memory, unit, at as u64, *value),
            }
        }
    }
}

/// `d get`: one line per long word, mask registers one per cycle.
pub fn get(chip: &Chip, get: &DebugGet, lines: &mut Vec<String>) {
    let location = &get.location;
    let memory = &chip.spec.memories[location.memory];
    let statement = &get.statement;
    for place in places(chip, location) {
        let unit = chip.unit(memory.level, place);
        let selectors = chip.spec.levels.iter().zip(place).filter(|(level, _)| level.name <= memory.level);
        let name: String = selectors.map(|(level, number)| format!("{}{number}", level.selector)).collect();
        let mut line = |address: u64, value: String| {
            lines.push(format!("DEBUG-{}({name},{address}):{value} #{statement}", memory.dump));
        };
        for k in 0..get.count {
            let words = || &chip.pes[unit].words[location.memory];
            let at = location.address + k;
            match memory.unit {
                Unit::Mask => {
                    for bits in &words()[4 * at as usize..4 * at as usize + 4] {
                        line(at, format!("Mask{{{bits}}}"));
                    }
                }
                Unit::Word => {
                    // guess: a word access shows the 64 bits that begin at the word.
                    let at = location.address + k * u64::from(location.words);
                    let word = |at: u64| u64::from(words()[at as usize % words().len()]);
                    line(at, value(get, chip, word(at) << 32 | word(at + 1)));
                }
                Unit::Cycle => {
                    let word = |n: u64| u64::from(words()[(4 * at + n) as usize]);
                    line(at, value(get, chip, word(0) << 32 | word(1)));
                }
                _ => line(at, value(get, chip, chip.long(location.memory, unit, at))),
            }
        }
    }
}

fn value(get: &DebugGet, chip: &Chip, long: u64) -> String {
    let Some(precision) = get.precision else {
        let d = general(number(super::num_reference::D, long));
        let [a, b, c, e] = [0, 1, 2, 3].map(|k| lane(long, 16, k));
        return format!("(f:{d}, i:{{{{0x{a:X},0x{b:X}}},{{0x{c:X},0x{e:X}}}}}, v:0x{long:X})");
    };
    let letter = Letter::of(&chip.spec.precisions[precision].name);
    let lanes: Vec<u64> = (0..letter.lanes()).map(|k| lane(long, letter.width, k as u32)).collect();
    let numbers: Vec<String> = lanes.iter().map(|v| general(number(letter.format(), *v))).collect();
    let hex: Vec<String> = lanes.iter().map(|v| format!("0x{v:0w$x}", w = letter.width as usize / 4)).collect();
    format!("({}) ({})", numbers.join(", "), hex.join(", "))
}

/// The value as a host double.
fn number(fmt: Fmt, bits: u64) -> f64 {
    let sign = if fmt.sign(bits) == 1 { -1.0 } else { 1.0 };
    if fmt.exp(bits) == 0 {
        return sign * 0.0;
    }
    if fmt.exp(bits) == fmt.ones() {
        return sign * f64::INFINITY;
    }
    // A power of two below the smallest normal double would not be exact: the fraction is scaled first.
    let fraction = 1.0 + fmt.frac(bits) as f64 / (1u64 << fmt.m) as f64;
    sign * fraction * 2f64.powi((fmt.exp(bits) as i64 - fmt.bias()) as i32)
}

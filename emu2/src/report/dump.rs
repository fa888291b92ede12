//! The text of `d get`, in the form that the vendor's emulator writes.

use super::number::general;
use crate::asm::DebugGet;
use crate::error::{Code, Error};
use crate::exec::debug_place;
use crate::machine::{unit_name, Machine, Region};
use crate::num::format::FloatFormat;
use crate::num::lane::Lane;
use crate::spec::{LevelName, Unit, HALVES, WORDS_PER_LONG};
use std::fmt::Write;

/// Converts the bits of a format to a number.
type Number = fn(FloatFormat, u64) -> f64;

/// Writes one line per long word of `get` to `sink`: units in tree order, addresses innermost.
///
/// # Errors
/// [`Code::MemoryRange`] if the place does not exist, and the errors of `sink`.
pub fn dump_lines(
    machine: &Machine,
    get: &DebugGet,
    sink: &mut dyn FnMut(&str) -> Result<(), Error>,
) -> Result<(), Error> {
    let spec = machine.spec().clone();
    let location = &get.location;
    let memory = &spec.memories[location.memory];
    let lane = get.precision.and_then(|p| spec.precisions[p].lane());
    let number = if get.block { FloatFormat::block_to_f64 } else { FloatFormat::to_f64 };
    let whole = Region { memory: location.memory, units: location.units, addr: 0, count: 0 };
    whole.check(&spec)?;
    let mut units = Vec::new();
    whole.each(&spec, |unit| units.push(unit));
    let step = if memory.unit == Unit::Word { u64::from(location.words) } else { 1 };
    // A mask entry has a line for every cycle, all with the entry's number.
    let mask = memory.unit == Unit::Mask;
    let lines = if mask { u64::from(spec.counts.cycle) } else { 1 };
    let mut line = String::new();
    for unit in units {
        let name = unit_name(&spec, memory.level, unit);
        for k in 0..get.count * lines {
            let word = if mask { mask_bits(machine, get, unit, k)? } else { long_word(machine, get, unit, k)? };
            line.clear();
            write!(line, "DEBUG-{}({name},{}):", memory.dump, location.address + k / lines * step)
                .and_then(|()| if mask { write!(line, "Mask{{{word}}}") } else { value(&mut line, lane, number, word) })
                .and_then(|()| write!(line, " #{}", get.statement))
                .map_err(|_| Error::new(Code::Unwritable, "a dump line cannot be formatted"))?;
            sink(&line)?;
        }
    }
    Ok(())
}

/// Line `k` of a statement on mask registers. guess: the first bit counts 8.
fn mask_bits(machine: &Machine, get: &DebugGet, unit: [u32; 5], k: u64) -> Result<u64, Error> {
    let location = &get.location;
    let (first, _) = debug_place(machine.spec(), location.memory, location.words, location.address, 0);
    read(machine, location.memory, unit, first + k)
}

/// Long word `k` of the statement, in one unit.
fn long_word(machine: &Machine, get: &DebugGet, unit: [u32; 5], k: u64) -> Result<u64, Error> {
    let spec = machine.spec();
    let location = &get.location;
    let memory = &spec.memories[location.memory];
    let (mut addr, part) = debug_place(spec, location.memory, location.words, location.address, k);
    if memory.unit == Unit::Cycle {
        // guess: past the last cycle the entries repeat.
        addr %= u64::from(spec.counts.cycle * HALVES);
    }
    let word = read(machine, location.memory, unit, addr)?;
    if part.unwrap_or(0) == 0 {
        return Ok(word);
    }
    // guess: a word access shows the 64 bits that begin at the word.
    let next = read(machine, location.memory, unit, (addr + 1) % memory.words)?;
    let shift = u64::BITS / WORDS_PER_LONG;
    Ok(word << shift | next >> shift)
}

fn read(machine: &Machine, memory: usize, unit: [u32; 5], addr: u64) -> Result<u64, Error> {
    let units = unit_of(machine.spec().memories[memory].level, unit);
    let words = machine.read(&Region { memory, units, addr, count: 1 })?;
    Ok(words.first().copied().unwrap_or(0))
}

/// The unit's numbers, down to the level of the memory.
fn unit_of(level: LevelName, unit: [u32; 5]) -> [Option<u32>; 5] {
    let tree = [LevelName::Group, LevelName::L2b, LevelName::L1b, LevelName::Mab, LevelName::Pe];
    std::array::from_fn(|at| (tree[at] <= level).then_some(unit[at]))
}

/// guess: block float values are printed like ordinary values of their format.
fn value(line: &mut String, lane: Option<Lane>, number: Number, word: u64) -> std::fmt::Result {
    let lane = match lane {
        Some(lane) => lane,
        None => {
            let d = Lane::D.format().map_or(0.0, |f| f.to_f64(word));
            let half = |k: u32| word >> (48 - 16 * k) & 0xFFFF;
            return write!(
                line,
                "(f:{}, i:{{{{0x{:X},0x{:X}}},{{0x{:X},0x{:X}}}}}, v:0x{word:X})",
                general(d),
                half(0),
                half(1),
                half(2),
                half(3)
            );
        }
    };
    let width = lane.width();
    let lanes = (0..lane.count() as u32).rev().map(|k| word >> (k * width) & (u64::MAX >> (u64::BITS - width)));
    let numbers: Vec<String> = lanes.clone().map(|v| general(lane.format().map_or(0.0, |f| number(f, v)))).collect();
    let hex: Vec<String> = lanes.map(|v| format!("0x{v:0w$x}", w = width as usize / 4)).collect();
    write!(line, "({}) ({})", numbers.join(", "), hex.join(", "))
}

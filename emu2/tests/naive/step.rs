//! One step in the manual's reference order: (1) latch the state; (2) compute result and flags of every instruction in
//! every cycle; (3) zero flush; (4) forwarding paths; (5) write destinations under their masks.

use super::chip::{Chip, CYCLES};
use super::fetch::{address, cycles, fetch, width, Input};
use super::letters::{long, Letter, Path};
use super::{alu, mau, transfer, Undefined};
use emu2::asm::{Destination, Mask, MaskEntry, PeInstruction, PeKind, Step, Target};
use emu2::spec::LevelName;

/// A write that waits for the end of the step.
enum Pending {
    /// Bits `enable` of a word of a PE memory.
    Word { pe: usize, memory: usize, at: usize, value: u32, enable: u32 },
    /// A long word above the PEs.
    Upper { memory: usize, unit: usize, addr: u64, value: u64 },
    /// A forwarding path.
    Forward { pe: usize, path: usize, cycle: usize, value: Path },
}

/// Runs a step on the whole chip.
pub fn step(chip: &mut Chip, step: &Step) -> Result<(), Undefined> {
    // Nothing is stored before everything is computed, so the chip itself is the latched state.
    let mut pending = Vec::new();
    for pe in 0..chip.pes.len() {
        for instruction in &step.pe {
            for cycle in cycles() {
                run(chip, step, instruction, pe, cycle, &mut pending)?;
            }
        }
    }
    for instruction in &step.pe {
        let PeKind::L1bm { form, address } = instruction.kind else { continue };
        let word = |pe, cycle| sent(chip, instruction, pe, cycle);
        let register = chip.memory("turnaround");
        for (memory, unit, addr, value) in transfer::reduce(chip, form, &word) {
            pending.extend(address.map(|a| Pending::Upper { memory, unit, addr: a + addr, value }));
            if step.forward {
                pending.push(Pending::Upper { memory: register, unit, addr, value });
            }
        }
    }
    for instruction in &step.l2bm {
        for (memory, unit, addr, value) in transfer::l2bm(chip, &step.l2bm, instruction) {
            pending.push(Pending::Upper { memory, unit, addr, value });
        }
    }
    for write in pending {
        match write {
            Pending::Word { pe, memory, at, value, enable } => {
                let word = &mut chip.pes[pe].words[memory][at];
                *word = (*word & !enable) | (value & enable);
            }
            Pending::Upper { memory, unit, addr, value } => chip.write_upper(memory, unit, addr, value),
            Pending::Forward { pe, path, cycle, value } => chip.pes[pe].forward[path][cycle] = value,
        }
    }
    Ok(())
}

/// Runs one instruction on a PE in a cycle.
fn run(
    chip: &mut Chip,
    step: &Step,
    instruction: &PeInstruction,
    pe: usize,
    cycle: usize,
    pending: &mut Vec<Pending>,
) -> Result<(), Undefined> {
    if let PeKind::L1bm { form, .. } = instruction.kind {
        transfer::prepare(chip, form);
        transfer::prepare(chip, transfer::unshifted(chip, form));
    }
    let (mut result, flags, forward) = compute(chip, instruction, pe, cycle)?;
    if let Some(flush) = &instruction.zero_flush {
        for (word, enable) in result.iter_mut().zip(enables(chip, pe, Some(flush), cycle)) {
            *word &= enable;
        }
    }
    if let (Some(forward), true) = (forward, step.forward) {
        let path = chip.spec.forwards.iter().position(|f| f.name == forward).expect("a path");
        pending.push(Pending::Forward { pe, path, cycle, value: result });
    }
    match instruction.kind {
        PeKind::Matrix { op, precision, bank, row, wide, .. } if chip.spec.matrix_ops[op].name == "mwrite" => {
            let letter = Letter::of(&chip.spec.precisions[precision].name);
            let memory = chip.memory(&chip.spec.banks[bank].memory);
            let negate = instruction.sources[0].negate;
            for (row, value) in mau::write(letter, &result, negate, &matrix_rows(row, wide, cycle)) {
                for (k, value) in [(value >> 32) as u32, value as u32].into_iter().enumerate() {
                    pending.push(Pending::Word { pe, memory, at: 2 * row + k, value, enable: u32::MAX });
                }
            }
        }
        PeKind::L1bm { form, address } => {
            let unit = chip.unit(LevelName::L1b, chip.place(pe));
            for (memory, addr, half) in transfer::store(chip, form, pe, cycle) {
                let value = long(&result, half);
                pending.extend(address.map(|a| Pending::Upper { memory, unit, addr: a + addr, value }));
            }
            let kept =
                if step.forward { transfer::store(chip, transfer::unshifted(chip, form), pe, cycle) } else { vec![] };
            for (_, addr, half) in kept {
                let value = long(&result, half);
                pending.push(Pending::Upper { memory: chip.memory("turnaround"), unit, addr, value });
            }
        }
        _ => {}
    }
    for destination in &instruction.destinations {
        write(chip, pe, destination, cycle, &result, flags, pending);
    }
    Ok(())
}

/// Result path, flags, and the forwarding path that takes the result.
fn compute(
    chip: &Chip,
    instruction: &PeInstruction,
    pe: usize,
    cycle: usize,
) -> Result<(Path, u8, Option<&'static str>), Undefined> {
    let spec = &chip.spec;
    let (mab, me) = chip.mab(pe);
    let letter_of = |p: usize| Letter::of(&spec.precisions[p].name);
    let sources = |pe: usize, letter: Option<Letter>, inputs: &[Input]| -> Vec<Path> {
        let with = instruction.sources.iter().zip(inputs);
        with.map(|(source, input)| fetch(chip, pe, source, letter, *input, cycle)).collect()
    };
    match instruction.kind {
        PeKind::Alu { op, precision, unsigned, literal, length } => {
            let letter = precision.map(letter_of);
            let op = alu::Op { name: &spec.alu[op].name, letter, unsigned, literal, length };
            let all: Vec<_> = mab.map(|pe| sources(pe, letter, &[Input::Lanes; 2])).collect();
            let (result, flags) = alu::run(&op, &all, me);
            Ok((result, flags, Some("aluf")))
        }
        PeKind::Mau { op, precision, half, reduced, bank, .. } => {
            let letter = letter_of(precision);
            let matrix = bank.map(|b| chip.memory(&spec.banks[b].memory));
            let name = spec.mau[op].name.as_str();
            let op = mau::Op { name, letter, half, reduced, matrix };
            let inputs: &[Input] = match name {
                "vfma" => &[Input::Lanes, Input::Lanes, Input::Addend],
                "vmul" => &[Input::Lanes, Input::Lanes],
                _ => &[Input::Lanes, Input::Addend],
            };
            let fetched = |pe: usize| -> Vec<mau::Input> {
                sources(pe, Some(letter), inputs)
                    .into_iter()
                    .zip(instruction.sources.iter().map(|s| s.negate))
                    .collect()
            };
            let (result, flags) = if matrix.is_some() {
                let all: Vec<_> = mab.clone().map(fetched).collect();
                mau::matrix(chip, &op, &mab, &all, me)?
            } else {
                mau::vector(&op, &fetched(pe), me)
            };
            Ok((result, flags, Some("mauf")))
        }
        PeKind::Matrix { op, precision, bank, row, wide, .. } => {
            let letter = letter_of(precision);
            if spec.matrix_ops[op].name == "mwrite" {
                return Ok((sources(pe, Some(letter), &[Input::Lanes])[0], 0, None));
            }
            let memory = chip.memory(&spec.banks[bank].memory);
            let path = mau::read(chip, letter, memory, &mab, me, &matrix_rows(row, wide, cycle));
            Ok((path, 0, Some("mreadf")))
        }
        PeKind::L1bm { form, address } => Ok(match transfer::load(chip, form, address, pe, cycle) {
            Some(path) => (path, 0, Some("lbf")),
            None => (sent(chip, instruction, pe, cycle), 0, None),
        }),
    }
}

/// The path that a PE sends in a cycle. `e` turns four halves into four singles, as on the addend port of half products.
fn sent(chip: &Chip, instruction: &PeInstruction, pe: usize, cycle: usize) -> Path {
    fetch(chip, pe, &instruction.sources[0], Some(Letter::of("h")), Input::Addend, cycle)
}

/// Rows or columns of a matrix access in a cycle, before they wrap.
fn matrix_rows(first: u32, wide: bool, cycle: usize) -> Vec<usize> {
    let first = first as usize;
    if wide {
        vec![first + 2 * cycle, first + 2 * cycle + 1]
    } else {
        vec![first + cycle]
    }
}

/// The four bits of a mask in a cycle; b0 counts 8.
fn mask_bits(chip: &Chip, pe: usize, mask: Option<&Mask>, cycle: usize) -> u32 {
    match mask.map(|m| m.entry) {
        None | Some(MaskEntry::Register(0)) => 0b1111,
        Some(MaskEntry::Cycles(pattern)) => 0b1111 * (pattern >> cycle & 1),
        Some(MaskEntry::Register(entry)) => chip.pes[pe].words[chip.memory("omr")][entry as usize * CYCLES + cycle],
    }
}

/// The bits of each word of the path that a mask lets through.
fn enables(chip: &Chip, pe: usize, mask: Option<&Mask>, cycle: usize) -> Path {
    let bits = mask_bits(chip, pe, mask, cycle);
    let b = |k: usize| bits >> (3 - k) & 1;
    if mask.is_some_and(|m| m.wide) {
        [0, 1, 2, 3].map(|k| b(k) * u32::MAX)
    } else {
        let halves = |k: usize| (b(k) * 0xFFFF_0000) | (b(k + 1) * 0xFFFF);
        [halves(0), halves(2), u32::MAX, u32::MAX]
    }
}

/// Notes the words that a destination of a PE takes in a cycle.
fn write(
    chip: &Chip,
    pe: usize,
    destination: &Destination,
    cycle: usize,
    result: &Path,
    flags: u8,
    pending: &mut Vec<Pending>,
) {
    let mask = destination.mask.as_ref();
    let enable = enables(chip, pe, mask, cycle);
    match &destination.target {
        Target::Memory(access) => {
            let at = address(chip, pe, access, cycle);
            for k in 0..width(chip, access) {
                let (value, enable) = (result[k], enable[k]);
                pending.push(Pending::Word { pe, memory: access.memory, at: at + k, value, enable });
            }
        }
        Target::Base { base, words } => {
            // The low bits of the word or long word to be written.
            let k = *words as usize - 1;
            let memory = match chip.spec.bases[*base].name.as_str() {
                "mb" => chip.memory("bar0"),
                "nb" => chip.memory("bar1"),
                name => panic!("the manual has no base register `{name}`"),
            };
            pending.push(Pending::Word { pe, memory, at: 0, value: result[k], enable: enable[k] & 0xFFF });
        }
        Target::Flags { entry } => {
            let value = u32::from(flags) & mask_bits(chip, pe, mask, cycle);
            let at = *entry as usize * CYCLES + cycle;
            pending.push(Pending::Word { pe, memory: chip.memory("omr"), at, value, enable: u32::MAX });
        }
    }
}

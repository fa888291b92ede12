//! Gives downloads addresses in L1BM that other nodes rarely use, so that both can run together.
//!
//! A download uses all of L1BM: it fills L1BM, then empties it. But a word is needed there for a few steps only. So a download in
//! stream form empties each block as soon as it has arrived, and uses a ring buffer of a few blocks at the end of L1BM. Most
//! other nodes use the words from 0 on.

use crate::code::{Block, Instruction, Line, Operand, Pe};
use crate::machine::{lcm, Machine};
use crate::rules::Name;
use std::sync::Arc;

/// The part of the ring that downloads have which fit it.
const SMALL: i64 = 4;
/// Makers of masks use this many words at the end of a register file.
const LAST: i64 = 2;

type Step = Vec<Arc<Instruction>>;

/// A ring buffer: its first word and its words.
#[derive(Clone, Copy)]
struct Ring {
    base: i64,
    words: i64,
}

/// Returns a download in stream form, with registers that other nodes rarely use; None if it has no such form.
pub(crate) fn streamed(machine: &Machine, lines: &[Line]) -> Option<Vec<Line>> {
    let own: Vec<Line> = lines.iter().map(|line| with_own_registers(machine, line)).collect();
    let words = machine.words(machine.blocks);
    let steps = own.iter().filter(|line| !line.is_move());
    let block = |line: &Line| {
        let all = line.instructions();
        touched(all, true, machine.blocks).or_else(|| touched(all, false, machine.blocks)).cloned()
    };
    let blocks: Vec<Block> = steps.filter_map(block).collect();
    // A block begins at a multiple of its words, also where counts are no powers of two.
    let unit = blocks.iter().fold(1, |unit, block| lcm(unit, block.words));
    let size = words / machine.ring / unit * unit;
    if size == 0 {
        return None;
    }
    let (low, part) = ((words - size).div_euclid(unit) * unit, size / SMALL / unit * unit);
    let mut rings = vec![Ring { base: low, words: size }];
    if part > 0 {
        // A bias may have to wait until a product has ended. The matrix behind it need not.
        let small = blocks.iter().map(|block| block.offset + block.words).max().unwrap_or(0) <= part;
        let one = small && chunks(&own).len() == 1;
        let base = if one { low + size - part } else { low };
        rings.insert(0, Ring { base, words: if one { part } else { size - part } });
    }
    rings.into_iter().find_map(|ring| in_ring(&own, ring, unit, machine.blocks))
}

fn in_ring(lines: &[Line], ring: Ring, unit: i64, memory: Name) -> Option<Vec<Line>> {
    let (mut out, mut first) = (Vec::new(), 0);
    for chunk in chunks(lines) {
        let (moves, steps): (Vec<&Line>, Vec<&Line>) = chunk.iter().partition(|line| line.is_move());
        let (steps, words) = in_chunk(&steps, ring, first, memory)?;
        out.extend(moves.into_iter().cloned());
        out.extend(steps.into_iter().map(Line::Step));
        first = (first + -(-words).div_euclid(unit) * unit).rem_euclid(ring.words);
    }
    Some(out)
}

/// Cuts a download before the MVs that begin a chunk.
fn chunks(lines: &[Line]) -> Vec<&[Line]> {
    lines.chunk_by(|one, next| one.is_move() || !next.is_move()).collect()
}

/// Returns the steps of a chunk in the ring, and the words that it takes; None if impossible.
///
/// Each step that empties a block comes after those that fill it. A step that fills a block again comes after all that empty
/// it.
fn in_chunk(steps: &[&Line], ring: Ring, first: i64, memory: Name) -> Option<(Vec<Step>, i64)> {
    let filled = |line: &&Line| touched(line.instructions(), true, memory).map(|block| (block.offset, block.words));
    let mut fills: Vec<_> = steps.iter().filter_map(|line| filled(line).map(|block| (block, *line))).collect();
    sorting::sort_by_key(&mut fills, |((offset, _), _)| *offset);
    let mut fills = fills.into_iter().peekable();
    let mut out = Vec::new();
    // Until which word blocks are empty.
    let mut emptied = -1;
    for line in steps.iter().filter(|line| filled(line).is_none()) {
        let own = line.instructions();
        let Some(block) = touched(own, false, memory) else {
            out.push(own.to_vec());
            continue;
        };
        let end = block.offset + block.words;
        while let Some(((offset, words), fill)) = fills.next_if(|((offset, _), _)| *offset < end) {
            // It overwrites the words that are a round behind it.
            if offset + words - ring.words > emptied.max(0) {
                return None;
            }
            out.push(placed(fill.instructions(), ring, first, memory)?);
        }
        if block.offset < emptied {
            return None;
        }
        emptied = end;
        out.push(placed(own, ring, first, memory)?);
    }
    fills.next().is_none().then_some((out, emptied.max(0)))
}

/// The first block of the memory that a step fills, or that it empties.
fn touched(step: &[Arc<Instruction>], written: bool, memory: Name) -> Option<&Block> {
    step.iter().flat_map(|one| one.operands()).find_map(|(operand, is)| match operand {
        Operand::Block(block) if is == written && block.memory == memory => Some(block),
        _ => None,
    })
}

/// Returns a step with its blocks in the ring, in which long word `first` counts as 0.
fn placed(step: &[Arc<Instruction>], ring: Ring, first: i64, memory: Name) -> Option<Step> {
    let mut fits = true;
    let mut own = |operand: &Operand| match operand {
        Operand::Block(block) if block.memory == memory => {
            let at = (block.offset + first).rem_euclid(ring.words);
            fits &= at + block.words <= ring.words;
            Operand::Block(Block { offset: ring.base + at, ..block.clone() })
        }
        _ => operand.clone(),
    };
    let made = step.iter().map(|one| Arc::new(one.with_operands(&mut own))).collect();
    fits.then_some(made)
}

/// Returns a line with other mask registers, and another word for the number of a unit, than other nodes use.
///
/// Masks are made from the first register on; here they are counted from the last one down. The words of a register file
/// that downloads use are its last ones.
fn with_own_registers(machine: &Machine, line: &Line) -> Line {
    let Line::Step(all) = line else { return line.clone() };
    let cycles = machine.rules.cycles;
    let more = |first: i64| match first / cycles {
        0 => 0,
        entry => (machine.registers - 2 * entry) * cycles,
    };
    let change = |operand: &Operand| {
        let Operand::Pe(one) = operand else { return operand.clone() };
        let by = if one.memory == machine.masks {
            more(one.offsets.first().copied().unwrap_or(0))
        } else if machine.files.contains(&one.memory) && one.value.is_none() {
            -LAST
        } else {
            0
        };
        let offsets = one.offsets.iter().map(|at| at + by).collect();
        Operand::Pe(Pe { offsets, mask: one.mask.map(|first| first + more(first)), ..one.clone() })
    };
    Line::Step(all.iter().map(|one| Arc::new(one.with_operands(change))).collect())
}

//! The place of an access and the path that a source delivers (manual, chapters on operands and fixed inputs).

use super::chip::{Chip, CYCLES};
use super::letters::{from_lanes, lanes, Letter, Path};
use super::num_reference::{convert, F, H};
use emu2::asm::{Access, Address, Convert, Source, SourceKind};
use emu2::spec::Unit;

/// Words of a T register entry.
const T_WORDS: usize = 4;
/// The bits of the T register and of a base address register that take part in an address.
const ADDRESS_BITS: u32 = 0xFFF;

/// First word of `access` on a PE in a cycle, from the current state.
pub fn address(chip: &Chip, pe: usize, access: &Access, cycle: usize) -> usize {
    let memory = &chip.spec.memories[access.memory];
    if memory.unit == Unit::Cycle {
        return T_WORDS * cycle;
    }
    let width = access.words;
    let mut address = match &access.address {
        Address::Stride { base, stride } => base + cycle as u32 * stride,
        Address::Flat(list) => list[cycle],
        Address::Cycle => 0,
    };
    let words = &chip.pes[pe].words;
    let bar = match memory.name.as_str() {
        "lm0" => Some("bar0"),
        "lm1" => Some("bar1"),
        _ => None,
    };
    if let Some(bar) = bar {
        address += words[chip.memory(bar)][0];
    }
    if access.indirect {
        // The low bits of the first long word of the entry lie in its second word.
        address += words[chip.memory("t")][T_WORDS * cycle + 1] & ADDRESS_BITS;
    }
    let subpeid = chip.place(pe)[4] as u32;
    if access.modify.is_some_and(|last| subpeid <= last) {
        address += width;
    }
    let address = address % (2 * memory.words as u32);
    (address - address % width) as usize
}

/// Number of words that an access moves.
pub fn width(chip: &Chip, access: &Access) -> usize {
    if chip.spec.memories[access.memory].unit == Unit::Cycle {
        T_WORDS
    } else {
        access.words as usize
    }
}

/// The use of an instruction's input.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Input {
    /// Lanes of the precision.
    Lanes,
    /// The addend of a MAU instruction: singles where the lanes are halves.
    Addend,
}

/// The path that `source` delivers to a PE in a cycle, after `e` or `r`. The instruction flips signs.
pub fn fetch(chip: &Chip, pe: usize, source: &Source, letter: Option<Letter>, input: Input, cycle: usize) -> Path {
    let path = match &source.kind {
        SourceKind::Memory(access) => {
            let at = address(chip, pe, access, cycle);
            let mut path = [0; 4];
            let width = width(chip, access);
            path[..width].copy_from_slice(&chip.pes[pe].words[access.memory][at..at + width]);
            path
        }
        SourceKind::Forward(forward) => chip.pes[pe].forward[*forward][cycle],
        SourceKind::Fixed(fixed) => fixed_input(chip, pe, *fixed, letter.expect("an op with lanes")),
    };
    match (source.convert, letter.map(|l| l.name), input) {
        (None, ..) => path,
        // Halves to singles.
        (Some(Convert::Extend), Some('h'), Input::Addend) => extend_halves(&path, 4),
        (Some(Convert::Extend), Some('f' | 'g'), _) => extend_halves(&path, 2),
        // A single to a double.
        (Some(Convert::Extend), Some('d'), _) => {
            let double = convert(F, super::num_reference::D, u64::from(path[0]));
            from_lanes(64, &[double])
        }
        // Four singles to four halves.
        (Some(Convert::Reduce), Some('h'), Input::Lanes) => {
            let singles = lanes(&path, 32, 4);
            from_lanes(16, &singles.iter().map(|v| convert(F, H, *v)).collect::<Vec<_>>())
        }
        (convert, letter, input) => panic!("{convert:?} of {letter:?} as {input:?}"),
    }
}

/// The first halves of a path as singles.
pub fn extend_halves(path: &Path, count: usize) -> Path {
    let halves = lanes(path, 16, count);
    from_lanes(32, &halves.iter().map(|v| convert(H, F, *v)).collect::<Vec<_>>())
}

/// An id, or the top bit, in every lane of the path.
fn fixed_input(chip: &Chip, pe: usize, fixed: usize, letter: Letter) -> Path {
    let [g, l, b, m, p] = chip.place(pe).map(|n| n as u64);
    let c = &chip.spec.counts;
    let value = match chip.spec.fixed[fixed].name.as_str() {
        "l2bid" => g * u64::from(c.l2b) + l,
        "l1bid" => b,
        "mabid" => m,
        "subpeid" => p,
        "peid" => m * u64::from(c.pe) + p,
        "msb1" => 1 << (letter.width - 1),
        name => panic!("the manual has no fixed input `{name}`"),
    };
    from_lanes(letter.width, &vec![value; 2 * letter.lanes()])
}

/// Cycles in order.
pub fn cycles() -> std::ops::Range<usize> {
    0..CYCLES
}

//! Infinities and flags that a step has left.

use super::place::pe_unit;
use crate::asm::{PeInstruction, PeKind, Step, Target};
use crate::machine::Machine;
use crate::num::format::FloatFormat;
use crate::num::lane::Lane;
use crate::spec::{DataWidth, ForwardUnit, Spec};

/// ALU kernels on float lanes whose results are no new numbers.
const NO_NUMBERS: [&str; 3] = ["passa", "packbit", "ftoi"];

/// A long word of a unit, with the reason why it counts.
pub(super) type Found = ([u32; 5], String);

/// How the numbers of a result lie on its forwarding path.
struct Numbers {
    path: usize,
    format: FloatFormat,
    /// Long words of a cycle, and how many numbers of the first one count.
    planes: usize,
    count: u32,
}

fn numbers(spec: &Spec, instruction: &PeInstruction) -> Option<Numbers> {
    let path = |unit| spec.forwards.iter().position(|f| f.unit == unit);
    let whole = |format: FloatFormat| u64::BITS / format.bits();
    match instruction.kind {
        PeKind::Mau { precision, reduced, .. } => {
            let (format, planes, count) = match (spec.precisions[precision].lane()?, reduced) {
                (Lane::H, false) => (FloatFormat::SINGLE, 2, 2),
                (Lane::H, true) => (FloatFormat::HALF, 1, 4),
                (Lane::F, true) => (FloatFormat::HALF, 1, 2),
                (Lane::D, true) => (FloatFormat::SINGLE, 1, 1),
                (lane, _) => (lane.format()?, 1, whole(lane.format()?)),
            };
            Some(Numbers { path: path(ForwardUnit::Mau)?, format, planes, count })
        }
        PeKind::Alu { op, precision: Some(precision), .. } => {
            let (entry, letter) = (&spec.alu[op], &spec.precisions[precision]);
            let format = letter.lane()?.format().filter(|_| !NO_NUMBERS.contains(&entry.kernel.as_str()))?;
            let both = entry.data == DataWidth::Path || entry.path_precisions.contains(&letter.name);
            let planes = if both { 2 } else { 1 };
            Some(Numbers { path: path(ForwardUnit::Alu)?, format, planes, count: whole(format) })
        }
        _ => None,
    }
}

/// Whether a result of the step may be infinite.
pub(super) fn gives_numbers(spec: &Spec, step: &Step) -> bool {
    step.pe.iter().any(|instruction| numbers(spec, instruction).is_some())
}

/// Whether the step writes flags.
pub(super) fn gives_flags(step: &Step) -> bool {
    let flags = |instruction: &PeInstruction| flag_entries(instruction).next().is_some();
    step.pe.iter().any(flags)
}

/// Whether the step converts numbers in a way that can overflow.
pub(super) fn converts(spec: &Spec, step: &Step) -> bool {
    let to_integer = |kind: &PeKind| matches!(kind, PeKind::Alu { op, .. } if spec.alu[*op].kernel == NO_NUMBERS[2]);
    step.pe.iter().any(|i| to_integer(&i.kind) || i.sources.iter().any(|source| source.convert.is_some()))
}

fn flag_entries(instruction: &PeInstruction) -> impl Iterator<Item = u32> + '_ {
    instruction.destinations.iter().filter_map(|destination| match destination.target {
        Target::Flags { entry } => Some(entry),
        _ => None,
    })
}

/// The first infinity on the forwarding paths that the step has just filled.
pub(super) fn infinity(machine: &Machine, step: &Step) -> Option<Found> {
    let spec = machine.spec();
    let (lanes, cycles) = (spec.lanes(), spec.counts.cycle as usize);
    for numbers in step.pe.iter().filter_map(|instruction| numbers(spec, instruction)) {
        let Numbers { path, format, planes, count } = numbers;
        let infinite = |word: u64| {
            (0..count).any(|k| (word >> (u64::BITS - (k + 1) * format.bits())) & format.exp_mask() == format.exp_mask())
        };
        for (index, l1b) in machine.state.l1b.iter().enumerate() {
            let words = &l1b.forward[path].words()[..planes * cycles * lanes];
            if let Some(at) = words.iter().position(|word| infinite(*word)) {
                let name = &spec.forwards[path].name;
                let text = format!("infinity on {name}[{}]: 0x{:016x}", at / lanes, words[at]);
                return Some((pe_unit(spec, index, at % lanes), text));
            }
        }
    }
    None
}

/// The first flag that the step has set.
pub(super) fn flag(machine: &Machine, step: &Step) -> Option<Found> {
    let spec = machine.spec();
    let memory = spec.memory(&spec.mask.memory)?;
    let slot = machine.layout().slot(memory).index;
    let (lanes, cycles) = (spec.lanes(), spec.counts.cycle as usize);
    for entry in step.pe.iter().flat_map(flag_entries) {
        for (index, l1b) in machine.state.l1b.iter().enumerate() {
            let rows = &l1b.pe[slot][entry as usize * cycles * lanes..][..cycles * lanes];
            if let Some(at) = rows.iter().position(|flags| *flags != 0) {
                let text =
                    format!("flags {:04b} in {}[{}]", rows[at], spec.mask.memory, entry as usize * cycles + at / lanes);
                return Some((pe_unit(spec, index, at % lanes), text));
            }
        }
    }
    None
}

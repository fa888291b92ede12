//! The memories that a statement may write, from its text alone.

use crate::asm::host_command::reached;
use crate::asm::{HostCommand, Item, ItemKind, PeInstruction, PeKind, Target};
use crate::exec::debug_place;
use crate::spec::{End, LevelName, Spec, Unit, WORDS_PER_LONG};
use std::ops::Range;

/// Calls `visit` with every memory that `item` may write, and long words that cover what it writes there. `based`: base
/// address registers may be other than zero, so they may lie anywhere in a memory of the PEs.
pub(super) fn each_touched(spec: &Spec, item: &Item, based: bool, visit: &mut dyn FnMut(usize, Range<u64>)) {
    let all = |memory: usize| 0..spec.memories[memory].words;
    match &item.kind {
        ItemKind::Nop { .. } | ItemKind::Get(_) => {}
        ItemKind::Host(command) => {
            if let (HostCommand::Write(words, payload), Some((memory, _))) = (&**command, reached(spec)) {
                visit(memory, words.address..words.address + payload.len() as u64);
            }
        }
        ItemKind::Set(set) => {
            let place = &set.location;
            let last = set.payload.len().max(1) as u64 - 1;
            let (first, _) = debug_place(spec, place.memory, place.words, place.address, 0);
            let (end, _) = debug_place(spec, place.memory, place.words, place.address, last);
            visit(place.memory, first..end + 1);
        }
        ItemKind::Mv(mv) => {
            let form = &spec.forms[mv.form.transfer][mv.form.form];
            end_memory(spec, &form.destination).into_iter().for_each(|memory| visit(memory, all(memory)));
        }
        ItemKind::Step(step) => {
            step.pe.iter().for_each(|instruction| touched_by(spec, instruction, based, visit));
            for instruction in &step.l2bm {
                let transfer = &spec.transfers[instruction.form.transfer];
                if transfer.level == LevelName::Group {
                    // Instructions on the DAR also fill or empty its buffer.
                    let group = (0..spec.memories.len()).filter(|m| spec.memories[*m].level == LevelName::Group);
                    group.for_each(|memory| visit(memory, all(memory)));
                }
                let form = &spec.forms[instruction.form.transfer][instruction.form.form];
                end_memory(spec, &form.destination).into_iter().for_each(|memory| visit(memory, all(memory)));
            }
        }
    }
}

fn end_memory(spec: &Spec, end: &End) -> Option<usize> {
    match end {
        End::Memory { operand, .. } => spec.memory(&spec.operands[*operand].memory),
        End::Pe => None,
    }
}

fn touched_by(spec: &Spec, instruction: &PeInstruction, based: bool, visit: &mut dyn FnMut(usize, Range<u64>)) {
    let all = |memory: usize| 0..spec.memories[memory].words;
    for destination in &instruction.destinations {
        match &destination.target {
            Target::Base { base, .. } => {
                spec.memory(&spec.bases[*base].memory).into_iter().for_each(|memory| visit(memory, all(memory)));
            }
            Target::Flags { .. } => {
                spec.memory(&spec.mask.memory).into_iter().for_each(|memory| visit(memory, all(memory)));
            }
            Target::Memory(access) => {
                let memory = access.memory;
                let words = spec.memories[memory].words * u64::from(WORDS_PER_LONG);
                let anywhere = access.indirect || based || spec.memories[memory].unit == Unit::Cycle;
                if anywhere || access.modify.is_some() {
                    visit(memory, all(memory));
                    continue;
                }
                for c in 0..spec.counts.cycle {
                    let word = u64::from(access.address.at(c)) % words;
                    let first = (word - word % u64::from(access.words)) / u64::from(WORDS_PER_LONG);
                    visit(memory, first..first + u64::from(access.words.div_ceil(WORDS_PER_LONG)));
                }
            }
        }
    }
    match instruction.kind {
        PeKind::Matrix { bank, .. } => {
            spec.memory(&spec.banks[bank].memory).into_iter().for_each(|memory| visit(memory, all(memory)));
        }
        // A load from L1BM writes its destinations only.
        PeKind::L1bm { .. } if instruction.sources.is_empty() => {}
        PeKind::L1bm { .. } => {
            let l1b = (0..spec.memories.len()).filter(|m| spec.memories[*m].level == LevelName::L1b);
            l1b.for_each(|memory| visit(memory, all(memory)));
        }
        PeKind::Alu { .. } | PeKind::Mau { .. } => {}
    }
}

/// Whether the statement may make a base address register other than zero.
pub(super) fn sets_base(spec: &Spec, item: &Item) -> bool {
    let base =
        |instruction: &PeInstruction| instruction.destinations.iter().any(|d| matches!(d.target, Target::Base { .. }));
    match &item.kind {
        ItemKind::Step(step) => step.pe.iter().any(base),
        ItemKind::Set(set) => spec.memories[set.location.memory].unit == Unit::Base,
        _ => false,
    }
}

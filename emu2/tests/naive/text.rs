//! Tests programs through their text: they are printed, assembled and compared.

use super::choices::Choices;
use super::print;
use emu2::asm::{render, Assembler, Destination, Item, ItemKind, Mask, MaskEntry, Policy, Program, Source, Target};
use emu2::error::{Severity, Span};
use emu2::spec::{Spec, Unit};

/// Assembles the text of a program. An error shows the difference to the program that the assembler makes of it.
pub fn read_back(assembler: &Assembler, program: &Program, choices: &mut Choices) -> Result<(), String> {
    let text = with_mask_statements(program, choices);
    let assembled = assembler.assemble(&text, "random", Policy::Run).map_err(|e| {
        let errors: Vec<_> = e.diagnostics.into_iter().filter(|d| d.severity == Severity::Error).collect();
        format!("{}\n{text}", render("random", &e.text, &errors, false))
    })?;
    let items = |p: &Program| p.items.iter().map(bare).collect::<Vec<String>>();
    let (before, after) = (items(program), items(&assembled));
    if before.len() != after.len() {
        return Err(format!("{} statements become {}\n\n{text}", before.len(), after.len()));
    }
    match before.iter().zip(&after).position(|(a, b)| a != b) {
        None => Ok(()),
        Some(at) => {
            let line = print::item_text(&program.spec, &program.items[at].kind);
            Err(format!("{line}\n  was  {}\n  read {}\n\n{text}", before[at], after[at]))
        }
    }
}

/// A statement without its position in the text.
pub fn bare(item: &Item) -> String {
    let mut kind = item.kind.clone();
    if let ItemKind::Step(step) = &mut kind {
        for instruction in &mut step.pe {
            instruction.span = Span::default();
            instruction.sources.iter_mut().for_each(|Source { span, .. }| *span = Span::default());
            instruction.destinations.iter_mut().for_each(|Destination { span, .. }| *span = Span::default());
        }
        step.l2bm.iter_mut().for_each(|transfer| transfer.span = Span::default());
    }
    format!("{kind:?}")
}

/// The program's text. Some masks are written as a statement before the line.
fn with_mask_statements(program: &Program, choices: &mut Choices) -> String {
    let spec = &program.spec;
    let mut text = String::new();
    for item in &program.items {
        let statement = hoisted(spec, &item.kind).filter(|_| choices.chance(50));
        let Some((mask, entry, letters)) = statement else {
            text += &print::item_text(spec, &item.kind);
            text += "\n";
            continue;
        };
        let mut kind = item.kind.clone();
        if let ItemKind::Step(step) = &mut kind {
            for destination in step.pe.iter_mut().flat_map(|i| &mut i.destinations) {
                if destination.mask == Some(mask)
                    && letter(spec, &destination.target).is_some_and(|l| letters.contains(l))
                {
                    destination.mask = None;
                }
            }
        }
        let wide = if mask.wide { print::prefix(spec, 4) } else { String::new() };
        let name = &spec.mask.statement;
        text += &format!("{name}{wide}{letters} {entry}\n{}\n{name} 0\n", print::item_text(spec, &kind));
    }
    text
}

/// The mask of some destination, the number of its entry, and the letters of memories whose destinations all have a mask.
/// Destinations with a different mask write it themselves.
fn hoisted(spec: &Spec, kind: &ItemKind) -> Option<(Mask, u32, String)> {
    let ItemKind::Step(step) = kind else { return None };
    let all = || step.pe.iter().flat_map(|i| &i.destinations);
    let mask = all().find_map(|d| d.mask)?;
    let entry = match mask.entry {
        MaskEntry::Register(entry) => entry,
        // Cycle 0 is the highest bit.
        MaskEntry::Cycles(pattern) => {
            let cycles = spec.counts.cycle;
            let digits = (0..cycles).fold(0, |digits, c| digits << 1 | (pattern >> c & 1));
            spec.mask.entries + digits
        }
    };
    let mut letters = String::new();
    for destination in all() {
        let Some(candidate) = letter(spec, &destination.target) else { continue };
        let of_letter = |d: &&Destination| letter(spec, &d.target) == Some(candidate);
        if !letters.contains(candidate) && all().filter(of_letter).all(|d| d.mask.is_some()) {
            letters.push(candidate);
        }
    }
    (!letters.is_empty()).then_some((mask, entry, letters))
}

/// The letter of a destination's memory in a mask statement. Base address registers share the letter of their memory.
fn letter(spec: &Spec, target: &Target) -> Option<char> {
    let operand =
        |wanted: &dyn Fn(&emu2::spec::Operand) -> bool| spec.operands.iter().find(|o| wanted(o)).map(|o| o.letter);
    match target {
        Target::Memory(access) => {
            let memory = &spec.memories[access.memory];
            debug_assert!(memory.unit == Unit::Word || memory.unit == Unit::Cycle);
            operand(&|o| o.memory == memory.name)
        }
        Target::Base { base, .. } => operand(&|o| o.base.as_deref() == Some(spec.bases[*base].memory.as_str())),
        Target::Flags { .. } => Some(spec.mask.letter),
    }
}

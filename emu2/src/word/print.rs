//! Writes programs as canonical assembly text, which the assembler reads back as the same program.

mod operand;

use crate::asm::host_command;
use crate::asm::{DebugSet, Item, ItemKind, Location, Mv, PeInstruction, PeKind, Program, Step};
use crate::asm::{FormRef, L2bmTransfer, Origins, Place, Selected};
use crate::spec::{ControlKernel, End, Half, LevelName, LiteralKind, ParameterStyle, ResolvedForm, Spec};
use crate::spec::{Unit, UnitSet, WORDS_PER_LONG};
pub(super) use operand::{bank, destination, mask, source};
use std::convert::Infallible;
use std::fmt::Write;

/// The whole program as text, one statement a line. Assembling the text gives the same program, except for places in
/// the source.
pub fn print(program: &Program) -> String {
    let mut out = String::new();
    let Ok(()) = program.for_each(|Item { kind, .. }| {
        out.push_str(&statement(&program.spec, kind));
        out.push('\n');
        Ok::<(), Infallible>(())
    });
    out
}

/// The same text with marks that say from which lines of a source the statements come. A program that was linked from another
/// source names that one.
pub(super) fn print_with_origins(program: &Program) -> String {
    let origins = Origins::of(&program.text);
    // A program that came from no file has a name such as `<string>`.
    let has_source = !program.text.is_empty() && !program.name.starts_with('<');
    let mut out = String::new();
    let mut last: Option<Place<'_>> = None;
    let Ok(()) = program.for_each(|Item { kind, line, .. }| {
        let own = Place { file: &program.name, line: *line, expanded: false };
        let place = origins.of_line(*line).unwrap_or(own);
        let expected = last.map(|last| Place { line: last.line + u32::from(!last.expanded), ..last });
        if has_source && *line > 0 && expected != Some(place) {
            out.push_str(&place.mark());
            out.push('\n');
        }
        last = Some(place);
        out.push_str(&statement(&program.spec, kind));
        out.push('\n');
        Ok::<(), Infallible>(())
    });
    out
}

/// One statement as text.
pub fn statement(spec: &Spec, kind: &ItemKind) -> String {
    match kind {
        ItemKind::Step(step) => line(spec, step),
        ItemKind::Nop { count, wait } => nop(spec, *count, *wait),
        ItemKind::Mv(instruction) => mv(spec, instruction),
        ItemKind::Set(set) => debug_set(spec, set),
        ItemKind::Get(get) => get.statement.clone(),
        ItemKind::Host(command) => {
            let text = host_command::text(spec, command);
            format!("{} {text}", host_command::letter(command)).trim_end().to_string()
        }
    }
}

/// A PE line as text: instructions in their order, then `noforward` and `wait`.
fn line(spec: &Spec, step: &Step) -> String {
    let mut parts: Vec<String> = step.pe.iter().map(|i| instruction(spec, i)).collect();
    parts.extend(step.l2bm.iter().map(|t| l2bm_transfer(spec, t)));
    if parts.is_empty() && step.forward {
        return nop(spec, 1, step.wait);
    }
    if !step.forward {
        parts.push(control(spec, ControlKernel::Noforward).to_string());
    }
    parts.extend(step.wait.map(|tag| wait(spec, tag)));
    parts.join("; ")
}

/// `count` idle steps as text. The first one waits for `tag`.
pub(super) fn nop(spec: &Spec, count: u64, tag: Option<u32>) -> String {
    let mut out = control(spec, ControlKernel::Nop).to_string();
    if count != 1 {
        let _ = write!(out, "/{count}");
    }
    if let Some(tag) = tag {
        let _ = write!(out, "; {}", wait(spec, tag));
    }
    out
}

pub(super) fn wait(spec: &Spec, tag: u32) -> String {
    format!("{} {}", control(spec, ControlKernel::Wait), spec.syntax.tag(tag))
}

pub(super) fn control(spec: &Spec, kernel: ControlKernel) -> &str {
    spec.controls.iter().find(|c| c.kernel == kernel).map_or("", |c| c.name.as_str())
}

/// The mnemonic of a PE instruction, without length, parameter and zero flush.
pub(super) fn mnemonic(spec: &Spec, kind: &PeKind) -> String {
    let letter = |precision: usize| spec.precisions[precision].name.as_str();
    match *kind {
        PeKind::Alu { op, precision, unsigned, .. } => {
            let sign = if unsigned { "u" } else { "" };
            format!("{sign}{}{}", precision.map_or("", letter), spec.alu[op].name)
        }
        PeKind::Mau { op, precision, half, reduced, .. } => {
            let half = match half {
                Some(Half::Upper) => "u",
                Some(Half::Lower) => "d",
                None => "",
            };
            format!("{}{}{half}{}", letter(precision), spec.mau[op].name, if reduced { "r" } else { "" })
        }
        PeKind::Matrix { op, precision, .. } => format!("{}{}", letter(precision), spec.matrix_ops[op].name),
        PeKind::L1bm { form, .. } => spec.transfers[form.transfer].name.clone(),
    }
}

/// The mnemonic with its length or parameter.
pub(super) fn head(spec: &Spec, i: &PeInstruction) -> String {
    let mut out = mnemonic(spec, &i.kind);
    match i.kind {
        PeKind::Alu { length: Some(length), .. } => {
            let _ = write!(out, "/{length}");
        }
        PeKind::L1bm { form, .. } => out.push_str(&parameter(spec, form)),
        PeKind::Alu { .. } | PeKind::Mau { .. } | PeKind::Matrix { .. } => {}
    }
    out
}

/// One PE instruction as text.
pub(super) fn instruction(spec: &Spec, i: &PeInstruction) -> String {
    let mut out = head(spec, i);
    if let Some(flush) = i.zero_flush {
        out.push_str(&mask(spec, flush));
    }
    let mut operands: Vec<String> = Vec::new();
    let mut after = None;
    match i.kind {
        PeKind::Alu { literal: Some(word), .. } => operands.push(literal(spec, word)),
        PeKind::Mau { bank: Some(register), .. } => operands.push(bank(spec, register, None, false)),
        PeKind::Matrix { bank: register, row, wide, .. } => {
            let register = bank(spec, register, Some(row), wide);
            // A matrix read names the register before the destinations, a matrix write after the source.
            if i.sources.is_empty() {
                operands.push(register);
            } else {
                after = Some(register);
            }
        }
        PeKind::L1bm { form, address } => match resolved(spec, form) {
            Some(ResolvedForm { source: end @ End::Memory { .. }, .. }) => operands.push(l1bm(spec, end, address)),
            Some(ResolvedForm { destination, .. }) => after = Some(l1bm(spec, destination, address)),
            None => {}
        },
        PeKind::Alu { .. } | PeKind::Mau { .. } => {}
    }
    operands.extend(i.sources.iter().map(|s| source(spec, s)));
    match after {
        Some(register) => operands.push(register),
        None if i.destinations.is_empty() => operands.push("$nowrite".to_string()),
        None => operands.extend(i.destinations.iter().map(|d| destination(spec, d))),
    }
    for operand in operands {
        out.push(' ');
        out.push_str(&operand);
    }
    out
}

/// An immediate as an unsigned word. The kind of literal in the source is not kept.
fn literal(spec: &Spec, word: u32) -> String {
    let whole = spec.literals.iter().find(|l| l.kind == LiteralKind::Unsigned && l.repeat == 1);
    format!("{}\"0x{word:08X}\"", whole.map_or("", |l| l.name.as_str()))
}

fn resolved(spec: &Spec, form: FormRef) -> Option<&ResolvedForm> {
    spec.forms.get(form.transfer)?.get(form.form)
}

/// The parameter as text: `@3`, `+3`, or nothing for the default.
pub(super) fn parameter(spec: &Spec, form: FormRef) -> String {
    let entry = spec.parameters.get(form.transfer).and_then(Option::as_ref);
    let name = resolved(spec, form).map(|f| &f.name);
    match entry.filter(|p| p.forms.is_empty() || name.is_some_and(|n| p.forms.contains(n))) {
        None => String::new(),
        Some(p) if p.default == Some(form.parameter) => String::new(),
        Some(p) => match p.style {
            ParameterStyle::At => format!("@{}", form.parameter),
            ParameterStyle::Signed => format!("{:+}", form.parameter),
            ParameterStyle::Set => match UnitSet::from_code(form.parameter) {
                UnitSet { first, free: 0 } => format!("@{first}"),
                UnitSet { first, free } => format!("@{first}/{free}"),
            },
        },
    }
}

/// An address in a memory above the PEs as text.
fn memory(spec: &Spec, end: &End, address: u64) -> String {
    let End::Memory { operand, width, .. } = end else { return String::new() };
    let entry = &spec.operands[*operand];
    let fits = |prefix: &&String| {
        width.is_none_or(|words| spec.widths.iter().any(|w| w.prefix == **prefix && w.words == words))
    };
    let prefix = entry.widths.iter().find(fits).map_or("", String::as_str);
    format!("${prefix}{}{}{address}", entry.letter, entry.suffix)
}

/// An end that goes through a table as text: the operand for the table, and the entry.
fn entry(spec: &Spec, end: &End, entry: u64) -> String {
    let End::Memory { operand, .. } = end else { return String::new() };
    let name = &spec.operands[*operand].name;
    let of = |o: &&crate::spec::Operand| o.table.as_ref().is_some_and(|t| t.operand == *name);
    spec.operands.iter().find(of).map_or(String::new(), |o| format!("${}{}{entry}", o.letter, o.suffix))
}

/// The L1BM end of an L1BM instruction as text. No address means the turnaround register.
fn l1bm(spec: &Spec, end: &End, address: Option<u64>) -> String {
    match (end, address) {
        (_, Some(address)) => memory(spec, end, address),
        (End::Memory { width, .. }, None) => {
            let prefix = spec.widths.iter().find(|w| Some(w.words) == *width);
            format!("${}{}", prefix.map_or("", |w| w.prefix.as_str()), spec.turnaround.name)
        }
        (End::Pe, None) => String::new(),
    }
}

fn l2bm_transfer(spec: &Spec, t: &L2bmTransfer) -> String {
    let mut out = format!("{}{}", spec.transfers[t.form.transfer].name, parameter(spec, t.form));
    if let Some(form) = resolved(spec, t.form).filter(|f| !matches!(f.source, End::Memory { implied: true, .. })) {
        let (from, to) = (memory(spec, &form.source, t.source), memory(spec, &form.destination, t.destination));
        let _ = write!(out, " {from}{} {to}", selected(spec, &form.source, t.source_unit));
    }
    out
}

fn mv(spec: &Spec, m: &Mv) -> String {
    let syntax = &spec.syntax;
    let mut out = format!("{}/{}{}", spec.transfers[m.form.transfer].name, syntax.mv_size, m.size);
    if let Some(tag) = m.tag {
        out.push_str(&syntax.tag(tag));
    }
    if let Some(blocks) = m.source_dar.or(m.destination_dar).filter(|n| *n != 1) {
        let _ = write!(out, "{}{blocks}", syntax.mv_table);
    }
    if m.priority != 0 {
        let _ = write!(out, "{}{}", syntax.mv_priority, m.priority);
    }
    if let Some(form) = resolved(spec, m.form) {
        let side = |end, address, table: Option<u64>, unit| {
            let place = if table.is_some() { entry(spec, end, address) } else { memory(spec, end, address) };
            place + &selected(spec, end, unit)
        };
        let source = side(&form.source, m.source, m.source_dar, m.source_unit);
        let destination = side(&form.destination, m.destination, m.destination_dar, m.destination_unit);
        let _ = write!(out, " {source} {destination}");
    }
    out
}

/// The selected units as text: `@2.1`, `@.1`, or nothing.
fn selected(spec: &Spec, end: &End, unit: Selected) -> String {
    let End::Memory { operand, .. } = end else { return String::new() };
    let number = |level: &LevelName| match level {
        LevelName::Group => unit.group,
        LevelName::L2b => unit.l2b,
        _ => None,
    };
    let numbers: Vec<String> =
        spec.operands[*operand].selectors.iter().map(|l| number(l).map_or(String::new(), |n| n.to_string())).collect();
    match numbers.join(".").trim_end_matches('.') {
        "" => String::new(),
        text => format!("@{text}"),
    }
}

/// A location as text, such as `$lm0n0c0b0m0p0`.
fn location(spec: &Spec, location: &Location) -> String {
    let memory = &spec.memories[location.memory];
    let prefix = |widths: &[String], words: u32| {
        let named = spec.widths.iter().filter(|w| w.words == words).find(|w| widths.contains(&w.prefix));
        named.or(spec.widths.iter().find(|w| widths.contains(&w.prefix))).map_or("", |w| w.prefix.as_str()).to_string()
    };
    let operand = spec.operands.iter().find(|o| o.memory == memory.name);
    let register = spec.bases.iter().map(|b| (&b.name, &b.memory, &b.widths));
    let mut registers = register.chain(spec.banks.iter().map(|b| (&b.name, &b.memory, &b.widths)));
    let token = match (operand, registers.find(|(_, name, _)| **name == memory.name)) {
        (Some(o), _) => format!("{}{}{}", prefix(&o.widths, location.words), o.letter, o.suffix),
        (None, Some((name, _, widths))) => format!("{}{name}", prefix(widths, WORDS_PER_LONG)),
        (None, None) => spec.mask.destination.clone(),
    };
    let mut out = format!("${token}");
    if memory.unit != Unit::Cycle {
        let _ = write!(out, "{}", location.address);
    }
    for (level, unit) in spec.levels.iter().zip(location.units) {
        if let Some(number) = unit {
            let _ = write!(out, "{}{number}", level.selector);
        }
    }
    out
}

fn debug_set(spec: &Spec, set: &DebugSet) -> String {
    let mut out = format!("d set {} {} ", location(spec, &set.location), set.payload.len());
    for word in &set.payload {
        let _ = write!(out, "{word:016X}");
    }
    out
}

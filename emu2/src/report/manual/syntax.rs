//! The written forms of an instruction, from its entry.

use crate::spec::{Entry, Form, LevelName, MatrixKernel, ParameterStyle, Side, Spec, Widen};
use std::fmt::Write;

/// One line for each way to write the instruction.
pub(super) fn of(spec: &Spec, entry: &Entry<'_>) -> String {
    match entry.family {
        "alu" => alu(spec, entry.name),
        "mau" => mau(spec, entry.name),
        "matrix_op" => matrix(spec, entry.name),
        "transfer" => transfer(spec, entry.name),
        _ => spec.controls.iter().find(|c| c.name == entry.name).map(|c| c.syntax.clone()).unwrap_or_default(),
    }
}

fn alu(spec: &Spec, name: &str) -> String {
    let Some(alu) = spec.alu.iter().find(|a| a.name == name) else { return String::new() };
    let sources: Vec<_> = ["x", "y"].iter().take(alu.sources as usize).copied().collect();
    let operands = if alu.literal { "<literal>".to_string() } else { sources.join(" ") };
    let operands = if operands.is_empty() { operands } else { operands + " " };
    let mut out = String::new();
    if alu.precisions.is_empty() {
        let _ = writeln!(out, "{name} {operands}dst..");
    }
    for letter in &alu.precisions {
        let unsigned = if alu.unsigned.contains(letter) { "[u]" } else { "" };
        let length = alu.lengths.as_ref().filter(|l| l.precision == *letter);
        let length = length.map(|l| format!("/<{}..{}>", l.minimum, l.maximum)).unwrap_or_default();
        let _ = writeln!(out, "{unsigned}{letter}{name}{length} {operands}dst..");
    }
    out
}

fn mau(spec: &Spec, name: &str) -> String {
    let Some(mau) = spec.mau.iter().find(|m| m.name == name) else { return String::new() };
    let operands: Vec<_> = ["x", "y", "z"].iter().take(mau.sources.len()).copied().collect();
    let banks: Vec<_> = spec.banks.iter().map(|b| format!("$l{}", b.name)).collect();
    let bank = if mau.matrix { format!("({}) ", banks.join("|")) } else { String::new() };
    let line = |letter: &String| {
        let pair = mau.product && spec.mau_precisions.iter().any(|p| p.name == *letter && p.pair);
        format!("{letter}{name}{}[r] {bank}{} dst..\n", if pair { "(u|d)" } else { "" }, operands.join(" "))
    };
    mau.precisions.iter().map(line).collect()
}

fn matrix(spec: &Spec, name: &str) -> String {
    let Some(op) = spec.matrix_ops.iter().find(|m| m.name == name) else { return String::new() };
    let banks: Vec<_> = spec.banks.iter().map(|b| b.name.as_str()).collect();
    let mut out = String::new();
    for letter in &op.precisions {
        let width = match (op.wide_only.contains(letter), op.wide.contains(letter)) {
            (true, _) => "ll",
            (false, true) => "(l|ll)",
            (false, false) => "l",
        };
        let register = format!("${width}({})<a>", banks.join("|"));
        let _ = match op.kernel {
            MatrixKernel::Write => writeln!(out, "{letter}{name} src {register}"),
            MatrixKernel::Read => writeln!(out, "{letter}{name} {register} dst.."),
        };
    }
    out
}

fn transfer(spec: &Spec, name: &str) -> String {
    let Some(transfer) = spec.transfers.iter().find(|t| spec.entry_name(t) == name) else { return String::new() };
    let line = |form: &Form| {
        let parameter = transfer.parameter.as_ref().filter(|p| p.forms.is_empty() || p.forms.contains(&form.name));
        let parameter = parameter.map_or(String::new(), |p| match p.style {
            ParameterStyle::At => format!("@<{}>", p.name),
            ParameterStyle::Signed => format!("[+|-<{}>]", p.name),
            ParameterStyle::Set if p.default.is_some() => format!("[@<{}>]", p.name),
            ParameterStyle::Set => format!("@<{}>", p.name),
        });
        let size = if form.unit.is_some() { "/n<size>[i<tag>][nd<blocks>][p<priority>]" } else { "" };
        if form.source.implied && form.destination.implied {
            return format!("{name}\n");
        }
        let pe = |side: &Side| !spec.operands.iter().any(|o| o.name == side.operand);
        let turns = pe(&form.source) || pe(&form.destination);
        let (source, destination) =
            (side(spec, &form.source, false, turns), side(spec, &form.destination, true, turns));
        let extend = if form.widen == Some(Widen::Written) { "[e]" } else { "" };
        let operation = if transfer.reduction.is_some() { "<op>" } else { "" };
        let operations = match (form.reductions.len(), transfer.reduction) {
            (0, _) | (_, None) => String::new(),
            _ => format!("    # {}", form.reductions.join(" ")),
        };
        format!("{name}{operation}{}{parameter}{size} {source}{extend} {destination}{operations}\n", form.suffix)
    };
    spec.entry_forms(name).into_iter().map(line).collect()
}

/// One side of the syntax. `turns`: the turnaround register may stand here too.
fn side(spec: &Spec, side: &Side, destination: bool, turns: bool) -> String {
    let Some(operand) = spec.operands.iter().find(|o| o.name == side.operand) else {
        return if destination { "dst..".into() } else { "src".into() };
    };
    let prefix = side.width.as_deref().or(operand.widths.first().map(String::as_str)).unwrap_or_default();
    let mut selectors = String::new();
    if !side.selectors.is_empty() {
        let level =
            |l: &LevelName| if side.selectors.contains(l) { format!("<{l:?}>").to_lowercase() } else { String::new() };
        let written: Vec<String> = operand.selectors.iter().map(level).collect();
        selectors = format!("@{}", written.join("."));
    }
    let place = format!("${prefix}{}{}<a>{selectors}", operand.letter, operand.suffix);
    let turnaround = &spec.turnaround;
    match turns && turnaround.operand == operand.name {
        true => format!("({place}|${prefix}{})", turnaround.name),
        false => place,
    }
}

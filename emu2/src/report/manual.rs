//! Manual pages, generated from the spec.

use crate::spec::{DataWidth, Form, Mnemonic, Side, Spec};
use std::fmt::Write;

/// One line per instruction entry: its spellings and the first sentence of its text.
pub fn list(spec: &Spec) -> String {
    let mut out = String::new();
    for entry in spec.entries() {
        let sentence = entry.doc.trim().split_inclusive(". ").next().unwrap_or_default().trim().replace('\n', " ");
        let _ = writeln!(out, "{:<9} {:<10} {:<14} {sentence}", entry.family, entry.name, entry.evidence.name());
    }
    out
}

/// The page of the instruction that `name` is a mnemonic or an entry of; None: there is no such.
pub fn page(spec: &Spec, name: &str) -> Option<String> {
    let entry_name = match spec.mnemonics.get(name) {
        Some(Mnemonic::Alu { op, .. }) => spec.alu[*op].name.as_str(),
        Some(Mnemonic::Mau { op, .. }) => spec.mau[*op].name.as_str(),
        Some(Mnemonic::Matrix { op, .. }) => spec.matrix_ops[*op].name.as_str(),
        Some(Mnemonic::Transfer(at)) => spec.transfers[*at].name.as_str(),
        Some(Mnemonic::Control(at)) => spec.controls[*at].name.as_str(),
        None => name,
    };
    let entry = spec.entries().into_iter().find(|e| e.name == entry_name)?;
    let mut out = String::new();
    let _ = writeln!(out, "{} ({})\n", entry.name, entry.family);
    let _ = writeln!(out, "{}\n", entry.doc.trim());
    let _ = writeln!(out, "Syntax\n{}", indent(&syntax(spec, entry.name)));
    if let Some(alu) = spec.alu.iter().find(|a| a.name == entry.name) {
        let unsigned = alu.unsigned_flag.as_deref().map(|f| format!("; with u: {f}")).unwrap_or_default();
        let data = if alu.data == DataWidth::Path { "all 128 bits" } else { "L0; L1 of the result is L1 of x" };
        let _ = writeln!(out, "Flag: {}{unsigned}\nData: {data}\n", alu.flag);
    }
    if let Some(transfer) = spec.transfers.iter().find(|t| t.name == entry.name) {
        out.push_str("Index maps (k long words; addresses from the written one)\n");
        for form in &transfer.form {
            let _ = writeln!(out, "{}", indent(&map(form)));
        }
    }
    let _ = writeln!(out, "Evidence: {}\n", entry.evidence.name());
    for example in entry.examples {
        let _ = writeln!(out, "Example\n{}", indent(example.text.trim()));
        let expect = example.expect_on.get(&spec.machine.name).unwrap_or(&example.expect);
        for (place, words) in expect {
            let _ = writeln!(out, "    # {place} = {}", words.join(" "));
        }
        out.push('\n');
    }
    Some(out.trim_end().to_string() + "\n")
}

fn indent(text: &str) -> String {
    text.lines().map(|line| format!("    {line}\n")).collect()
}

fn syntax(spec: &Spec, name: &str) -> String {
    if let Some(alu) = spec.alu.iter().find(|a| a.name == name) {
        let sources: Vec<_> = ["x", "y"].iter().take(alu.sources as usize).copied().collect();
        let operands = if alu.literal { "<literal>".to_string() } else { sources.join(" ") };
        let mut out = String::new();
        if alu.precisions.is_empty() {
            let _ = writeln!(out, "{name} {operands} dst..");
        }
        for letter in &alu.precisions {
            let unsigned = if alu.unsigned.contains(letter) { "[u]" } else { "" };
            let _ = writeln!(out, "{unsigned}{letter}{name} {operands} dst..");
        }
        return out;
    }
    if let Some(mau) = spec.mau.iter().find(|m| m.name == name) {
        let operands: Vec<_> = ["x", "y", "z"].iter().take(mau.sources.len()).copied().collect();
        let line = |letter: &String| {
            let pair = mau.product && spec.mau_precisions.iter().any(|p| p.name == *letter && p.pair);
            format!("{letter}{name}{}[r] {} dst..\n", if pair { "(u|d)" } else { "" }, operands.join(" "))
        };
        return mau.precisions.iter().map(line).collect();
    }
    if let Some(transfer) = spec.transfers.iter().find(|t| t.name == name) {
        let line = |form: &Form| {
            let parameter = transfer.parameter.as_ref().filter(|p| p.forms.is_empty() || p.forms.contains(&form.name));
            let parameter = parameter.map_or(String::new(), |p| match p.style {
                crate::spec::ParameterStyle::At => format!("@<{}>", p.name),
                crate::spec::ParameterStyle::Signed => format!("[+|-<{}>]", p.name),
            });
            let size = if form.unit.is_some() { "/n<size>[i<tag>][p<priority>]" } else { "" };
            format!("{name}{parameter}{size} {} {}\n", side(spec, &form.source, false), side(spec, &form.destination, true))
        };
        return transfer.form.iter().map(line).collect();
    }
    spec.controls.iter().find(|c| c.name == name).map(|c| c.syntax.clone()).unwrap_or_default()
}

fn side(spec: &Spec, side: &Side, destination: bool) -> String {
    let Some(operand) = spec.operands.iter().find(|o| o.name == side.operand) else {
        return if destination { "dst..".into() } else { "src".into() };
    };
    let prefix = side.width.as_deref().or(operand.widths.first().map(String::as_str)).unwrap_or_default();
    let selectors = match side.selectors.len() {
        0 => "",
        1 if operand.selectors.len() == 1 => "@<group>",
        1 => "@.<l2b>",
        _ => "@<group>.<l2b>",
    };
    format!("${prefix}{}<a>{selectors}", operand.letter)
}

fn map(form: &Form) -> String {
    let loops: Vec<_> = form.r#loop.iter().map(|(n, count)| format!("{n} < {count}")).collect();
    let place = |side: &Side, at: &indexmap::IndexMap<String, String>| {
        let coordinates: Vec<_> = at.iter().map(|(n, e)| format!("{n} = {e}")).collect();
        format!("{}[{}]", side.operand, coordinates.join(", "))
    };
    let unit = form.unit.as_ref().map(|u| format!("; i < size / ({u})")).unwrap_or_default();
    let (to, from) = (place(&form.destination, &form.to), place(&form.source, &form.from));
    format!("{}: {to}\n    := {from}\n    for {}{unit}", form.name, loops.join(", "))
}

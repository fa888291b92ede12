//! Manual pages, generated from the spec: for the terminal and as Markdown.

mod markdown;
mod page;
mod picture;
mod syntax;
mod words;

pub use markdown::Page;
pub use page::pages;

use crate::spec::{DataWidth, Entry, Form, Mnemonic, Side, Spec, Widen};
use std::fmt::Write;

/// One line per instruction entry: its family, its name, its evidence and the first sentence of its text.
pub fn list(spec: &Spec) -> String {
    let mut out = String::new();
    for entry in spec.entries() {
        let (family, name, evidence) = (entry.family, entry.name, entry.evidence.name());
        let _ = writeln!(out, "{family:<10} {name:<10} {evidence:<14} {}", first_sentence(entry.doc));
    }
    out
}

fn first_sentence(text: &str) -> String {
    text.trim().split_inclusive(". ").next().unwrap_or_default().trim().replace('\n', " ")
}

/// The page of the instruction with `name` as its mnemonic or entry. None if there is none.
pub fn page(spec: &Spec, name: &str) -> Option<String> {
    let (family, entry_name) = match spec.mnemonics.get(name) {
        Some(Mnemonic::Alu { op, .. }) => (Some("alu"), spec.alu[*op].name.as_str()),
        Some(Mnemonic::Mau { op, .. }) => (Some("mau"), spec.mau[*op].name.as_str()),
        Some(Mnemonic::Matrix { op, .. }) => (Some("matrix_op"), spec.matrix_ops[*op].name.as_str()),
        Some(Mnemonic::Transfer(at)) => (Some("transfer"), spec.entry_name(&spec.transfers[*at])),
        Some(Mnemonic::Control(at)) => (Some("control"), spec.controls[*at].name.as_str()),
        None => (None, name),
    };
    let entry = spec.entries().into_iter().find(|e| e.name == entry_name && family.is_none_or(|f| f == e.family))?;
    let mut out = format!("{} ({})\n\n{}\n\n", entry.name, entry.family, entry.doc.trim());
    let _ = writeln!(out, "Syntax\n{}", indent(&syntax::of(spec, &entry)));
    for (title, text) in facts(spec, &entry) {
        let _ = writeln!(out, "{title}\n{}", indent(&text));
    }
    let _ = writeln!(out, "Evidence: {}\n", entry.evidence.name());
    for example in entry.examples {
        let _ = writeln!(out, "Example\n{}", indent(&example_text(spec, example)));
    }
    Some(out.trim_end().to_string() + "\n")
}

fn indent(text: &str) -> String {
    text.lines().map(|line| format!("    {line}\n")).collect()
}

/// The text of an example, followed by the resulting bits as comments.
fn example_text(spec: &Spec, example: &crate::spec::Example) -> String {
    let mut out = example.text.trim().to_string() + "\n";
    for (place, words) in example.expect_on.get(&spec.machine.name).unwrap_or(&example.expect) {
        let _ = writeln!(out, "# {place} = {}", words.join(" "));
    }
    out
}

/// Facts of an entry from the tables of the spec, each with a title.
fn facts(spec: &Spec, entry: &Entry<'_>) -> Vec<(&'static str, String)> {
    let mut facts = Vec::new();
    match entry.family {
        "alu" => {
            for alu in spec.alu.iter().filter(|a| a.name == entry.name) {
                let unsigned = alu.unsigned_flag.as_deref().map(|f| format!("; with u: {f}")).unwrap_or_default();
                facts.push(("Flag", format!("{}{unsigned}", alu.flag)));
                let long = "first long word; the second of the result is that of x";
                let mut data = if alu.data == DataWidth::Path { "all 128 bits".to_string() } else { long.to_string() };
                if !alu.path_precisions.is_empty() {
                    let _ = write!(data, "; {}: all 128 bits", alu.path_precisions.join(", "));
                }
                facts.push(("Works on", data));
                if !alu.excludes.is_empty() {
                    facts.push(("Excludes on its line", alu.excludes.join(", ")));
                }
            }
        }
        "mau" => {
            for mau in spec.mau.iter().filter(|m| m.name == entry.name) {
                facts.push(("Flag", "1 where the sign of the result lane is 0".into()));
                facts.push(("Ports", ports(spec, &mau.precisions)));
            }
        }
        "transfer" => {
            let of_entry = |t: &&crate::spec::Transfer| spec.entry_name(t) == entry.name;
            let operations = spec.transfers.iter().filter(of_entry).filter_map(|t| t.reduction);
            let mut operations: Vec<_> = operations.map(|at| spec.reductions[at].name.as_str()).collect();
            operations.dedup();
            if !operations.is_empty() {
                facts.push(("Operations <op>", operations.join(" ")));
            }
            if spec.transfers.iter().any(|t| of_entry(&t)) {
                let maps: Vec<String> = spec.entry_forms(entry.name).into_iter().map(map).collect();
                facts.push(("Index maps (long words from the written addresses)", maps.join("\n")));
            }
            if let Some(at) = spec.transfers.iter().position(|t| of_entry(&t)) {
                let pictures: Vec<String> = spec.forms[at].iter().map(|form| picture::of(spec, at, form)).collect();
                facts.push(("Moves", pictures.concat()));
            }
        }
        _ => {}
    }
    let slot = slot(spec, entry);
    let gaps: Vec<String> = spec
        .hazards
        .iter()
        .filter(|h| h.writers.iter().chain(&h.readers).any(|s| Some(s.as_str()) == slot))
        .map(|h| format!("{} [{}]", h.doc.trim().replace('\n', " "), h.evidence.name()))
        .collect();
    let steps = if spec.slots.iter().any(|s| Some(s.name.as_str()) == slot && s.alone) {
        "runs beside the steps".to_string()
    } else {
        format!("one step of {} cycles", spec.counts.cycle)
    };
    facts.push(("Timing", [vec![steps], gaps].concat().join("\n")));
    facts
}

fn ports(spec: &Spec, letters: &[String]) -> String {
    let mut out = String::new();
    for m in spec.mau_precisions.iter().filter(|m| letters.contains(&m.name)) {
        let width = |w| if w == DataWidth::Path { "four singles on 128 bits" } else { "the lanes of one long word" };
        let _ = write!(out, "{}: addend {}, result {}", m.name, width(m.addend), width(m.result));
        if m.omitted_bits > 0 {
            let _ = write!(out, "; products of the low {0} bits of both factors left out", m.omitted_bits);
        }
        let _ = writeln!(out, "; with r: {}", m.reduced);
    }
    out
}

/// The issue slot of an entry.
fn slot<'s>(spec: &'s Spec, entry: &Entry<'_>) -> Option<&'s str> {
    match entry.family {
        "alu" => Some(crate::spec::ALU_SLOT),
        "mau" => Some(crate::spec::MAU_SLOT),
        "matrix_op" => spec.matrix_ops.iter().find(|m| m.name == entry.name).map(|m| m.slot.as_str()),
        "transfer" => spec.transfers.iter().find(|t| spec.entry_name(t) == entry.name).map(|t| t.slot.as_str()),
        _ => spec.controls.iter().find(|c| c.name == entry.name).map(|c| c.slot.as_str()),
    }
}

fn map(form: &Form) -> String {
    let loops: Vec<_> = form.r#loop.iter().map(|(n, count)| format!("{n} < {count}")).collect();
    let place = |side: &Side, at: &indexmap::IndexMap<String, String>| {
        let coordinates: Vec<_> = at.iter().map(|(n, e)| format!("{n} = {e}")).collect();
        format!("{}[{}]", side.operand, coordinates.join(", "))
    };
    let unit = form.unit.as_ref().map(|u| format!(", i < size / ({u})")).unwrap_or_default();
    let (to, from) = (place(&form.destination, &form.to), place(&form.source, &form.from));
    let evidence = form.evidence.map(|e| format!(" [{}]", e.name())).unwrap_or_default();
    let widened = if form.widen == Some(Widen::Always) { ", halves of the source widened" } else { "" };
    let narrow = if form.narrow { ", result narrowed: half = word of the long word" } else { "" };
    let counted = loops.join(", ");
    format!("{}{evidence}: for {counted}{unit}{widened}{narrow}\n    {to}\n    := {from}", form.name)
}

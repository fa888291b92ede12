//! The manual as Markdown: one page per family, and an index that counts entries by evidence.

use super::markdown::{Page, NOTE};
use super::{example_text, facts, first_sentence, syntax, words};
use crate::spec::{Entry, Evidence, Spec};
use std::fmt::Write;

/// Family of entries, file name, title, and the text above the entries.
const FAMILIES: &[(&str, &str, &str, &str)] = &[
    (
        "alu",
        "alu.md",
        "ALU operations",
        "x and y are the sources, in this order. Every destination takes the same result.",
    ),
    (
        "mau",
        "mau.md",
        "MAU operations",
        "Sources stand in the order of the ports. A result is rounded once and normalised.",
    ),
    (
        "matrix_op",
        "matrix.md",
        "Matrix registers",
        "Two registers per MAB. Rows and columns advance by themselves in every cycle.",
    ),
    (
        "transfer",
        "transfers.md",
        "Transfers",
        "Index maps name counts and ports of the machine; `k`, `c`, `m`, `p`, ... are counters.",
    ),
    ("control", "control.md", "Control statements", "Statements that are not instructions."),
];

const EVIDENCE: [Evidence; 4] = [Evidence::VendorOutput, Evidence::Manual, Evidence::Derived, Evidence::Guess];

/// Every page of the manual of `spec`, the index first.
pub fn pages(spec: &Spec) -> Vec<Page> {
    let mut pages = vec![index(spec), operands(spec), timing(spec)];
    for (family, file, title, intro) in FAMILIES {
        let mut text = format!("{NOTE}# {title}\n\n{intro}\n");
        for entry in spec.entries().iter().filter(|e| e.family == *family) {
            text.push_str(&entry_section(spec, entry));
        }
        pages.push(Page { name: (*file).to_string(), text });
    }
    pages.extend(words::page(spec));
    pages
}

fn fence(text: &str) -> String {
    format!("```\n{}\n```\n", text.trim_end())
}

fn entry_section(spec: &Spec, entry: &Entry<'_>) -> String {
    let mut out = format!("\n## {}\n\n{}\n\n", entry.name, entry.doc.trim());
    out.push_str(&fence(&syntax::of(spec, entry)));
    let (blocks, lines): (Vec<_>, Vec<_>) =
        facts(spec, entry).into_iter().partition(|(_, text)| text.contains(":=") || text.contains(" <- "));
    for (title, text) in blocks {
        let _ = write!(out, "\n{title}:\n\n{}", fence(&text));
    }
    out.push('\n');
    for (title, text) in lines {
        let _ = writeln!(out, "- {title}: {}", text.trim_end().replace('\n', "; "));
    }
    let _ = writeln!(out, "- Evidence: {}", entry.evidence.name());
    for example in entry.examples {
        let _ = write!(out, "\n{}", fence(&example_text(spec, example)));
    }
    out
}

fn index(spec: &Spec) -> Page {
    let mut text = format!("{NOTE}# Instruction set of {}\n\n{}\n", spec.machine.name, spec.machine.doc.trim());
    let _ = write!(text, "\nMore: [operands and memories](operands.md), [timing and parallel issue](timing.md)");
    text.push_str(if spec.encoding.is_some() { ", [machine words](words.md).\n" } else { ".\n" });
    for (family, file, title, _) in FAMILIES {
        let _ = write!(text, "\n## [{title}]({file})\n\n| name | evidence | |\n|---|---|---|\n");
        for entry in spec.entries().iter().filter(|e| e.family == *family) {
            let (name, evidence) = (entry.name, entry.evidence.name());
            let _ = writeln!(text, "| [{name}]({file}#{name}) | {evidence} | {} |", first_sentence(entry.doc));
        }
    }
    text.push_str("\n## Entries by evidence\n\n| family |");
    for evidence in EVIDENCE {
        let _ = write!(text, " {} |", evidence.name());
    }
    text.push_str("\n|---|---|---|---|---|\n");
    for (family, _, title, _) in FAMILIES {
        let _ = write!(text, "| {title} |");
        for evidence in EVIDENCE {
            let count = spec.entries().iter().filter(|e| e.family == *family && e.evidence == evidence).count();
            let _ = write!(text, " {count} |");
        }
        text.push('\n');
    }
    text.push_str("\nIf a part of an entry is a guess, its text says so.\n");
    Page { name: "README.md".into(), text }
}

fn operands(spec: &Spec) -> Page {
    let mut text = format!("{NOTE}# Operands and memories\n\n## Memories\n\n");
    text.push_str("| name | one per | long words | evidence | |\n|---|---|---|---|---|\n");
    for m in &spec.memories {
        let (level, evidence) = (format!("{:?}", m.level).to_lowercase(), m.evidence.name());
        let _ = writeln!(text, "| {} | {level} | {} | {evidence} | {} |", m.name, m.words, m.doc.trim());
    }
    let mut section = |title: &str, rows: Vec<(&str, &str, Evidence)>| {
        let _ = write!(text, "\n## {title}\n\n| name | evidence | |\n|---|---|---|\n");
        for (name, doc, evidence) in rows {
            let _ = writeln!(text, "| {name} | {} | {} |", evidence.name(), doc.trim().replace('\n', " "));
        }
    };
    macro_rules! rows {
        ($list:expr) => {
            $list.iter().map(|e| (e.name.as_str(), e.doc.as_str(), e.evidence)).collect()
        };
    }
    section("Memory operands", rows!(spec.operands));
    section("Forwarding paths", rows!(spec.forwards));
    section("Fixed inputs", rows!(spec.fixed));
    section("Base address registers", rows!(spec.bases));
    section("Matrix registers", rows!(spec.banks));
    section("Literals", rows!(spec.literals));
    let turnaround = &spec.turnaround;
    section("Turnaround register", vec![(&turnaround.name, &turnaround.doc, turnaround.evidence)]);
    let mask = &spec.mask;
    section("Masks", vec![(&mask.destination, &mask.doc, mask.evidence)]);
    Page { name: "operands.md".into(), text }
}

fn timing(spec: &Spec) -> Page {
    let mut text = format!("{NOTE}# Timing and parallel issue\n\n{}\n\n", spec.timing.doc.trim());
    let t = &spec.timing;
    let _ = writeln!(text, "- one step: {} cycles at {} MHz", spec.counts.cycle, spec.machine.clock_mhz);
    let _ = writeln!(
        text,
        "- an MV: a latency of {} cycles, and {} long words per cycle where no rate is published",
        t.mv_latency, t.mv_throughput
    );
    let _ = writeln!(text, "- tags: {} to {}", t.tag_minimum, t.tag_maximum);
    text.push_str("\n## Slots\n\nA line holds at most one instruction of each.\n\n| slot | |\n|---|---|\n");
    for s in &spec.slots {
        let _ = writeln!(text, "| {} | {} |", s.name, s.doc.trim().replace('\n', " "));
    }
    text.push_str("\n## Steps between a write and a read\n\n| rule | evidence | |\n|---|---|---|\n");
    for h in &spec.hazards {
        let _ = writeln!(text, "| {} | {} | {} |", h.name, h.evidence.name(), h.doc.trim().replace('\n', " "));
    }
    Page { name: "timing.md".into(), text }
}

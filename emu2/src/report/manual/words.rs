//! The page about machine words: fields, operations, and how well the machine words of each mnemonic are known.

use super::markdown::{Page, NOTE};
use crate::spec::{Encoding, EncodingField, Spec, Status};
use crate::word::coverage;
use std::fmt::Write;

const STATUSES: [(Status, &str); 3] =
    [(Status::Seen, "seen"), (Status::Inferred, "inferred"), (Status::Unknown, "unknown")];

/// The page, or none if the spec has no machine words.
pub(super) fn page(spec: &Spec) -> Option<Page> {
    let encoding = spec.encoding.as_ref()?;
    let mut text = format!("{NOTE}# Machine words\n\n{}\n", encoding.doc.trim());
    let _ = write!(
        text,
        "\nA line of assembled text is `{}` and {} binary digits, bit 0 first. A step's word is the idle word with the fields \
         of its instructions laid over it. Evidence: {}.\n",
        encoding.letter,
        encoding.bits,
        encoding.evidence.name()
    );
    text.push_str(
        "\n- seen: fixed by comparing sources with the vendor's output; written by `emu2 asm`\n\
         - inferred: placed by symmetry, order or width; written with `--allow-inferred`, read with a warning\n\
         - unknown: refused by name\n",
    );
    fields(&mut text, encoding);
    operations(&mut text, spec, encoding);
    mnemonics(&mut text, spec);
    Some(Page { name: "words.md".into(), text })
}

fn status_name(status: Status) -> &'static str {
    STATUSES.iter().find(|(s, _)| *s == status).map_or("", |(_, name)| name)
}

fn fields(text: &mut String, encoding: &Encoding) {
    text.push_str("\n## Fields\n\n| bits | name | idle | status | |\n|---|---|---|---|---|\n");
    for field in &encoding.fields {
        let last = field.first + field.width - 1;
        let bits = if field.width == 1 { field.first.to_string() } else { format!("{}-{last}", field.first) };
        let _ = writeln!(
            text,
            "| {bits} | {} | {} | {} | {} |",
            field.name,
            field.idle,
            status(field),
            field.doc.trim().replace('\n', " ")
        );
    }
}

/// The status of a field's values, with the values where they differ.
fn status(field: &EncodingField) -> String {
    let name = status_name(field.status);
    match (&field.seen, field.inferred) {
        (Some(seen), Some([low, high])) => {
            let seen: Vec<String> = seen.iter().map(u64::to_string).collect();
            format!("{name}: {}; inferred: {low} to {high}", seen.join(", "))
        }
        _ => name.to_string(),
    }
}

fn operations(text: &mut String, spec: &Spec, encoding: &Encoding) {
    text.push_str("\n## Operations\n\n| operation | unit | sets | seen |\n|---|---|---|---|\n");
    for op in &encoding.ops {
        let sets: Vec<String> =
            op.sets.iter().map(|(field, value)| format!("{} = {value}", encoding.fields[*field].name)).collect();
        let (unit, seen) = (&encoding.units[op.unit].name, op.seen.join(" "));
        let _ = writeln!(text, "| {} | {unit} | {} | {seen} |", op.name, sets.join(", "));
    }
    if !encoding.shared.is_empty() {
        text.push_str(
            "\nMnemonics that have the same words as another one. The reader gives the other one for both:\n\n",
        );
        for shared in &encoding.shared {
            let _ = writeln!(text, "- `{}`: `{}`", shared.name, shared.canonical);
        }
    }
    let _ = writeln!(text, "\n{} conformance vectors of {} are tests.", encoding.vectors.len(), spec.machine.name);
}

fn mnemonics(text: &mut String, spec: &Spec) {
    text.push_str("\n## Mnemonics\n\nThis is the best case: an operand or option may have no known word.\n");
    let all = coverage(spec);
    for (status, name) in STATUSES {
        let of: Vec<&str> = all.iter().filter(|(_, s)| *s == status).map(|(n, _)| n.as_str()).collect();
        let _ = write!(text, "\n### {name} ({})\n\n{}\n", of.len(), of.join(" "));
    }
}

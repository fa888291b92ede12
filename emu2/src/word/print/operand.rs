//! Writes operands of PE instructions as text.

use crate::asm::{Access, Address, Convert, Destination, Mask, MaskEntry, Source, SourceKind, Target};
use crate::spec::{Spec, HALVES, WORDS_PER_LONG};

/// The prefix of `widths` that stands for `words`, or the first prefix.
fn prefix<'s>(spec: &'s Spec, widths: &'s [String], words: u32) -> &'s str {
    let fits = |prefix: &&String| spec.widths.iter().any(|w| w.prefix == **prefix && w.words == words);
    widths.iter().find(fits).or(widths.first()).map_or("", String::as_str)
}

/// An access of a PE memory as text.
fn access(spec: &Spec, access: &Access) -> String {
    let memory = &spec.memories[access.memory].name;
    let Some(operand) = spec.operands.iter().find(|o| o.memory == *memory) else { return format!("${memory}") };
    let address = address(spec, &access.address, access.words);
    // A memory without addresses has only one width, so any prefix will do.
    let words = if address.is_empty() { 0 } else { access.words };
    let mut out = format!("${}{}", prefix(spec, &operand.widths, words), operand.letter);
    if access.indirect {
        out.push(spec.syntax.indirect);
    }
    out.push_str(&address);
    if let Some(last) = access.modify {
        out.push_str(&format!("{}{last}", spec.syntax.modify));
    }
    out
}

/// A matrix register as text, whole or from a row on.
pub(in super::super) fn bank(spec: &Spec, bank: usize, row: Option<u32>, wide: bool) -> String {
    let entry = &spec.banks[bank];
    let words = WORDS_PER_LONG * if wide { HALVES } else { 1 };
    let row = row.map_or(String::new(), |r| r.to_string());
    format!("${}{}{row}", prefix(spec, &entry.widths, words), entry.name)
}

/// A source as text, with its sign and conversion.
pub(in super::super) fn source(spec: &Spec, source: &Source) -> String {
    let sign = if source.negate { "-" } else { "" };
    let operand = match &source.kind {
        SourceKind::Memory(a) => access(spec, a),
        SourceKind::Forward(path) => format!("${}", spec.forwards[*path].name),
        SourceKind::Fixed(fixed) => format!("${}", spec.fixed[*fixed].name),
    };
    let convert = match source.convert {
        None => String::new(),
        Some(Convert::Extend) => spec.syntax.extend.to_string(),
        Some(Convert::Reduce) => spec.syntax.reduce.to_string(),
    };
    format!("{sign}{operand}{convert}")
}

/// A destination as text, with its write mask.
pub(in super::super) fn destination(spec: &Spec, destination: &Destination) -> String {
    let mut out = match &destination.target {
        Target::Memory(a) => access(spec, a),
        Target::Base { base, words } => {
            let entry = &spec.bases[*base];
            format!("${}{}", prefix(spec, &entry.widths, *words), entry.name)
        }
        Target::Flags { entry } => format!("${}{entry}", spec.mask.destination),
    };
    if let Some(m) = destination.mask {
        out.push_str(&mask(spec, m));
    }
    out
}

/// A mask as text, such as `/1000`, `/ll1000`, `/$imr3` or `/$llimr3`.
pub(in super::super) fn mask(spec: &Spec, mask: Mask) -> String {
    let words = WORDS_PER_LONG * HALVES;
    let wide = spec.widths.iter().find(|w| mask.wide && w.words == words).map_or("", |w| w.prefix.as_str());
    match mask.entry {
        MaskEntry::Cycles(cycles) => {
            let digits: String = (0..spec.counts.cycle).map(|c| if cycles >> c & 1 == 1 { '1' } else { '0' }).collect();
            format!("/{wide}{digits}")
        }
        MaskEntry::Register(entry) => format!("/${wide}{}{entry}", spec.mask.source),
    }
}

/// The addresses of an access as text, as they stand after its letter.
pub(in super::super) fn address(spec: &Spec, address: &Address, words: u32) -> String {
    let letter = spec.syntax.stride;
    match address {
        Address::Stride { base, stride: 0 } => base.to_string(),
        Address::Stride { base, stride } if *stride == words => format!("{base}{letter}"),
        Address::Stride { base, stride } => format!("{base}{letter}{stride}"),
        Address::Flat(list) => format!("[{}]", list.iter().map(u32::to_string).collect::<Vec<_>>().join(",")),
        Address::Cycle => String::new(),
    }
}

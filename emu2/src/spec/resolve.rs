//! Makes a [`Spec`] from merged TOML tables: converts entries to types, resolves names and checks every rule of a spec.

mod compute;
mod machine;
mod transfer;

use super::fault::bad;
use super::source::Document;
use super::typed::{list, single};
use super::{control, encoding, mnemonics, Spec};
use crate::error::{Code, Error};
use compute::check_alu_mau;
use machine::{check_counts, check_formats, check_memories, check_operands, check_syntax};
use sha2::{Digest, Sha256};
use std::collections::HashMap;
use transfer::{expand_reductions, resolve_transfer};
pub use transfer::{reduction_lane, selector_name};

pub(super) fn resolve(mut document: Document) -> Result<Spec, Error> {
    let digest = digest(&document);
    let mut spec = Spec {
        machine: single(&mut document, "machine")?,
        counts: single(&mut document, "counts")?,
        ports: single(&mut document, "ports")?,
        timing: single(&mut document, "timing")?,
        levels: list(&mut document, "level")?,
        widths: list(&mut document, "width")?,
        formats: list(&mut document, "format")?,
        precisions: list(&mut document, "precision")?,
        memories: list(&mut document, "memory")?,
        operands: list(&mut document, "operand")?,
        forwards: list(&mut document, "forward")?,
        fixed: list(&mut document, "fixed")?,
        bases: list(&mut document, "base")?,
        banks: list(&mut document, "bank")?,
        turnaround: single(&mut document, "turnaround")?,
        syntax: single(&mut document, "syntax")?,
        mask: single(&mut document, "mask")?,
        literals: list(&mut document, "literal")?,
        slots: list(&mut document, "slot")?,
        shares: list(&mut document, "share")?,
        alu: list(&mut document, "alu")?,
        mau_precisions: list(&mut document, "mau_precision")?,
        mau: list(&mut document, "mau")?,
        matrix_ops: list(&mut document, "matrix_op")?,
        transfers: list(&mut document, "transfer")?,
        reductions: list(&mut document, "reduction")?,
        controls: list(&mut document, "control")?,
        hazards: list(&mut document, "hazard")?,
        forms: Vec::new(),
        parameters: Vec::new(),
        mnemonics: HashMap::new(),
        encoding: None,
        digest,
    };
    let encoding = encoding::Raw::take(&mut document)?;
    if let Some(key) = document.single.keys().chain(document.list.keys()).next() {
        return Err(Error::new(Code::SpecUnknownKey, format!("`{key}` is not a section of a spec")));
    }
    check_counts(&spec)?;
    // The turnaround register holds one long word of every PE of an L1B for every cycle of a step.
    let kept = spec.lanes() as u64 * u64::from(spec.counts.cycle);
    spec.memories.iter_mut().filter(|m| m.name == spec.turnaround.memory).for_each(|m| m.words = kept);
    check_formats(&spec)?;
    check_memories(&spec)?;
    check_operands(&spec)?;
    check_syntax(&spec)?;
    check_alu_mau(&spec)?;
    control::check(&spec)?;
    check_examples(&spec)?;
    spec.transfers = expand_reductions(&spec)?;
    for at in 0..spec.transfers.len() {
        let previous = at.checked_sub(1).map_or("", |before| spec.entry_name(&spec.transfers[before]));
        let (forms, parameter) = resolve_transfer(&spec, &spec.transfers[at], previous)?;
        spec.forms.push(forms);
        spec.parameters.push(parameter);
    }
    spec.mnemonics = mnemonics::expand(&spec)?;
    spec.encoding = encoding.map(|raw| encoding::resolve(raw, &spec)).transpose()?;
    Ok(spec)
}

/// The SHA-256 of all entries in their order.
fn digest(document: &Document) -> [u8; 32] {
    let mut hasher = Sha256::new();
    // A text with its length, so that neighbours cannot trade bytes.
    let mut add = |text: &str| {
        hasher.update((text.len() as u64).to_le_bytes());
        hasher.update(text);
    };
    for (key, entry) in &document.single {
        [key, &entry.table.to_string()].into_iter().for_each(|text| add(text));
    }
    for (key, entries) in &document.list {
        for (name, entry) in entries {
            [key, name, &entry.table.to_string()].into_iter().for_each(|text| add(text));
        }
    }
    hasher.finalize().into()
}

/// Checks that every instruction has an example with bits, and a text.
fn check_examples(spec: &Spec) -> Result<(), Error> {
    for entry in spec.entries() {
        let place = format!("[[{}]] `{}`", entry.family, entry.name);
        if entry.examples.is_empty() {
            return Err(Error::new(Code::SpecMissingKey, format!("{place}: no example")));
        }
        for example in entry.examples {
            let expects = std::iter::once(&example.expect).chain(example.expect_on.values());
            for expect in expects {
                let hex = |w: &String| w.len() == 16 && w.chars().all(|c| c.is_ascii_hexdigit());
                if expect.is_empty() || !expect.values().all(|words| !words.is_empty() && words.iter().all(hex)) {
                    return Err(bad(format!("{place}: an example expects long words of 16 hex digits")));
                }
            }
        }
        if entry.doc.trim().is_empty() {
            return Err(Error::new(Code::SpecMissingKey, format!("{place}: `doc` is empty")));
        }
    }
    Ok(())
}

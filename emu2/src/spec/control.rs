//! Checks the rules of the spec about which instructions share a line, and about the distance between a write and a
//! read.

use super::fault::{bad, unknown};
use super::loaded::{Spec, ALU_SLOT, MAU_SLOT};
use super::model::*;
use crate::error::{Code, Error};

/// At most this many slots, because slots are bits of a `u32`.
const MAX_SLOTS: usize = 32;
/// A longer gap is taken as a typing error. No pipeline is so long.
const MAX_GAP: u32 = 64;

pub(super) fn check(spec: &Spec) -> Result<(), Error> {
    check_slots(spec)?;
    check_shares(spec)?;
    check_mask_statement(spec)?;
    for h in &spec.hazards {
        check_hazard(spec, h)?;
    }
    Ok(())
}

fn is_slot(spec: &Spec, name: &str) -> bool {
    spec.slots.iter().any(|s| s.name == name)
}

fn check_slots(spec: &Spec) -> Result<(), Error> {
    if spec.slots.len() > MAX_SLOTS {
        return Err(bad(format!("{} slots; at most {MAX_SLOTS} are possible", spec.slots.len())));
    }
    for s in &spec.slots {
        if let Some(name) = s.with.iter().find(|n| !is_slot(spec, n)) {
            return Err(unknown(format!("[[slot]] `{}`: no slot `{name}`", s.name)));
        }
        if s.alone && (s.needs_company || !s.with.is_empty()) {
            return Err(bad(format!("[[slot]] `{}` is alone and has company", s.name)));
        }
    }
    for (slot, used) in [(ALU_SLOT, !spec.alu.is_empty()), (MAU_SLOT, !spec.mau.is_empty())] {
        if used && !is_slot(spec, slot) {
            return Err(Error::new(Code::SpecMissingKey, format!("no [[slot]] `{slot}`")));
        }
    }
    let named = spec.controls.iter().map(|c| ("control", &c.name, &c.slot));
    for (section, name, slot) in named.chain(spec.matrix_ops.iter().map(|m| ("matrix_op", &m.name, &m.slot))) {
        if !is_slot(spec, slot) {
            return Err(unknown(format!("[[{section}]] `{name}`: no slot `{slot}`")));
        }
    }
    Ok(())
}

fn check_shares(spec: &Spec) -> Result<(), Error> {
    for share in &spec.shares {
        let place = format!("[[share]] `{}`", share.name);
        if let Some(name) = share.slots.iter().find(|n| !is_slot(spec, n)) {
            return Err(unknown(format!("{place}: no slot `{name}`")));
        }
        if share.limit == 0 || share.slots.len() < 2 {
            return Err(bad(format!("{place}: {} slots, of which {} may be used", share.slots.len(), share.limit)));
        }
    }
    Ok(())
}

/// Checks that a mask statement has one meaning. It is `statement`, a width prefix and letters of memories without
/// blanks between them.
fn check_mask_statement(spec: &Spec) -> Result<(), Error> {
    let statements: Vec<_> = spec.controls.iter().filter(|c| c.kernel == ControlKernel::Mask).collect();
    if statements.len() > 1 || statements.iter().any(|c| c.name != spec.mask.statement) {
        return Err(bad(format!(
            "[mask]: `{}` is the only control statement of the kernel `mask`",
            spec.mask.statement
        )));
    }
    let mut letters = vec![spec.mask.letter];
    for o in &spec.operands {
        if spec.memory(&o.memory).is_some_and(|m| spec.memories[m].level == LevelName::Pe) {
            letters.push(o.letter);
        }
    }
    for (at, letter) in letters.iter().enumerate() {
        if letters[..at].contains(letter) || spec.widths.iter().any(|w| w.prefix.starts_with(*letter)) {
            return Err(bad(format!("[mask]: `{letter}` in a mask statement would have two meanings")));
        }
    }
    Ok(())
}

fn check_hazard(spec: &Spec, h: &Hazard) -> Result<(), Error> {
    let place = format!("[[hazard]] `{}`", h.name);
    if let Some(name) = h.memories.iter().chain(&h.source).find(|n| spec.memory(n).is_none()) {
        return Err(unknown(format!("{place}: no memory `{name}`")));
    }
    if let Some(name) = h.writers.iter().chain(&h.readers).find(|n| !is_slot(spec, n)) {
        return Err(unknown(format!("{place}: no slot `{name}`")));
    }
    if (h.rule == HazardRule::Forward) != h.memories.is_empty() {
        return Err(bad(format!("{place}: every rule but `forward` names memories")));
    }
    let fits = match (h.rule, h.steps, h.cycles) {
        (HazardRule::Port, Some(gap), None) => gap <= MAX_GAP,
        (HazardRule::Data, Some(gap), None) | (HazardRule::Data, None, Some(gap)) => gap <= MAX_GAP,
        (HazardRule::Wait | HazardRule::Forward, None, None) => true,
        _ => false,
    };
    if !fits {
        let message = format!("{place}: `port` counts steps, `data` steps or cycles, up to {MAX_GAP}; others neither");
        return Err(bad(message));
    }
    // Only PE memories have one address per cycle. Other transfers move the words of a whole step at once.
    let cyclic = |n: &String| spec.memory(n).is_some_and(|m| spec.memories[m].level == LevelName::Pe);
    if h.cycles.is_some() && !h.memories.iter().all(cyclic) {
        return Err(bad(format!("{place}: cycles are counted in PE memories only")));
    }
    Ok(())
}

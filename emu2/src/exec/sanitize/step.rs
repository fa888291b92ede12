//! A step on the validity of one L1B. It runs before the step itself, so the registers hold what the step reads.

use super::finding::{Origin, Word};
use super::observed::{check_wrap, undefined_address, undefined_mask, Buffers, On};
use crate::exec::access::Access;
use crate::exec::compute::Compute;
use crate::exec::l1bm::Load;
use crate::exec::op::{Op, Step};
use crate::exec::source::Origin as From;
use crate::exec::validity::VALID;
use crate::exec::wrap::wrapped;
use crate::spec::{LevelName, WORDS_PER_LONG};

/// Runs the step on the validity.
pub(super) fn run(step: &Step, on: &mut On<'_>, buffers: &mut Buffers) {
    buffers.verdicts.clear();
    for (at, op) in step.ops.iter().enumerate() {
        let verdict = undefined_input(op, on, buffers);
        if let Some(origin) = verdict {
            if buffers.results.len() <= at {
                let plane = buffers.valid.len();
                buffers.results.resize_with(at + 1, || [vec![0; plane], vec![0; plane]]);
                buffers.flags.resize_with(at + 1, || vec![0; plane]);
            }
            super::compute::compute(op, at, on, buffers);
            buffers.verdicts.push(Some(origin));
        } else {
            buffers.verdicts.push(None);
        }
    }
    super::store::store(step, on, buffers);
}

/// The origin of an input that is not valid on every PE. None if all inputs are.
fn undefined_input(op: &Op, on: &mut On<'_>, buffers: &mut Buffers) -> Option<Origin> {
    let mut found = None;
    for source in &op.sources {
        let origin = match &source.origin {
            From::Fixed(_) => None,
            From::Forward(path) => match on.summary.paths[*path] {
                true => None,
                false => Some(on.summary.path_origins[*path].unwrap_or(Origin::new(on.line, None))),
            },
            From::Memory(access) => undefined_words(access, on, buffers),
        };
        found = found.or(origin);
    }
    if let Some(flush) = &op.zero_flush {
        found = found.or_else(|| undefined_mask(flush, on, buffers));
    }
    match &op.compute {
        Compute::Load(load) => found.or_else(|| undefined_load(load, on)),
        Compute::Mau(mau) => {
            let Some(product) = &mau.matrix else { return found };
            found.or_else(|| undefined_rows(product.slot, mau.register_rows(), on))
        }
        Compute::MatrixRead(access) => found.or_else(|| undefined_rows(access.slot, access.rows, on)),
        _ => found,
    }
}

fn undefined_rows(slot: usize, count: usize, on: &On<'_>) -> Option<Origin> {
    (0..count).find(|row| !on.summary.row(slot, *row)).map(|row| on.origin(slot, row, 0))
}

/// The origin of undefined words at the addresses of an access.
fn undefined_words(access: &Access, on: &mut On<'_>, buffers: &mut Buffers) -> Option<Origin> {
    let rows = access.words.div_ceil(WORDS_PER_LONG) as usize;
    let slot = access.slot;
    if !on.per_pe(access) {
        let mut cycles = 0..buffers.cycles;
        let first = cycles.find_map(|c| (access.row(c)..access.row(c) + rows).find(|row| !on.summary.row(slot, *row)));
        return first.map(|row| {
            let words = &on.shadow.pe[slot][row * buffers.lanes..][..buffers.lanes];
            on.origin(slot, row, words.iter().position(|word| *word != VALID).unwrap_or(0))
        });
    }
    check_wrap(access, on, buffers);
    if let Some((_, origin)) = undefined_address(access, on, buffers) {
        return Some(origin);
    }
    if on.summary.whole(slot) {
        return None;
    }
    for c in 0..buffers.cycles {
        access.addresses(on.real, c, &mut buffers.addresses);
        for (lane, word) in buffers.addresses.iter().enumerate() {
            let first = (word / WORDS_PER_LONG) as usize;
            for row in first..first + rows {
                if !on.summary.row(slot, row) && on.shadow.pe[slot][row * buffers.lanes + lane] != VALID {
                    return Some(on.origin(slot, row, lane));
                }
            }
        }
    }
    None
}

fn undefined_load(load: &Load, on: &On<'_>) -> Option<Origin> {
    let memory = &on.shadow.own[load.place.slot];
    let mut undefined = None;
    for run in load.runs.iter() {
        wrapped(load.place.address + run.offset, run.period, memory.len(), |at, _, n| {
            let bad = memory[at..at + n].iter().position(|word| *word != VALID);
            undefined = undefined.or(bad.map(|k| at + k));
        });
        if undefined.is_some() {
            break;
        }
    }
    let address = undefined? as u64;
    let word = Word { level: LevelName::L1b, slot: load.place.slot, unit: on.index, lane: 0, address };
    Some(on.summary.sent.unwrap_or(Origin::new(on.line, Some(word))))
}

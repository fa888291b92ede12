//! Writes of validity: in the order in which a step writes its results.

use super::compute::validity_of_mask;
use super::finding::{Case, Origin, What};
use super::observed::{check_wrap, defined_address, undefined_address, undefined_mask, Buffers, On, PLAIN};
use crate::exec::access::Access;
use crate::exec::compute::Compute;
use crate::exec::destination::{BaseWrite, Write};
use crate::exec::flag::FlagWrite;
use crate::exec::mask::Through;
use crate::exec::matrix::MatrixAccess;
use crate::exec::op::{Op, Step};
use crate::exec::validity::VALID;
use crate::exec::wrap::write_wrapped;
use crate::machine::Path;
use crate::num::lane::Lane;
use crate::spec::WORDS_PER_LONG;

/// Writes the validity of all results of a step.
pub(super) fn store(step: &Step, on: &mut On<'_>, buffers: &mut Buffers) {
    for (at, op) in step.ops.iter().enumerate() {
        op.writes.iter().for_each(|write| memory(write, at, on, buffers));
        match &op.compute {
            Compute::MatrixWrite(access) => matrix(access, at, on, buffers),
            Compute::Store(_) | Compute::Reduce { .. } => send(op, at, on, buffers),
            _ => {}
        }
    }
    for (at, op) in step.ops.iter().enumerate() {
        op.late_writes.iter().for_each(|write| memory(write, at, on, buffers));
    }
    for (at, op) in step.ops.iter().enumerate() {
        op.base_writes.iter().for_each(|write| base(write, at, on, buffers));
    }
    for (at, op) in step.ops.iter().enumerate() {
        op.flag_writes.iter().for_each(|write| flags(write, at, on, buffers));
        if let (Some(path), true) = (op.forward, step.forward) {
            let verdict = buffers.verdicts[at];
            on.summary.paths[path] = verdict.is_none();
            on.summary.path_origins[path] = verdict;
            if verdict.is_some() {
                let [l0, l1] = &buffers.results[at];
                let mut out = on.shadow.forward[path].start(false);
                out.l0.copy_from_slice(l0);
                out.l1.iter_mut().for_each(|out| out.copy_from_slice(l1));
            }
        }
    }
}

fn result<'b>(results: &'b [[Vec<u64>; 2]], valid: &'b [u64], at: usize, verdict: Option<Origin>) -> Path<'b> {
    match verdict {
        None => (valid, valid),
        Some(_) => (&results[at][0], &results[at][1]),
    }
}

fn memory(write: &Write, at: usize, on: &mut On<'_>, buffers: &mut Buffers) {
    let access = &write.access;
    let (slot, lanes, verdict) = (access.slot, buffers.lanes, buffers.verdicts[at]);
    let rows = access.words.div_ceil(WORDS_PER_LONG) as usize;
    let per_pe = on.per_pe(access);
    let masked = undefined_mask(&write.mask, on, buffers);
    if per_pe {
        check_wrap(access, on, buffers);
        check_twice(write, on, buffers);
    }
    if verdict.is_none() && masked.is_none() {
        if per_pe && on.summary.whole(slot) && undefined_address(access, on, buffers).is_none() {
            return;
        }
        if !per_pe {
            let whole = access.words >= WORDS_PER_LONG && write.mask.passes_all(buffers.cycles);
            for c in 0..buffers.cycles {
                let first = access.row(c);
                if whole {
                    (first..first + rows).for_each(|row| on.summary.fill(on.shadow, slot, row, lanes));
                } else if !on.summary.rows(slot, first, rows) {
                    put(write, c, at, on, buffers);
                    refresh(access, c, rows, verdict, on, buffers);
                }
            }
            return;
        }
    }
    let origin = verdict.or(masked);
    for c in 0..buffers.cycles {
        put(write, c, at, on, buffers);
        refresh(access, c, rows, origin, on, buffers);
    }
    if per_pe {
        written_anywhere(access, on, buffers);
    }
}

/// A write at an undefined address may have written any word of the memory of its PE.
fn written_anywhere(access: &Access, on: &mut On<'_>, buffers: &Buffers) {
    let Some((_, origin)) = undefined_address(access, on, buffers) else { return };
    let lanes = buffers.lanes;
    let undefined = |lane: &usize| (0..buffers.cycles).any(|c| !defined_address(access, on, c, *lane, lanes));
    let lost: Vec<usize> = (0..lanes).filter(undefined).collect();
    let rows = on.shadow.pe[access.slot].len() / lanes;
    for row in 0..rows {
        lost.iter().for_each(|lane| on.shadow.pe[access.slot][row * lanes + lane] = 0);
        on.summary.refresh(on.shadow, access.slot, row, lanes, Some(origin));
    }
}

/// Stores the validity of a cycle under the mask.
fn put(write: &Write, c: usize, at: usize, on: &mut On<'_>, buffers: &mut Buffers) {
    let Buffers { lanes, results, mask, mask_validity, masked, valid, verdicts, addresses, .. } = buffers;
    let (l0, l1) = result(results, valid, at, verdicts[at]);
    let mut path = (&l0[c * *lanes..][..*lanes], &l1[c * *lanes..][..*lanes]);
    if on.per_pe(&write.access) {
        write.access.addresses(on.real, c, addresses);
    } else {
        addresses.fill(write.access.at[c]);
    }
    match write.mask.rows(on.real, c, mask) {
        Through::Nothing => return,
        Through::All => mask.fill(VALID),
        Through::Rows => {}
    }
    if write.mask.register().is_some() {
        // Bits that may have been written or not are undefined.
        validity_of_mask(&write.mask, c, on, mask_validity);
        let halves = [(path.0, &mut mask.l0, &mask_validity.l0), (path.1, &mut mask.l1, &mask_validity.l1)];
        for ((from, mask, validity), to) in halves.into_iter().zip(masked.iter_mut()) {
            for (((to, from), mask), validity) in to.iter_mut().zip(from).zip(mask).zip(validity) {
                (*to, *mask) = (from & validity, *mask | !validity);
            }
        }
        path = (&masked[0], &masked[1]);
    }
    write.store_lanes(&mut on.shadow.pe[write.access.slot], *lanes, path, addresses, mask);
}

/// Looks at the rows that a cycle has written.
fn refresh(access: &Access, c: usize, rows: usize, origin: Option<Origin>, on: &mut On<'_>, buffers: &mut Buffers) {
    let per_pe = on.per_pe(access);
    let mut look = |first: usize| {
        for row in first..first + rows {
            on.summary.refresh(on.shadow, access.slot, row, buffers.lanes, origin);
        }
    };
    if !per_pe {
        return look(access.row(c));
    }
    let mut last = None;
    for word in &buffers.addresses {
        let row = (word / WORDS_PER_LONG) as usize;
        if last.replace(row) != Some(row) {
            look(row);
        }
    }
}

/// Checks that no PE writes a word in two cycles whose addresses come from the T register. Where the addresses of a line
/// are written out, the last cycle is meant to win.
fn check_twice(write: &Write, on: &mut On<'_>, buffers: &mut Buffers) {
    if write.access.indirect_slot().is_none() {
        return;
    }
    let (lanes, cycles) = (buffers.lanes, buffers.cycles);
    for c in 0..cycles {
        write.access.addresses(on.real, c, &mut buffers.addresses);
        let through = write.mask.rows(on.real, c, &mut buffers.mask);
        for lane in 0..lanes {
            let writes = match through {
                Through::All => true,
                Through::Nothing => false,
                Through::Rows => buffers.mask.l0[lane] != 0,
            };
            let writes = writes && defined_address(&write.access, on, c, lane, lanes);
            buffers.written[c * lanes + lane] = (buffers.addresses[lane], writes);
        }
    }
    for lane in 0..lanes {
        let at = |c: usize| buffers.written[c * lanes + lane];
        let pairs = (0..cycles).flat_map(|later| (0..later).map(move |earlier| (earlier, later)));
        let mut twice = pairs.filter(|(one, other)| at(*one).1 && at(*other).1 && at(*one).0 == at(*other).0);
        if let Some((one, other)) = twice.next() {
            let row = (at(one).0 / WORDS_PER_LONG) as usize;
            on.found(What::WrittenTwice, write.access.slot, (row, lane), Case { cycles: (one, other), ..PLAIN });
        }
    }
}

fn matrix(access: &MatrixAccess, at: usize, on: &mut On<'_>, buffers: &Buffers) {
    let verdict = buffers.verdicts[at];
    let path = result(&buffers.results, &buffers.valid, at, verdict);
    // Validity has no sign.
    MatrixAccess { signs: 0, ..*access }.store(on.shadow, buffers.lanes, path);
    for row in 0..access.rows {
        on.summary.refresh(on.shadow, access.slot, row, buffers.lanes, verdict);
    }
}

fn send(op: &Op, at: usize, on: &mut On<'_>, buffers: &mut Buffers) {
    let verdict = buffers.verdicts[at];
    on.summary.sent = verdict.or(on.summary.sent);
    let path = result(&buffers.results, &buffers.valid, at, verdict);
    match &op.compute {
        Compute::Reduce { sent, reduction_layout, .. } => {
            let lane = op.mixes.unwrap_or(Lane::L);
            match verdict {
                Some(_) => reduction_layout.reduce_validity(buffers.and, lane, path, &mut buffers.reduce),
                None => reduction_layout.fill(VALID, &mut buffers.reduce),
            }
            for (place, ()) in sent.places(op.keep) {
                write_wrapped(&mut on.shadow.own[place.slot], place.address, &buffers.reduce.out);
            }
        }
        compute => compute.send(path, op.keep, &mut on.shadow.own, &mut buffers.reduce),
    }
}

fn base(write: &BaseWrite, at: usize, on: &mut On<'_>, buffers: &mut Buffers) {
    let verdict = buffers.verdicts[at];
    let masked = undefined_mask(&write.mask, on, buffers);
    if verdict.is_none() && masked.is_none() && on.summary.row(write.slot, 0) {
        return;
    }
    let Buffers { lanes, results, mask, mask_validity, valid, .. } = buffers;
    let (l0, _) = result(results, valid, at, verdict);
    for (c, row) in l0.chunks_exact(*lanes).enumerate() {
        match write.mask.rows(on.real, c, mask) {
            Through::Nothing => continue,
            Through::All => mask.fill(VALID),
            Through::Rows => {}
        }
        validity_of_mask(&write.mask, c, on, mask_validity);
        let masks = mask.l0.iter().zip(&mask_validity.l0);
        for ((base, value), (mask, validity)) in on.shadow.pe[write.slot].iter_mut().zip(row).zip(masks) {
            let mask = (mask | !validity) >> write.shift & write.bits;
            *base = *base & !mask | (value & validity) >> write.shift & mask;
        }
    }
    on.summary.refresh(on.shadow, write.slot, 0, *lanes, verdict.or(masked));
}

/// A flag is defined where the result was before the zero flush. A flag that the mask does not let through is 0.
fn flags(write: &FlagWrite, at: usize, on: &mut On<'_>, buffers: &mut Buffers) {
    let lanes = buffers.lanes;
    let origin = buffers.verdicts[at].or_else(|| undefined_mask(&write.mask, on, buffers));
    for c in 0..buffers.cycles {
        let row = write.entry * buffers.cycles + c;
        if origin.is_none() {
            on.summary.fill(on.shadow, write.slot, row, lanes);
            continue;
        }
        let mut nibbles = vec![15u64; lanes];
        let mut certain = vec![15u64; lanes];
        write.mask.flags(on.shadow, c, &mut certain);
        // The bits that stay 0 under the mask are defined.
        write.mask.flags(on.real, c, &mut nibbles);
        for (lane, (through, certain)) in nibbles.into_iter().zip(certain).enumerate() {
            // The flags of a valid result are defined.
            let defined = if buffers.verdicts[at].is_some() { buffers.flags[at][c * lanes + lane] } else { 15 };
            let pattern = write.mask.register().is_none();
            let bits = VALID << 4 | (defined | !through & 15) & if pattern { 15 } else { certain };
            on.shadow.pe[write.slot][row * lanes + lane] = bits;
        }
        on.summary.refresh(on.shadow, write.slot, row, lanes, origin);
    }
}

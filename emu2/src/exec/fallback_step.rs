//! One step on one L1B: everything is read and computed from the state before the step, then written.
//!
//! This is the reference for the forms in `fast/`. An op that `fast/plain_rows.rs` can run is handed to it, unless the
//! caller wants the general form of every op.

use super::compute::Compute;
use super::fast::plain_rows::Buffers;
use super::matrix::MatrixRegisters;
use super::op::{Outcome, Scratch, Step, MAX_SOURCES};
use crate::machine::{L1b, Path};

/// Runs `step` on the L1B with chip-wide number `index`.
pub(super) fn run_step(step: &Step, l1b: &mut L1b, index: usize, scratch: &mut Scratch) {
    run_observed(step, l1b, index, scratch, |_, _| {});
}

/// Does the same as [`run_step`]. `observe` gets the state before the writes and the results of the instructions.
#[inline(always)]
pub(super) fn run_observed(
    step: &Step,
    l1b: &mut L1b,
    index: usize,
    scratch: &mut Scratch,
    observe: impl FnOnce(&L1b, &[Outcome]),
) {
    if step.prepares {
        step.ops.iter().for_each(|op| op.compute.prepare(l1b, scratch.lanes));
    }
    if compute(step, l1b, index, scratch) {
        observe(l1b, &scratch.results);
        write(step, l1b, scratch);
    }
}

/// Computes results and flags of every instruction from the state before the step. Returns false if nothing is left to
/// write.
fn compute(step: &Step, l1b: &mut L1b, index: usize, scratch: &mut Scratch) -> bool {
    let Scratch { lanes, cycles, zeros, fetch, spare, mask, results, reduce, gathered, general, .. } = scratch;
    let (lanes, plane) = (*lanes, zeros.len());
    while results.len() < step.ops.len() {
        results.push(Outcome::new(plane));
    }
    let mut left = false;
    for (op, outcome) in step.ops.iter().zip(results) {
        let plain_rows = op.plain_rows.as_ref().filter(|plain_rows| !*general && plain_rows.fits(l1b));
        outcome.done = !*general && op.idle();
        if outcome.done {
            continue;
        }
        if let Some(plain_rows) = plain_rows {
            let buffers = Buffers { lanes, zeros, spare, result: &mut outcome.path, reduce, gathered };
            outcome.done = plain_rows.run(op, l1b, index, buffers);
            left |= !outcome.done;
            continue;
        }
        left = true;
        let zeros = &zeros[..lanes];
        let mut out = outcome.path.start(op.narrow(l1b));
        if let Compute::Load(load) = &op.compute {
            load.run(&l1b.own, out.part(0, plane));
        }
        for c in 0..*cycles {
            let mut out = out.part(c * lanes, lanes);
            let mut sources: [Path<'_>; MAX_SOURCES] = [(zeros, zeros); MAX_SOURCES];
            for ((source, tmp), fetched) in op.sources.iter().zip(fetch.iter_mut()).zip(&mut sources) {
                *fetched = source.fetch(l1b, index, c, zeros, tmp);
            }
            let sources = &sources[..op.sources.len().min(MAX_SOURCES)];
            op.compute.run(sources, MatrixRegisters::of(l1b, zeros), c, spare, out.part(0, lanes));
            if let Some(first) = op.flag_writes.first() {
                let flags = &mut outcome.flags[c * lanes..][..lanes];
                first.rule.eval(sources, (out.l0, out.l1.as_deref().unwrap_or(zeros)), zeros, flags);
            }
            if let Some(flush) = &op.zero_flush {
                flush.flush(l1b, c, out, mask);
            }
        }
    }
    left
}

/// Writes the memories, then the registers that form addresses and masks, then the forwarding paths.
fn write(step: &Step, l1b: &mut L1b, scratch: &mut Scratch) {
    let Scratch { lanes, fetch, mask, results, reduce, base_slots, .. } = scratch;
    let lanes = *lanes;
    let [tmp, ..] = fetch;
    for (op, outcome) in step.ops.iter().zip(results.iter()).filter(|(_, outcome)| !outcome.done) {
        let result = outcome.path.planes();
        for write in &op.writes {
            write.store(l1b, lanes, (result, outcome.path.narrow()), tmp, mask);
        }
        match &op.compute {
            Compute::MatrixWrite(access) => access.store(l1b, lanes, result),
            compute => compute.send(result, op.keep, &mut l1b.own, reduce),
        }
    }
    for (op, outcome) in step.ops.iter().zip(results.iter()) {
        for write in &op.late_writes {
            write.store(l1b, lanes, (outcome.path.planes(), outcome.path.narrow()), tmp, mask);
        }
    }
    for (op, outcome) in step.ops.iter().zip(results.iter()) {
        for write in &op.base_writes {
            write.store(l1b, lanes, outcome.path.planes().0, mask);
            l1b.settle_bases(base_slots);
        }
    }
    for (op, outcome) in step.ops.iter().zip(results.iter_mut()) {
        for write in &op.flag_writes {
            write.store(l1b, lanes, &mut outcome.flags);
        }
        if let (Some(forward), true) = (op.forward.filter(|_| !outcome.done), step.forward) {
            // The old content of the path is not needed any more, so its buffer takes the next result.
            std::mem::swap(&mut l1b.forward[forward], &mut outcome.path);
        }
    }
}

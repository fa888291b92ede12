//! One step on one L1B: everything is read and computed from the state before the step, then written.

use super::compute::Compute;
use super::maps::wrapped;
use super::operand::{Path, Source, Write};
use crate::machine::L1b;
use crate::spec::{Spec, HALVES};

/// A lowered PE line.
#[derive(Clone, Debug)]
pub(super) struct Step {
    pub(super) ops: Vec<Op>,
    /// False: forwarding paths keep their values.
    pub(super) forward: bool,
}

/// A lowered instruction.
#[derive(Clone, Debug)]
pub(super) struct Op {
    pub(super) compute: Compute,
    pub(super) sources: Vec<Source>,
    pub(super) writes: Vec<Write>,
    /// Forwarding path that takes the result.
    pub(super) forward: Option<usize>,
}

/// An instruction has at most this many sources.
const MAX_SOURCES: usize = 3;
/// Rows that fetching one source may need.
const FETCH_ROWS: usize = 4;

/// Buffers of one worker.
#[derive(Clone, Debug)]
pub(super) struct Scratch {
    lanes: usize,
    cycles: usize,
    zeros: Vec<u64>,
    fetch: [Vec<u64>; MAX_SOURCES],
    compute: Vec<u64>,
    /// Result path `[cycle][half][lane]` of each instruction of the line.
    results: Vec<Vec<u64>>,
}

impl Scratch {
    pub(super) fn new(spec: &Spec) -> Scratch {
        let lanes = spec.lanes();
        Scratch {
            lanes,
            cycles: spec.counts.cycle as usize,
            zeros: vec![0; lanes],
            fetch: std::array::from_fn(|_| vec![0; FETCH_ROWS * lanes]),
            compute: vec![0; 2 * lanes],
            results: Vec::new(),
        }
    }
}

/// Runs `steps` on the L1B with chip-wide number `index`.
pub(super) fn run_region(steps: &[Step], l1b: &mut L1b, index: usize, scratch: &mut Scratch) {
    for step in steps {
        run_step(step, l1b, index, scratch);
    }
}

fn run_step(step: &Step, l1b: &mut L1b, index: usize, scratch: &mut Scratch) {
    let Scratch { lanes, cycles, zeros, fetch, compute, results } = scratch;
    let path = 2 * *lanes;
    while results.len() < step.ops.len() {
        results.push(vec![0; *cycles * HALVES as usize * *lanes]);
    }
    for (op, result) in step.ops.iter().zip(results.iter_mut()) {
        for (c, out) in result.chunks_exact_mut(path).enumerate() {
            let mut sources: [Path<'_>; MAX_SOURCES] = [(zeros, zeros); MAX_SOURCES];
            for ((source, tmp), fetched) in op.sources.iter().zip(fetch.iter_mut()).zip(&mut sources) {
                *fetched = source.fetch(l1b, index, c, zeros, tmp);
            }
            op.compute.run(&sources[..op.sources.len().min(MAX_SOURCES)], &l1b.own, c, zeros, compute, out);
        }
    }
    for (op, result) in step.ops.iter().zip(results.iter_mut()) {
        for write in &op.writes {
            write.store(&mut l1b.pe, *lanes, result);
        }
        if let Compute::Store { slot, address, runs } = &op.compute {
            let memory = &mut l1b.own[*slot];
            let size = memory.len();
            for run in runs.iter() {
                wrapped(address + run.offset, run.length, size, |at, from, n| {
                    memory[at..at + n].copy_from_slice(&result[run.path + from..run.path + from + n]);
                });
            }
        }
        if let (Some(forward), true) = (op.forward, step.forward) {
            // The old content of the path is not needed any more: it becomes the next result buffer.
            std::mem::swap(&mut l1b.forward[forward], result);
        }
    }
}

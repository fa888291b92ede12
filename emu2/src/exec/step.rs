//! One step on one L1B: everything is read and computed from the state before the step, then written.

use super::compute::{Compute, Rows};
use super::flag::FlagWrite;
use super::maps::{write_wrapped, Reduce};
use super::mask::{MaskRows, Masked};
use super::operand::{Fetch, Path, Source, Write};
use crate::machine::L1b;
use crate::spec::{Spec, Unit, HALVES};

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
    /// Writes of what later writes of the step must still see old: the T register, which indirect addresses read.
    pub(super) late_writes: Vec<Write>,
    pub(super) base_writes: Vec<BaseWrite>,
    pub(super) flag_writes: Vec<FlagWrite>,
    pub(super) zero_flush: Option<Masked>,
    /// Forwarding path that takes the result.
    pub(super) forward: Option<usize>,
}

/// A lowered write of a base address register.
#[derive(Clone, Debug)]
pub(super) struct BaseWrite {
    pub(super) slot: usize,
    /// Where the value's low end lies in the first long word of the path, and the bits kept.
    pub(super) shift: u32,
    pub(super) bits: u64,
    pub(super) mask: Masked,
}

/// An instruction has at most this many sources.
const MAX_SOURCES: usize = 3;

/// Buffers of one worker.
#[derive(Clone, Debug)]
pub(super) struct Scratch {
    lanes: usize,
    cycles: usize,
    zeros: Vec<u64>,
    fetch: [Fetch; MAX_SOURCES],
    compute: Vec<u64>,
    mask: MaskRows,
    /// Result path `[cycle][half][lane]` of each instruction of the line.
    results: Vec<Vec<u64>>,
    /// Flags `[cycle][lane]` of each instruction of the line.
    flags: Vec<Vec<u64>>,
    reduce: Reduce,
    base_slots: Vec<usize>,
}

impl Scratch {
    pub(super) fn new(spec: &Spec) -> Scratch {
        let lanes = spec.lanes();
        let layout = crate::machine::Layout::new(spec);
        let bases = spec.memories.iter().enumerate().filter(|(_, m)| m.unit == Unit::Base);
        Scratch {
            lanes,
            cycles: spec.counts.cycle as usize,
            zeros: vec![0; lanes],
            fetch: std::array::from_fn(|_| Fetch::new(lanes)),
            compute: vec![0; 2 * lanes],
            mask: MaskRows::new(lanes),
            results: Vec::new(),
            flags: Vec::new(),
            reduce: Reduce::default(),
            base_slots: bases.map(|(index, _)| layout.slot(index).index).collect(),
        }
    }
}

/// Runs `steps` on the L1B with chip-wide number `index`.
pub(super) fn run_region(steps: &[Step], l1b: &mut L1b, index: usize, scratch: &mut Scratch) {
    // Debug statements and the host write memories between regions.
    l1b.settle(&scratch.base_slots);
    for step in steps {
        for op in &step.ops {
            op.compute.prepare(l1b, scratch.lanes);
        }
        compute(step, l1b, index, scratch);
        write(step, l1b, scratch);
    }
}

/// Results and flags of every instruction, from the state before the step.
fn compute(step: &Step, l1b: &L1b, index: usize, scratch: &mut Scratch) {
    let Scratch { lanes, cycles, zeros, fetch, compute, mask, results, flags, .. } = scratch;
    let path = 2 * *lanes;
    while results.len() < step.ops.len() {
        results.push(vec![0; *cycles * HALVES as usize * *lanes]);
        flags.push(vec![0; *cycles * *lanes]);
    }
    for ((op, result), flags) in step.ops.iter().zip(results).zip(flags) {
        for (c, out) in result.chunks_exact_mut(path).enumerate() {
            let mut sources: [Path<'_>; MAX_SOURCES] = [(zeros, zeros); MAX_SOURCES];
            for ((source, tmp), fetched) in op.sources.iter().zip(fetch.iter_mut()).zip(&mut sources) {
                *fetched = source.fetch(l1b, index, c, zeros, tmp);
            }
            let sources = &sources[..op.sources.len().min(MAX_SOURCES)];
            op.compute.run(sources, Rows { l1b, zeros }, c, compute, out);
            if let Some(first) = op.flag_writes.first() {
                let flags = &mut flags[c * *lanes..][..*lanes];
                first.rule.eval(sources, out, zeros, flags);
            }
            if let Some(flush) = &op.zero_flush {
                flush.flush(l1b, c, out, mask);
            }
        }
    }
}

/// Memories, then what addresses and masks of the step are made of, then the forwarding paths.
fn write(step: &Step, l1b: &mut L1b, scratch: &mut Scratch) {
    let Scratch { lanes, fetch, mask, results, flags, reduce, base_slots, .. } = scratch;
    let lanes = *lanes;
    let [tmp, ..] = fetch;
    for (op, result) in step.ops.iter().zip(results.iter_mut()) {
        for write in &op.writes {
            write.store(l1b, lanes, result, tmp, mask);
        }
        match &op.compute {
            Compute::Store(sent) => {
                for (place, runs) in sent.places(step.forward) {
                    for run in runs.iter() {
                        let words = &result[run.path..run.path + run.length];
                        write_wrapped(&mut l1b.own[place.slot], place.address + run.offset, words);
                    }
                }
            }
            Compute::Reduce { sent, kernel, meeting } => {
                meeting.reduce(*kernel, result, reduce);
                for (place, ()) in sent.places(step.forward) {
                    write_wrapped(&mut l1b.own[place.slot], place.address, &reduce.out);
                }
            }
            Compute::MatrixWrite(access) => access.store(l1b, lanes, result),
            _ => {}
        }
    }
    for (op, result) in step.ops.iter().zip(results.iter_mut()) {
        for write in &op.late_writes {
            write.store(l1b, lanes, result, tmp, mask);
        }
    }
    for (op, result) in step.ops.iter().zip(results.iter_mut()) {
        for write in &op.base_writes {
            write.store(l1b, lanes, result, mask);
            l1b.settle_bases(base_slots);
        }
    }
    for ((op, result), flags) in step.ops.iter().zip(results.iter_mut()).zip(flags.iter_mut()) {
        for write in &op.flag_writes {
            write.store(l1b, lanes, flags);
        }
        if let (Some(forward), true) = (op.forward, step.forward) {
            // The old content of the path is not needed any more: it becomes the next result buffer.
            std::mem::swap(&mut l1b.forward[forward], result);
        }
    }
}

impl BaseWrite {
    fn store(&self, l1b: &mut L1b, lanes: usize, result: &[u64], rows: &mut MaskRows) {
        for (c, path) in result.chunks_exact(2 * lanes).enumerate() {
            match self.mask.rows(l1b, c, rows) {
                super::mask::Through::All => rows.fill(u64::MAX),
                super::mask::Through::Nothing => continue,
                super::mask::Through::Rows => {}
            }
            for ((base, value), mask) in l1b.pe[self.slot].iter_mut().zip(&path[..lanes]).zip(&rows.l0) {
                let mask = (mask >> self.shift) & self.bits;
                *base = (*base & !mask) | ((value >> self.shift) & mask);
            }
        }
    }
}

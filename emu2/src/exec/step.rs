//! One step on one L1B: everything is read and computed from the state before the step, then written.

use super::compute::{Compute, Rows, Second, SPARE_PLANES};
use super::direct::{Buffers, Direct};
use super::flag::FlagWrite;
use super::maps::Reduce;
use super::mask::{MaskRows, Masked};
use super::operand::{Fetch, Path, Source, Write};
use super::plan::{Item, Stretch};
use super::quick;
use crate::machine::{L1b, PathRows, Words};
use crate::spec::{Spec, Unit};
use smallvec::SmallVec;

/// A lowered PE line.
#[derive(Clone, Debug)]
pub(super) struct Step {
    pub(super) ops: Vec<Op>,
    /// Something derived from the state must be made before the step, see [`Compute::prepare`].
    pub(super) prepares: bool,
    /// False: forwarding paths keep their values.
    pub(super) forward: bool,
}

/// A lowered instruction.
#[derive(Clone, Debug)]
pub(super) struct Op {
    pub(super) compute: Compute,
    pub(super) sources: SmallVec<[Source; MAX_SOURCES]>,
    pub(super) writes: SmallVec<[Write; 1]>,
    /// Writes of what later writes of the step must still see old: the T register, which indirect addresses read.
    pub(super) late_writes: Vec<Write>,
    pub(super) base_writes: Vec<BaseWrite>,
    pub(super) flag_writes: Vec<FlagWrite>,
    pub(super) zero_flush: Option<Masked>,
    /// Forwarding path that takes the result.
    pub(super) forward: Option<usize>,
    /// What is known of L1 of the result.
    pub(super) second: Second,
    /// How it runs on plain rows, if it can.
    pub(super) direct: Option<Direct>,
    /// Whether anyone reads the forwarding path; see [`super::direct::mark_live`].
    pub(super) live: bool,
    /// Whether what is sent to L1BM goes into the turnaround register too.
    pub(super) keep: bool,
}

impl Op {
    /// Whether L1 of the result is zero.
    pub(super) fn narrow(&self, l1b: &L1b) -> bool {
        match self.second {
            Second::Zero => true,
            Second::Any => false,
            Second::Source => self.sources.first().is_none_or(|source| source.narrow(l1b)),
        }
    }

    /// Whether the step leaves nothing of it.
    fn idle(&self) -> bool {
        let written = self.writes.len() + self.late_writes.len() + self.base_writes.len() + self.flag_writes.len();
        !self.live && written == 0 && !self.compute.sends() && !matches!(self.compute, Compute::MatrixWrite(_))
    }
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
pub(super) const MAX_SOURCES: usize = 3;

/// Buffers of one worker.
#[derive(Clone, Debug)]
pub(super) struct Scratch {
    pub(super) lanes: usize,
    cycles: usize,
    /// As long as a plane of a path.
    pub(super) zeros: Words,
    pub(super) fetch: [Fetch; MAX_SOURCES],
    pub(super) spare: Words,
    pub(super) mask: MaskRows,
    /// One for each instruction of the line.
    pub(super) results: Vec<Outcome>,
    pub(super) reduce: Reduce,
    pub(super) gathered: [Words; MAX_SOURCES],
    base_slots: Vec<usize>,
    /// Every op takes the general path.
    general: bool,
}

/// What has become of an instruction.
#[derive(Clone, Debug)]
pub(super) struct Outcome {
    pub(super) path: PathRows,
    /// Flags `[cycle][lane]`.
    flags: Vec<u64>,
    /// Nothing is left to be written.
    done: bool,
}

impl Outcome {
    /// For paths of `plane` long words a plane.
    pub(super) fn new(plane: usize) -> Outcome {
        Outcome { path: PathRows::new(plane), flags: vec![0; plane], done: false }
    }
}

impl Scratch {
    pub(super) fn new(spec: &Spec) -> Scratch {
        let lanes = spec.lanes();
        let cycles = spec.counts.cycle as usize;
        let layout = crate::machine::Layout::new(spec);
        let bases = spec.memories.iter().enumerate().filter(|(_, m)| m.unit == Unit::Base);
        Scratch {
            lanes,
            cycles,
            zeros: Words::zeros(cycles * lanes),
            fetch: std::array::from_fn(|_| Fetch::new(lanes)),
            spare: Words::zeros(SPARE_PLANES * cycles * lanes),
            mask: MaskRows::new(lanes),
            results: Vec::new(),
            reduce: Reduce::default(),
            gathered: std::array::from_fn(|_| Words::zeros(2 * cycles * lanes)),
            base_slots: bases.map(|(index, _)| layout.slot(index).index).collect(),
            general: false,
        }
    }

    /// Every op takes the general path from now on.
    pub(super) fn set_general(&mut self) {
        self.general = true;
    }
}

/// Runs `region` on the L1B with chip-wide number `index`.
pub(super) fn run_region(region: &[Stretch], l1b: &mut L1b, index: usize, scratch: &mut Scratch) {
    // Debug statements and the host write memories between regions.
    l1b.settle(&scratch.base_slots);
    for Stretch { steps, parts } in region {
        for part in parts {
            if scratch.general || l1b.live_bases & part.bases != 0 {
                steps[part.steps.clone()].iter().for_each(|step| run_step(step, l1b, index, scratch));
                continue;
            }
            for item in &part.items {
                match item {
                    Item::Op(op) => op.run(l1b, index, scratch),
                    Item::Publish { path, later } => quick::publish(*path, *later, l1b, scratch),
                    Item::Step(at) => run_step(&steps[*at], l1b, index, scratch),
                }
            }
        }
    }
}

fn run_step(step: &Step, l1b: &mut L1b, index: usize, scratch: &mut Scratch) {
    if step.prepares {
        step.ops.iter().for_each(|op| op.compute.prepare(l1b, scratch.lanes));
    }
    if compute(step, l1b, index, scratch) {
        write(step, l1b, scratch);
    }
}

/// Results and flags of every instruction, from the state before the step. False: nothing is left to be written.
fn compute(step: &Step, l1b: &mut L1b, index: usize, scratch: &mut Scratch) -> bool {
    let Scratch { lanes, cycles, zeros, fetch, spare, mask, results, reduce, gathered, general, .. } = scratch;
    let (lanes, plane) = (*lanes, zeros.len());
    while results.len() < step.ops.len() {
        results.push(Outcome::new(plane));
    }
    let mut left = false;
    for (op, outcome) in step.ops.iter().zip(results) {
        let direct = op.direct.as_ref().filter(|direct| !*general && direct.fits(l1b));
        outcome.done = !*general && op.idle();
        if outcome.done {
            continue;
        }
        if let Some(direct) = direct {
            let buffers = Buffers { lanes, zeros, spare, result: &mut outcome.path, reduce, gathered };
            outcome.done = direct.run(op, l1b, index, buffers);
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
            op.compute.run(sources, Rows::of(l1b, zeros), c, spare, out.part(0, lanes));
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

/// Memories, then what addresses and masks of the step are made of, then the forwarding paths.
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
            // The old content of the path is not needed any more: it becomes the next result buffer.
            std::mem::swap(&mut l1b.forward[forward], &mut outcome.path);
        }
    }
}

impl BaseWrite {
    fn store(&self, l1b: &mut L1b, lanes: usize, result: &[u64], rows: &mut MaskRows) {
        for (c, row) in result.chunks_exact(lanes).enumerate() {
            match self.mask.rows(l1b, c, rows) {
                super::mask::Through::All => rows.fill(u64::MAX),
                super::mask::Through::Nothing => continue,
                super::mask::Through::Rows => {}
            }
            for ((base, value), mask) in l1b.pe[self.slot].iter_mut().zip(row).zip(&rows.l0) {
                let mask = (mask >> self.shift) & self.bits;
                *base = (*base & !mask) | ((value >> self.shift) & mask);
            }
        }
    }
}

//! The types of a lowered program: instructions, steps, and the buffers that run them.

use super::compute::{Compute, SecondLongWord};
use super::destination::{BaseWrite, Write};
use super::flag::FlagWrite;
use super::l1bm_map::ReduceBuffers;
use super::mask::{LoweredMask, MaskRows};
use super::mau_op::SPARE_PLANES;
use super::source::{Fetch, Source};
use super::transfer_runs::RunBuffers;
use crate::machine::{L1b, Layout, PathRows, Words};
use crate::num::lane::Lane;
use crate::spec::{Spec, Unit};
use smallvec::SmallVec;

/// A lowered PE line.
#[derive(Clone, Debug)]
pub(super) struct Step {
    pub(super) ops: Vec<Op>,
    /// Whether an op needs [`Compute::prepare`] before the step.
    pub(super) prepares: bool,
    /// Whether the step updates forwarding paths. If not, they keep their values.
    pub(super) forward: bool,
}

/// A lowered instruction.
#[derive(Clone, Debug)]
pub(super) struct Op {
    pub(super) compute: Compute,
    pub(super) sources: SmallVec<[Source; MAX_SOURCES]>,
    pub(super) writes: SmallVec<[Write; 1]>,
    /// Writes of the T register. They come last, because the other writes of the step use its old value in indirect
    /// addresses.
    pub(super) late_writes: Vec<Write>,
    pub(super) base_writes: Vec<BaseWrite>,
    pub(super) flag_writes: Vec<FlagWrite>,
    pub(super) zero_flush: Option<LoweredMask>,
    /// Type of the lanes in which bits mix. None: each bit of the result depends on the same bit of the sources only, or
    /// the instruction has no lanes.
    pub(super) mixes: Option<Lane>,
    /// Whether the operation gives 0 whatever its sources are, because they are the same one.
    pub(super) cancels: bool,
    /// Forwarding path that takes the result.
    pub(super) forward: Option<usize>,
    /// Where the second long word of the result comes from.
    pub(super) second: SecondLongWord,
    /// The faster form on plain rows, if it has one.
    pub(super) plain_rows: Option<PlainRows>,
    /// Whether anyone reads the result on the forwarding path; see `fast/liveness.rs`.
    pub(super) live: bool,
    /// Whether words that are sent to L1BM must go to the turnaround register too.
    pub(super) keep: bool,
}

impl Op {
    /// Whether the second long word of the result is zero on every L1B.
    pub(super) fn narrow_result(&self) -> bool {
        self.second == SecondLongWord::Zero
    }

    /// Whether L1 of the result is zero.
    pub(super) fn narrow(&self, l1b: &L1b) -> bool {
        match self.second {
            SecondLongWord::Zero => true,
            SecondLongWord::Any => false,
            SecondLongWord::Source => self.sources.first().is_none_or(|source| source.narrow(l1b)),
        }
    }
}

/// How an op runs on plain rows.
#[derive(Clone, Copy, Debug)]
pub(super) struct PlainRows {
    /// Number of kernel calls: one in all, or one per cycle.
    pub(super) calls: usize,
    /// Slots of base address registers that must be zero, as bits.
    pub(super) bases: u64,
    /// The only destination may be written in place, if no op reads the forwarding path.
    pub(super) in_place: bool,
    /// Rows that are not contiguous are copied together first.
    pub(super) gather: bool,
    /// Number of the source that a product adds to in place.
    pub(super) addend: Option<usize>,
}

impl PlainRows {
    /// Whether the addresses of the op are the same on all PEs.
    pub(super) fn fits(&self, l1b: &L1b) -> bool {
        l1b.live_bases & self.bases == 0
    }
}

/// An instruction has at most this many sources.
pub(super) const MAX_SOURCES: usize = 3;

/// Buffers of one worker.
#[derive(Clone, Debug)]
pub(super) struct Scratch {
    pub(super) lanes: usize,
    pub(super) cycles: usize,
    /// As many zeros as a plane of a path has long words.
    pub(super) zeros: Words,
    pub(super) fetch: [Fetch; MAX_SOURCES],
    pub(super) spare: Words,
    pub(super) mask: MaskRows,
    /// One outcome for each instruction of the line.
    pub(super) results: Vec<Outcome>,
    pub(super) reduce: ReduceBuffers,
    pub(super) transfer_rows: RunBuffers,
    pub(super) gathered: [Words; MAX_SOURCES],
    pub(super) base_slots: Vec<usize>,
    /// Every op takes its general form.
    pub(super) general: bool,
}

/// The result of an instruction.
#[derive(Clone, Debug)]
pub(super) struct Outcome {
    pub(super) path: PathRows,
    /// Flags `[cycle][lane]`.
    pub(super) flags: Vec<u64>,
    /// Everything is written already.
    pub(super) done: bool,
}

impl Outcome {
    /// An outcome for paths with `plane` long words in each plane.
    pub(super) fn new(plane: usize) -> Outcome {
        Outcome { path: PathRows::new(plane), flags: vec![0; plane], done: false }
    }
}

impl Scratch {
    pub(super) fn new(spec: &Spec) -> Scratch {
        let lanes = spec.lanes();
        let cycles = spec.counts.cycle as usize;
        let layout = Layout::new(spec);
        let bases = spec.memories.iter().enumerate().filter(|(_, m)| m.unit == Unit::Base);
        Scratch {
            lanes,
            cycles,
            zeros: Words::zeros(cycles * lanes),
            fetch: std::array::from_fn(|_| Fetch::new(lanes)),
            spare: Words::zeros(SPARE_PLANES * cycles * lanes),
            mask: MaskRows::new(lanes),
            results: Vec::new(),
            reduce: ReduceBuffers::default(),
            transfer_rows: RunBuffers::default(),
            gathered: std::array::from_fn(|_| Words::zeros(2 * cycles * lanes)),
            base_slots: bases.map(|(index, _)| layout.slot(index).index).collect(),
            general: false,
        }
    }

    /// Makes every op take its general form from now on.
    pub(super) fn set_general(&mut self) {
        self.general = true;
        self.mask.general = true;
    }
}

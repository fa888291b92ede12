//! Regions: runs of steps and L2BM instructions without any other statement. Each L2B runs a region independently of
//! the others. Within a region, each L1B runs a stretch independently of the others.

use super::fallback_step::run_step;
use super::fast::data_flow::{Action, Segment};
use super::fast::kernel_call::update_forward;
use super::op::Scratch;
use super::transfer_l2bm::{copy_all, reduce_all, RegionTransfer, Span};
use crate::asm;
use crate::machine::{L1b, Words};

/// A stretch of a region.
#[derive(Debug)]
pub(super) enum Stretch<Each> {
    /// Steps, and copies between the L2B and its L1Bs. No L1B reads or writes words of the L2B that another one writes, so
    /// each L1B runs all of them before the next L1B begins.
    Each(Each),
    /// Reductions of words of the L1Bs into the memory of their L2B.
    Reductions(Vec<RegionTransfer>),
}

/// A lowered region.
pub(super) type Region = Vec<Stretch<Vec<Segment>>>;

/// A part of a stretch. A step comes with the line of the source.
#[derive(Debug)]
pub(super) enum Entry<'p> {
    Step(u32, &'p asm::Step),
    Copy(RegionTransfer),
}

/// A region so far, and how many steps and transfers it has.
#[derive(Default)]
pub(super) struct Collected<'p> {
    pub(super) stretches: Vec<Stretch<Vec<Entry<'p>>>>,
    pub(super) count: usize,
    /// Long words of the L2B that the last stretch reads and writes.
    read: Vec<Span>,
    written: Vec<Span>,
}

impl<'p> Collected<'p> {
    /// Adds an entry to the last stretch, or to a new one.
    fn push(&mut self, entry: Entry<'p>, to_new: bool) {
        match self.stretches.last_mut() {
            Some(Stretch::Each(entries)) if !to_new => entries.push(entry),
            _ => {
                self.stretches.push(Stretch::Each(vec![entry]));
                self.read.clear();
                self.written.clear();
            }
        }
    }

    /// Adds a step.
    pub(super) fn step(&mut self, line: u32, step: &'p asm::Step) {
        self.push(Entry::Step(line, step), false);
    }

    /// Adds a transfer.
    pub(super) fn transfer(&mut self, transfer: RegionTransfer) {
        if transfer.reduces() {
            match self.stretches.last_mut() {
                Some(Stretch::Reductions(all)) => all.push(transfer),
                _ => self.stretches.push(Stretch::Reductions(vec![transfer])),
            }
            return;
        }
        let (span, down) = (transfer.above(), transfer.down());
        let meets = |spans: &[Span]| spans.iter().any(|other| other.meets(&span));
        let met = meets(&self.written) || !down && meets(&self.read);
        self.push(Entry::Copy(transfer), met);
        let spans = if down { &mut self.read } else { &mut self.written };
        match spans.last_mut().filter(|last| last.touches(&span)) {
            Some(last) => last.extend(&span),
            None => spans.push(span),
        }
    }

    /// Takes the stretches out.
    pub(super) fn take(&mut self) -> Vec<Stretch<Vec<Entry<'p>>>> {
        std::mem::take(self).stretches
    }
}

/// Cuts the entries of a stretch into pieces of at most `steps` steps.
pub(super) fn pieces<'i, 'p>(mut entries: &'i [Entry<'p>], steps: usize) -> Vec<&'i [Entry<'p>]> {
    let mut all = Vec::new();
    while !entries.is_empty() {
        let mut left = steps;
        let fits = |entry: &&Entry<'_>| match entry {
            Entry::Step(..) => {
                let more = left > 0;
                left = left.saturating_sub(1);
                more
            }
            Entry::Copy(_) => true,
        };
        let (piece, rest) = entries.split_at(entries.iter().take_while(fits).count());
        all.push(piece);
        entries = rest;
    }
    all
}

impl Stretch<Vec<Segment>> {
    /// Number of steps.
    pub(super) fn steps(&self) -> usize {
        match self {
            Stretch::Each(segments) => segments.iter().map(|segment| segment.steps.len()).sum(),
            Stretch::Reductions(_) => 0,
        }
    }

    /// Number of transfers.
    pub(super) fn transfers(&self) -> usize {
        match self {
            Stretch::Each(segments) => segments.iter().map(Segment::transfers).sum(),
            Stretch::Reductions(all) => all.len(),
        }
    }

    /// Whether nothing happens in it.
    pub(super) fn idle(&self) -> bool {
        match self {
            Stretch::Each(segments) => {
                self.transfers() == 0 && segments.iter().all(|one| one.steps.iter().all(|step| step.ops.is_empty()))
            }
            Stretch::Reductions(_) => false,
        }
    }
}

/// Runs `region` on an L2B and its L1Bs. `first` is the chip-wide number of its first L1B. Ends early if `stop`.
pub(super) fn run_on_l2b(
    region: &[Stretch<Vec<Segment>>],
    l2b: &mut [Words],
    l1bs: &mut [L1b],
    first: usize,
    scratch: &mut Scratch,
    stop: impl Fn() -> bool,
) {
    for stretch in region {
        match stretch {
            Stretch::Each(segments) => {
                for (k, l1b) in l1bs.iter_mut().enumerate() {
                    if stop() {
                        return;
                    }
                    run_each(segments, (l2b, k), l1b, first + k, scratch);
                }
            }
            Stretch::Reductions(all) => reduce_all(all, l2b, l1bs, &mut scratch.transfer_rows),
        }
    }
}

/// Runs segments on the L1B with chip-wide number `index`, by their plans or step by step. `above`: the memories of its L2B,
/// and its number there.
pub(super) fn run_each(
    segments: &[Segment],
    above: (&mut [Words], usize),
    l1b: &mut L1b,
    index: usize,
    scratch: &mut Scratch,
) {
    let (l2b, k) = above;
    // Debug statements and the host write memories between regions.
    l1b.settle(&scratch.base_slots);
    for segment in segments {
        let Segment { steps, copies, parts } = segment;
        for part in parts {
            if scratch.general || l1b.live_bases & part.bases != 0 {
                for at in part.steps.clone() {
                    segment.copies_before(at).for_each(|all| copy_all(all, l2b, l1b, k));
                    run_step(&steps[at], l1b, index, scratch);
                }
                if part.steps.end == steps.len() {
                    segment.copies_before(steps.len()).for_each(|all| copy_all(all, l2b, l1b, k));
                }
                continue;
            }
            for action in &part.actions {
                match action {
                    Action::Call(op) => op.run(l1b, index, scratch),
                    Action::Wide(call) => call.run(l1b, scratch),
                    Action::UpdateForward { path, later } => update_forward(*path, *later, l1b, scratch),
                    Action::FallbackStep(at) => run_step(&steps[*at], l1b, index, scratch),
                    Action::Copies(at) => copy_all(&copies[*at].1, l2b, l1b, k),
                }
            }
        }
    }
}

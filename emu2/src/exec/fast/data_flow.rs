//! The plan of consecutive steps: the order in which their ops run. It omits writes that are never read.
//!
//! All ops of a step read the state before the step. If no op of a step reads a place that another one writes, the ops run
//! one after the other, each as one kernel call. Value numbers say which paths and memories hold the same value. They allow
//! three changes:
//!
//! * If a result on a forwarding path also went to a memory, it is read from the memory. Then the path is often unused.
//! * If a result goes to a path and to rows of memory that are overwritten before they are read, it goes to the path
//!   only.
//! * A `u` step and the next `d` step with the same factors become one multiply-add, if no other op reads the value
//!   between them. It runs instead of the first one.
//!
//! The plan holds while base address registers are zero. A step that writes such a register starts a new part. If a
//! register that a part depends on is not zero, the steps of the part run unchanged (`fallback_step.rs`).

use super::kernel_call::{self, CallParts, ForwardUpdate, KernelCall};
use super::value_numbering::{ReadFrom, ValueNumbers};
use super::wide_call::WideCall;
use crate::exec::access::Access;
use crate::exec::compute::Compute;
use crate::exec::destination::Write;
use crate::exec::effects::write_depends_on;
use crate::exec::mau_op::MauOp;
use crate::exec::op::{Op, Step, MAX_SOURCES};
use crate::exec::transfer_l2bm::RegionTransfer;
use smallvec::SmallVec;
use std::ops::Range;

/// Consecutive steps of a region, and the plan by which they run.
#[derive(Clone, Debug)]
pub(crate) struct Segment {
    pub(crate) steps: Vec<Step>,
    /// Copies between an L2B and its L1Bs, each with the number of the step that it comes before.
    pub(crate) copies: Vec<(usize, Vec<RegionTransfer>)>,
    pub(crate) parts: Vec<Part>,
}

/// Consecutive steps between which no base address register changes.
#[derive(Clone, Debug)]
pub(crate) struct Part {
    pub(crate) steps: Range<usize>,
    /// Slots of base address registers that must be zero, as bits.
    pub(crate) bases: u64,
    pub(crate) actions: Vec<Action>,
}

/// One entry of a plan.
#[derive(Clone, Debug)]
pub(crate) enum Action {
    Call(KernelCall),
    Wide(Box<WideCall>),
    /// A forwarding path takes the result that has waited in a buffer.
    UpdateForward {
        path: u32,
        later: u32,
    },
    /// The step of this number in the segment runs unchanged.
    FallbackStep(usize),
    /// The copies of this number in the segment.
    Copies(usize),
}

/// A node of the data flow graph: an op that is one kernel call.
#[derive(Clone, Debug)]
struct Node<'a> {
    /// The op to compute, unless `both` is set.
    op: &'a Op,
    /// A multiply-add of both halves of a MAB, computed instead of `op`.
    both: Option<Box<MauOp>>,
    /// The call, if it has two long words in every cycle.
    wide: Option<Box<WideCall>>,
    /// Where the sources are read.
    reads: Reads<'a>,
    /// The op whose destinations and forwarding path take the result.
    into: &'a Op,
}

/// The nodes of a step.
type Nodes<'a> = SmallVec<[Node<'a>; 2]>;

/// Where the sources of an op are read.
pub(crate) type Reads<'a> = SmallVec<[ReadFrom<'a>; MAX_SOURCES]>;

/// How a step runs: as nodes, or unchanged.
#[derive(Clone, Debug)]
enum StepPlan<'a> {
    Nodes(Nodes<'a>),
    AsItIs,
}

impl Segment {
    /// The plan of `steps`, in which liveness is marked. `paths`: number of forwarding paths.
    pub(crate) fn new(
        steps: Vec<Step>,
        copies: Vec<(usize, Vec<RegionTransfer>)>,
        paths: usize,
        lanes: usize,
    ) -> Segment {
        let mut parts = Vec::new();
        let mut first = 0;
        while first < steps.len() {
            let alone = |step: &Step| step.ops.iter().any(|op| !op.base_writes.is_empty());
            let rest = &steps[first..];
            let count = match rest.iter().position(alone) {
                Some(0) => 1,
                Some(at) => at,
                None => rest.len(),
            };
            let before = |at: usize| copies.iter().position(|(step, _)| *step == at).map(Action::Copies);
            parts.push(Part::new(&rest[..count], first, paths, lanes, before));
            first += count;
        }
        // Copies after the last step belong to the last part.
        let last = copies.iter().position(|(step, _)| *step == steps.len()).map(Action::Copies);
        match (parts.last_mut(), last) {
            (Some(part), Some(copies)) => part.actions.push(copies),
            (None, Some(copies)) => parts.push(Part { steps: 0..0, bases: 0, actions: vec![copies] }),
            _ => {}
        }
        Segment { steps, copies, parts }
    }

    /// The copies that come before step `at`, or after the last step.
    pub(crate) fn copies_before(&self, at: usize) -> impl Iterator<Item = &[RegionTransfer]> {
        self.copies.iter().filter(move |(step, _)| *step == at).map(|(_, all)| &all[..])
    }

    /// Number of transfers.
    pub(crate) fn transfers(&self) -> usize {
        self.copies.iter().map(|(_, all)| all.len()).sum()
    }
}

impl Part {
    /// `copies_before`: the action that comes before a step of the segment.
    fn new(
        steps: &[Step],
        first: usize,
        paths: usize,
        lanes: usize,
        copies_before: impl Fn(usize) -> Option<Action>,
    ) -> Part {
        let mut values = ValueNumbers::new(paths);
        let mut planned: Vec<StepPlan<'_>> = Vec::with_capacity(steps.len());
        for (k, step) in steps.iter().enumerate() {
            let mut now = match plan(step, &values) {
                Some(nodes) => StepPlan::Nodes(nodes),
                None => StepPlan::AsItIs,
            };
            if let (Some(StepPlan::Nodes(before)), StepPlan::Nodes(nodes), true) = (planned.last_mut(), &mut now, k > 0)
            {
                if steps[k - 1].forward && step.forward {
                    join_halves(before, nodes, &values);
                }
            }
            values.write(step, matches!(now, StepPlan::AsItIs));
            planned.push(now);
        }
        let mut used_later = UsedLater { live: vec![true; paths], overwritten: Vec::new() };
        // The steps are planned from the last one to the first.
        let mut actions: Vec<Action> = Vec::with_capacity(steps.len());
        for (k, (step, planned)) in steps.iter().zip(&planned).enumerate().rev() {
            match planned {
                StepPlan::Nodes(nodes) => emit(step, nodes, &mut used_later, lanes, &mut actions),
                StepPlan::AsItIs => {
                    if step.forward {
                        step.ops.iter().filter_map(|op| op.forward).for_each(|path| used_later.live[path] = false);
                    }
                    step.ops.iter().flat_map(Op::paths_read).for_each(|path| used_later.live[path] = true);
                    used_later.overwritten.clear();
                    actions.push(Action::FallbackStep(first + k));
                }
            }
            // PEs see nothing of a copy but the words in L1BM, and no plan moves an instruction that reads them.
            actions.extend(copies_before(first + k));
        }
        actions.reverse();
        actions.shrink_to_fit();
        let bases = steps.iter().flat_map(|step| &step.ops).flat_map(Op::base_slots);
        Part { bases: bases.fold(0, |bits, slot| bits | 1 << slot), steps: first..first + steps.len(), actions }
    }
}

/// The ops of a step as nodes, in an order in which no node reads a place that an earlier one has written. None if there is
/// no such order, or if an op needs more than one kernel call.
fn plan<'a>(step: &'a Step, values: &ValueNumbers<'a>) -> Option<Nodes<'a>> {
    let mut nodes = Nodes::new();
    for op in &step.ops {
        if let Some(call) = WideCall::of(op) {
            let reads = op.sources.iter().map(ReadFrom::Given).collect();
            nodes.push(Node { op, both: None, wide: Some(Box::new(call)), reads, into: op });
            continue;
        }
        let whole = op.plain_rows.is_some()
            && op.base_writes.is_empty()
            && op.sources.len() <= MAX_SOURCES
            && !matches!(op.compute, Compute::MatrixWrite(_) | Compute::MatrixRead(_))
            && (!op.compute.sends() || op.writes().next().is_none());
        if !whole {
            return None;
        }
        let reads: Reads<'a> = op.sources.iter().map(|source| values.best(source, &op.compute)).collect();
        if !reads.iter().all(|read| kernel_call::readable(&op.compute, *read)) {
            return None;
        }
        nodes.push(Node { op, both: None, wide: None, reads, into: op });
    }
    order(&mut nodes).then_some(nodes)
}

/// Sorts `nodes` so that no node reads a place that an earlier one has written. Returns false if that is impossible.
fn order(nodes: &mut Nodes<'_>) -> bool {
    for at in 0..nodes.len() {
        let harmless =
            |k: &usize| (at..nodes.len()).all(|other| other == *k || !nodes[*k].disturbs(&nodes[other], *k > other));
        let Some(next) = (at..nodes.len()).find(harmless) else { return false };
        nodes[at..=next].rotate_right(1);
    }
    true
}

impl Node<'_> {
    /// Whether this node must not run before `other`, a node of the same step. `behind`: this node stands behind it in the
    /// source.
    fn disturbs(&self, other: &Node<'_>, behind: bool) -> bool {
        if let Some(register) = self.matrix_written() {
            let touches = |access: &Access| access.slot == register;
            if other.op.compute.matrix_slot() == Some(register) || other.op.accesses().any(touches) {
                return true;
            }
        }
        let (ours, theirs) = (self.op.compute.own_slots(), other.op.compute.own_slots());
        let seen = |write: &Write| other.reads(&write.access);
        let twice = |write: &Write| behind && other.into.writes().any(|theirs| theirs.access.meets(&write.access));
        ours.1 & (theirs.0 | if behind { theirs.1 } else { 0 }) != 0
            || self.into.writes().any(|write| seen(write) || twice(write))
    }

    /// Whether the node needs the words at `access` as they are before the step.
    fn reads(&self, access: &Access) -> bool {
        let mut sources = self.reads.iter().filter_map(|read| read.access());
        let slots = self.into.writes().flat_map(write_depends_on);
        let mut slots = slots.chain(self.op.compute.matrix_slot());
        sources.any(|source| source.meets(access)) || slots.any(|slot| slot == access.slot)
    }

    /// The slot of the matrix register that the node writes.
    fn matrix_written(&self) -> Option<usize> {
        match &self.op.compute {
            Compute::MatrixWrite(access) => Some(access.slot),
            _ => None,
        }
    }

    fn reads_path(&self, path: usize) -> bool {
        self.reads.iter().any(|read| read.path() == Some(path))
    }
}

/// Joins a `u` or `d` multiply-add of `before` with its other half in `nodes`, and removes the other half from `nodes`.
fn join_halves<'a>(before: &mut Nodes<'a>, nodes: &mut Nodes<'a>, values: &ValueNumbers<'a>) {
    let mau = |node: &&Node<'_>| matches!(node.op.compute, Compute::Mau(_)) && node.both.is_none();
    let (Some(first), Some(second)) = (before.iter().find(mau), nodes.iter().find(mau)) else { return };
    let (Compute::Mau(ours), Compute::Mau(theirs), Some(path)) =
        (&first.op.compute, &second.op.compute, first.op.forward)
    else {
        return;
    };
    // The sources of the first op count with the values that they had when its step began.
    let value = |at: usize| values.before(first.op, at);
    let same = |at: usize, next: usize| {
        value(at).is_some_and(|v| Some(v) == second.op.sources.get(next).and_then(|source| values.number(source)))
    };
    let between = theirs
        .addend()
        .and_then(|at| second.op.sources.get(at))
        .is_some_and(|source| source.path() == Some(path) && source.conversion.is_none());
    let hidden = first.op.writes().next().is_none()
        && second.op.forward == Some(path)
        && before.iter().all(|node| std::ptr::eq(node.op, first.op) || node.op.forward != Some(path))
        && nodes
            .iter()
            .all(|node| std::ptr::eq(node.op, second.op) || !node.reads_path(path) && node.op.forward != Some(path));
    // The joined op writes one step earlier than the second op did.
    let early = second.op.writes().all(|write| {
        nodes.iter().filter(|node| !std::ptr::eq(node.op, second.op)).all(|node| {
            !node.reads(&write.access) && !node.into.writes().any(|other| other.access.meets(&write.access))
        })
    });
    if !(between && hidden && early) {
        return;
    }
    let Some(joined) = ours.with_other_half(theirs, same) else { return };
    let (first, second) = (first.op, second.op);
    let mut together = before.clone();
    let Some(at) = together.iter().position(|node| std::ptr::eq(node.op, first)) else { return };
    // The node comes last in its step, because its destinations must be written after those of the other nodes.
    let mut node = together.remove(at);
    node.both = Some(Box::new(joined));
    node.into = second;
    together.push(node);
    if order(&mut together) {
        *before = together;
        nodes.retain(|node| !std::ptr::eq(node.op, second));
    }
}

/// At most this many overwritten places are tracked.
const MOST_OVERWRITTEN: usize = 32;

/// The part of the state that later steps read.
struct UsedLater<'a> {
    /// For each forwarding path, whether it is read before it is updated again.
    live: Vec<bool>,
    /// Places that are overwritten completely before they are read.
    overwritten: Vec<&'a Access>,
}

/// Adds the actions of a step in reverse order. Updates `used_later` to the state before the step.
fn emit<'a>(step: &Step, nodes: &Nodes<'a>, used_later: &mut UsedLater<'a>, lanes: usize, actions: &mut Vec<Action>) {
    let UsedLater { live, overwritten } = used_later;
    // If two ops write the same path, the last one of the source wins.
    let mut wanted: SmallVec<[Option<usize>; 2]> = SmallVec::from_elem(None, nodes.len());
    if step.forward {
        for op in step.ops.iter().rev() {
            let Some(at) = nodes.iter().position(|node| std::ptr::eq(node.op, op)) else { continue };
            let path = nodes[at].into.forward.filter(|path| std::mem::replace(&mut live[*path], false));
            // A wide call has no path that anyone reads.
            wanted[at] = path.filter(|_| nodes[at].wide.is_none());
        }
    }
    for path in nodes.iter().flat_map(|node| &node.reads).filter_map(|read| read.path()) {
        live[path] = true;
    }
    let overwritten_later =
        |write: &Write| write.plain() && overwritten.iter().any(|access| write.access.same_rows(access));
    // If an op is computed for its path anyway, an overwritten memory need not be written too. Other ops stay, so that a
    // line that a program repeats to measure its time really runs that often.
    let kept: SmallVec<[SmallVec<[&Write; 1]>; 2]> = nodes
        .iter()
        .zip(&wanted)
        .map(|(node, path)| node.into.writes().filter(|write| path.is_none() || !overwritten_later(write)).collect())
        .collect();
    for write in nodes.iter().flat_map(|node| node.into.writes()).filter(|write| write.plain()) {
        if overwritten.len() < MOST_OVERWRITTEN && !overwritten.iter().any(|access| write.access.same_rows(access)) {
            overwritten.push(&write.access);
        }
    }
    overwritten.retain(|access| !nodes.iter().any(|node| node.reads(access)));
    let mut waiting = 0;
    let updates: SmallVec<[Option<ForwardUpdate>; 2]> = wanted
        .iter()
        .enumerate()
        .map(|(k, path)| {
            let path = (*path)?;
            let waits = nodes[k + 1..].iter().any(|node| node.reads_path(path));
            let later = waits.then_some(waiting);
            waiting += u32::from(waits);
            actions.extend(later.map(|later| Action::UpdateForward { path: path as u32, later }));
            Some(ForwardUpdate { path: path as u32, later })
        })
        .collect();
    for ((node, path), all) in nodes.iter().zip(updates).zip(kept).rev() {
        if let Some(call) = &node.wide {
            actions.push(Action::Wide(call.clone()));
            continue;
        }
        if path.is_none() && all.is_empty() && !node.op.compute.sends() {
            continue;
        }
        actions.push(Action::Call(KernelCall::new(CallParts {
            compute: node.both.as_ref().map_or_else(|| node.op.compute.clone(), |both| Compute::Mau((**both).clone())),
            second: node.op.second,
            reads: &node.reads,
            writes: &all,
            path,
            keep: node.op.keep,
            lanes,
        })));
    }
}

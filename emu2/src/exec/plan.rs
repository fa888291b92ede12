//! What the engine makes of steps that follow on each other: ops in the order in which they run, without what nobody sees.
//!
//! Ops of a step read the state before it. Where no op of a step reads what another one writes, they run one after the other,
//! each on its own. On the way every value has a number, so that it is known which path and which memory hold the same:
//!
//! * a path whose result also went to a memory is read there, which often leaves nobody who reads the path;
//! * what goes to a path and is written again in memory, all of it, before anyone reads of it there, goes to the path only;
//! * a `u` step and the `d` step behind it with the same factors are one multiply-add, if nobody else sees what is between
//!   them. It runs at the place of the first one.
//!
//! All this holds while base address registers are zero. Steps up to one that writes such a register are a part of its own;
//! where a register that the part depends on is not zero, its steps run as they are.

use super::compute::{Compute, MauOp};
use super::operand::{Access, Source, Write};
use super::quick::{self, Published, Quick, Wanted};
use super::step::{Op, Step, MAX_SOURCES};
use super::values::{path_of, Read, Values};
use smallvec::SmallVec;
use std::ops::Range;

/// Steps of a region that follow on each other, and how they run.
#[derive(Clone, Debug)]
pub(super) struct Stretch {
    pub(super) steps: Vec<Step>,
    pub(super) parts: Vec<Part>,
}

/// Steps between which no base address register changes.
#[derive(Clone, Debug)]
pub(super) struct Part {
    pub(super) steps: Range<usize>,
    /// Slots of base address registers that must be zero, as bits.
    pub(super) bases: u64,
    pub(super) items: Vec<Item>,
}

/// What runs at once.
#[derive(Clone, Debug)]
pub(super) enum Item {
    Op(Quick),
    /// A path takes the result that waits in a buffer.
    Publish {
        path: u32,
        later: u32,
    },
    /// A step as it is, by its number in the stretch.
    Step(usize),
}

/// An op that runs on its own.
#[derive(Clone, Debug)]
struct Node<'a> {
    /// What is computed, unless both halves of a MAB are.
    op: &'a Op,
    both: Option<Box<MauOp>>,
    /// From what.
    reads: Reads<'a>,
    /// Whose destinations and path take the result.
    into: &'a Op,
}

/// Of a step.
type Nodes<'a> = SmallVec<[Node<'a>; 2]>;

/// Where an op reads.
pub(super) type Reads<'a> = SmallVec<[Read<'a>; MAX_SOURCES]>;

/// A step on the way to items.
#[derive(Clone, Debug)]
enum Planned<'a> {
    Nodes(Nodes<'a>),
    AsItIs,
}

impl Stretch {
    /// The plan of `steps`, in which liveness is marked. `paths`: forwarding paths there are.
    pub(super) fn new(steps: Vec<Step>, paths: usize, lanes: usize) -> Stretch {
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
            parts.push(Part::new(&rest[..count], first, paths, lanes));
            first += count;
        }
        Stretch { steps, parts }
    }
}

impl Part {
    fn new(steps: &[Step], first: usize, paths: usize, lanes: usize) -> Part {
        let mut values = Values::new(paths);
        let mut planned: Vec<Planned<'_>> = Vec::with_capacity(steps.len());
        for (k, step) in steps.iter().enumerate() {
            let mut now = match plan(step, &values) {
                Some(nodes) => Planned::Nodes(nodes),
                None => Planned::AsItIs,
            };
            if let (Some(Planned::Nodes(before)), Planned::Nodes(nodes), true) = (planned.last_mut(), &mut now, k > 0) {
                if steps[k - 1].forward && step.forward {
                    join_halves(before, nodes, &values);
                }
            }
            values.write(step, matches!(now, Planned::AsItIs));
            planned.push(now);
        }
        let mut behind = Behind { live: vec![true; paths], again: Vec::new() };
        // From the last one to the first.
        let mut items: Vec<Item> = Vec::with_capacity(steps.len());
        for (k, (step, planned)) in steps.iter().zip(&planned).enumerate().rev() {
            match planned {
                Planned::Nodes(nodes) => emit(step, nodes, &mut behind, lanes, &mut items),
                Planned::AsItIs => {
                    if step.forward {
                        step.ops.iter().filter_map(|op| op.forward).for_each(|path| behind.live[path] = false);
                    }
                    let sources = step.ops.iter().flat_map(|op| &op.sources);
                    sources.filter_map(path_of).for_each(|path| behind.live[path] = true);
                    behind.again.clear();
                    items.push(Item::Step(first + k));
                }
            }
        }
        items.reverse();
        items.shrink_to_fit();
        let bases = steps.iter().flat_map(|step| &step.ops).flat_map(accesses).filter_map(|access| access.base);
        Part { bases: bases.fold(0, |bits, slot| bits | 1 << slot), steps: first..first + steps.len(), items }
    }
}

/// The destinations of an op.
pub(super) fn writes(op: &Op) -> impl Iterator<Item = &Write> + Clone {
    op.writes.iter().chain(&op.late_writes)
}

fn accesses(op: &Op) -> impl Iterator<Item = &Access> {
    op.sources.iter().filter_map(Source::access).chain(writes(op).map(|write| &write.access))
}

/// The ops of a step as nodes, in an order in which none reads what one before it has written; None: there is no such order,
/// or an op needs more than one call of its kernel.
fn plan<'a>(step: &'a Step, values: &Values<'a>) -> Option<Nodes<'a>> {
    let mut nodes = Nodes::new();
    for op in &step.ops {
        let whole = op.direct.is_some()
            && op.base_writes.is_empty()
            && op.sources.len() <= MAX_SOURCES
            && !matches!(op.compute, Compute::MatrixWrite(_) | Compute::MatrixRead(_))
            && (!op.compute.sends() || writes(op).next().is_none());
        if !whole {
            return None;
        }
        let reads: Reads<'a> = op.sources.iter().map(|source| values.best(source, &op.compute)).collect();
        if !reads.iter().all(|read| quick::readable(&op.compute, *read)) {
            return None;
        }
        nodes.push(Node { op, both: None, reads, into: op });
    }
    order(&mut nodes).then_some(nodes)
}

/// Brings `nodes` into an order in which none reads what one before it has written; false: there is none.
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
    /// Whether it must not run before `other`, an op of the same step; `behind`: in the source it stands behind that.
    fn disturbs(&self, other: &Node<'_>, behind: bool) -> bool {
        let (ours, theirs) = (self.op.compute.own_slots(), other.op.compute.own_slots());
        let seen = |write: &Write| other.reads(&write.access);
        let twice = |write: &Write| behind && writes(other.into).any(|theirs| theirs.access.meets(&write.access));
        ours.1 & (theirs.0 | if behind { theirs.1 } else { 0 }) != 0
            || writes(self.into).any(|write| seen(write) || twice(write))
    }

    /// Whether what lies at `access` before the step counts.
    fn reads(&self, access: &Access) -> bool {
        let mut sources = self.reads.iter().filter_map(|read| read.access());
        let slots =
            writes(self.into).flat_map(|write| write.access.indirect_slot().into_iter().chain(write.mask.slot()));
        let mut slots = slots.chain(self.op.compute.matrix_slot());
        sources.any(|source| source.meets(access)) || slots.any(|slot| slot == access.slot)
    }

    fn reads_path(&self, path: usize) -> bool {
        self.reads.iter().any(|read| read.path() == Some(path))
    }
}

/// Makes one op of the `u` or `d` step among `before` and the other half among `nodes`, which goes.
fn join_halves<'a>(before: &mut Nodes<'a>, nodes: &mut Nodes<'a>, values: &Values<'a>) {
    let mau = |node: &&Node<'_>| matches!(node.op.compute, Compute::Mau(_)) && node.both.is_none();
    let (Some(first), Some(second)) = (before.iter().find(mau), nodes.iter().find(mau)) else { return };
    let (Compute::Mau(ours), Compute::Mau(theirs), Some(path)) =
        (&first.op.compute, &second.op.compute, first.op.forward)
    else {
        return;
    };
    // The values of the first one's sources are those that it had when the step began.
    let value = |at: usize| values.before(first.op, at);
    let same = |at: usize, next: usize| {
        value(at).is_some_and(|v| Some(v) == second.op.sources.get(next).and_then(|source| values.number(source)))
    };
    let between = theirs
        .addend()
        .and_then(|at| second.op.sources.get(at))
        .is_some_and(|source| path_of(source) == Some(path) && source.conversion.is_none());
    let hidden = writes(first.op).next().is_none()
        && second.op.forward == Some(path)
        && before.iter().all(|node| std::ptr::eq(node.op, first.op) || node.op.forward != Some(path))
        && nodes
            .iter()
            .all(|node| std::ptr::eq(node.op, second.op) || !node.reads_path(path) && node.op.forward != Some(path));
    // It writes a step earlier.
    let early = writes(second.op).all(|write| {
        nodes
            .iter()
            .filter(|node| !std::ptr::eq(node.op, second.op))
            .all(|node| !node.reads(&write.access) && !writes(node.into).any(|other| other.access.meets(&write.access)))
    });
    if !(between && hidden && early) {
        return;
    }
    let Some(joined) = ours.with_other_half(theirs, same) else { return };
    let (first, second) = (first.op, second.op);
    let mut together = before.clone();
    let Some(at) = together.iter().position(|node| std::ptr::eq(node.op, first)) else { return };
    // Behind the others of its step, as its destinations are written after theirs.
    let mut node = together.remove(at);
    node.both = Some(Box::new(joined));
    node.into = second;
    together.push(node);
    if order(&mut together) {
        *before = together;
        nodes.retain(|node| !std::ptr::eq(node.op, second));
    }
}

/// So many places are remembered that are written again.
const AGAIN: usize = 32;

/// What of the state is of use behind a step.
struct Behind<'a> {
    /// Whether a path is read before it is written again.
    live: Vec<bool>,
    /// What is written again, all of it, before anyone reads of it.
    again: Vec<&'a Access>,
}

/// Adds the items of a step, the last one first; `behind` becomes what is of use before it.
fn emit<'a>(step: &Step, nodes: &Nodes<'a>, behind: &mut Behind<'a>, lanes: usize, items: &mut Vec<Item>) {
    let Behind { live, again } = behind;
    // Of two ops with the same path the last one of the source wins.
    let mut wanted: SmallVec<[Option<usize>; 2]> = SmallVec::from_elem(None, nodes.len());
    if step.forward {
        for op in step.ops.iter().rev() {
            let Some(at) = nodes.iter().position(|node| std::ptr::eq(node.op, op)) else { continue };
            wanted[at] = nodes[at].into.forward.filter(|path| std::mem::replace(&mut live[*path], false));
        }
    }
    for path in nodes.iter().flat_map(|node| &node.reads).filter_map(|read| read.path()) {
        live[path] = true;
    }
    let gone = |write: &Write| write.plain() && again.iter().any(|access| write.access.same_rows(access));
    // An op that is computed for its path anyway need not go to memory too. Others stay, so that a line that is repeated to take
    // its time is run so often.
    let kept: SmallVec<[SmallVec<[&Write; 1]>; 2]> = nodes
        .iter()
        .zip(&wanted)
        .map(|(node, path)| writes(node.into).filter(|write| path.is_none() || !gone(write)).collect())
        .collect();
    for write in nodes.iter().flat_map(|node| writes(node.into)).filter(|write| write.plain()) {
        if again.len() < AGAIN && !again.iter().any(|access| write.access.same_rows(access)) {
            again.push(&write.access);
        }
    }
    again.retain(|access| !nodes.iter().any(|node| node.reads(access)));
    let mut waiting = 0;
    let published: SmallVec<[Option<Published>; 2]> = wanted
        .iter()
        .enumerate()
        .map(|(k, path)| {
            let path = (*path)?;
            let waits = nodes[k + 1..].iter().any(|node| node.reads_path(path));
            let later = waits.then_some(waiting);
            waiting += u32::from(waits);
            items.extend(later.map(|later| Item::Publish { path: path as u32, later }));
            Some(Published { path: path as u32, later })
        })
        .collect();
    for ((node, path), all) in nodes.iter().zip(published).zip(kept).rev() {
        if path.is_none() && all.is_empty() && !node.op.compute.sends() {
            continue;
        }
        items.push(Item::Op(Quick::new(Wanted {
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

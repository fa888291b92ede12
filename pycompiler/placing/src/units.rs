//! What is placed: the lines of all nodes, cut into units that stand together.

use crate::chunks::{by_first_read, first_before};
use crate::code::Line;
use crate::machine::Machine;
use crate::masks::with_kept_masks;
use crate::ready::Ready;
use crate::ring::streamed;
use crate::shelf::{Fragment, Lines, Shelf};
use crate::touches::NO_END;
use rustc_hash::{FxHashMap as Map, FxHashSet as Set};
use std::sync::Arc;

/// What merging makes of the lines of a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A download: it gets other addresses, and its lines are placed one by one.
    Download,
    /// Another transfer: its lines are placed one by one.
    Transfer,
    /// Any other node.
    Other,
    /// As the last, but other nodes read what it leaves in registers and in memories of transfers.
    Fixed,
}

/// An MV, or lines of node `owner` that must follow each other without a gap.
#[derive(Clone)]
pub(crate) struct Unit {
    pub(crate) owner: usize,
    pub(crate) lines: Vec<Arc<Ready>>,
    /// Whether it belongs to a chunk of a download; and the MVs of the chunk that it begins.
    pub(crate) streams: bool,
    pub(crate) begins: Vec<Arc<Ready>>,
}

impl Unit {
    fn is_move(&self) -> bool {
        self.lines.first().is_some_and(|one| one.is_move())
    }
}

/// The lines of some nodes, and all units in the order of placing.
#[derive(Clone)]
pub(crate) struct Prepared {
    pub(crate) lines: Vec<Arc<Lines>>,
    pub(crate) units: Vec<Unit>,
    /// Words of downloads in L2BM stay below this.
    pub(crate) limit: i64,
    /// The nodes that may have other words.
    pub(crate) free: Set<usize>,
    pub(crate) kinds: Vec<Kind>,
    /// Whether masks stay in their registers from node to node.
    pub(crate) masks_stay: bool,
}

/// Returns what is placed; None if lines that belong together cannot be kept together.
///
/// With `masks_stay`, masks stay in their registers from node to node.
pub(crate) fn prepare(
    machine: &Machine,
    nodes: &[(Fragment, Kind)],
    shelf: &mut Shelf<'_>,
    masks_stay: bool,
) -> Option<Prepared> {
    // A node that others rely on leaves in registers exactly what its lines say.
    let masks_stay = masks_stay && nodes.iter().all(|(_, kind)| *kind != Kind::Fixed);
    let mut streams: Map<*const Line, Arc<[Line]>> = Map::default();
    let own = nodes.iter().map(|(fragment, kind)| match kind {
        Kind::Download => {
            let made = streams.entry(fragment.lines.as_ptr());
            let lines = &fragment.lines;
            Arc::clone(made.or_insert_with(|| streamed(machine, lines).map_or_else(|| Arc::clone(lines), Arc::from)))
        }
        _ => Arc::clone(&fragment.lines),
    });
    let mut made: Vec<Arc<[Line]>> = own.collect();
    if masks_stay {
        made = with_kept_masks(machine, &made);
    }
    let mut ready = Vec::new();
    for (lines, (fragment, kind)) in made.into_iter().zip(nodes) {
        // Lines of transfers are placed one by one.
        let alone = fragment.loose || matches!(kind, Kind::Download | Kind::Transfer);
        ready.push(shelf.of(&Fragment { lines, packed: alone || fragment.packed, ..fragment.clone() }));
    }
    let mut own = Vec::with_capacity(nodes.len());
    for (owner, (lines, (_, kind))) in ready.iter().zip(nodes).enumerate() {
        let mut found = cut(owner, &lines.lines)?;
        if *kind == Kind::Download {
            mark_chunks(machine, &mut found);
        }
        own.push(found);
    }
    let loose: Vec<usize> = (0..nodes.len()).filter(|&node| nodes[node].0.loose).collect();
    let downloads: Vec<bool> = nodes.iter().map(|(_, kind)| *kind == Kind::Download).collect();
    let (mut units, mut done) = (Vec::new(), 0);
    for &node in &loose {
        let first = first_before(machine, &own, &downloads, node).max(done);
        units.extend(own[done..first].iter().flatten().cloned());
        units.extend(by_first_read(machine, &own, first..node, &own[node]));
        done = node;
    }
    units.extend(own.drain(done..).flatten());
    let limit = lowest(machine, loose.iter().map(|&node| &*ready[node]));
    let may = |node: &usize| !loose.contains(node) && !matches!(nodes[*node].1, Kind::Download | Kind::Fixed);
    let free = (0..nodes.len()).filter(may).collect();
    let kinds = nodes.iter().map(|(_, kind)| *kind).collect();
    Some(Prepared { lines: ready, units, limit, free, kinds, masks_stay })
}

/// Cuts a node into units; None if lines of one unit would have to wait for an MV among them.
fn cut(owner: usize, lines: &[Arc<Ready>]) -> Option<Vec<Unit>> {
    let mut out = Vec::new();
    let mut run: Vec<Arc<Ready>> = Vec::new();
    // MVs that stand between two lines of the run.
    let mut between: Vec<Arc<Ready>> = Vec::new();
    let mut close = |run: &mut Vec<Arc<Ready>>, between: &mut Vec<Arc<Ready>>| {
        let unit = |lines| Unit { owner, lines, streams: false, begins: Vec::new() };
        if !run.is_empty() {
            out.push(unit(std::mem::take(run)));
        }
        out.extend(between.drain(..).map(|one| unit(vec![one])));
    };
    let mut before = Vec::new();
    for ready in lines {
        if ready.is_move() {
            between.push(Arc::clone(ready));
            continue;
        }
        let facts = || ready.line.instructions().iter().map(|one| &one.form.facts);
        let mut taken = facts().flat_map(|one| &one.takes).peekable();
        if taken.peek().is_none() {
            close(&mut run, &mut between);
        } else if !taken.all(|slot| before.contains(slot))
            || between.iter().any(|one| one.needs.conflicts(&ready.needs))
        {
            return None;
        }
        run.push(Arc::clone(ready));
        before = facts().map(|one| one.slot).collect();
    }
    close(&mut run, &mut between);
    Some(out)
}

/// Marks the units of a download, with the chunks that they begin: MVs and the lines after them.
///
/// If a line reads words of L2BM that the MVs of its chunk did not write, the words must keep their addresses. Then nothing is
/// marked.
fn mark_chunks(machine: &Machine, units: &mut [Unit]) {
    let mut begins = vec![Vec::new(); units.len()];
    let mut first = 0;
    for (number, unit) in units.iter().enumerate() {
        if !unit.is_move() {
            let brought =
                || begins[first].iter().flat_map(|one: &Arc<Ready>| one.accesses(true)).filter_map(|one| one.range);
            let mut reads = unit.lines.iter().flat_map(|line| line.accesses(false));
            let missing = reads.any(|access| {
                let (low, high) = access.range.unwrap_or((0, NO_END));
                access.memory == machine.above && !brought().any(|(start, end)| start <= low && high <= end)
            });
            if missing {
                return;
            }
        } else if number == 0 || !units[number - 1].is_move() {
            first = number;
            let moves = units[number..].iter().take_while(|one| one.is_move());
            begins[number] = moves.map(|one| Arc::clone(&one.lines[0])).collect();
        }
    }
    for (unit, begins) in units.iter_mut().zip(begins) {
        (unit.streams, unit.begins) = (true, begins);
    }
}

/// The first word of L2BM that lines of some nodes touch.
///
/// Such lines run beside downloads. If a chunk of a download took their words, all of them that stand behind it would wait for
/// it.
fn lowest<'a>(machine: &Machine, nodes: impl Iterator<Item = &'a Lines>) -> i64 {
    let lines = nodes.flat_map(|node| &node.lines).filter(|line| line.needs.shared);
    let touched = lines.flat_map(|line| line.touched()).filter(|access| access.memory == machine.above);
    touched.map(|access| access.range.map_or(0, |(low, _)| low)).min().unwrap_or(NO_END)
}

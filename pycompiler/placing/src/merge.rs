//! Merges nodes into one stream of lines, where they do not touch common words.

use crate::allocator::{Allocator, Crowded, Usage};
use crate::code::Shift;
use crate::machine::{lcm, Machine};
use crate::order::Urgency;
use crate::ready::Ready;
use crate::shelf::{Fragment, Shelf};
use crate::timeline::Timeline;
use crate::units::{prepare, Kind, Prepared, Unit};
use rustc_hash::{FxHashMap as Map, FxHashSet as Set};
use std::sync::Arc;

/// How many places of L2BM are tried for a chunk of a download.
const PLACES: i64 = 8;

/// How nodes may be placed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Way {
    /// With the words that their layers use, in their order.
    Own,
    /// With other words, in their order; masks stay in their registers.
    Kept,
    /// With other words and their own masks, by urgency, in which the time at which a node may start counts so many halves.
    Urgent(i64),
}

/// The best ways so far, by whether orders of urgency were possible.
pub(crate) type Known = Map<bool, Way>;

/// A line or an MV of node `owner` at `step`; an MV begins before the lines of its step, and ends in cycle `end`.
pub(crate) struct Placed {
    pub(crate) step: i64,
    pub(crate) owner: usize,
    pub(crate) ready: Arc<Ready>,
    pub(crate) end: i64,
}

/// Returns all lines and MVs of nodes with their steps, in the order of placing, and the lines of each node.
///
/// `known` has the best ways of earlier nodes; only the best is tried then. None if lines that belong together cannot be kept
/// together.
pub(crate) fn merge(
    machine: &Machine,
    nodes: &[(Fragment, Kind)],
    shelf: &mut Shelf<'_>,
    known: &mut Known,
) -> Option<(Prepared, Vec<Placed>)> {
    // Nodes may read what others leave in registers, or downloads have an order of their own.
    let free = nodes.iter().all(|(fragment, kind)| !fragment.loose && *kind != Kind::Fixed);
    let mut best: Option<(Way, Prepared, Vec<Placed>)> = None;
    let mut consider = |way: Way, made: Prepared| {
        let placed = place(machine, &made, false);
        let end = |placed: &[Placed]| placed.iter().map(|one| one.step).max().unwrap_or(0);
        // What waits add when the lines are written differs by less than a hundredth.
        if best.as_ref().is_none_or(|(_, _, other)| end(&placed) * 100 < end(other) * 99) {
            best = Some((way, made, placed));
        }
    };
    for (way, made) in ways(machine, nodes, shelf, free, known.get(&free).copied()) {
        consider(way, made);
    }
    let (way, made, placed) = best?;
    known.insert(free, way);
    Some((made, placed))
}

/// Returns what may be placed; nothing if lines that belong together cannot be kept together.
///
/// If nodes are `free`, they may come in orders of urgency. If that is not possible, they may have the words that their layers
/// use, or others. A line that is placed early may hold up a longer chain, so no way is always best. If `wanted` is possible, it
/// is the only one.
fn ways(
    machine: &Machine,
    nodes: &[(Fragment, Kind)],
    shelf: &mut Shelf<'_>,
    free: bool,
    wanted: Option<Way>,
) -> Vec<(Way, Prepared)> {
    let mut out = Vec::new();
    let may = |way| wanted.is_none_or(|wanted| wanted == way);
    if free && !matches!(wanted, Some(Way::Own | Way::Kept)) {
        let made = prepare(machine, nodes, shelf, false);
        let found = made.and_then(|made| Some((Urgency::of(&made.lines, machine)?, made)));
        if let Some((urgency, made)) = found {
            if wanted.is_none() {
                out.extend(prepare(machine, nodes, shelf, true).map(|made| (Way::Kept, made)));
            }
            let mut own: Vec<Vec<Unit>> = vec![Vec::new(); nodes.len()];
            for unit in &made.units {
                own[unit.owner].push(unit.clone());
            }
            for halves in [2, 1].into_iter().filter(|&halves| may(Way::Urgent(halves))) {
                let units = urgency.order(halves).into_iter().flat_map(|node| own[node].clone()).collect();
                let made = Prepared { units, ..made.clone() };
                out.push((Way::Urgent(halves), made));
            }
            return out;
        }
    }
    let prepared = |shelf: &mut Shelf<'_>| prepare(machine, nodes, shelf, true);
    if wanted != Some(Way::Kept) {
        out.extend(prepared(shelf).map(|made| (Way::Own, Prepared { free: Set::default(), ..made })));
    }
    if wanted != Some(Way::Own) {
        out.extend(prepared(shelf).map(|made| (Way::Kept, made)));
    }
    out
}

/// Returns all lines and MVs with their steps, in the order of placing. `unlimited` is that of [`Timeline`].
pub(crate) fn place(machine: &Machine, made: &Prepared, unlimited: bool) -> Vec<Placed> {
    let mut crowded = Set::default();
    loop {
        match try_place(machine, made, &crowded, unlimited) {
            Ok(placed) => return placed,
            Err(node) => crowded.insert(node),
        };
    }
}

/// Returns what `place` does. The error is a node and a memory in which its live ranges found no place; then it is in `crowded`.
fn try_place(
    machine: &Machine,
    made: &Prepared,
    crowded: &Set<Crowded>,
    unlimited: bool,
) -> Result<Vec<Placed>, Crowded> {
    let mut steps = Timeline::new(Arc::clone(&machine.rules), machine.mv, unlimited);
    let mut allocator = Allocator::new(machine, made.limit, made.masks_stay);
    let mut usages = usages(made, &allocator, crowded);
    let mut at: Map<usize, usize> = Map::default();
    let mut placed: Vec<Placed> = Vec::new();
    let mut chunk = Shift::new();
    for unit in &made.units {
        let owner = unit.owner;
        if !unit.begins.is_empty() {
            let more = best_shift(machine, &unit.begins, &steps, made.limit);
            chunk = Shift::from_iter((more != 0).then_some((machine.above, more)));
        } else if !unit.streams {
            chunk.clear();
        }
        let mut lines: Vec<Arc<Ready>> = unit.lines.clone();
        if !chunk.is_empty() {
            lines = lines.iter().map(|line| Arc::new(line.shifted(machine, &chunk))).collect();
        }
        if let Some(own) = usages.get_mut(&owner) {
            let number = at.entry(owner).or_insert(0);
            for line in &mut lines {
                *line = allocator.of(line, *number, own, &steps).map_err(|memory| (owner, memory))?;
                *number += 1;
            }
        }
        let known = placed.len();
        if let Some((step, end)) = steps.place_move(&lines[0].needs, i64::try_from(owner).unwrap_or(0)) {
            placed.push(Placed { step, owner, ready: Arc::clone(&lines[0]), end });
        } else {
            let needs: Vec<_> = lines.iter().map(|line| &line.needs).collect();
            let first = steps.place_lines(&needs);
            placed.extend((first..).zip(lines).map(|(step, ready)| Placed { step, owner, ready, end: 0 }));
        }
        for one in &placed[known..] {
            allocator.note(&one.ready, one.step, one.end);
        }
    }
    Ok(placed)
}

/// Returns the live ranges of each node whose words may move.
fn usages(made: &Prepared, allocator: &Allocator<'_>, crowded: &Set<Crowded>) -> Map<usize, Usage> {
    if made.free.is_empty() {
        return Map::default();
    }
    let mut lines: Map<usize, Vec<Arc<Ready>>> = Map::default();
    for unit in &made.units {
        lines.entry(unit.owner).or_default().extend(unit.lines.iter().cloned());
    }
    let may = |owner: &usize| made.free.contains(owner) || made.kinds[*owner] == Kind::Download;
    let own = lines.into_iter().filter(|(owner, _)| may(owner));
    own.map(|(owner, lines)| (owner, allocator.usage(owner, &lines, made.kinds[owner], crowded))).collect()
}

/// Returns how far the words of a chunk move in L2BM, so that its MVs begin early. They stay below `limit` if there is room.
fn best_shift(machine: &Machine, moves: &[Arc<Ready>], steps: &Timeline, limit: i64) -> i64 {
    let writes = || moves.iter().flat_map(|one| one.accesses(true)).filter_map(|access| access.range);
    let low = writes().map(|(low, _)| low).min().unwrap_or(0);
    let words = writes().map(|(_, high)| high).max().unwrap_or(0) - low;
    let capacity = machine.words(machine.above);
    let unit = lcm(machine.rules.unit, machine.row);
    let each = usize::try_from((capacity / PLACES / unit).max(1) * unit).unwrap_or(1);
    let places = || (0..=capacity - words).step_by(each);
    let below: Vec<i64> = places().filter(|at| at + words <= limit).collect();
    let places = if below.is_empty() { places().collect() } else { below };
    let found = places.into_iter().map(|at| {
        let shift = at - low;
        let moved = moves.iter().map(|one| one.shifted(machine, &vec![(machine.above, shift)]));
        let starts = moved.filter_map(|one| steps.start_of(&one.needs)).max();
        (starts, shift.abs(), shift)
    });
    found.min().map_or(0, |(_, _, shift)| shift)
}

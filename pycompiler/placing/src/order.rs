//! The order in which merging places nodes: first those that the rest of the program waits for.
//!
//! The order of the graph is that in which a program without merging runs. A merged program may take any order in which
//! conflicting accesses to LM and DRAM keep theirs. A node that is placed late fills the steps that those before it leave. So
//! the nodes of the longest chain come first, and nodes for which little waits, such as the update of a weight, fill the gaps.

use crate::code::Line;
use crate::dependences::Dependences;
use crate::machine::Machine;
use crate::rules::Name;
use crate::shelf::Lines;
use crate::text::ends;
use rustc_hash::FxHashMap as Map;
use std::sync::Arc;

/// What the orders of the nodes of a program depend on.
pub(crate) struct Urgency {
    waits: Dependences,
    /// The time at which a node may start, and that of the longest chain that begins with it.
    times: Vec<(i64, i64)>,
}

impl Urgency {
    /// Returns it; None if a node touches words of LM or DRAM that only a register knows.
    pub(crate) fn of(nodes: &[Arc<Lines>], machine: &Machine) -> Option<Self> {
        let waits = dependences(nodes, machine)?;
        let own: Vec<i64> = nodes.iter().map(|lines| time(lines, machine)).collect();
        let mut times: Vec<_> = own.iter().map(|&time| (0, time)).collect();
        for (node, others) in waits.after.iter().enumerate() {
            let end = times[node].0 + own[node];
            for &other in others {
                times[other].0 = times[other].0.max(end);
            }
        }
        for (node, others) in waits.after.iter().enumerate().rev() {
            times[node].1 += others.iter().map(|&other| times[other].1).max().unwrap_or(0);
        }
        Some(Self { waits, times })
    }

    /// Returns the numbers of the nodes in the order of placing.
    ///
    /// The node comes first for which the time at which it may start, multiplied by `halves` halves, less that of all that
    /// waits for it, is least.
    pub(crate) fn order(&self, halves: i64) -> Vec<usize> {
        self.waits.order(|node| halves * self.times[node].0 - 2 * self.times[node].1)
    }
}

/// Returns what each node must be placed behind; nodes depend on those before them only.
fn dependences(nodes: &[Arc<Lines>], machine: &Machine) -> Option<Dependences> {
    let mut out = Dependences::new(nodes.len());
    // The memories in which nodes leave words for each other.
    let kept = |memory| memory == machine.dram || machine.local.contains(&memory);
    for (node, lines) in nodes.iter().enumerate() {
        for written in [false, true] {
            let accesses = lines.lines.iter().flat_map(|line| line.accesses(written));
            for access in accesses.filter(|access| kept(access.memory)) {
                let (low, high) = access.range?;
                // Those of DRAM are compared in units of MVs.
                let unit = machine.rules.unit;
                let blocks = access.cycles.is_empty().then_some(low / unit..=(high - 1) / unit);
                for word in blocks.into_iter().flatten().chain(access.cycles.iter().copied()) {
                    out.note((access.memory, word), node, written);
                }
            }
        }
    }
    Some(out)
}

/// Guesses the cycles from the first line of a node to its last; MVs of DRAM run ahead.
fn time(lines: &Lines, machine: &Machine) -> i64 {
    let mut trips: Map<(Name, Name), i64> = Map::default();
    for ready in &lines.lines {
        let Line::Move(one) = &ready.line else { continue };
        if one.in_dram(machine).is_none() {
            let (_, holds, latency) = &one.transfer;
            let trip = trips.entry(ends(&ready.line).unwrap_or_default()).or_insert(0);
            *trip = (holds + latency).max(*trip);
        }
    }
    i64::try_from(lines.lines.len()).unwrap_or(0) * machine.rules.cycles + trips.values().sum::<i64>()
}

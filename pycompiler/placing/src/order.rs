//! The order in which merging places nodes: first those that the rest of the program waits for.
//!
//! The order of the graph is that in which a program without merging runs. A merged program may take any order in which
//! conflicting accesses to LM and DRAM keep theirs. A node that is placed late fills the steps that those before it leave. So
//! the nodes of the longest chain come first, and nodes for which little waits, such as the update of a weight, fill the gaps.

use crate::code::Line;
use crate::machine::Machine;
use crate::rules::Name;
use crate::shelf::Lines;
use crate::text::ends;
use rustc_hash::{FxHashMap as Map, FxHashSet as Set};
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::sync::Arc;

/// What the orders of the nodes of a program depend on.
pub(crate) struct Urgency {
    times: Vec<i64>,
    /// The nodes that wait for each.
    after: Vec<Vec<usize>>,
    /// The time of the longest chain that begins with a node.
    rest: Vec<i64>,
}

impl Urgency {
    /// Returns it; None if a node touches words of LM or DRAM that only a register knows.
    pub(crate) fn of(nodes: &[Arc<Lines>], machine: &Machine) -> Option<Self> {
        let mut after = vec![Vec::new(); nodes.len()];
        for (node, others) in before(nodes, machine)?.into_iter().enumerate() {
            for other in others {
                after[other].push(node);
            }
        }
        let times: Vec<i64> = nodes.iter().map(|lines| time(lines, machine)).collect();
        let mut rest = times.clone();
        for node in (0..nodes.len()).rev() {
            rest[node] += after[node].iter().map(|&other| rest[other]).max().unwrap_or(0);
        }
        Some(Self { times, after, rest })
    }

    /// Returns the numbers of the nodes in the order of placing.
    ///
    /// The node comes first for which the time at which it may start, multiplied by `halves` halves, less that of all that
    /// waits for it, is least.
    pub(crate) fn order(&self, halves: i64) -> Vec<usize> {
        let mut starts = vec![0; self.times.len()];
        let mut missing = vec![0_usize; self.times.len()];
        for &other in self.after.iter().flatten() {
            missing[other] += 1;
        }
        let ready = missing.iter().enumerate().filter(|(_, count)| **count == 0);
        let mut ready: BinaryHeap<_> = ready.map(|(node, _)| Reverse((-2 * self.rest[node], node))).collect();
        let mut out = Vec::new();
        while let Some(Reverse((_, node))) = ready.pop() {
            out.push(node);
            for &other in &self.after[node] {
                starts[other] = starts[other].max(starts[node] + self.times[node]);
                missing[other] -= 1;
                if missing[other] == 0 {
                    ready.push(Reverse((halves * starts[other] - 2 * self.rest[other], other)));
                }
            }
        }
        out
    }
}

/// Returns for each node those that must be placed before it.
fn before(nodes: &[Arc<Lines>], machine: &Machine) -> Option<Vec<Set<usize>>> {
    let mut out = Vec::new();
    let mut wrote: Map<(Name, i64), usize> = Map::default();
    let mut read: Map<(Name, i64), Vec<usize>> = Map::default();
    for (number, lines) in nodes.iter().enumerate() {
        let mut touched: [Set<(Name, i64)>; 2] = Default::default();
        for line in &lines.lines {
            for (written, words) in [false, true].into_iter().zip(&mut touched) {
                // The memories in which nodes leave words for each other.
                let kept = |memory| memory == machine.dram || machine.local.contains(&memory);
                for access in line.accesses(written).filter(|access| kept(access.memory)) {
                    let (low, high) = access.range?;
                    if access.cycles.is_empty() {
                        // Those of DRAM are compared in units of MVs.
                        let unit = machine.rules.unit;
                        words.extend((low / unit..=(high - 1) / unit).map(|block| (access.memory, block)));
                    } else {
                        words.extend(access.cycles.iter().map(|&word| (access.memory, word)));
                    }
                }
            }
        }
        let [reads, writes] = touched;
        let mut own: Set<usize> = reads.iter().chain(&writes).filter_map(|word| wrote.get(word)).copied().collect();
        own.extend(writes.iter().filter_map(|word| read.get(word)).flatten());
        own.remove(&number);
        out.push(own);
        for word in writes {
            wrote.insert(word, number);
            read.remove(&word);
        }
        for word in reads {
            read.entry(word).or_default().push(number);
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

//! The order of downloads in front of a node that begins before all its words are there.
//!
//! Such a node works along an axis on which all its operands lie in order. So its downloads come chunk by chunk, in the order in
//! which the node reads their words. One download after the other would bring the first words of the last operand when all
//! others are complete. Chunks of one download keep their order.

use crate::machine::Machine;
use crate::rules::Name;
use crate::touches::Access;
use crate::units::Unit;
use rustc_hash::FxHashMap as Map;
use std::ops::Range;

/// Words of a local memory: from the first to before the last.
type Words = (Name, i64, i64);

/// Brings the chunks of the downloads `nodes` of `own` in the order in which the units `reader` read their words.
pub(crate) fn by_first_read(machine: &Machine, own: &[Vec<Unit>], nodes: Range<usize>, reader: &[Unit]) -> Vec<Unit> {
    let reads = first_reads(machine, reader);
    let mut order: Vec<(usize, usize, &[Unit])> = Vec::new();
    for node in nodes {
        let mut latest = 0;
        for chunk in own[node].chunk_by(|_, next| next.begins.is_empty()) {
            let words = filled(machine, chunk)
                .into_iter()
                .flat_map(|(memory, low, high)| (low..high).map(move |word| (memory, word)));
            // What is not read comes last.
            latest = latest.max(words.filter_map(|word| reads.get(&word).copied()).min().unwrap_or(usize::MAX));
            order.push((latest, node, chunk));
        }
    }
    sorting::sort_by_key(&mut order, |&(latest, node, _)| (latest, node));
    order.into_iter().flat_map(|(.., chunk)| chunk.iter().cloned()).collect()
}

/// The first of the downloads right in front of `node` whose chunks may change places.
///
/// The words that they write differ, and at most one of them uses masks.
pub(crate) fn first_before(machine: &Machine, own: &[Vec<Unit>], downloads: &[bool], node: usize) -> usize {
    let (mut first, mut written, mut masked) = (node, Vec::<Words>::new(), false);
    while first > 0 && downloads[first - 1] {
        let units = &own[first - 1];
        let (masks, words) = (masks(machine, units), filled(machine, units));
        let meets = |one: &Words| written.iter().any(|other| one.0 == other.0 && one.1 < other.2 && other.1 < one.2);
        if masks && masked || words.iter().any(meets) {
            break;
        }
        written.extend(words);
        masked |= masks;
        first -= 1;
    }
    first
}

/// The number of the first unit that reads each word of the local memories.
fn first_reads(machine: &Machine, units: &[Unit]) -> Map<(Name, i64), usize> {
    let mut found = Map::default();
    for (number, unit) in units.iter().enumerate() {
        for access in unit.lines.iter().flat_map(|line| line.accesses(false)).filter(|one| local(machine, one)) {
            let (low, high) = access.range.unwrap_or((0, 0));
            let all = if access.cycles.is_empty() { (low..high).collect() } else { access.cycles.clone() };
            for word in all {
                found.entry((access.memory, word)).or_insert(number);
            }
        }
    }
    found
}

/// The words of each local memory between the first and the last that units write.
fn filled(machine: &Machine, units: &[Unit]) -> Vec<Words> {
    let mut found: Map<Name, (i64, i64)> = Map::default();
    for access in accesses(units).filter(|one| local(machine, one)) {
        let (low, high) = access.range.unwrap_or((0, machine.words(access.memory)));
        let own = found.entry(access.memory).or_insert((low, high));
        *own = (own.0.min(low), own.1.max(high));
    }
    let mut out: Vec<Words> = found.into_iter().map(|(memory, (low, high))| (memory, low, high)).collect();
    sorting::sort(&mut out);
    out
}

/// Whether units use registers, as those do that make masks.
fn masks(machine: &Machine, units: &[Unit]) -> bool {
    let passed = [machine.dram, machine.above, machine.blocks];
    accesses(units).any(|one| !local(machine, one) && !passed.contains(&one.memory))
}

fn accesses(units: &[Unit]) -> impl Iterator<Item = &Access> {
    units.iter().flat_map(|unit| &unit.lines).flat_map(|line| line.touched())
}

fn local(machine: &Machine, access: &Access) -> bool {
    machine.local.contains(&access.memory)
}

//! What must come before what: an access after the last write of its place, a write after all reads since.

use crate::op::Place;
use rustc_hash::FxHashMap as Map;
use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// A graph of dependences, made from accesses in their order: of the instructions of a node, or of nodes.
pub(crate) struct Dependences {
    /// What waits for each; one may stand there more than once.
    pub(crate) after: Vec<Vec<usize>>,
    written: Map<Place, usize>,
    /// Who has read each place since it was written.
    read: Map<Place, Vec<usize>>,
}

impl Dependences {
    /// Returns the graph of so many that depend on nothing yet.
    pub(crate) fn new(count: usize) -> Self {
        Self { after: vec![Vec::new(); count], written: Map::default(), read: Map::default() }
    }

    /// Notes an access of `own`. What it reads is noted before what it writes.
    pub(crate) fn note(&mut self, place: Place, own: usize, written: bool) {
        let last = if written { self.written.insert(place, own) } else { self.written.get(&place).copied() };
        let readers = if written { self.read.remove(&place).unwrap_or_default() } else { Vec::new() };
        for before in readers.into_iter().chain(last).filter(|&before| before != own) {
            if self.after[before].last() != Some(&own) {
                self.after[before].push(own);
            }
        }
        if !written {
            let readers = self.read.entry(place).or_default();
            if readers.last() != Some(&own) {
                readers.push(own);
            }
        }
    }

    /// Returns an order in which each comes after those that it depends on, else by `key`. What is in a circle is missing.
    pub(crate) fn order<K: Ord>(&self, key: impl Fn(usize) -> K) -> Vec<usize> {
        let mut missing = vec![0_usize; self.after.len()];
        for &other in self.after.iter().flatten() {
            missing[other] += 1;
        }
        let free = (0..missing.len()).filter(|&one| missing[one] == 0);
        let mut ready: BinaryHeap<_> = free.map(|one| Reverse((key(one), one))).collect();
        let mut out = Vec::new();
        while let Some(Reverse((_, one))) = ready.pop() {
            out.push(one);
            for &other in &self.after[one] {
                missing[other] -= 1;
                if missing[other] == 0 {
                    ready.push(Reverse((key(other), other)));
                }
            }
        }
        out
    }
}

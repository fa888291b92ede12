//! The moves of a pass by the rows that they make: those of one result address, by their units.

use crate::moves::{Move, Moves};
use indexmap::IndexMap;
use rustc_hash::{FxBuildHasher, FxHashSet};

/// Groups in the order of their first items.
pub(crate) type Groups<K, V> = IndexMap<K, V, FxBuildHasher>;

/// Moves in the order of address and unit of their results.
pub(crate) struct Rows {
    list: Vec<Move>,
    /// How often all of them are done, each time at other addresses.
    pub(crate) times: i64,
}

/// Units that take the same: the long word at `source_at` of one unit, or of the units that lie equally far from each.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Take {
    /// The address of the result.
    pub(crate) at: i64,
    pub(crate) source_at: i64,
    /// The unit that has the long word, or how far it goes.
    pub(crate) from: i64,
    /// The units that take it, a bit for each.
    pub(crate) units: u64,
    /// How often it is done.
    pub(crate) times: i64,
}

impl Rows {
    pub(crate) fn new(found: &Moves) -> Rows {
        let list = sorted(&sorted(&found.list, |m| m.result), |m| m.result_at);
        Rows { list, times: found.times }
    }

    /// The moves of each row.
    pub(crate) fn each(&self) -> impl Iterator<Item = &[Move]> {
        self.list.chunk_by(|one, other| one.result_at == other.result_at)
    }

    /// All moves.
    pub(crate) fn moves(&self) -> &[Move] {
        &self.list
    }

    /// Counts the moves, each as often as it is done.
    pub(crate) fn count(&self) -> i64 {
        self.list.iter().map(|m| m.times).sum::<i64>() * self.times
    }

    /// Whether no long word leaves its unit. Units that hold copies then keep their parts, which only the ALU moves.
    pub(crate) fn stays(&self) -> bool {
        self.list.iter().all(|m| m.source == m.result)
    }

    /// Whether a long word is written at an address from which one is read, if both lie in one memory.
    pub(crate) fn overwrites(&self) -> bool {
        let read: FxHashSet<i64> = self.list.iter().map(|m| m.source_at).collect();
        self.list.iter().any(|m| read.contains(&m.result_at))
    }

    /// What the units of each row take. `from` says what is the same for those that take together.
    pub(crate) fn takes(&self, from: impl Fn(&Move) -> i64) -> Vec<Take> {
        let mut out: Vec<Take> = Vec::with_capacity(self.list.len());
        for row in self.each() {
            let begin = out.len();
            for m in row {
                let (from, unit) = (from(m), 1 << m.result);
                match out[begin..].iter_mut().find(|one| (one.source_at, one.from) == (m.source_at, from)) {
                    Some(one) => one.units |= unit,
                    None => {
                        let Move { result_at: at, source_at, times, .. } = *m;
                        out.push(Take { at, source_at, from, units: unit, times });
                    }
                }
            }
            sorting::sort_by_key(&mut out[begin..], |one| (one.source_at, one.from));
        }
        out
    }
}

/// Counts what is taken, each as often as it is done.
pub(crate) fn taken(takes: &[Take], times: i64) -> i64 {
    takes.iter().map(|one| one.times).sum::<i64>() * times
}

/// Lets the take of the least rank of each row write everywhere: its units become 0. Of equal ranks, the first one does.
/// `takes` are in the order of their rows.
pub(crate) fn lead<K: Ord>(takes: &mut [Take], rank: impl Fn(&Take) -> K) {
    for row in takes.chunk_by_mut(|one, other| one.at == other.at) {
        if let Some(first) = row.iter_mut().min_by_key(|one| rank(one)) {
            first.units = 0;
        }
    }
}

/// Returns items in the order of a number that is not negative; those of one number stay in order.
pub(crate) fn sorted<T: Copy>(items: &[T], number: impl Fn(&T) -> i64) -> Vec<T> {
    let mut out = items.to_vec();
    let end = items.iter().map(&number).max().map_or(0, |most| most.saturating_add(1));
    if end > 4 * items.len() as i64 {
        sorting::sort_by_key(&mut out, number);
        return out;
    }
    // Where the next item of each number goes.
    let mut places = vec![0; end as usize];
    items.iter().for_each(|item| places[number(item) as usize] += 1);
    let mut next = 0;
    places.iter_mut().for_each(|place| next += std::mem::replace(place, next));
    for item in items {
        let place = &mut places[number(item) as usize];
        out[*place] = *item;
        *place += 1;
    }
    out
}

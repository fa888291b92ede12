//! Stable sorts with one copy of their machine code for all types.
//!
//! The standard library makes a copy of its sorts for each type and key: with them the copies were a twelfth of the compiled
//! part of the wheel. Here only the comparison and the swap are made anew. Use the standard sorts for very long slices.

// `make lint` switches these lints off for tests, benches and their helpers. Here they stay on.
#![cfg_attr(not(test), warn(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::type_complexity))]

use std::cmp::Ordering;

/// Sorts the items as `slice::sort` does.
pub fn sort<T: Ord>(items: &mut [T]) {
    sort_by(items, T::cmp);
}

/// Sorts the items as `slice::sort_by_key` does.
pub fn sort_by_key<T, K: Ord>(items: &mut [T], key: impl Fn(&T) -> K) {
    sort_by(items, |a, b| key(a).cmp(&key(b)));
}

/// Sorts the items as `slice::sort_by_cached_key` does: it computes the key of each item once.
pub fn sort_by_cached_key<T, K: Ord>(items: &mut [T], key: impl FnMut(&T) -> K) {
    let keys: Vec<K> = items.iter().map(key).collect();
    let count = keys.len();
    run(&mut Keyed { items, keys }, count);
}

/// Sorts the items as `slice::sort_by` does.
pub fn sort_by<T>(items: &mut [T], compare: impl Fn(&T, &T) -> Ordering) {
    let count = items.len();
    run(&mut Compared { items, compare }, count);
}

/// Items whose type nobody knows.
trait Items {
    fn compare(&self, a: usize, b: usize) -> Ordering;
    fn swap(&mut self, a: usize, b: usize);
}

struct Compared<'a, T, F> {
    items: &'a mut [T],
    compare: F,
}

impl<T, F: Fn(&T, &T) -> Ordering> Items for Compared<'_, T, F> {
    fn compare(&self, a: usize, b: usize) -> Ordering {
        (self.compare)(&self.items[a], &self.items[b])
    }

    fn swap(&mut self, a: usize, b: usize) {
        self.items.swap(a, b);
    }
}

struct Keyed<'a, T, K> {
    items: &'a mut [T],
    keys: Vec<K>,
}

impl<T, K: Ord> Items for Keyed<'_, T, K> {
    fn compare(&self, a: usize, b: usize) -> Ordering {
        self.keys[a].cmp(&self.keys[b])
    }

    fn swap(&mut self, a: usize, b: usize) {
        self.items.swap(a, b);
        self.keys.swap(a, b);
    }
}

/// So few items are sorted in place, without memory of their own.
const FEW: usize = 16;

#[inline(never)]
fn run(items: &mut dyn Items, count: usize) {
    if count <= FEW {
        for end in 1..count {
            let mut at = end;
            while at > 0 && items.compare(at - 1, at).is_gt() {
                items.swap(at - 1, at);
                at -= 1;
            }
        }
        return;
    }
    // For each place the index of the item that belongs there.
    let mut order: Vec<usize> = (0..count).collect();
    order.sort_by(|a, b| items.compare(*a, *b));
    for start in 0..count {
        let mut at = start;
        // The first item of a circle of places moves on until it is where it belongs.
        while order[at] != start {
            let from = std::mem::replace(&mut order[at], at);
            items.swap(at, from);
            at = from;
        }
        order[at] = at;
    }
}

//! Offsets for buffers of known lifetimes in a memory of fixed size: best fit ([`fit`]), and an exact search that a caller
//! may end.
//!
//! The search is like MiniMalloc, with a limited number of nodes and several orders of preference. It decides the stretch of
//! time with the fewest choices first. Every buffer lies on the floor or on another one. A placement is checked against the
//! buffers that still have to fit above it in each stretch of time. After the first round the orders are shuffled a little,
//! and stretches of time in which attempts have failed are decided earlier, because most instances are hard only from an
//! unlucky start.

// `make lint` switches these lints off for tests, benches and their helpers. Here they stay on.
#![cfg_attr(not(test), warn(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::type_complexity))]

mod fit;
mod problem;
mod sections;
mod spread;

pub use fit::{fit, Gap};
pub use problem::{Buffer, Outcome, NODES};
pub use spread::spread;

use problem::{Problem, Stop, Stopwatch};

/// Nodes of an attempt in the first round, and the growth per round in percent.
const FIRST_NODES: u64 = 2_000;
const GROWTH: u64 = 15;
/// About how far a shuffle moves a buffer in its order.
const SHUFFLE: u64 = 10;

/// Places all `buffers` in a memory of `capacity`. Each of `orders` must be a permutation of the buffers, the most wanted
/// first; otherwise the result is [`Outcome::Invalid`]. The same holds for buffers without life time, size or alignment.
///
/// `go_on` is asked after [`NODES`] nodes, and before each attempt, and the search ends if it says no. The same arguments give the same result, unless
/// `go_on` ends the search.
pub fn search(buffers: &[Buffer], capacity: i64, orders: &[Vec<usize>], go_on: &mut dyn FnMut() -> bool) -> Outcome {
    let Some(problem) = Problem::new(buffers, capacity) else { return Outcome::Invalid };
    if orders.is_empty() || !orders.iter().all(|order| is_permutation(order, buffers.len())) {
        return Outcome::Invalid;
    }
    let mut weights = vec![vec![1.0; problem.load.len()]; orders.len()];
    let mut random = Random(3);
    let mut nodes = FIRST_NODES;
    for round in 0.. {
        for (order, weight) in orders.iter().zip(&mut weights) {
            let shuffled = if round == 0 { order.clone() } else { random.shuffled(order) };
            if !go_on() {
                return Outcome::OutOfTime;
            }
            match sections::search(&problem, &shuffled, weight, &mut Stopwatch::new(nodes, go_on)) {
                Ok(placed) => return placed.map_or(Outcome::Impossible, Outcome::Placed),
                Err(Stop::Nodes) => {}
                Err(Stop::Time) => return Outcome::OutOfTime,
            }
        }
        nodes += nodes / 100 * GROWTH;
    }
    Outcome::OutOfTime
}

fn is_permutation(order: &[usize], count: usize) -> bool {
    let mut sorted = order.to_vec();
    sorting::sort(&mut sorted);
    sorted.into_iter().eq(0..count)
}

/// A linear congruential generator. It gives other starts, and the same ones on every host.
struct Random(u64);

impl Random {
    fn below(&mut self, limit: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % limit
    }

    /// The order with every item moved a little.
    fn shuffled(&mut self, order: &[usize]) -> Vec<usize> {
        let mut keyed: Vec<(u64, usize)> =
            (0..).zip(order).map(|(at, &item)| (at + self.below(SHUFFLE), item)).collect();
        sorting::sort_by_key(&mut keyed, |&(key, _)| key);
        keyed.into_iter().map(|(_, item)| item).collect()
    }
}

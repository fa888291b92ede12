//! Simulated annealing over plans: the order of nodes, which values lose their place in LM, which are computed again, and
//! the banks in which nodes run.

// `make lint` switches these lints off for tests, benches and their helpers. Here they stay on.
#![cfg_attr(not(test), warn(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::type_complexity))]

mod moves;
mod problem;
mod walk;

pub use problem::{Choice, Node, Plan, Problem, Value, DRAM};
pub use walk::{Action, Cost, Deed};

use moves::{Moves, Random};
use walk::Walk;

/// The temperature at the beginning, as a share of the cost of the first plan.
const WARMTH: f64 = 0.002;
/// Words of DRAM count as this many times the cycles that all DRAMs take for them: they also delay others.
const WEIGHT: f64 = 2.0;
/// How many plans are tried between two questions whether to go on.
const ROUND: u64 = 64;

/// The best plan that was found.
#[derive(Clone, Debug)]
pub struct Found {
    /// The plan.
    pub plan: Plan,
    /// What it costs.
    pub cost: Cost,
    /// How many plans were tried.
    pub steps: u64,
}

/// Returns what one plan costs and does; None if it is impossible.
pub fn walked(problem: &Problem, plan: &Plan) -> Option<(Cost, Vec<Action>)> {
    let fits = problem.allows(&plan.order)
        && plan.bias.len() == problem.values.len()
        && plan.remade.len() == problem.values.len()
        && plan.picked.len() == problem.nodes.len();
    let mut walk = Walk::new(problem);
    walk.actions = Some(Vec::new());
    let cost = if fits { walk.cost(plan) } else { None };
    cost.zip(walk.actions)
}

/// Searches from the best of `orders`. None if no order is possible. `go_on` is told how many plans were tried and the
/// best cost; the search ends if it says no. The same arguments give the same plan, unless `go_on` ends the search.
pub fn anneal(
    problem: &Problem,
    orders: &[Vec<usize>],
    steps: u64,
    seed: u64,
    go_on: &mut dyn FnMut(u64, Cost) -> bool,
) -> Option<Found> {
    let mut walk = Walk::new(problem);
    let valued = |cost: Cost| cost.cycles as f64 + WEIGHT * cost.words as f64 / problem.words_per_cycle as f64;
    let mut found: Option<Found> = None;
    for order in orders.iter().filter(|order| problem.allows(order)) {
        let plan = Plan::new(order.clone(), problem);
        let Some(cost) = walk.cost(&plan) else { continue };
        if found.as_ref().is_none_or(|best| valued(cost) < valued(best.cost)) {
            found = Some(Found { plan, cost, steps: 0 });
        }
    }
    let mut best = found?;
    let mut plan = best.plan.clone();
    let mut least = valued(best.cost);
    let mut now = least;
    let hottest = WARMTH * least;
    walk.cost(&plan);
    let mut moves = Moves::new(problem, Random(seed));
    let mut events = walk.events.clone();
    let mut tried = 0;
    while tried < steps {
        if tried % ROUND == 0 && !go_on(tried, best.cost) {
            break;
        }
        tried += 1;
        let left = 1.0 - tried as f64 / steps as f64;
        let Some(other) = moves.changed(&plan, &events) else { continue };
        let Some(cost) = walk.cost(&other) else { continue };
        let value = valued(cost);
        let warmth = hottest * left * left;
        if value <= now || moves.random.share() < ((now - value) / warmth.max(1e-9)).exp() {
            (plan, now) = (other, value);
            std::mem::swap(&mut events, &mut walk.events);
            if value < least {
                least = value;
                best.plan.clone_from(&plan);
                best.cost = cost;
            }
        }
    }
    best.steps = tried;
    Some(best)
}

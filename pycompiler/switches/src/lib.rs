//! The plan of a layout switch: the passes that bring a tensor from one layout to another, and their order.
//!
//! A layout gives every element of a tensor a place: a unit on each level of the machine, a long word (`Addr`), and a word
//! of it (`W`). A pass settles one level. Digits that must not stay on the level move to `Addr`, digits that belong on it
//! come from `Addr`, and copies are made. The search for the shortest path goes over the layouts in between ([`plan`]). A
//! pass costs the steps of its code ([`pass_steps`]); they are counted without making the code.

// `make lint` switches these lints off for tests, benches and their helpers. Here they stay on.
#![cfg_attr(not(test), warn(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::type_complexity))]

mod costs;
mod detours;
mod digits;
mod guess;
mod layout;
mod moves;
mod search;
mod state;
mod straight;
mod ways;

pub use guess::Guesses;
pub use layout::{Change, Layout, Level, Machine, SubAxis};
pub use moves::{Move, Moves};
pub use search::{plan, Outcome, Pass};
pub use straight::{Sending, Sent};
pub use ways::{Cast, Fill, FillRow, Shares, Turn, Way};

/// Estimates the steps of the pass of `change` over `level`, hazards included. None if one pass cannot make the change.
pub fn pass_steps(change: &Change, level: Level, machine: &Machine) -> Option<i64> {
    costs::pass_steps(change, level, machine)
}

/// Returns all moves of the pass of `change` over `level`. None if one pass cannot make the change.
pub fn pass_moves(change: &Change, level: Level, machine: &Machine) -> Option<Vec<Move>> {
    Some(moves::Digits::new(change, level, machine, true)?.moves().list)
}

/// Counts the steps of moves over `level`, without hazards around them. None if the moves have no meaning: if they are not
/// between units of the level, or if an address or a number of times is negative.
pub fn move_steps(moves: &Moves, level: Level, machine: &Machine) -> Option<i64> {
    moves.is_valid(level, machine).then(|| costs::move_steps(moves, level, machine))
}

/// Returns moves over `level` as turns, those that all units write first. None if the moves have no meaning.
pub fn turns(moves: &Moves, level: Level, machine: &Machine) -> Option<Vec<Turn>> {
    moves.is_valid(level, machine).then(|| ways::turns(moves, machine.count(level)))
}

/// Returns the way of moves between MABs that takes the fewest steps. `even` says whether the addresses of the source and of
/// the result begin at an even word. None if the moves have no meaning.
pub fn between_mabs(moves: &Moves, even: (bool, bool), machine: &Machine) -> Option<Way> {
    moves.is_valid(Level::Mab, machine).then(|| ways::between_mabs(moves, even, machine))
}

/// Returns how rows go straight to other L1Bs; an inner None if they cannot, or if the way through L2BM takes fewer steps.
/// None if the moves have no meaning.
pub fn straight_rows(moves: &Moves, machine: &Machine) -> Option<Option<Vec<Sent>>> {
    moves.is_valid(Level::L1b, machine).then(|| costs::straight(moves, machine))
}

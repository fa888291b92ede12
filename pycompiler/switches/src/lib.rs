//! The plan of a layout switch: the passes that bring a tensor from one layout to another, and their order.
//!
//! A layout gives every element of a tensor a place: a unit on each level of the machine, a long word (`Addr`), and a word
//! of it (`W`). A pass settles one level. Digits that must not stay on the level move to `Addr`, digits that belong on it
//! come from `Addr`, and copies are made. The search for the shortest path goes over the layouts in between ([`plan`]). A
//! pass costs the steps of its code ([`pass_steps`]); they are counted without making the code.

// `make lint` switches these lints off for tests, benches and their helpers. Here they stay on.
#![cfg_attr(not(test), warn(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::type_complexity))]

mod casts;
mod code;
mod crossing;
mod detours;
mod digits;
mod fills;
mod guess;
mod layout;
mod masks;
mod moves;
mod passes;
mod rows;
mod search;
mod state;
mod straight;
mod through;
mod turns;
mod words;

pub use code::{Goal, Line, Place, TooSmall};
pub use guess::Guesses;
pub use layout::{Change, Layout, Level, Machine, SubAxis};
pub use masks::comparison;
pub use moves::{Chosen, Move, Moves};
pub use search::{plan, Outcome, Pass};

/// Estimates the steps of the pass of `change` over `level`, hazards included. None if one pass cannot make the change.
pub fn pass_steps(change: &Change, level: Level, machine: &Machine) -> Option<i64> {
    passes::pass_steps(change, level, machine)
}

/// Returns all moves of the pass of `change` over `level`. None if one pass cannot make the change.
pub fn pass_moves(change: &Change, level: Level, machine: &Machine) -> Option<Vec<Move>> {
    Some(moves::Digits::new(change, level, machine, true)?.moves().list)
}

/// Counts the steps of moves over `level`, without hazards around them. None if the moves have no meaning: if they are not
/// between units of the level, or if an address or a number of times is negative.
pub fn move_steps(moves: &Moves, level: Level, machine: &Machine) -> Option<i64> {
    moves.is_valid(level, machine).then(|| passes::move_steps(moves, level, machine))
}

/// Returns the lines of moves over `level`, each done once. None if the moves have no meaning. No part reads what another
/// writes.
pub fn move_lines(
    parts: &[Chosen],
    level: Level,
    place: &Place,
    machine: &Machine,
) -> Option<Result<Vec<Line>, TooSmall>> {
    parts.iter().all(|part| part.moves.is_valid(level, machine)).then(|| passes::lines(parts, level, place, machine))
}

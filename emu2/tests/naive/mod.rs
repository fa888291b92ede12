//! A second machine, as simple as possible: one PE at a time, one cycle at a time, one word at a time, in the manual's
//! reference order of a step; and what is needed to set it against the engine on random programs.
//!
//! What the machine does is typed here from the manual, by the names of instructions. From the spec come sizes, names and
//! the index maps between L1BM and the PEs. Arithmetic is that of `num_reference`, on big integers. Nothing is shared with
//! `emu2::exec` or `emu2::num`.
#![allow(dead_code, unreachable_pub)] // every test binary uses its own part

pub mod alu;
pub mod check;
pub mod chip;
pub mod choices;
pub mod coverage;
pub mod data;
pub mod debug;
pub mod fetch;
#[path = "../formulas/mod.rs"]
pub mod formulas;
pub mod generate;
pub mod letters;
pub mod mau;
#[path = "../num_reference/mod.rs"]
pub mod num_reference;
pub mod print;
pub mod shrink;
pub mod step;
pub mod text;
pub mod transfer;

use chip::Chip;
use emu2::asm::{ItemKind, Program};

/// Why a program has no defined result: the manual says so.
#[derive(Clone, Debug, PartialEq)]
pub struct Undefined(pub String);

/// Runs `program` on `chip` and gives the dump lines.
pub fn run(chip: &mut Chip, program: &Program) -> Result<Vec<String>, Undefined> {
    let mut lines = Vec::new();
    for item in &program.items {
        match &item.kind {
            // A nop changes nothing, the forwarding paths included; waiting is a matter of time, and time is not simulated.
            ItemKind::Nop { .. } => {}
            ItemKind::Step(step) => step::step(chip, step)?,
            ItemKind::Mv(mv) => transfer::mv(chip, mv),
            ItemKind::Set(set) => debug::set(chip, set),
            ItemKind::Get(get) => debug::get(chip, get, &mut lines),
        }
    }
    Ok(lines)
}

//! A second machine, as simple as possible: one PE at a time, one cycle at a time, one word at a time, in the manual's
//! reference order of a step. It comes with the code that compares it with the engine on random programs.
//!
//! The behaviour of the machine is typed here from the manual, by the names of instructions. Sizes, names and the index
//! maps between L1BM and the PEs come from the spec. Arithmetic is that of `num_reference`, on big integers. Nothing is
//! shared with `emu2::exec` or `emu2::num`.
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

/// Why a program has no defined result according to the manual.
#[derive(Clone, Debug, PartialEq)]
pub struct Undefined(pub String);

/// Runs `program` on `chip` and returns the dump lines.
pub fn run(chip: &mut Chip, program: &Program) -> Result<Vec<String>, Undefined> {
    let mut lines = Vec::new();
    for item in &program.items {
        match &item.kind {
            // A nop changes nothing, not even the forwarding paths. Waiting only takes time, and time is not simulated.
            ItemKind::Nop { .. } => {}
            ItemKind::Step(step) => step::step(chip, step)?,
            ItemKind::Mv(mv) => transfer::mv(chip, mv),
            ItemKind::Set(set) => debug::set(chip, set),
            ItemKind::Get(get) => debug::get(chip, get, &mut lines),
            ItemKind::Host(_) => return Err(Undefined("a command of the host".into())),
        }
    }
    Ok(lines)
}

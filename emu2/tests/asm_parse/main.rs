//! The program that the assembler makes of each form of the language.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod findings;
mod lines;
mod operands;

use emu2::asm::*;
use emu2::spec::Spec;
use std::sync::Arc;

fn spec(name: &str) -> Arc<Spec> {
    Arc::new(Spec::load(name).unwrap())
}

fn program(text: &str) -> Program {
    assemble(text, "test.vsm", &spec("mncore2"), Policy::Run).unwrap_or_else(|e| panic!("{text}\n{e}"))
}

/// The only step of a one-line program.
fn step(text: &str) -> Step {
    match &program(text).items[..] {
        [Item { kind: ItemKind::Step(step), .. }] => (**step).clone(),
        items => panic!("{text}: {items:?}"),
    }
}

fn mv(text: &str) -> Mv {
    match &program(text).items[..] {
        [Item { kind: ItemKind::Mv(mv), .. }] => (**mv).clone(),
        items => panic!("{text}: {items:?}"),
    }
}

fn first_source(text: &str) -> Source {
    step(text).pe[0].sources[0].clone()
}

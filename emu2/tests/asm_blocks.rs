//! Long programs: blocks that are read again must equal blocks that would have been kept.

use emu2::asm::{Assembler, Policy, Program};
use emu2::error::Severity;
use emu2::machine::{Machine, Region};
use emu2::report::Report;
use emu2::spec::Spec;
use emu2::{exec, word};
use proptest::prelude::*;
use std::convert::Infallible;
use std::sync::Arc;

/// Statements of every kind. Masks, comments and empty lines are not statements of their own.
const LINES: [&str; 14] = [
    "imm i\"5\" $lr0v",
    "linc $lr0v $lr8v $ls0v",
    "maskr 17",
    "mask 0",
    "  # a comment",
    "",
    "nop/3",
    "d get $lr0n0c0b0m0p0 2",
    "d set $ln4n0c0b0m0p0 1 00000000000000AB",
    "mvp/n64i01 $p0@0 $lc0@0.0",
    "nop; wait i01",
    "l2bmb $lc0 $lb0",
    "ladd $lr8v $ls0v $lr16v; l1bmp $lb0 $lm0v # beside",
    "ladd $lr16v $ls0v $ls8v/1010\r",
];

fn debug(program: &Program) -> Vec<String> {
    let mut all = Vec::new();
    let Ok(()) = program.for_each(|item| {
        all.push(format!("{item:?}"));
        Ok::<(), Infallible>(())
    });
    all
}

/// Dump lines, and one register of all PEs.
fn outcome(spec: &Arc<Spec>, program: &Program) -> (Vec<String>, Vec<u64>) {
    let mut machine = Machine::new(spec.clone());
    let mut dump = Vec::new();
    let mut sink = |line: &str| {
        dump.push(line.to_string());
        Ok(())
    };
    exec::run(&mut machine, program, &mut |get, machine| emu2::report::dump_lines(machine, get, &mut sink)).unwrap();
    let region = Region { memory: spec.memory("grf1").unwrap(), units: [None; 5], addr: 0, count: 16 };
    (dump, machine.read(&region).unwrap())
}

fn compare(text: &str, kept: usize, block: usize) {
    let spec = Arc::new(Spec::load("mini").unwrap());
    let whole = Assembler::new(&spec).assemble(text, "whole.vsm", Policy::Run).unwrap();
    let parts = Assembler::new(&spec).keeping(kept, block).assemble(text, "whole.vsm", Policy::Run).unwrap();
    assert_eq!(parts.items.len(), whole.items.len().min(kept));
    assert_eq!(parts.statements(), whole.items.len());
    assert_eq!(whole.statements(), whole.items.len());
    assert_eq!(debug(&parts), whole.items.iter().map(|item| format!("{item:?}")).collect::<Vec<_>>());
    assert_eq!(format!("{:?}", parts.warnings), format!("{:?}", whole.warnings));
    assert_eq!(Report::of(&parts), Report::of(&whole));
    assert_eq!(word::print(&parts), word::print(&whole));
    assert_eq!(outcome(&spec, &parts), outcome(&spec, &whole));
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 40, failure_persistence: None, ..Default::default() })]
    #[test]
    fn blocks_are_the_program(
        lines in prop::collection::vec(0..LINES.len(), 1..40),
        kept in 0usize..12,
        block in 1usize..6,
        mark in any::<bool>(),
        quit in any::<bool>(),
    ) {
        let mut text = String::from(if mark { "\u{feff}" } else { "" });
        for at in lines {
            text += LINES[at];
            text.push('\n');
        }
        text += if quit { "nop\nquit\nthis is never read\n" } else { "nop" };
        compare(&text, kept, block);
    }
}

#[test]
fn a_long_program_keeps_the_first_statements_only() {
    let spec = Arc::new(Spec::load("mini").unwrap());
    let text = "linc $lr0v $lr0v\n".repeat(100_000);
    let program = Assembler::new(&spec).assemble(&text, "long.vsm", Policy::Run).unwrap();
    assert!(program.items.len() < 70_000);
    assert_eq!(program.statements(), 100_000);
    assert_eq!(Report::of(&program).steps, 100_000);
    let error = Assembler::new(&spec).assemble(&(text + "lin\n"), "long.vsm", Policy::Run).unwrap_err();
    let fault = error.diagnostics.iter().find(|d| d.severity == Severity::Error);
    assert_eq!(fault.unwrap().span.unwrap().start as usize, 17 * 100_000);
}

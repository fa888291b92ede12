//! The targets. They panic when something is wrong.
#![allow(unreachable_pub)] // a module of a library here, of a test there

use crate::naive::check::{check, engine_lines, Case, Verdict};
use crate::naive::chip::Chip;
use crate::naive::choices::Choices;
use crate::naive::data::Fill;
use crate::naive::generate::{program, Table};
use crate::naive::shrink::report;
use emu2::asm::{records, render, Assembler, Item, ItemKind, Policy, Program};
use emu2::machine::Machine;
use emu2::spec::Spec;
use std::sync::{Arc, LazyLock};
use std::time::{Duration, Instant};

/// Longer than any input may take.
const PATIENCE: Duration = Duration::from_secs(5);
/// Findings that the assembler lists at most, with the one that says that there are more.
const MOST_FINDINGS: usize = 201;
/// Statements of the longest program that is run.
const MOST_ITEMS: usize = 200;
/// Long words of the longest debug statement or MV that is run.
const MOST_WORDS: u64 = 512;

static SPECS: LazyLock<Vec<Arc<Spec>>> = LazyLock::new(|| {
    ["mini", "mncore2"].iter().map(|name| Arc::new(Spec::load(name).expect("a built-in spec"))).collect()
});
static ASSEMBLERS: LazyLock<Vec<Assembler>> = LazyLock::new(|| SPECS.iter().map(Assembler::new).collect());
static TABLE: LazyLock<Table> = LazyLock::new(|| Table::new(&SPECS[0]));

/// The assembler takes any bytes, in bounded time and space, and says where what it refuses stands. What it accepts
/// runs, on `mini`, and leaves what the manual says.
pub fn assembler(bytes: &[u8]) {
    let start = Instant::now();
    for (assembler, spec) in ASSEMBLERS.iter().zip(SPECS.iter()) {
        for policy in [Policy::Run, Policy::Check, Policy::Strict] {
            let (text, found) = match assembler.assemble_bytes(bytes, "fuzz", policy) {
                Ok(program) => {
                    assert!(program.items.len() <= bytes.len());
                    assert!(program.items.iter().all(|i| i.span.end as usize <= bytes.len()));
                    let (text, warnings) = (program.text.clone(), program.warnings.clone());
                    if policy == Policy::Run && spec.machine.name == TABLE.spec.machine.name {
                        run(program);
                    }
                    (text, warnings)
                }
                Err(error) => (error.text, error.diagnostics),
            };
            assert!(found.len() <= MOST_FINDINGS);
            let all = records("fuzz", &text, &found);
            assert!(all.iter().all(|r| r.line >= 1 && r.column >= 1 && !r.message.is_empty()));
            assert_eq!(render("fuzz", &text, &found, false).is_empty(), found.is_empty());
        }
    }
    assert!(start.elapsed() < PATIENCE, "{} bytes took {:?}", bytes.len(), start.elapsed());
}

/// A program of the assembler on both machines, unless it is long.
fn run(program: Program) {
    let short = |item: &Item| match &item.kind {
        ItemKind::Get(get) => get.count <= MOST_WORDS,
        ItemKind::Mv(mv) => mv.size <= MOST_WORDS,
        _ => true,
    };
    if program.items.len() > MOST_ITEMS || !program.items.iter().all(short) {
        return;
    }
    let case = Case { fill: Fill { seed: 1, memories: (0..program.spec.memories.len()).collect() }, program };
    if let Verdict::Different(_) = check(&case) {
        panic!("{}", report("text", &case));
    }
}

/// The program that the bytes choose leaves the same state on the engine and on the naive machine. A program that the
/// manual leaves undefined only has to end.
pub fn programs(bytes: &[u8]) {
    let program = program(&TABLE, &mut Choices::from_bytes(bytes));
    let fill = Fill::all(&Chip::new(&TABLE.spec), bytes.len() as u64);
    let case = Case { program, fill };
    match check(&case) {
        Verdict::Same => {}
        Verdict::Undefined(_) => {
            let ran = engine_lines(&mut Machine::new(TABLE.spec.clone()), &case.program);
            assert!(ran.is_ok(), "{ran:?}");
        }
        Verdict::Different(_) => panic!("{}", report("bytes", &case)),
    }
}

//! Random legal programs on the engine and on the naive machine. Both must end in the same state.
//!
//! `EMU2_SEED=<n>` runs only the program of that seed. `EMU2_LONG=1` runs for minutes instead of seconds, from seeds that
//! differ every time; `EMU2_FUZZ_SECONDS` says how long.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod naive;
#[path = "../fuzz/src/targets.rs"]
mod targets;

use emu2::asm::{assemble, Assembler, DebugGet, Policy, Program};
use emu2::error::Error;
use emu2::exec::{AssumedHost, Engine, KeptRegions};
use emu2::machine::Machine;
use emu2::spec::Mnemonic;
use naive::check::{check, engine_lines, snapshot, Case, Verdict};
use naive::chip::Chip;
use naive::choices::Choices;
use naive::coverage::Coverage;
use naive::data::Fill;
use naive::generate::{program, region, TABLES};
use naive::num_reference::{long, proptest as config};
use naive::shrink::report;
use naive::text::read_back;
use proptest::prelude::*;
use std::path::Path;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

/// After this many programs, every feature of the language has occurred.
const PROGRAMS_TO_COVER: u64 = 3000;

/// This many programs are compared, however slow the host is.
const FEWEST_PROGRAMS: u64 = 250;

/// One in this many programs is for the full chip, which costs the naive machine a hundred times more.
const FULL_CHIP: u64 = 400;

/// The machine of a seed: the full chip, otherwise `mini` two times out of three, otherwise the tree.
fn machine(seed: u64) -> usize {
    if seed % FULL_CHIP == FULL_CHIP - 1 {
        2
    } else {
        (seed % 3 / 2) as usize
    }
}

/// The case of a seed.
fn case(seed: u64) -> Case {
    let table = &TABLES[machine(seed)];
    let program = program(table, &mut Choices::seeded(seed));
    Case { fill: Fill::all(&Chip::new(&table.spec), seed), program }
}

fn variable(name: &str) -> Option<u64> {
    std::env::var(name).ok().map(|text| text.parse().unwrap())
}

#[test]
fn engine_and_naive_machine_agree() {
    let start = Instant::now();
    let limit = Duration::from_secs(variable("EMU2_FUZZ_SECONDS").unwrap_or(if long() { 300 } else { 5 }));
    let only = variable("EMU2_SEED");
    let now = || SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs() << 24;
    let first = only.unwrap_or_else(|| if long() { now() } else { 0 });
    let (mut same, mut undefined) = (0, 0);
    for seed in first.. {
        let case = case(seed);
        match check(&case) {
            Verdict::Same => same += 1,
            Verdict::Undefined(_) => undefined += 1,
            Verdict::Different(_) => panic!("{}", report(&format!("EMU2_SEED={seed}"), &case)),
        }
        if only.is_some() || (start.elapsed() > limit && seed - first >= FEWEST_PROGRAMS) {
            break;
        }
    }
    println!("{same} programs agree, {undefined} are undefined, from seed {first}, in {:?}", start.elapsed());
    assert!(undefined * 20 <= same, "{undefined} of {} programs have no defined result", same + undefined);
}

#[test]
fn programs_use_the_whole_language() {
    let mut all = Coverage::default();
    (0..PROGRAMS_TO_COVER).for_each(|seed| all.add(&case(seed).program));
    let spec = &TABLES[0].spec;
    let instructions = spec.mnemonics.iter().filter(|(_, m)| !matches!(m, Mnemonic::Control(_)));
    let mut wanted: Vec<String> = instructions.map(|(text, _)| text.clone()).collect();
    for (transfer, forms) in spec.transfers.iter().zip(&spec.forms) {
        wanted.extend(forms.iter().map(|form| format!("form {} {}", transfer.name, form.name)));
    }
    for op in &spec.alu {
        let lengths = op.lengths.iter().flat_map(|l| (l.minimum..=l.maximum).map(move |n| (&l.precision, n)));
        wanted.extend(lengths.map(|(letter, n)| format!("{letter}{}/{n}", op.name)));
    }
    wanted.extend(spec.forwards.iter().map(|f| format!("read {}", f.name)));
    wanted.extend(spec.fixed.iter().map(|f| format!("read {}", f.name)));
    wanted.extend(spec.bases.iter().flat_map(|b| [1, 2].map(|words| format!("write {} of {words} words", b.name))));
    wanted.extend(spec.banks.iter().map(|b| format!("product with {}", b.name)));
    for what in ["zero flush", "memory mask", "base mask", "flags mask"] {
        for entry in ["pattern", "register"] {
            wanted.extend([false, true].map(|wide| format!("{what} {entry} wide {wide}")));
        }
    }
    for what in ["read", "write"] {
        wanted.push(format!("{what} lm0 indirect"));
        wanted.extend((0..spec.counts.pe).map(|last| format!("{what} lm1 j{last}")));
        for address in ["plain", "v", "vN", "flat"] {
            wanted.extend([1, 2, 4].map(|words| format!("{what} grf0 {address} of {words} words")));
        }
    }
    for register in ["turnaround", "L1BM"] {
        wanted.extend(["l1bmm", "l1bmm4", "l1bmd", "l1bmp"].map(|name| format!("{name} from {register}")));
        wanted.extend(["l1bmm", "l1bmm4", "l1bmd", "l1bmr", "l1bmr4"].map(|name| format!("{name} to {register}")));
        wanted.extend(["l1bmr", "l1bmr4"].map(|name| format!("{name} to {register} with e")));
    }
    // No instruction sends one long word a cycle.
    wanted.retain(|what| what != "l1bmp from turnaround");
    for convert in ["None", "Some(Extend)", "Some(Reduce)"] {
        wanted.push(format!("source negate true convert {convert}"));
    }
    wanted.retain(|what| !all.0.contains_key(what));
    wanted.sort();
    assert!(wanted.is_empty(), "{wanted:?}");
}

/// Both machines run the programs of the tests, whose results people have checked.
#[test]
fn vectors_agree() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/data/vectors");
    let mut texts: Vec<(String, String)> = Vec::new();
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        texts.push((path.display().to_string(), std::fs::read_to_string(&path).unwrap()));
    }
    let spec = &TABLES[0].spec;
    let examples = spec.entries();
    texts.extend(examples.iter().flat_map(|e| e.examples.iter().map(|x| (e.name.to_string(), x.text.clone()))));
    let mut compared = 0;
    for (name, text) in texts {
        let Ok(program) = assemble(&text, &name, spec, Policy::Run) else { continue };
        let case = Case { program, fill: Fill { seed: 0, memories: Vec::new() } };
        match check(&case) {
            Verdict::Same => compared += 1,
            Verdict::Undefined(why) => panic!("{name}: {why}"),
            Verdict::Different(_) => panic!("{}", report(&name, &case)),
        }
    }
    assert!(compared > 90, "{compared} programs");
}

/// The assembler reads the text of a program as the same program.
#[test]
fn programs_read_back() {
    let assemblers: Vec<Assembler> = TABLES.iter().map(|table| Assembler::new(&table.spec)).collect();
    for seed in 0..if long() { 30_000 } else { 500 } {
        let case = case(seed);
        let assembler = &assemblers[machine(seed)];
        if let Err(difference) = read_back(assembler, &case.program, &mut Choices::seeded(seed)) {
            panic!("EMU2_SEED={seed}: {difference}");
        }
    }
}

/// The state and the dump lines that `pieces` leave when they run one after the other.
fn run_pieces(seed: u64, pieces: &[Program]) -> (Vec<Vec<u64>>, Vec<String>) {
    let spec = &pieces[0].spec;
    let mut machine = Machine::new(spec.clone());
    Fill::all(&Chip::new(spec), seed).apply(&mut machine, &mut Chip::new(spec));
    let lines = pieces.iter().flat_map(|p| engine_lines(&mut machine, p).unwrap()).collect();
    (snapshot(&machine), lines)
}

fn cut(program: &Program, at: usize) -> [Program; 2] {
    let (mut head, mut tail) = (program.clone(), program.clone());
    tail.items = head.items.split_off(at);
    [head, tail]
}

/// The result depends neither on the number of threads nor on where a region ends.
#[test]
fn threads_and_regions_do_not_show() {
    let pool = |threads| rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
    let pools = [1, 2, 8].map(pool);
    let cases = if long() { 200 } else { 12 };
    for seed in 0..cases {
        let table = &TABLES[seed as usize % 2];
        let mut choices = Choices::seeded(seed);
        let program = match seed % 3 {
            0 => program(table, &mut choices),
            _ => region(table, &mut choices, 40),
        };
        let whole = std::slice::from_ref(&program);
        let results = pools.each_ref().map(|pool| pool.install(|| run_pieces(seed, whole)));
        assert!(results.iter().all(|r| *r == results[0]), "seed {seed}: the number of threads shows");
        let at = choices.below(program.items.len() as u64) as usize;
        assert!(run_pieces(seed, &cut(&program, at)) == results[0], "seed {seed}: a cut at {at} shows");
    }
}

/// Three runs of a program that is lowered once give the same result as three separate runs.
#[test]
fn programs_that_run_again_do_the_same() {
    for seed in 0..if long() { 200 } else { 20 } {
        let table = &TABLES[seed as usize % 2];
        let mut choices = Choices::seeded(seed);
        let program = match seed % 3 {
            0 => program(table, &mut choices),
            _ => region(table, &mut choices, 40),
        };
        let spec = &program.spec;
        let regions = KeptRegions::default();
        let states = [true, false].map(|again| {
            let mut machine = Machine::new(spec.clone());
            Fill::all(&Chip::new(spec), seed).apply(&mut machine, &mut Chip::new(spec));
            let mut lines = Vec::new();
            for _ in 0..3 {
                let on_get: &mut dyn FnMut(&DebugGet, &Machine) -> Result<(), Error> = &mut |get, machine| {
                    emu2::report::dump_lines(machine, get, &mut |line| {
                        lines.push(line.to_string());
                        Ok(())
                    })
                };
                let mut engine = Engine::new(spec.clone());
                if again {
                    engine.run_again(&mut machine, &program, &regions, &mut AssumedHost, on_get).unwrap();
                } else {
                    engine.run(&mut machine, &program, &mut AssumedHost, on_get).unwrap();
                }
            }
            (snapshot(&machine), lines)
        });
        assert!(states[0] == states[1], "seed {seed}: that it is lowered once shows");
    }
}

/// A program of more steps than the engine collects before it runs them.
#[test]
fn long_programs_do_not_differ_from_short_ones() {
    const STEPS: usize = 4200;
    let program = region(&TABLES[0], &mut Choices::seeded(1), STEPS);
    let result = run_pieces(1, std::slice::from_ref(&program));
    for at in [1, 4000, 4096, 4097] {
        assert!(run_pieces(1, &cut(&program, at)) == result, "a cut at {at} shows");
    }
}

proptest! {
    #![proptest_config(config(if long() { 5000 } else { 48 }))]

    #[test]
    fn programs_that_bytes_choose(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
        targets::programs(&bytes);
    }

    #[test]
    fn any_bytes(bytes in proptest::collection::vec(any::<u8>(), 0..300)) {
        targets::assembler(&bytes);
    }
}

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
use emu2::machine::{Machine, Region};
use emu2::spec::{Mnemonic, Spec, Unit};
use naive::check::{check, copy_to_t, engine_lines, snapshot, Case, Verdict};
use naive::chip::Chip;
use naive::choices::Choices;
use naive::coverage::Coverage;
use naive::data::Fill;
use naive::generate::{program, region, Table};
use naive::num_reference::{long, proptest as config};
use naive::shrink::report;
use naive::text::read_back;
use proptest::prelude::*;
use std::path::Path;
use std::sync::{Arc, LazyLock};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

/// After this many programs, every feature of the language has occurred.
const PROGRAMS_TO_COVER: u64 = 3000;

/// This many programs are compared, however slow the host is.
const FEWEST_PROGRAMS: u64 = 250;

/// One in this many programs is for the full chip, which costs the naive machine a hundred times more.
const FULL_CHIP: u64 = 400;

/// `mini`, a tree with two units at every upper level, and the full chip.
static TABLES: LazyLock<Vec<Table>> = LazyLock::new(|| {
    let tree = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/naive/tree.toml");
    ["mini", tree, "mncore2"].iter().map(|name| Table::new(&Arc::new(Spec::load(name).unwrap()))).collect()
});

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

/// The state, the dump lines and the forwarding paths that a program leaves, run by the engine's fast forms or `general`ly.
/// Base addresses are zero, or arbitrary if `based`.
fn run_form(seed: u64, program: &Program, general: bool, based: bool) -> (Vec<Vec<u64>>, Vec<String>, Vec<Vec<u64>>) {
    let spec = &program.spec;
    let mut machine = Machine::new(spec.clone());
    Fill::all(&Chip::new(spec), seed).apply(&mut machine, &mut Chip::new(spec));
    for (memory, entry) in spec.memories.iter().enumerate().filter(|(_, entry)| !based && entry.unit == Unit::Base) {
        let region = Region { memory, units: [None; 5], addr: 0, count: entry.words };
        machine.write(&region, &vec![0; entry.words as usize]).unwrap();
    }
    let mut lines = Vec::new();
    let form = if general { emu2::exec::run_general } else { emu2::exec::run };
    form(&mut machine, program, &mut |get, machine| {
        emu2::report::dump_lines(machine, get, &mut |line| {
            lines.push(line.to_string());
            Ok(())
        })
    })
    .unwrap();
    let state = snapshot(&machine);
    let t = spec.memories.iter().position(|m| m.unit == Unit::Cycle).unwrap();
    let region = Region { memory: t, units: [None; 5], addr: 0, count: spec.memories[t].words };
    let path = |path| {
        form(&mut machine, &copy_to_t(spec, path, t).unwrap(), &mut |_, _| Ok(())).unwrap();
        machine.read(&region).unwrap()
    };
    (state, lines, (0..spec.forwards.len()).map(path).collect())
}

/// The result depends neither on ops that run on rows in place nor on forwarding paths that are not updated.
#[test]
fn fast_forms_do_not_show() {
    for seed in 0..if long() { 3000 } else { 60 } {
        let mut choices = Choices::seeded(seed);
        let table = &TABLES[seed as usize % 2];
        let steps = 20 + choices.below(100) as usize;
        let program = region(table, &mut choices, steps);
        for based in [false, true] {
            assert!(run_form(seed, &program, false, based) == run_form(seed, &program, true, based), "seed {seed}");
        }
    }
}

/// Lines that are related as the planner looks for it: the two halves of products with the same factors under other names,
/// results that are on a path and in a memory at once, memories that a step reads and the next one writes, base addresses.
fn chained(choices: &mut Choices) -> String {
    fn one<'a>(choices: &mut Choices, of: &[&'a str]) -> &'a str {
        of[choices.below(of.len() as u64) as usize]
    }
    let factor = |choices: &mut Choices| {
        one(choices, &["$lr0v", "$lr8v", "$ls0v", "$ls8v", "$t", "$mauf", "$aluf", "$lm0v", "$ln0v", "$ln8", "$lm16v"])
    };
    let into = |choices: &mut Choices| {
        one(
            choices,
            &["$lr0v", "$lr8v", "$ls0v", "$ls8v", "$t", "$nowrite", "$lr4v", "$ls0v/1010", "$lm0v", "$ls8v $t"],
        )
    };
    let sign = |choices: &mut Choices| one(choices, &["", "", "-"]);
    let (first, second) = if choices.below(4) == 0 { ("d", "u") } else { ("u", "d") };
    let (x, y) = (factor(choices), factor(choices));
    let (sx, sy) = (sign(choices), sign(choices));
    let z = format!("{}{}", sign(choices), factor(choices));
    let alu = match choices.below(4) {
        0 => format!(
            "; ladd {} {} {}",
            factor(choices),
            one(choices, &["$aluf", "$mauf", "$ls0v", "$msb1"]),
            into(choices)
        ),
        1 => "; l1bmp $lb8 $ln8v".to_string(),
        _ => String::new(),
    };
    let again = |choices: &mut Choices, same: &'static str| {
        if choices.below(3) == 0 {
            one(choices, &["$t", "$lr0v", "$ls8v", "$mauf"])
        } else {
            same
        }
    };
    let (x2, y2) = (again(choices, x), again(choices, y));
    let (out, end) = (if choices.below(6) == 0 { into(choices) } else { "$nowrite" }, into(choices));
    let addend = if choices.below(8) == 0 { "$t" } else { "$mauf" };
    match choices.below(10) {
        0 => format!("dvadd {x} {sy}{y} {end}{alu}\n"),
        1 => format!("dvadd {x} {y} {end}; drsqrt $mauf {}\n", into(choices)),
        2 => format!("drsqrt {x} {end}\ndvmulu $aluf $aluf $nowrite{alu}\ndvfmad {x2} {y2} $mauf $t\n"),
        3 => format!("linc {x} $t\ndvmul{first} {x} $aluf $nowrite\ndvfma{second} {x} $t $mauf {end}\n"),
        4 if choices.below(4) == 0 => format!("land {x} {y} ${}\n", one(choices, &["lmb", "lnb"])),
        5 => format!("dvmul{first} {sx}{x} {sy}{y} {out}\ndvfma{second} {sx}{x2} {sy}{y2} {addend} {end}{alu}\n"),
        _ => format!("dvfma{first} {sx}{x} {sy}{y} {z} {out}{alu}\ndvfma{second} {sx}{x2} {sy}{y2} {addend} {end}\n"),
    }
}

/// The result does not depend on plans: on two halves joined to one op, or on values that are read at another place.
#[test]
fn plans_do_not_show() {
    let mut lines = 0;
    for seed in 0..if long() { 20_000 } else { 150 } {
        let mut choices = Choices::seeded(seed);
        let spec = &TABLES[(seed % 16 == 15) as usize * 2].spec;
        // Programs that the assembler refuses are left out.
        let mut text = String::new();
        for _ in 0..10 + choices.below(20) {
            let more = chained(&mut choices);
            if assemble(&more, "chained.vsm", spec, Policy::Run).is_ok() {
                text.push_str(&more);
            }
        }
        lines += text.lines().count();
        let program = assemble(&text, "chained.vsm", spec, Policy::Run).unwrap();
        let based = seed % 8 == 0;
        assert!(
            run_form(seed, &program, false, based) == run_form(seed, &program, true, based),
            "seed {seed}:\n{text}"
        );
    }
    assert!(lines > 1500, "{lines} lines");
}

/// Matrix products with addends that lie where they are written, or close to it, and an ALU op that may read or write there.
fn adding(choices: &mut Choices) -> String {
    let one = |choices: &mut Choices, of: &[&str]| of[choices.below(of.len() as u64) as usize].to_string();
    let (form, register) = (one(choices, &["d", "f", "g", "h"]), one(choices, &["x", "y"]));
    let places =
        ["$lr0v", "$llr0v", "$lr8v", "$ls0v", "$lls0v", "$lls0v4", "$lm0v", "$llm8v", "$llm8v4", "$ln0v", "$lr0"];
    let (x, end) = (one(choices, &["$aluf", "$mauf", "$ln0v", "$lm0v", "$ls0v", "$lr0v"]), one(choices, &places));
    let z = if choices.below(4) == 0 { one(choices, &places) } else { end.clone() };
    let end = if choices.below(4) == 0 { format!("{end}/1010") } else { end };
    let alu = match choices.below(5) {
        0 => format!(
            "; {form}bfn {} {}",
            one(choices, &["$ln0v", "$lm0v", "$ls0v"]),
            one(choices, &["$nowrite", "$lr8v"])
        ),
        1 => format!("; lpassa {} $ln0v", one(choices, &places)),
        2 => format!("; {form}bfn/9 $ln0v $nowrite"),
        _ => String::new(),
    };
    match choices.below(4) {
        0 => format!("{form}mwrite {x} $ll{register}0\n"),
        _ => format!("{form}mfma $l{register} {x} {z} {end}{alu}\n"),
    }
}

/// The result does not depend on whether a product adds to its destination in place.
#[test]
fn sums_in_place_do_not_show() {
    let mut lines = 0;
    for seed in 0..if long() { 10_000 } else { 150 } {
        let mut choices = Choices::seeded(seed);
        let spec = &TABLES[(seed % 16 == 15) as usize * 2].spec;
        // Programs that the assembler refuses are left out.
        let mut text = String::new();
        for _ in 0..10 + choices.below(20) {
            let more = adding(&mut choices);
            if assemble(&more, "adding.vsm", spec, Policy::Run).is_ok() {
                text.push_str(&more);
            }
        }
        lines += text.lines().count();
        let program = assemble(&text, "adding.vsm", spec, Policy::Run).unwrap();
        let based = seed % 8 == 0;
        assert!(
            run_form(seed, &program, false, based) == run_form(seed, &program, true, based),
            "seed {seed}:\n{text}"
        );
    }
    assert!(lines > 800, "{lines} lines");
}

/// A result that all cycles write to one place is there what the last cycle left, and on the path what each cycle made.
#[test]
fn one_place_for_all_cycles_is_no_path() {
    for text in
        ["fmfma $ly $lm0v $lr0 $lr0\nfmfma $ly $mauf $lr0 $lr0\n", "fvadd $lm0v $ln0v $lr0\nfvmul $mauf $lr0 $ls0v\n"]
    {
        let program = assemble(text, "one.vsm", &TABLES[0].spec, Policy::Run).unwrap();
        assert!(run_form(1, &program, false, false) == run_form(1, &program, true, false), "{text}");
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

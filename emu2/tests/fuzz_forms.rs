//! Random programs in the engine's fast forms and in its general form. Nobody must see the difference.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod naive;

use emu2::asm::{assemble, DebugGet, Policy, Program};
use emu2::exec::{AssumedHost, Engine, KeptRegions};
use emu2::machine::{Machine, Region};
use emu2::spec::Unit;
use naive::check::{copy_to_t, snapshot};
use naive::chip::Chip;
use naive::choices::Choices;
use naive::data::Fill;
use naive::generate::{region, TABLES};
use naive::num_reference::long;

/// How a program runs: in the engine's fast forms, in these after the engine has prepared it, or in the general form.
#[derive(Clone, Copy, PartialEq)]
enum Form {
    Fast,
    Prepared,
    General,
}

/// The state, the dump lines and the forwarding paths that a program leaves. Base addresses are zero, or arbitrary if `based`.
fn run_form(seed: u64, program: &Program, form: Form, based: bool) -> (Vec<Vec<u64>>, Vec<String>, Vec<Vec<u64>>) {
    let spec = &program.spec;
    let mut machine = Machine::new(spec.clone());
    Fill::all(&Chip::new(spec), seed).apply(&mut machine, &mut Chip::new(spec));
    for (memory, entry) in spec.memories.iter().enumerate().filter(|(_, entry)| !based && entry.unit == Unit::Base) {
        let region = Region { memory, units: [None; 5], addr: 0, count: entry.words };
        machine.write(&region, &vec![0; entry.words as usize]).unwrap();
    }
    let mut lines = Vec::new();
    let on_get = &mut |get: &DebugGet, machine: &Machine| {
        emu2::report::dump_lines(machine, get, &mut |line| {
            lines.push(line.to_string());
            Ok(())
        })
    };
    let run = if form == Form::General { emu2::exec::run_general } else { emu2::exec::run };
    if form == Form::Prepared {
        let (mut engine, regions) = (Engine::new(spec.clone()), KeptRegions::default());
        let before = snapshot(&machine);
        engine.prepare(&mut machine, program, &regions);
        assert!(snapshot(&machine) == before, "seed {seed}: preparing changes a memory");
        engine.run_again(&mut machine, program, &regions, &mut AssumedHost, on_get).unwrap();
    } else {
        run(&mut machine, program, on_get).unwrap();
    }
    let state = snapshot(&machine);
    let t = spec.memories.iter().position(|m| m.unit == Unit::Cycle).unwrap();
    let region = Region { memory: t, units: [None; 5], addr: 0, count: spec.memories[t].words };
    let path = |path| {
        run(&mut machine, &copy_to_t(spec, path, t).unwrap(), &mut |_, _| Ok(())).unwrap();
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
            assert!(
                run_form(seed, &program, Form::Fast, based) == run_form(seed, &program, Form::General, based),
                "seed {seed}"
            );
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
            run_form(seed, &program, Form::Fast, based) == run_form(seed, &program, Form::General, based),
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
            run_form(seed, &program, Form::Fast, based) == run_form(seed, &program, Form::General, based),
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
        assert!(run_form(1, &program, Form::Fast, false) == run_form(1, &program, Form::General, false), "{text}");
    }
}

/// Lines as a compiler writes them: products behind block float conversions, masked writes, conversions of operands, and
/// L2BM instructions among them. Few addresses, so that they meet. The number says which kind of line it is.
fn compiled(choices: &mut Choices) -> (usize, String) {
    let one = |choices: &mut Choices, of: &[&str]| of[choices.below(of.len() as u64) as usize].to_string();
    let register = one(choices, &["x", "y"]);
    let block = format!(
        "hbfn/{} {} {}",
        6 + choices.below(4),
        one(choices, &["$lm0v32", "$lln0v", "$lm16v4", "$lr0v", "$lm8v", "$llm8v", "$lm0"]),
        one(choices, &["$nowrite", "$nowrite", "$nowrite", "$ls0v", "$llr16v"])
    );
    let wide = |choices: &mut Choices| one(choices, &["$llr0v", "$llr16v", "$lls0v", "$lln0v", "$llm0v4"]);
    let (end, x) = (wide(choices), one(choices, &["$aluf", "$aluf", "$mauf", "$lr0v", "$lm0v32"]));
    let z = match choices.below(6) {
        0 | 1 => wide(choices),
        2 => one(choices, &["$aluf", "$mauf"]),
        _ => end.clone(),
    };
    let memory = |choices: &mut Choices| one(choices, &["$lm0v", "$ln8v", "$lm8v4", "$lr0v", "$ls8v", "$lm[0,8,0,8]"]);
    let mask = one(choices, &["/$imr1", "/$imr2", "/$llimr1", "/1010", "/ll0110", "/$llimr2"]);
    let up = one(choices, &["$lb0", "$lb64", "$lb16", "$lb128"]);
    let top = one(choices, &["$lc0", "$lc64", "$lc32", "$lc128"]);
    let kind = choices.below(14) as usize;
    let line = match kind {
        0 => format!("hmfma $l{register} {x} {z} {end}; {block}"),
        1 => format!("hmmul $l{register} {x} {end}; {block}"),
        2 => format!("hmwrite {x} $ll{register}{}; {block}", one(choices, &["0", "8"])),
        3 => format!("hmfma $l{register} {x} {z} {end}"),
        4 => format!("hvpassar {}r {}", one(choices, &["$llm0v", "$lln8v", "$llr0v"]), memory(choices)),
        5 => format!("fvadd {}e $ln0v {}", one(choices, &["$m0v", "$lm0v", "$n8v"]), memory(choices)),
        6 => format!("isub $lm0v {} $omr{}", memory(choices), 1 + choices.below(2)),
        7 => format!("lpassa {} {}{mask}", memory(choices), memory(choices)),
        8 => format!("{} {up} {}{mask}", one(choices, &["l1bmm", "l1bmd", "l1bmp"]), memory(choices)),
        9 => format!("l1bmm $llb0 {end}{mask}"),
        10 => format!("l1bmd {} {up}", one(choices, &["$lm0v", "$ln8v", "$aluf"])),
        11 => format!("{} {top} {up}; lpassa $ln0v $lm8v", one(choices, &["l2bmb", "l2bmd"])),
        12 => format!("{} {up} {top}; l1bmd {up} $lm8v", one(choices, &["l2bmd", "l2bm@0", "l2bm@1", "l2bmrfadd"])),
        _ => format!("{} {top} {up}", one(choices, &["l2bmb", "l2bmd", "l2bmb@1/0"])),
    };
    (kind, line + "\n")
}

/// The result of compiled lines depends neither on forms nor on regions: on the order in which the L1Bs run them. A debug
/// statement ends a region, so every line of the third run is a region of its own.
#[test]
fn compiled_lines_and_regions_do_not_show() {
    let mut kinds = [0; 14];
    for seed in 0..if long() { 10_000 } else { 120 } {
        let mut choices = Choices::seeded(seed);
        let spec = &TABLES[(seed % 16 == 15) as usize * 2].spec;
        // Programs that the assembler refuses are left out.
        let (mut text, mut apart) = (String::new(), String::new());
        for _ in 0..20 + choices.below(30) {
            let (kind, more) = compiled(&mut choices);
            if assemble(&more, "compiled.vsm", spec, Policy::Run).is_ok() {
                kinds[kind] += 1;
                text.push_str(&more);
                apart.push_str(&format!("{more}d get $lm0n0c0b0m0p0 1\n"));
            }
        }
        let [program, apart] = [text.as_str(), &apart].map(|t| assemble(t, "compiled.vsm", spec, Policy::Run).unwrap());
        let based = seed % 8 == 0;
        let fast = run_form(seed, &program, Form::Fast, based);
        assert!(fast == run_form(seed, &program, Form::General, based), "seed {seed}, forms:\n{text}");
        assert!(fast == run_form(seed, &program, Form::Prepared, based), "seed {seed}, prepared:\n{text}");
        let apart = run_form(seed, &apart, Form::Fast, based);
        assert!((fast.0, fast.2) == (apart.0, apart.2), "seed {seed}, regions:\n{text}");
    }
    assert!(kinds.iter().all(|count| *count > 20), "{kinds:?}");
}

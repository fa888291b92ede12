//! Whole programs are printed and read back, and run from assembled text. All must end in the same state.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod naive;
mod word_support;

use emu2::asm::{assemble, render, Assembler, PeKind, Policy, Program, SourceKind};
use emu2::error::{Code, Diagnostic, Severity};
use emu2::machine::Machine;
use emu2::spec::{ForwardUnit, Spec};
use emu2::word::{encode, print, read, write, Form, Options};
use naive::check::{engine_lines, snapshot};
use naive::chip::Chip;
use naive::choices::Choices;
use naive::data::Fill;
use naive::generate::{program, Table};
use naive::text::bare;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use word_support::{covered_step, items, spec};

fn bare_items(program: &Program) -> Vec<String> {
    program.items.iter().map(bare).collect()
}

/// Prints a program and assembles the text.
fn reprint(assembler: &Assembler, program: &Program) -> Program {
    let text = print(program);
    let again = assembler.assemble(&text, "printed", Policy::Run).unwrap_or_else(|e| {
        let errors: Vec<_> = e.diagnostics.into_iter().filter(|d| d.severity == Severity::Error).collect();
        panic!("{}: {}\n{text}", program.name, render("printed", &text, &errors, false))
    });
    for ((before, after), line) in bare_items(program).iter().zip(bare_items(&again)).zip(text.lines()) {
        assert_eq!(*before, after, "{}: {line}", program.name);
    }
    assert_eq!(program.items.len(), again.items.len(), "{}\n{text}", program.name);
    again
}

fn folder(name: &str) -> Vec<PathBuf> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/data").join(name);
    let mut all: Vec<_> = std::fs::read_dir(root).unwrap().map(|e| e.unwrap().path()).collect();
    all.sort();
    all
}

/// Every program of the tests and every example of the spec.
fn corpus(spec: &Arc<Spec>) -> Vec<Program> {
    let files = ["vectors", "asm/must_pass"].into_iter().flat_map(folder);
    let mut texts: Vec<(String, String)> =
        files.map(|p| (p.display().to_string(), std::fs::read_to_string(&p).unwrap())).collect();
    let entries = spec.entries();
    texts.extend(entries.iter().flat_map(|e| e.examples.iter().map(|x| (e.name.to_string(), x.text.clone()))));
    texts.iter().filter_map(|(name, text)| assemble(text, name, spec, Policy::Run).ok()).collect()
}

#[test]
fn the_corpus_reads_back() {
    for name in ["mncore2", "mini"] {
        let spec = spec(name);
        let (assembler, programs) = (Assembler::new(&spec), corpus(&spec));
        assert!(programs.len() > 90, "{} programs on {name}", programs.len());
        programs.iter().for_each(|p| drop(reprint(&assembler, p)));
    }
}

#[test]
fn random_programs_read_back() {
    let tables: Vec<Table> = ["mini", "mncore2"].iter().map(|n| Table::new(&spec(n))).collect();
    let assemblers: Vec<Assembler> = tables.iter().map(|t| Assembler::new(&t.spec)).collect();
    for seed in 0..600u64 {
        let at = (seed % 2) as usize;
        let program = program(&tables[at], &mut Choices::seeded(seed));
        reprint(&assemblers[at], &Program { name: format!("seed {seed}"), ..program });
    }
}

/// The state and the dump lines after a program, from memories filled by `seed`.
fn run(seed: u64, program: &Program) -> (Vec<Vec<u64>>, Vec<String>) {
    let mut machine = Machine::new(program.spec.clone());
    let mut chip = Chip::new(&program.spec);
    Fill::all(&chip, seed).apply(&mut machine, &mut chip);
    let lines = engine_lines(&mut machine, program).unwrap_or_else(|e| panic!("{}: {e}", program.name));
    (snapshot(&machine), lines)
}

/// The program that the assembled text of a program gives.
fn through_text(program: &Program, options: Options) -> Program {
    let lines = encode(program, options).unwrap_or_else(|e| panic!("{e}"));
    let mut text = String::new();
    write(&program.spec, &lines, &mut |piece| {
        text.push_str(piece);
        Ok(())
    })
    .unwrap();
    read(text.as_bytes(), &program.name, &program.spec).unwrap_or_else(|e| panic!("{e}"))
}

/// Runs a program from its source and from both kinds of assembled text.
fn compare(seed: u64, program: &Program, inferred: bool) {
    let expected = run(seed, program);
    for options in [Options { form: Form::Mixed, inferred }, Options { form: Form::Flat, inferred }] {
        let other = through_text(program, options);
        assert!(
            run(seed, &other) == expected,
            "{}: {:?}\n{}\n{}",
            program.name,
            options,
            print(program),
            print(&other)
        );
    }
}

#[test]
fn the_corpus_runs_from_assembled_text() {
    for name in ["mini", "mncore2"] {
        let spec = spec(name);
        // The full chip is large, so a few programs of each kind are enough.
        let every = if name == "mini" { 1 } else { 40 };
        for program in corpus(&spec).iter().step_by(every) {
            compare(1, program, true);
        }
    }
}

/// The seed of the only program to run, or how many seeds to run.
fn seeds(few: u64, many: u64) -> std::ops::Range<u64> {
    match std::env::var("EMU2_SEED") {
        Ok(seed) => seed.parse().map(|seed: u64| seed..seed + 1).unwrap(),
        Err(_) => 0..if naive::num_reference::long() { many } else { few },
    }
}

#[test]
fn random_programs_run_from_assembled_text() {
    let table = Table::new(&spec("mini"));
    for seed in seeds(120, 3000) {
        let name = format!("EMU2_SEED={seed}");
        let program = Program { name, ..program(&table, &mut Choices::seeded(seed)) };
        compare(seed, &program, seed % 2 == 0);
    }
}

/// Random steps that have words, in programs in which many steps read the path of the matrix reads and few write it.
fn steps_with_words(spec: &Arc<Spec>, assembler: &Assembler, seed: u64) -> Program {
    let mut choices = Choices::seeded(seed);
    let path = spec.forwards.iter().position(|f| f.unit == ForwardUnit::Matrix).unwrap();
    let mut steps = Vec::new();
    while steps.len() < 12 {
        let row: Vec<u32> = (0..64).map(|_| choices.bits() as u32).collect();
        let mut step = covered_step(spec, &row);
        let reads_path = choices.chance(30);
        for i in step.pe.iter_mut().filter(|i| reads_path && matches!(i.kind, PeKind::Alu { .. })) {
            i.sources.iter_mut().for_each(|source| source.kind = SourceKind::Forward(path));
        }
        let alone = word_support::program(spec, items(vec![step.clone()]));
        // Lines that the assembler refuses, and lines whose parts disagree on a field, are left out.
        let Ok(legal) = assembler.assemble(&print(&alone), "step", Policy::Run) else { continue };
        if encode(&legal, Options { form: Form::Words, inferred: true }).is_ok() {
            steps.push(step);
        }
    }
    let text = print(&word_support::program(spec, items(steps)));
    assembler.assemble(&text, &format!("EMU2_SEED={seed}"), Policy::Run).unwrap()
}

/// Programs whose steps all have words. If the words do not tell a program apart from another one, they are refused, and
/// with statements among them the program runs as its source does.
#[test]
fn words_run_as_their_source_does() {
    for (name, few, many) in [("mini", 100, 14_000), ("mncore2", 4, 40)] {
        let spec = spec(name);
        let assembler = Assembler::new(&spec);
        let (mut same, mut refused) = (0, 0);
        for seed in seeds(few, many) {
            let program = steps_with_words(&spec, &assembler, seed);
            let expected = run(seed, &program);
            let options = |form| Options { form, inferred: true };
            match encode(&program, options(Form::Words)) {
                Ok(_) => same += 1,
                Err(error) => {
                    assert!(error.diagnostics.iter().all(|d| d.code == Code::AmbiguousWord), "{error}");
                    refused += 1;
                }
            }
            let other = through_text(&program, options(Form::Mixed));
            assert!(run(seed, &other) == expected, "{}\n{}\n{}", program.name, print(&program), print(&other));
        }
        println!("{name}: {same} programs have words, the words of {refused} would be read as others");
        assert!(same + refused < 100 || (same > 0 && refused > 0), "{same} {refused}");
    }
}

/// A matrix read that its word does not show is restored where the next step needs it.
#[test]
fn hidden_matrix_reads() {
    let spec = spec("mini");
    let table = [
        (
            "fvadd $lr64v $ls64v $ln0v; fmread $ly0 $nowrite\nnop\ndbfn $mreadf $ls8v\n",
            "fvadd $lr64v $ls64v $ln0v; fmread $ly0 $nowrite",
        ),
        ("lpassa $lm0v $ls0v; dmread $ly0 $nowrite\ndbfn $mreadf $ls8v\n", "lpassa $lm0v $ls0v; dmread $ly0 $nowrite"),
        ("lpassa $lm0v $ls0v; dmread $ly0 $nowrite\nlpassa $aluf $ls8v\n", "lpassa $lm0v $ls0v"),
        ("lpassa $lm0v $ls0v\nnop\ngmread $ly4 $nowrite\ndbfn $mreadf $ls8v\n", "lpassa $lm0v $ls0v"),
        ("dmread $ly0 $nowrite\nnop/3\nlpassa $mreadf $ls8v\n", "dmread $ly0 $nowrite"),
    ];
    for (source, first) in table {
        let program = assemble(source, "hidden", &spec, Policy::Run).unwrap();
        let other = through_text(&program, Options { form: Form::Words, inferred: true });
        assert_eq!(print(&other).lines().next(), Some(first));
        assert!(run(3, &program) == run(3, &other), "{source}");
    }
}

/// Words that would be read as another program are refused, and written as a statement if statements are allowed.
#[test]
fn ambiguous_words() {
    let spec = spec("mini");
    let table = [
        // A matrix write of a register with one port shows by its register that nothing is read.
        ("dmread $lx0 $nowrite\ndmwrite $lm0v $ly0\ndbfn $mreadf $ls8v\n", 0),
        ("dmread $lx0 $nowrite\ndmwrite $lm0v $lx0\ndbfn $mreadf $ls8v\n", 0),
        ("gmread $lx0 $nowrite\ngmwrite $lm0v $ly0\nlpassa $mreadf $ls8v\n", 0),
        ("hmread $llx0 $nowrite\nhmwrite $llm0v $lly0\nlpassa $mreadf $ls8v\n", 0),
        ("hmread $llx0 $nowrite\nhmwrite $lm0v $ly0\nlpassa $mreadf $ls8v\n", 0),
        ("dmread $lx0 $nowrite\nlpassa $lm0v $ls0v\ndbfn $mreadf $ls8v\n", 2),
        ("lpassa $lm0v $ls0v\nlpassa $mreadf $ls8v\n", 1),
        ("fvadd $lr64v $ls64v $ln0v\nnop/2\nlpassa $mreadf $ls8v\n", 1),
        // A read whose result is used after other steps.
        ("lpassa $lm0v $ls0v; dmread $ly0 $nowrite\ngmread $ly4 $nowrite\nlpassa $mreadf $ls8v\n", 0),
        ("lpassa $lm0v $ls0v; dmread $ly0 $nowrite\nimm i\"1\" $lr0\nlpassa $mreadf $ls8v\n", 1),
        // `noforward` keeps the path.
        ("dmread $lx0 $nowrite\nnoforward; dmwrite $lm0v $ly0\ndbfn $mreadf $ls8v\n", 0),
    ];
    for (source, line) in table {
        let program = assemble(source, "ambiguous", &spec, Policy::Run).unwrap();
        match encode(&program, Options { form: Form::Words, inferred: true }) {
            Ok(_) => assert_eq!(line, 0, "{source}"),
            Err(error) => {
                assert!(error.diagnostics.iter().all(|d| d.code == Code::AmbiguousWord), "{error}");
                let lines = |d: &Diagnostic| source[..d.span.unwrap().start as usize].matches('\n').count() + 1;
                assert_eq!(error.diagnostics.iter().map(lines).min(), Some(line), "{error}");
            }
        }
        let other = through_text(&program, Options { form: Form::Mixed, inferred: true });
        assert!(run(3, &program) == run(3, &other), "{source}\n{}", print(&other));
    }
}

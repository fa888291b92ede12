//! Sanitized runs: programs in which something must be found, and programs in which nothing may be.
//!
//! Files lie under `tests/data/sanitize`. A line `# find: <code> <line> [<memory> <unit> <address>] [<earlier line>]` is a
//! finding; a file without one must be clean. The bits of every run are those of a plain run.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use emu2::asm::{assemble, Policy, Program};
use emu2::exec::{AssumedHost, Finding, Sanitizer};
use emu2::machine::{Machine, Region};
use emu2::report::dump_lines;
use emu2::spec::{LevelName, Spec};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Runs a program and returns the findings, the dump lines and the machine.
fn sanitized(program: &Program) -> (Vec<Finding>, Vec<String>, Machine) {
    let mut machine = Machine::new(program.spec.clone());
    let mut sanitizer = Sanitizer::new(program.spec.clone()).unwrap();
    let mut lines = Vec::new();
    let on_get = &mut |get: &_, machine: &_| {
        dump_lines(machine, get, &mut |line| {
            lines.push(line.to_string());
            Ok(())
        })
    };
    sanitizer.run(&mut machine, program, &mut AssumedHost, on_get).unwrap_or_else(|e| panic!("{}", e.diagnostic));
    (sanitizer.findings(program), lines, machine)
}

fn plain(program: &Program) -> (Vec<String>, Machine) {
    let mut machine = Machine::new(program.spec.clone());
    let mut lines = Vec::new();
    emu2::report::run(&mut machine, program, &mut |line| {
        lines.push(line.to_string());
        Ok(())
    })
    .unwrap();
    (lines, machine)
}

/// All words of the memories that are not sparse, and the first words of the others.
fn words(machine: &Machine) -> Vec<Vec<u64>> {
    let spec = machine.spec().clone();
    let all = spec.memories.iter().enumerate().map(|(memory, entry)| {
        let count = if entry.level == LevelName::Group { entry.words.min(1 << 16) } else { entry.words };
        machine.read(&Region { memory, units: [None; 5], addr: 0, count }).unwrap()
    });
    all.collect()
}

fn files(folder: &str) -> Vec<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/data").join(folder);
    let mut all: Vec<PathBuf> = std::fs::read_dir(folder).unwrap().map(|e| e.unwrap().path()).collect();
    all.sort();
    all
}

fn load(path: &Path) -> (String, String, Vec<String>) {
    let text = std::fs::read_to_string(path).unwrap();
    let title = path.file_name().unwrap().to_string_lossy().into_owned();
    let only = text.lines().find_map(|l| l.strip_prefix("# machines: "));
    let machines = only.unwrap_or("mini mncore2").split(' ').map(String::from).collect();
    (title, text, machines)
}

fn shown(finding: &Finding) -> String {
    let mut text = format!("{} {}", finding.diagnostic.code.id(), finding.line);
    if let (Some(memory), Some(unit), Some(address)) = (&finding.memory, &finding.unit, finding.address) {
        text.push_str(&format!(" {memory} {unit} {address}"));
    }
    if let Some(earlier) = finding.earlier {
        text.push_str(&format!(" after {earlier}"));
    }
    text
}

#[test]
fn programs_have_their_findings() {
    let spec = Arc::new(Spec::load("mini").unwrap());
    let (mut must, mut must_not) = (0, 0);
    for path in files("sanitize") {
        let (title, text, _) = load(&path);
        let program = assemble(&text, &title, &spec, Policy::Run).unwrap_or_else(|e| panic!("{e}"));
        let (found, lines, machine) = sanitized(&program);
        let expected: Vec<&str> = text.lines().filter_map(|l| l.strip_prefix("# find: ")).collect();
        let all: Vec<String> = found.iter().map(shown).collect();
        assert_eq!(all, expected, "{title}");
        let (plain_lines, plain_machine) = plain(&program);
        assert_eq!(lines, plain_lines, "{title}");
        assert!(words(&machine) == words(&plain_machine), "{title}: other bits");
        if expected.is_empty() {
            must_not += 1
        } else {
            must += 1
        }
    }
    assert!(must >= 11 && must_not >= 11, "{must} files with findings, {must_not} without");
}

/// The vectors are programs of one purpose; what they leave is what they state. They use nothing undefined, except those
/// that say so in a line `# sanitize: <codes>`.
#[test]
fn vectors_are_clean_and_keep_their_bits() {
    let specs: Vec<_> = emu2::spec::built_in_names().iter().map(|n| Arc::new(Spec::load(n).unwrap())).collect();
    let mut dirty = Vec::new();
    for path in files("vectors") {
        let (title, text, machines) = load(&path);
        for spec in specs.iter().filter(|spec| machines.contains(&spec.machine.name)) {
            let program = assemble(&text, &title, spec, Policy::Check).unwrap_or_else(|e| panic!("{e}"));
            let (found, _, machine) = sanitized(&program);
            if spec.machine.name == "mini" {
                assert!(words(&machine) == words(&plain(&program).1), "{title}: other bits");
            }
            let allowed = text.lines().find_map(|l| l.strip_prefix("# sanitize: ")).unwrap_or("");
            let others = found.iter().filter(|f| !allowed.split(' ').any(|code| code == f.diagnostic.code.id()));
            dirty.extend(
                others.map(|f| format!("{title} on {}: {} {}", spec.machine.name, shown(f), f.diagnostic.message)),
            );
        }
    }
    assert!(dirty.is_empty(), "{}", dirty.join("\n"));
}

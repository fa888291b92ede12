//! Programs that the assembler must refuse or warn of, each for one reason at one place, and programs that it must
//! take without a word. Every code of the table has a file.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use emu2::asm::{records, Assembler, Policy, Record};
use emu2::error::Code;
use emu2::spec::Spec;
use std::collections::HashSet;
use std::path::PathBuf;
use std::sync::Arc;

fn files(folder: &str) -> Vec<(String, Vec<u8>)> {
    let root: PathBuf = [env!("CARGO_MANIFEST_DIR"), "..", "tests", "data", "asm", folder].iter().collect();
    let mut all: Vec<_> = std::fs::read_dir(&root)
        .unwrap()
        .map(|e| e.unwrap().path())
        .map(|p| (p.file_name().unwrap().to_string_lossy().into_owned(), std::fs::read(&p).unwrap()))
        .collect();
    all.sort();
    assert!(!all.is_empty(), "{}", root.display());
    all
}

fn assembler() -> Assembler {
    Assembler::new(&Arc::new(Spec::load("mncore2").unwrap()))
}

fn findings(assembler: &Assembler, name: &str, bytes: &[u8]) -> Vec<Record> {
    match assembler.assemble_bytes(bytes, name, Policy::Check) {
        Ok(program) => records(name, &program.text, &program.warnings),
        Err(error) => records(name, &error.text, &error.diagnostics),
    }
}

/// `# expect: [warning] <code> line <n> column <n> [among others]`
fn check(name: &str, bytes: &[u8], found: &[Record]) -> Result<(), String> {
    let first = String::from_utf8_lossy(bytes).lines().next().unwrap_or_default().to_string();
    let expected = first.strip_prefix("# expect: ").ok_or("no `# expect:` line")?;
    let (expected, among) = match expected.strip_suffix(" among others") {
        Some(rest) => (rest, true),
        None => (expected, false),
    };
    let (expected, severity) = match expected.strip_prefix("warning ") {
        Some(rest) => (rest, "warning"),
        None => (expected, "error"),
    };
    if !name.starts_with(expected.split(' ').next().unwrap()) {
        return Err("the file is named after another code".to_string());
    }
    let text = |r: &Record| format!("{} line {} column {}", r.code, r.line, r.column);
    let right = |r: &Record| text(r) == expected && r.severity == severity;
    if if among { found.iter().any(right) } else { found.len() == 1 && found.iter().all(right) } {
        return Ok(());
    }
    let got: Vec<String> = found.iter().map(|r| format!("{} {}: {}", r.severity, text(r), r.message)).collect();
    Err(format!("expected {severity} {expected}, found {got:#?}"))
}

#[test]
fn must_fail() {
    let assembler = assembler();
    let mut wrong = Vec::new();
    for (name, bytes) in files("must_fail") {
        if let Err(why) = check(&name, &bytes, &findings(&assembler, &name, &bytes)) {
            wrong.push(format!("{name}: {why}"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn every_code_is_one_finding() {
    let all: HashSet<&str> = Code::ALL.iter().map(|c| c.id()).collect();
    assert_eq!(all.len(), Code::ALL.len());
}

#[test]
fn every_code_has_a_file() {
    let named: HashSet<String> = files("must_fail").into_iter().map(|(name, _)| name[..5].to_string()).collect();
    let table: HashSet<String> =
        Code::ALL.iter().map(|c| c.id().to_string()).filter(|id| id.starts_with('A')).collect();
    assert_eq!(table.difference(&named).collect::<Vec<_>>(), Vec::<&String>::new(), "codes without a file");
    assert_eq!(named.difference(&table).collect::<Vec<_>>(), Vec::<&String>::new(), "files without a code");
}

#[test]
fn must_pass() {
    let assembler = assembler();
    for (name, bytes) in files("must_pass") {
        let found = findings(&assembler, &name, &bytes);
        assert!(found.is_empty(), "{name}: {found:#?}");
    }
}

/// Every finding says something, and strict assembling refuses what others warn of.
#[test]
fn strict_refuses_warnings() {
    let assembler = assembler();
    for (name, bytes) in files("must_fail") {
        let strict = assembler.assemble_bytes(&bytes, &name, Policy::Strict);
        let error = strict.map(|_| ()).unwrap_err();
        assert!(error.diagnostics.iter().all(|d| !d.message.is_empty() && !d.help.is_empty()), "{name}");
        assert!(error.to_string().contains("error["), "{name}");
    }
}

/// Gaps that are documented refuse a program when it is checked, and only warn when it is run.
#[test]
fn hazards_follow_the_policy() {
    let assembler = assembler();
    let text = "lpassa $lr0 $lm0\nlpassa $lm0 $ls0\n";
    assert!(assembler.assemble(text, "gap", Policy::Check).is_err());
    assert_eq!(assembler.assemble(text, "gap", Policy::Run).unwrap().warnings.len(), 1);
    let guess = "l2bm@0 $lb0 $lc0\nl2bmb $lc0 $lb64\n";
    assert_eq!(assembler.assemble(guess, "gap", Policy::Check).unwrap().warnings.len(), 1);
    assert!(assembler.assemble(guess, "gap", Policy::Strict).is_err());
}

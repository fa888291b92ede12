//! Programs that the assembler must refuse or warn of, each for one reason at one place, and programs that it must accept
//! without a message. Every code of the table has a file.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod support;

use emu2::asm::{records, Assembler, Policy, Record};
use emu2::error::Code;
use emu2::spec::Spec;
use std::collections::HashSet;
use std::sync::Arc;
use support::expect::check;

fn assembler() -> Assembler {
    Assembler::new(&Arc::new(Spec::load("mncore2").unwrap()))
}

fn findings(assembler: &Assembler, name: &str, bytes: &[u8]) -> Vec<Record> {
    match assembler.assemble_bytes(bytes, name, Policy::Check) {
        Ok(program) => records(name, &program.text, &program.warnings),
        Err(error) => records(name, &error.text, &error.diagnostics),
    }
}

#[test]
fn must_fail() {
    let assembler = assembler();
    let mut wrong = Vec::new();
    for (name, bytes) in support::files("asm/must_fail") {
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
    let named: HashSet<String> =
        support::files("asm/must_fail").into_iter().map(|(name, _)| name[..5].to_string()).collect();
    let table: HashSet<String> =
        Code::ALL.iter().map(|c| c.id().to_string()).filter(|id| id.starts_with('A')).collect();
    assert_eq!(table.difference(&named).collect::<Vec<_>>(), Vec::<&String>::new(), "codes without a file");
    assert_eq!(named.difference(&table).collect::<Vec<_>>(), Vec::<&String>::new(), "files without a code");
}

#[test]
fn must_pass() {
    let assembler = assembler();
    for (name, bytes) in support::files("asm/must_pass") {
        let found = findings(&assembler, &name, &bytes);
        assert!(found.is_empty(), "{name}: {found:#?}");
    }
}

/// Every finding has a message, and strict assembling refuses programs that other policies warn of.
#[test]
fn strict_refuses_warnings() {
    let assembler = assembler();
    for (name, bytes) in support::files("asm/must_fail") {
        let strict = assembler.assemble_bytes(&bytes, &name, Policy::Strict);
        let error = strict.map(|_| ()).unwrap_err();
        assert!(error.diagnostics.iter().all(|d| !d.message.is_empty() && !d.help.is_empty()), "{name}");
        assert!(error.to_string().contains("error["), "{name}");
    }
}

/// Documented gaps refuse a program when it is checked, and only warn when it is run.
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

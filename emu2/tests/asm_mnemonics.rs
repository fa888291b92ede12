//! The mnemonics of the spec, compared with a list that was typed by hand.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use emu2::asm::{assemble, Policy};
use emu2::spec::{LevelName, MatrixKernel, Mnemonic, Spec};
use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

/// From an operation to its mnemonics.
fn typed() -> HashMap<String, BTreeSet<String>> {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../tests/data/mnemonics.txt");
    let text = std::fs::read_to_string(path).unwrap();
    let mut all = HashMap::new();
    for line in text.lines().filter(|l| !l.is_empty() && !l.starts_with('#')) {
        let mut words = line.split(' ').map(str::to_string);
        let op = words.next().unwrap();
        let mnemonics: Vec<String> = words.collect();
        let distinct: BTreeSet<String> = mnemonics.iter().cloned().collect();
        assert_eq!(distinct.len(), mnemonics.len(), "{op}: a mnemonic stands there twice");
        assert!(all.insert(op.clone(), distinct).is_none(), "{op} stands there twice");
    }
    all
}

fn op_of(spec: &Spec, mnemonic: &Mnemonic) -> Option<String> {
    match mnemonic {
        Mnemonic::Alu { op, .. } => Some(spec.alu[*op].name.clone()),
        Mnemonic::Mau { op, .. } => Some(spec.mau[*op].name.clone()),
        Mnemonic::Matrix { op, .. } => Some(spec.matrix_ops[*op].name.clone()),
        Mnemonic::Transfer(at) => {
            // The mnemonic without its reduction, but with the parts glued behind it.
            Some(spec.transfers[*at].entry.clone())
        }
        Mnemonic::Control(_) => None,
    }
}

/// A parameter and operands for a transfer above L1BM.
fn operands(op: &str) -> &'static str {
    match op {
        "mvp" | "mvd" => "/n64 $p0@0 $d0",
        "mvb" => "/n64 $p0@0 $lc0",
        "mvb2" | "mvb4" => "/n64 $d0 $lc0",
        "mvr" => "/n64 $lc0 $p0@0",
        "mvr2" | "mvr4" => "/n64 $lc0 $d0",
        "l2bmb" | "l2bmb2" | "l2bmd" => "@0 $lc0 $lb0",
        "l2bm" | "l2bmr" => "@1 $lb0 $lc0",
        "l2bmr2" => " $lb0 $lc0",
        "l2bmi" => "@0 $lb0 $lb64",
        "l2bmdars" => " $lc0@.0 $dar0",
        _ => "",
    }
}

#[test]
fn none_is_missing_and_none_is_extra() {
    for name in emu2::spec::built_in_names() {
        let spec = Spec::load(&name).unwrap();
        let mut made: HashMap<String, BTreeSet<String>> = HashMap::new();
        for (text, mnemonic) in &spec.mnemonics {
            if let Some(op) = op_of(&spec, mnemonic) {
                made.entry(op).or_default().insert(text.clone());
            }
        }
        let typed = typed();
        let ops = |all: &HashMap<String, BTreeSet<String>>| all.keys().cloned().collect::<BTreeSet<_>>();
        assert_eq!(ops(&made), ops(&typed), "{name}");
        for (op, mnemonics) in typed {
            assert_eq!(made[&op], mnemonics, "{name}: {op}");
        }
    }
}

/// Every mnemonic assembles and runs with operands of its shape. With one operand less it does not assemble.
#[test]
fn every_mnemonic_assembles_and_runs() {
    let spec = Arc::new(Spec::load("mini").unwrap());
    let mut machine = emu2::machine::Machine::new(spec.clone());
    let typed = typed();
    for (op, text) in typed.iter().flat_map(|(op, all)| all.iter().map(move |text| (op, text.clone()))) {
        let above = |at: usize| spec.transfers[at].level != LevelName::L1b;
        if matches!(spec.mnemonics[&text], Mnemonic::Transfer(at) if above(at)) {
            let operands = operands(op).replace("$p0@0 $d0", if op == "mvp" { "$p0@0 $d0@0" } else { "$p0@0 $d0" });
            let program =
                assemble(&format!("{text}{operands}\n"), &text, &spec, Policy::Check).unwrap_or_else(|e| panic!("{e}"));
            emu2::exec::run(&mut machine, &program, &mut |_, _| Ok(())).unwrap_or_else(|e| panic!("{text}: {e:?}"));
            if let Some((fewer, _)) = operands.rsplit_once(' ') {
                assert!(assemble(&format!("{text}{fewer}\n"), &text, &spec, Policy::Check).is_err(), "{text}{fewer}");
            }
            continue;
        }
        let mnemonic = spec.mnemonics[&text];
        let sources = ["$lm0v", "$ln0v", "$lr0v"];
        let (head, shape) = match mnemonic {
            Mnemonic::Alu { op, precision, .. } => {
                let entry = &spec.alu[op];
                let letter = precision.map(|p| spec.precisions[p].name.clone());
                let length = entry.lengths.as_ref().filter(|l| letter.as_ref() == Some(&l.precision));
                let length = length.map_or(String::new(), |l| format!("/{}", l.maximum));
                let literal = if entry.literal { " i\"1\"" } else { "" };
                (format!("{text}{length}{literal}"), sources[..entry.sources as usize].to_vec())
            }
            Mnemonic::Mau { op, .. } => {
                let entry = &spec.mau[op];
                let bank = entry.matrix.then_some("$lx");
                (text.clone(), bank.into_iter().chain(sources[..entry.sources.len()].iter().copied()).collect())
            }
            Mnemonic::Matrix { op, precision, .. } => {
                let entry = &spec.matrix_ops[op];
                let wide = entry.wide_only.contains(&spec.precisions[precision].name);
                let bank = if wide { "$lly2" } else { "$ly2" };
                let shape = if entry.kernel == MatrixKernel::Write { vec!["$lm0v", bank] } else { vec![bank] };
                (text.clone(), shape)
            }
            Mnemonic::Transfer(at) if spec.transfers[at].reduction.is_some() => (text.clone(), vec!["$lm0v", "$lb64"]),
            Mnemonic::Transfer(_) => (text.clone(), vec!["$lb64"]),
            Mnemonic::Control(_) => panic!("{text}"),
        };
        let written = matches!(mnemonic, Mnemonic::Matrix { .. } | Mnemonic::Transfer(_)) && shape.len() == 2;
        let destinations = if written { "" } else { "$ls0v" };
        let line = |shape: &[&str]| format!("{head} {} {destinations}\n", shape.join(" "));
        let program = assemble(&line(&shape), &text, &spec, Policy::Check).unwrap_or_else(|e| panic!("{e}"));
        assert!(program.warnings.is_empty(), "{text}");
        emu2::exec::run(&mut machine, &program, &mut |_, _| Ok(())).unwrap_or_else(|e| panic!("{text}: {e:?}"));
        if let Some((_, fewer)) = shape.split_last() {
            assert!(assemble(&line(fewer), &text, &spec, Policy::Check).is_err(), "{}", line(fewer));
        }
    }
}

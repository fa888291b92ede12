//! The assembler's rules stand in the spec: a changed row changes which programs are legal, and the loader refuses bad
//! rows.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use emu2::asm::{assemble, Policy};
use emu2::error::{Code, Error};
use emu2::spec::Spec;
use std::sync::Arc;

/// The large machine with some changed rows.
fn changed(name: &str, rows: &str) -> Result<Spec, Error> {
    let path = std::env::temp_dir().join(format!("emu2_asm_spec_{}_{name}.toml", std::process::id()));
    std::fs::write(&path, format!("extends = \"mncore2\"\n{rows}")).unwrap();
    let spec = Spec::load(path.to_str().unwrap());
    std::fs::remove_file(&path).unwrap();
    spec
}

fn legal(spec: &Arc<Spec>, text: &str) -> Result<(), Vec<Code>> {
    match assemble(text, "test.vsm", spec, Policy::Check) {
        Ok(program) if program.warnings.is_empty() => Ok(()),
        Ok(program) => Err(program.warnings.iter().map(|d| d.code).collect()),
        Err(error) => Err(error.diagnostics.iter().map(|d| d.code).collect()),
    }
}

#[test]
fn a_changed_row_changes_the_rule() {
    let usual = Arc::new(Spec::load("mncore2").unwrap());
    let table: &[(&str, &str, &str, Code)] = &[
        ("gap", "[[hazard]]\nname = \"lm\"\nsteps = 0\n", "lpassa $lr0 $lm0\nlpassa $lm0 $ls0\n", Code::PortHazard),
        (
            "cycles",
            "[[hazard]]\nname = \"grf\"\ncycles = 2\n",
            "iinc $lm0v $lr0v\nlpassa $lr0v $ls0v\n",
            Code::DataHazard,
        ),
        (
            "wait",
            "[[hazard]]\nname = \"mv\"\nmemories = [\"pdm\"]\n",
            "mvp/n64 $d0@0 $lc0@0.0\nl2bmb $lc0 $lb0\n",
            Code::WaitHazard,
        ),
        ("alone", "[[slot]]\nname = \"mv\"\nalone = false\n", "mvp/n64 $d0@0 $p0@0; nop\n", Code::NotAlone),
        ("company", "[[slot]]\nname = \"wait\"\nneeds_company = false\n", "wait i01\n", Code::NeedsCompany),
        ("priority", "[[slot]]\nname = \"mv\"\npriorities = 8\n", "mvp/n64p7 $d0@0 $p0@0\n", Code::BadMvParameter),
        ("letter", "[[operand]]\nname = \"lm0\"\nletter = \"q\"\n", "lpassa $lq0 $ln0\n", Code::UnknownOperand),
        ("size", "[[memory]]\nname = \"lm0\"\nwords = 4096\n", "lpassa $lm4096 $ln0\n", Code::OperandRange),
        ("excludes", "[[alu]]\nname = \"imm\"\nexcludes = []\n", "imm i\"1\" $lm0\n", Code::Excluded),
        ("ports", "[[memory]]\nname = \"lm1\"\nports = \"split\"\n", "lsub $ln4 $lm0 $ln6\n", Code::SharedPort),
        ("tags", "[timing]\ntag_maximum = 255\n", "mvp/n64i9f $d0@0 $p0@0\n", Code::UnusualTag),
        ("base", "[[hazard]]\nname = \"base\"\nsteps = 0\n", "lpassa $lr0 $lmb\nlpassa $lm0 $ls0\n", Code::PortHazard),
        (
            "share",
            "[[share]]\nname = \"mau\"\nlimit = 3\n",
            "fvadd $lm0v $lm0v $ln0v; fmwrite $ls0v $ly0; fmread $lx4 $lr0v\n",
            Code::UnitFull,
        ),
        (
            "precisions",
            "[[share]]\nname = \"mau\"\nslots = [\"mau\", \"mread\"]\n",
            "gmmul $lx $lm0v $ln0v; fmwrite $ls0v $ly0\n",
            Code::UnitPrecisions,
        ),
        (
            "bank",
            "[[memory]]\nname = \"mx\"\nports = \"split\"\n",
            "gmmul $lx $lm0v $ln0v; gmwrite $ls0v $lx0\n",
            Code::BankTwice,
        ),
        (
            "input",
            "[[matrix_op]]\nname = \"mwrite\"\nport = \"x\"\n",
            "fvmul $lr0v $ls0v $ln0v; fmwrite $lr0v $lx0\n",
            Code::SharedInput,
        ),
        ("wide", "[[matrix_op]]\nname = \"mread\"\nwide_only = []\n", "hmread $lx0 $lr0v\n", Code::WrongOperand),
        (
            "indirect",
            "[[operand]]\nname = \"lm1\"\naddressing = [\"indirect\"]\n",
            "lpassa $lnt4 $lr0v\n",
            Code::BadOperandAddress,
        ),
        (
            "modify",
            "[[operand]]\nname = \"grf0\"\naddressing = [\"modify\"]\n",
            "lpassa $lr4j0 $lm0v\n",
            Code::BadOperandAddress,
        ),
        ("entries", "[mask]\nentries = 20\n[[memory]]\nname = \"omr\"\nwords = 80\n", "maskm 35\n", Code::BadMask),
        (
            "first",
            "[[forward]]\nname = \"mreadf\"\nfirst_alu_input_only = false\n",
            "dmread $lx0 $nowrite\nlxor $lm0v $mreadf $lr0v\n",
            Code::WrongOperand,
        ),
        ("port", "[ports]\nmv_unit = 32\nmv_block = 32\n", "mvp/n32 $d0@0 $p0@0\n", Code::SizeUnit),
    ];
    for (name, rows, text, code) in table {
        assert_eq!(legal(&usual, text), Err(vec![*code]), "{name} as usual");
        let spec = Arc::new(changed(name, rows).unwrap_or_else(|e| panic!("{name}: {e}")));
        if *name == "alone" {
            // An MV beside a `nop` is still refused, with another code.
            assert_eq!(legal(&spec, text), Err(vec![Code::WrongCompany]), "{name}");
            continue;
        }
        assert_eq!(legal(&spec, text), Ok(()), "{name}");
    }
}

/// The usual rows allow each text. The rows in the table forbid it.
#[test]
fn a_longer_gap_is_a_rule() {
    let usual = Arc::new(Spec::load("mncore2").unwrap());
    let table: &[(&str, &str, &str)] = &[
        ("mask", "[[hazard]]\nname = \"mask\"\nsteps = 1\n", "lpassa $lm0v $omr1\nlpassa $lm0v $ls0v/$imr1\n"),
        ("flush", "[[hazard]]\nname = \"mask\"\nsteps = 1\n", "lpassa $lm0v $omr1\nlpassa/$imr1 $lm0v $ls0v\n"),
        (
            "statement",
            "[[hazard]]\nname = \"mask\"\nsteps = 1\n",
            "masks 2\nfvadd $ln0v $ln0v $omr2\nlpassa $lm0v $ls0v\n",
        ),
        ("product", "[[hazard]]\nname = \"matrix\"\nsteps = 1\n", "dmwrite $lm0v $lx0\ndmmulu $lx $lm0v $ls0v\n"),
        ("read", "[[hazard]]\nname = \"matrix\"\nsteps = 1\n", "gmwrite $lm0v $ly0\ngmread $ly4 $ls0v\n"),
        (
            "length",
            "[[alu]]\nname = \"bfn\"\nlengths = { precision = \"h\", minimum = 6, maximum = 7 }\n",
            "hbfn/8 $lm0v $ls0v\n",
        ),
    ];
    for (name, rows, text) in table {
        assert_eq!(legal(&usual, text), Ok(()), "{name} as usual");
        let spec = Arc::new(changed(&format!("longer_{name}"), rows).unwrap_or_else(|e| panic!("{name}: {e}")));
        let expected = if *name == "length" { Code::BadLength } else { Code::DataHazard };
        assert_eq!(legal(&spec, text), Err(vec![expected]), "{name}");
    }
    let spec = Arc::new(changed("longer_other", table[0].1).unwrap());
    assert_eq!(legal(&spec, "lpassa $lm0v $omr1\nlpassa $lm0v $ls0v/$imr2\n"), Ok(()), "another entry");
    let spec = Arc::new(changed("longer_bank", table[3].1).unwrap());
    assert_eq!(legal(&spec, "dmwrite $lm0v $lx0\ndmmulu $ly $lm0v $ls0v\n"), Ok(()), "another register");
}

#[test]
fn bad_rows_are_refused() {
    let table = [
        ("memory", "[[hazard]]\nname = \"lm\"\nmemories = [\"lm2\"]\n", Code::SpecUnknownName),
        ("writer", "[[hazard]]\nname = \"lm\"\nwriters = [\"pe\"]\n", Code::SpecUnknownName),
        ("reader", "[[hazard]]\nname = \"lm\"\nreaders = [\"pe\"]\n", Code::SpecUnknownName),
        ("rule", "[[hazard]]\nname = \"lm\"\nrule = \"never\"\n", Code::SpecUnknownName),
        ("both", "[[hazard]]\nname = \"grf\"\nsteps = 1\n", Code::SpecBadValue),
        ("far", "[[hazard]]\nname = \"lm\"\nsteps = 65\n", Code::SpecBadValue),
        ("port_cycles", "[[hazard]]\nname = \"x\"\nmemories = [\"t\"]\nrule = \"port\"\ncycles = 1\ndoc = \"x\"\nevidence = \"guess\"\n", Code::SpecBadValue),
        ("wait_steps", "[[hazard]]\nname = \"mv\"\nsteps = 1\n", Code::SpecBadValue),
        ("no_gap", "[[hazard]]\nname = \"x\"\nmemories = [\"t\"]\nrule = \"data\"\ndoc = \"x\"\nevidence = \"guess\"\n", Code::SpecBadValue),
        ("no_memory", "[[hazard]]\nname = \"lm\"\nmemories = []\n", Code::SpecBadValue),
        ("forward_memory", "[[hazard]]\nname = \"idle_unit\"\nmemories = [\"t\"]\n", Code::SpecBadValue),
        ("upper_cycles", "[[hazard]]\nname = \"grf\"\nmemories = [\"l1bm\"]\n", Code::SpecBadValue),
        ("key", "[[hazard]]\nname = \"lm\"\nreader = [\"alu\"]\n", Code::SpecUnknownKey),
        ("company", "[[slot]]\nname = \"nop\"\nwith = [\"pe\"]\n", Code::SpecUnknownName),
        ("alone", "[[slot]]\nname = \"nop\"\nalone = true\n", Code::SpecBadValue),
        ("slot", "[[control]]\nname = \"nop\"\nslot = \"idle\"\n", Code::SpecUnknownName),
        ("matrix_slot", "[[matrix_op]]\nname = \"mread\"\nslot = \"read\"\n", Code::SpecUnknownName),
        ("share_slot", "[[share]]\nname = \"mau\"\nslots = [\"mau\", \"write\"]\n", Code::SpecUnknownName),
        ("share_limit", "[[share]]\nname = \"mau\"\nlimit = 0\n", Code::SpecBadValue),
        ("share_of_one", "[[share]]\nname = \"mau\"\nslots = [\"mau\"]\n", Code::SpecBadValue),
        ("statement", "[mask]\nstatement = \"msk\"\n", Code::SpecBadValue),
        ("statements", "[[control]]\nname = \"wait\"\nkernel = \"mask\"\n", Code::SpecBadValue),
        ("letter", "[mask]\nletter = \"m\"\n", Code::SpecBadValue),
        ("prefix", "[[operand]]\nname = \"grf0\"\nletter = \"l\"\nwidths = [\"l\"]\n", Code::SpecBadValue),
    ];
    for (name, rows, code) in table {
        let found = changed(&format!("bad_{name}"), rows).map(|_| ()).map_err(|e| e.code());
        assert_eq!(found, Err(code), "{name}");
    }
}

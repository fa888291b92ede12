//! Assembled text that the reader must refuse or warn of, and sources with unknown machine words: each for one reason at
//! one place. Every code of the family has a file.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod support;

use emu2::asm::{assemble_bytes, records, Policy, Record};
use emu2::error::Code;
use emu2::spec::Spec;
use emu2::word::{encode, pack, read, unpack, Form, Options, BLOCK, MAGIC};
use std::collections::HashSet;
use std::sync::Arc;
use support::expect::check;

fn files() -> Vec<(String, Vec<u8>)> {
    support::files("word/must_fail")
}

fn findings(name: &str, bytes: &[u8], spec: &Arc<Spec>) -> Vec<Record> {
    if name.ends_with(".asm") {
        return match read(bytes, name, spec) {
            Ok(program) => records(name, &program.text, &program.warnings),
            Err(error) => records(name, &error.text, &error.diagnostics),
        };
    }
    let program = assemble_bytes(bytes, name, spec, Policy::Run).unwrap_or_else(|e| panic!("{name}: {e}"));
    match encode(&program, Options::default()) {
        Ok(_) => Vec::new(),
        Err(error) => records(name, &error.text, &error.diagnostics),
    }
}

#[test]
fn must_fail() {
    let spec = Arc::new(Spec::load("mncore2").unwrap());
    let wrong: Vec<String> = files()
        .iter()
        .filter_map(|(name, bytes)| {
            Some(format!("{name}: {}", check(name, bytes, &findings(name, bytes, &spec)).err()?))
        })
        .collect();
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn every_code_has_a_file() {
    let named: HashSet<String> = files().into_iter().map(|(name, _)| name[..5].to_string()).collect();
    let table = Code::ALL.iter().map(|c| c.id()).filter(|id| id.starts_with('W'));
    let missing: Vec<_> = table.filter(|id| !named.contains(*id)).collect();
    // The case of the container is below.
    assert_eq!(missing, ["W0301"]);
}

/// Words that strict encoding refuses as inferred are written on demand, and a step without a word becomes a statement.
#[test]
fn refusals_follow_the_options() {
    let spec = Arc::new(Spec::load("mncore2").unwrap());
    for (name, bytes) in files().iter().filter(|(name, _)| name.ends_with(".vsm")) {
        let program = assemble_bytes(bytes, name, &spec, Policy::Run).unwrap();
        let inferred = encode(&program, Options { inferred: true, form: Form::Words });
        assert_eq!(inferred.is_ok(), name.starts_with("W0102"), "{name}");
        let mixed = encode(&program, Options { inferred: false, form: Form::Mixed });
        assert_eq!(mixed.is_ok(), !name.starts_with("W0104"), "{name}");
    }
}

/// A machine without known words refuses everything but debug statements, and says so.
#[test]
fn a_machine_without_words() {
    let mut spec = Spec::load("mini").unwrap();
    spec.encoding = None;
    let spec = Arc::new(spec);
    let program = assemble_bytes(b"d get $lm0 1\nnop/2\n", "none.vsm", &spec, Policy::Run).unwrap();
    let refused = encode(&program, Options::default()).unwrap_err();
    assert_eq!(refused.diagnostics.iter().map(|d| d.code).collect::<Vec<_>>(), [Code::NoWord]);
    let mixed = encode(&program, Options { form: Form::Mixed, inferred: false }).unwrap();
    let mut text = String::new();
    emu2::word::write(&spec, &mixed, &mut |piece| {
        text.push_str(piece);
        Ok(())
    })
    .unwrap();
    assert_eq!(text, "d get $lm0 1\ns nop\ns nop\n");
    assert_eq!(read(text.as_bytes(), "none.asm", &spec).unwrap().items.len(), 3);
    assert_eq!(read(b"i 0\n", "none.asm", &spec).unwrap_err().diagnostics[0].code, Code::BadLine);
}

#[test]
fn containers() {
    let spec = Arc::new(Spec::load("mncore2").unwrap());
    let program = assemble_bytes(b"ladd $lm0v $ln0v $lr0v # sum\nnop\n", "sum.vsm", &spec, Policy::Run).unwrap();
    let packed = pack(&program).unwrap();
    assert_eq!(unpack(&packed).unwrap(), "#line 1 \"sum.vsm\"\nladd $lm0v $ln0v $lr0v\nnop\n");
    let unnamed = assemble_bytes(b"nop\n", "<text>", &spec, Policy::Run).unwrap();
    assert_eq!(unpack(&pack(&unnamed).unwrap()).unwrap(), "nop\n");
    let mut table: Vec<(Vec<u8>, &str)> = (0..packed.len()).map(|n| (packed[..n].to_vec(), "")).collect();
    table.push(([packed.clone(), vec![0]].concat(), "blocks"));
    table.push(([&MAGIC[..], &[3, 0, 0, 0], &packed[12..]].concat(), "version 3"));
    let changed = |place: usize, byte: u8| {
        let mut changed = packed.clone();
        changed[place] = byte;
        changed
    };
    table.push((changed(16, 0xff), "UTF-8"));
    table.push((changed(13, 0xff), "bytes of text"));
    table.push((changed(12, 3), "bytes of text"));
    for (bytes, reason) in table {
        let error = unpack(&bytes).unwrap_err();
        assert_eq!(error.code(), Code::BadContainer);
        assert!(error.0.message.contains(reason), "{error}");
    }
}

/// The tags of a program lie in its blocks, where tools look for those of real instructions.
#[test]
fn containers_show_tags() {
    let spec = Arc::new(Spec::load("mncore2").unwrap());
    let source = "nop; wait i10\n".to_string() + &"mvp/n64i3f $p0@0 $lc0@0.0\nnop; wait i3f\n".repeat(5);
    let program = assemble_bytes(source.as_bytes(), "tags.vsm", &spec, Policy::Run).unwrap();
    let packed = pack(&program).unwrap();
    assert_eq!(packed.len() % BLOCK, 0);
    let bits = |block: &[u8], first: usize, count: usize| -> u32 {
        (0..count).map(|k| u32::from(block[(first + k) / 8] >> ((first + k) % 8) & 1) << k).sum()
    };
    let (mut waits, mut mvs) = (Vec::new(), Vec::new());
    for block in packed.chunks_exact(BLOCK) {
        assert_eq!(bits(block, 1022, 2), 1);
        waits.extend([292, 596, 900].map(|first| bits(block, first, 8)).into_iter().filter(|tag| *tag != 0));
        mvs.extend(Some(bits(block, 935, 8)).filter(|tag| *tag != 0));
    }
    assert_eq!((waits, mvs), (vec![0x10, 0x3f, 0x3f, 0x3f, 0x3f, 0x3f], vec![0x3f; 5]));
}

//! What the assembler makes of each form of the language.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use emu2::asm::*;
use emu2::error::Code;
use emu2::spec::Spec;
use std::sync::Arc;

fn spec(name: &str) -> Arc<Spec> {
    Arc::new(Spec::load(name).unwrap())
}

fn program(text: &str) -> Program {
    assemble(text, "test.vsm", &spec("mncore2"), Policy::Run).unwrap_or_else(|e| panic!("{text}\n{e}"))
}

/// The only step of a one-line program.
fn step(text: &str) -> Step {
    match &program(text).items[..] {
        [Item { kind: ItemKind::Step(step), .. }] => (**step).clone(),
        items => panic!("{text}: {items:?}"),
    }
}

fn mv(text: &str) -> Mv {
    match &program(text).items[..] {
        [Item { kind: ItemKind::Mv(mv), .. }] => (**mv).clone(),
        items => panic!("{text}: {items:?}"),
    }
}

fn first_source(text: &str) -> Source {
    step(text).pe[0].sources[0].clone()
}

/// Words of 32 bits that an operand touches in each cycle.
#[test]
fn words_touched_per_cycle() {
    let table: &[(&str, [(u32, u32); 4])] = &[
        ("$lr0v", [(0, 1), (2, 3), (4, 5), (6, 7)]),
        ("$llr0v", [(0, 3), (4, 7), (8, 11), (12, 15)]),
        ("$s3v2", [(3, 3), (5, 5), (7, 7), (9, 9)]),
        ("$lln4v8", [(4, 7), (12, 15), (20, 23), (28, 31)]),
        ("$lm0", [(0, 1); 4]),
        ("$lr[256,256,256,0]", [(256, 257), (256, 257), (256, 257), (0, 1)]),
        ("$m7v", [(7, 7), (8, 8), (9, 9), (10, 10)]),
        ("$lm0v0", [(0, 1); 4]),
    ];
    for (operand, expected) in table {
        let source = first_source(&format!("lpassa {operand} $nowrite"));
        let SourceKind::Memory(access) = source.kind else { panic!("{operand}") };
        let touched = [0, 1, 2, 3].map(|c| (access.address.at(c), access.address.at(c) + access.words - 1));
        assert_eq!(touched, *expected, "{operand}");
    }
}

#[test]
fn sources() {
    let spec = spec("mncore2");
    let memory = |name: &str| spec.memory(name).unwrap();
    let stride = |name: &str, words, base, stride| {
        SourceKind::Memory(Access { memory: memory(name), words, address: Address::Stride { base, stride } })
    };
    let entry = || SourceKind::Memory(Access { memory: memory("t"), words: 4, address: Address::Cycle });
    let path = |name: &str| SourceKind::Forward(spec.forwards.iter().position(|f| f.name == name).unwrap());
    let fixed = |name: &str| SourceKind::Fixed(spec.fixed.iter().position(|f| f.name == name).unwrap());
    let table = [
        ("lpassa $n5", stride("lm1", 1, 5, 0), false, None),
        ("lpassa $t", entry(), false, None),
        ("lpassa $llt", entry(), false, None),
        ("lpassa $aluf", path("aluf"), false, None),
        ("lpassa $l2bid", fixed("l2bid"), false, None),
        ("lpassa $msb1", fixed("msb1"), false, None),
        ("hpassa $llm8vr", stride("lm0", 4, 8, 4), false, Some(Convert::Reduce)),
        ("hpassa $aluf", path("aluf"), false, None),
        ("hpassa $maufr", path("mauf"), false, Some(Convert::Reduce)),
        ("hpassa $ltr", entry(), false, Some(Convert::Reduce)),
        ("fvpassa -$te", entry(), true, Some(Convert::Extend)),
        ("fvpassa $m0ve", stride("lm0", 1, 0, 1), false, Some(Convert::Extend)),
        ("dvpassa -$s4e", stride("grf1", 1, 4, 0), true, Some(Convert::Extend)),
        ("dvpassa -$maufe", path("mauf"), true, Some(Convert::Extend)),
    ];
    for (text, kind, negate, convert) in table {
        let source = first_source(&format!("{text} $nowrite"));
        assert_eq!((source.kind, source.negate, source.convert), (kind, negate, convert), "{text}");
    }
}

#[test]
fn destinations() {
    let table: &[(&str, &[Option<u32>])] = &[
        ("$nowrite", &[]),
        ("$lr0v", &[None]),
        ("$lr0v/1000", &[Some(0b0001)]),
        ("$lr0v/0011", &[Some(0b1100)]),
        ("$lr0v/1000t", &[Some(0b0001)]),
        ("$lr0v $ls0v/0100 $t/0000", &[None, Some(0b0010), Some(0)]),
    ];
    for (text, masks) in table {
        let step = step(&format!("lpassa $lm0v {text}"));
        let found: Vec<_> = step.pe[0].destinations.iter().map(|d| d.mask).collect();
        assert_eq!(found, *masks, "{text}");
    }
}

#[test]
fn literals() {
    let table = [
        ("f\"3.14\"", 0x4048_F5C3),
        ("f\"inf\"", 0x7F80_0000),
        ("f\"-inf\"", 0xFF80_0000),
        ("f\"-0\"", 0x8000_0000),
        ("f\"1.00000005960464477539062500001\"", 0x3F80_0001),
        ("f\"1.000000059604644775390625\"", 0x3F80_0000),
        ("i\"12\"", 12),
        ("i\"-1\"", 0xFFFF_FFFF),
        ("i\"0x40000000\"", 0x4000_0000),
        ("i\"0b111\"", 7),
        ("ui\"0xFF000000\"", 0xFF00_0000),
        ("s\"7\"", 0x0007_0007),
        ("s\"-1\"", 0xFFFF_FFFF),
        ("s\"0b0100000111111000\"", 0x41F8_41F8),
        ("us\"65535\"", 0xFFFF_FFFF),
        ("h\"1.0\"", 0x3E00_3E00),
        ("h\"-2\"", 0xC000_C000),
    ];
    for (text, word) in table {
        for mnemonic in ["imm", "immu"] {
            let step = step(&format!("{mnemonic} {text} $lr0"));
            let PeKind::Alu { literal, .. } = step.pe[0].kind else { panic!("{text}") };
            assert_eq!(literal, Some(word), "{text}");
        }
    }
}

#[test]
fn transfers() {
    let spec = spec("mncore2");
    let table = [
        ("l1bmd $lb0 $lm0v", "to_pe", 0, 0),
        ("l1bmd+1 $lb64 $lm0v", "to_pe", 1, 64),
        ("l1bmd-3 $lm0v $lb128", "from_pe", -3, 128),
        ("l1bmp $lb5 $lm0v $ln0v", "to_pe", 0, 5),
        ("l1bmp $llb8 $llr0v", "to_pe_2", 0, 8),
        ("l1bmm $lb4 $nowrite", "to_pe", 0, 4),
        ("l1bmm@3 $lr0v $lb16", "from_pe", 3, 16),
        ("l1bmm@15 $aluf $llb8", "from_pe_2", 15, 8),
    ];
    for (text, name, parameter, address) in table {
        let PeKind::L1bm { form, address: found } = step(text).pe[0].kind else { panic!("{text}") };
        let form_name = spec.forms[form.transfer][form.form].name.as_str();
        assert_eq!((form_name, form.parameter, found), (name, parameter, address), "{text}");
    }
    let upper = [
        ("l2bmb $lc16 $lb32", "down", 0, 16, 32),
        ("l2bmd $lc64 $lb8", "down", 0, 64, 8),
        ("l2bmd $lb8 $lc64", "up", 0, 8, 64),
        ("l2bm@3 $lb0 $lc64", "up", 3, 0, 64),
    ];
    for (text, name, parameter, source, destination) in upper {
        let found = step(text).l2bm[0].clone();
        let form = &spec.forms[found.form.transfer][found.form.form];
        let expected = (name, parameter, source, destination);
        assert_eq!((form.name.as_str(), found.form.parameter, found.source, found.destination), expected, "{text}");
    }
}

#[test]
fn mvs() {
    let spec = spec("mncore2");
    let unit = |group, l2b| Selected { group, l2b };
    let all = Selected::default();
    let table = [
        ("mvp/n64i02p1 $d16@0 $p32@3", "dram_to_pdm", (64, Some(2), 1), unit(Some(0), None), unit(Some(3), None)),
        (
            "mvp/p3i1Fn128 $lc16@2.1 $d32@0",
            "l2bm_to_dram",
            (128, Some(0x1f), 3),
            unit(Some(2), Some(1)),
            unit(Some(0), None),
        ),
        ("mvp/i9fn64 $d16 $lc32@.1", "dram_to_l2bm_parallel", (64, Some(0x9f), 0), all, unit(None, Some(1))),
        ("mvb/n64i00 $d16 $lc32", "dram_to_l2bm", (64, None, 0), all, all),
    ];
    for (text, name, (size, tag, priority), source, destination) in table {
        let found = mv(text);
        assert_eq!(spec.forms[found.form.transfer][found.form.form].name, name, "{text}");
        assert_eq!((found.size, found.tag, found.priority), (size, tag, priority), "{text}");
        assert_eq!((found.source, found.destination), (16, 32), "{text}");
        assert_eq!((found.source_unit, found.destination_unit), (source, destination), "{text}");
    }
}

#[test]
fn the_size_message_is_the_known_one() {
    let error = assemble("mvp/n32 $d0@0 $p0@0\n", "test.vsm", &spec("mncore2"), Policy::Run).unwrap_err();
    assert_eq!(error.diagnostics[0].message, "nw must be aligned to the multiple of 64");
    let error = assemble("mvp/n64 $lc0 $d0\n", "test.vsm", &spec("mncore2"), Policy::Run).unwrap_err();
    assert!(error.diagnostics[0].help.contains("`$lc0@.0 $d0`"), "{error}");
}

#[test]
fn control() {
    let kind = |text: &str| program(text).items.into_iter().map(|i| i.kind).collect::<Vec<_>>();
    assert!(matches!(kind("nop")[..], [ItemKind::Nop { count: 1, wait: None }]));
    assert!(matches!(kind("nop/4000000000")[..], [ItemKind::Nop { count: 4_000_000_000, wait: None }]));
    assert!(matches!(kind("wait i3f; nop")[..], [ItemKind::Nop { count: 1, wait: Some(0x3f) }]));
    assert!(matches!(kind("nop\nquit\n%%%")[..], [ItemKind::Nop { count: 1, wait: None }]));
    let step = step("noforward; iinc $lm0 $lr0; wait i01");
    assert_eq!((step.forward, step.wait, step.pe.len()), (false, Some(1), 1));
}

#[test]
fn order_on_a_line_does_not_matter() {
    let forward = step("iinc $lm0 $lr0; l2bmb $lc0 $lb0");
    let backward = step("l2bmb $lc0 $lb0; iinc $lm0 $lr0;");
    assert_eq!((forward.pe[0].kind, forward.l2bm[0].form), (backward.pe[0].kind, backward.l2bm[0].form));
}

#[test]
fn places() {
    let program = program("# one\n\n\tnop ; wait i01 # three\r\n d  get $lm0n0c0b0m0p0 1\n");
    let found: Vec<_> =
        program.items.iter().map(|i| (i.line, &program.text[i.span.start as usize..i.span.end as usize])).collect();
    assert_eq!(found, [(3, "nop ; wait i01"), (4, "d  get $lm0n0c0b0m0p0 1")]);
}

#[test]
fn debug_statements() {
    let table = [
        ("d get $lm0n0c0b0m0p0 1", "d get $lm0n0c0b0m0p0 1", None, 2),
        (" d\tgeth  $ls0n0c0b0m0   1 # half", "d geth $ls0n0c0b0m0 1", Some("h"), 2),
        ("d getd $d0n0 1", "d getd $d0n0 1", Some("d"), 2),
        ("d getf $tn0c0b0m0p0 4", "d getf $ltn0c0b0m0p0 4", Some("f"), 2),
        ("d getf $t 04", "d getf $lt 4", Some("f"), 2),
        ("d get $m1p3 1", "d get $m1p3 1", None, 1),
    ];
    let spec = spec("mncore2");
    for (text, statement, precision, words) in table {
        let program = program(text);
        let ItemKind::Get(get) = &program.items[0].kind else { panic!("{text}") };
        let letter = get.precision.map(|p| spec.precisions[p].name.as_str());
        assert_eq!((get.statement.as_str(), letter, get.location.words), (statement, precision, words), "{text}");
    }
    let program =
        program("d set $lm0p1 2 3ff0000000000000000000000000000A\nd set $ltn1 2 l0000000000000001 l0000000000000002\n");
    let payloads: Vec<_> = program
        .items
        .iter()
        .map(|i| match &i.kind {
            ItemKind::Set(set) => (set.payload.clone(), set.location.units),
            other => panic!("{other:?}"),
        })
        .collect();
    assert_eq!(payloads[0], (vec![0x3ff0_0000_0000_0000, 0xA], [None, None, None, None, Some(1)]));
    assert_eq!(payloads[1], (vec![1, 2], [Some(1), None, None, None, None]));
}

#[test]
fn locations() {
    let spec = spec("mncore2");
    let all = [None; 5];
    let table = [
        ("$lr0n0c0b0m0p0", Some(("grf0", 2, 0, [Some(0); 5]))),
        ("$lm4094", Some(("lm0", 2, 4094, all))),
        ("$n4095p3n3", Some(("lm1", 1, 4095, [Some(3), None, None, None, Some(3)]))),
        ("$ltn1", Some(("t", 2, 0, [Some(1), None, None, None, None]))),
        ("$lb8191b7", Some(("l1bm", 2, 8191, [None, None, Some(7), None, None]))),
        ("$lc0n0c1", Some(("l2bm", 2, 0, [Some(0), Some(1), None, None, None]))),
        ("$d536870911", Some(("dram", 2, 536_870_911, all))),
        ("$p0n3", Some(("pdm", 2, 0, [Some(3), None, None, None, None]))),
        ("$p0c0", None),
        ("$lm0m16", None),
        ("$lm0 x", None),
        ("", None),
        ("$", None),
        ("$lé", None),
    ];
    for (text, expected) in table {
        let found = parse_location(text, &spec).ok();
        let found = found.map(|l| (spec.memories[l.memory].name.as_str(), l.words, l.address, l.units));
        assert_eq!(found, expected, "{text}");
    }
}

/// Programs that are not even text, or hold nothing.
#[test]
fn files() {
    let spec = spec("mncore2");
    let bytes = |bytes: &[u8]| match assemble_bytes(bytes, "test.vsm", &spec, Policy::Check) {
        Ok(program) => Ok(program.items.len()),
        Err(error) => {
            let first = &records(&error.name, &error.text, &error.diagnostics)[0];
            assert!(render(&error.name, &error.text, &error.diagnostics, false).contains(first.code));
            Err((first.code, first.line, first.column))
        }
    };
    assert_eq!(bytes(b""), Err((Code::EmptyFile.id(), 1, 1)));
    assert_eq!(bytes(b"\n"), Ok(0));
    assert_eq!(bytes(b"# nothing"), Ok(0));
    assert_eq!(bytes(b"d get $lm0n0c0b0m0p0 1\n"), Ok(1));
    assert_eq!(bytes(b"nop\nnop # caf\xe9\n"), Err((Code::NotUtf8.id(), 2, 10)));
    assert_eq!(bytes(b"\xff\xfen\0o\0p\0"), Err((Code::NotUtf8.id(), 1, 1)));
    assert_eq!(bytes("\u{feff}nop # café\n".as_bytes()), Ok(1));
    assert_eq!(bytes(b"nop"), Ok(1));
}

#[test]
fn findings_look_like_rustcs() {
    let text = "# x\niadd $lm0v $ln1v $lr0v # comment\n";
    let error = assemble(text, "test.vsm", &spec("mncore2"), Policy::Check).unwrap_err();
    let expected = "\
error[A0204]: address 1 is no multiple of 2, the words of `$ln`
 --> test.vsm:2:12
  |
2 | iadd $lm0v $ln1v $lr0v # comment
  |            ^^^^ the address is not aligned to the access
  |
  = help: use `$ln0` or `$ln2`";
    assert_eq!(error.to_string(), expected);
    let record = serde_json::to_string(&records(&error.name, &error.text, &error.diagnostics)[0]).unwrap();
    let expected =
        "{\"file\":\"test.vsm\",\"line\":2,\"column\":12,\"end_line\":2,\"end_column\":16,\"code\":\"A0204\",\
                    \"severity\":\"error\",\"message\":\"address 1 is no multiple of 2, the words of `$ln`\",\
                    \"help\":\"use `$ln0` or `$ln2`\"}";
    assert_eq!(record, expected);
}

/// Tabs and carriage returns move no underline, and nothing of the source reaches the terminal as control.
#[test]
fn underlines_keep_their_places() {
    let text = "nop\r\n\tiadd\t$lm0v $lé\x1b[31m $lr0v\r\n";
    let error = assemble(text, "test.vsm", &spec("mncore2"), Policy::Check).unwrap_err();
    let shown = error.to_string();
    assert!(shown.contains("\n2 |  iadd $lm0v $lé [31m $lr0v\n  |             ^^"), "{shown}");
    assert!(!shown.contains(['\t', '\r', '\x1b']), "{shown}");
}

#[test]
fn suggestions() {
    let table = [
        ("lpasa $lm0 $ln0", "did you mean `lpassa`?"),
        ("FVMUL $lm0 $ln0 $lr0", "did you mean `fvmul`?"),
        ("lpassa $alf $ln0", "did you mean `$aluf`?"),
        ("lpassa $lm0 $nowirte", "did you mean `$nowrite`?"),
    ];
    for (text, help) in table {
        let error = assemble(text, "test.vsm", &spec("mncore2"), Policy::Check).unwrap_err();
        assert_eq!(error.diagnostics[0].help, help, "{text}");
    }
}

/// Several findings in one run, in source order, and a bound on how many.
#[test]
fn many_findings() {
    let spec = spec("mncore2");
    let error = assemble("iad $lm0 $lr0; lpassa $lm1 $ln0\nnop/x\n", "test.vsm", &spec, Policy::Check).unwrap_err();
    let codes: Vec<_> = error.diagnostics.iter().map(|d| d.code).collect();
    assert_eq!(codes, [Code::UnknownMnemonic, Code::Misaligned, Code::NumberExpected]);
    let text = "lpassa $aluf $lm1\n".repeat(1000) + &"lpassa $mauf $lr4094v\n".repeat(10);
    let error = assemble(&text, "test.vsm", &spec, Policy::Check).unwrap_err();
    let last = error.diagnostics.last().unwrap();
    assert_eq!((error.diagnostics.len(), last.code), (101, Code::TooMany));
    assert_eq!(last.message, "and 910 more errors");
}

/// The programs of the spec are legal on every machine.
#[test]
fn spec_examples_assemble() {
    for name in emu2::spec::built_in_names() {
        let spec = spec(&name);
        let assembler = Assembler::new(&spec);
        for entry in spec.entries() {
            for example in entry.examples {
                let title = format!("{name} {}", entry.name);
                assembler.assemble(&example.text, &title, Policy::Check).unwrap_or_else(|e| panic!("{title}\n{e}"));
                for key in example.expect.keys().chain(example.expect_on.values().flat_map(|e| e.keys())) {
                    parse_location(key, &spec).unwrap_or_else(|e| panic!("{title}: {key}: {e}"));
                }
            }
        }
    }
}

/// Sizes and counts come from the spec: what the large machine takes, the small one refuses.
#[test]
fn another_machine() {
    let (large, small) = (spec("mncore2"), spec("mini"));
    for text in [
        "lpassa $lm2048 $ln0\n",
        "l1bmm@15 $lr0v $lb0\n",
        "l2bm@7 $lb0 $lc0\n",
        "mvp/n64 $d0@3 $p0@0\n",
        "l1bmp $lb4096 $lm0v\n",
        "d get $lm0n3 1\n",
        "l1bmd+15 $lb0 $lm0v\n",
    ] {
        assert!(assemble(text, "test.vsm", &large, Policy::Check).is_ok(), "{text}");
        assert!(assemble(text, "test.vsm", &small, Policy::Check).is_err(), "{text}");
    }
    assert!(assemble("l1bmd $lb16 $lm0v\n", "test.vsm", &small, Policy::Check).is_ok());
    assert!(assemble("l1bmd $lb16 $lm0v\n", "test.vsm", &large, Policy::Check).is_err());
}

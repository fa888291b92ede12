//! Transfers, MVs, control and debug statements, files, other machines.

use super::*;
use emu2::error::Code;
use emu2::spec::UnitSet;

#[test]
fn transfers() {
    let spec = spec("mncore2");
    let table = [
        ("l1bmd $lb0 $lm0v", "to_pe", 0, Some(0)),
        ("l1bmd+1 $lb64 $lm0v", "to_pe", 1, Some(64)),
        ("l1bmd-3 $lm0v $lb128", "from_pe", -3, Some(128)),
        ("l1bmd+15 $lm0v $lbi", "from_pe", 15, None),
        ("l1bmp $lb5 $lm0v $ln0v", "to_pe", 0, Some(5)),
        ("l1bmp $llb8 $llr0v", "to_pe_2", 0, Some(8)),
        ("l1bmm $lb4 $nowrite", "to_pe", 0, Some(4)),
        ("l1bmm@3 $lr0v $lb16", "from_pe", 3, Some(16)),
        ("l1bmm@15 $aluf $llb8", "from_pe_2", 15, Some(8)),
        ("l1bmm@15 $aluf $llbi", "from_pe_2", 15, None),
        ("l1bmm4 $lb16 $lr0v", "to_pe", 0, Some(16)),
        ("l1bmm4 $llb32 $llr0v", "to_pe_2", 0, Some(32)),
        ("l1bmm4@3 $t $lb16", "from_pe", 3, Some(16)),
        ("l1bmm4@0 $lmt0 $llb32", "from_pe_2", 0, Some(32)),
        ("l1bmrdfadd $lr0v $lb4", "from_pe", 0, Some(4)),
        ("l1bmrffadd $llr0v $llb8", "from_pe_2", 0, Some(8)),
        ("l1bmrffadd $lr0ve $llb8", "from_pe_2", 0, Some(8)),
        ("l1bmrffaddr $llr0v $lb4", "from_pe_narrow", 0, Some(4)),
        ("l1bmrffaddr $lr0ve $lbi", "from_pe_narrow", 0, None),
        ("l1bmrsbor $llr0v $llbi", "from_pe_2_bits", 0, None),
        ("l1bmrhmax $lr0v $lb4", "from_pe_half", 0, Some(4)),
        ("l1bmr4land $lr0v $lb16", "from_pe", 0, Some(16)),
        ("l1bmr4fmin $llr0v $llb32", "from_pe_2", 0, Some(32)),
        ("l1bmr4lbor $llr0v $llb32", "from_pe_2_bits", 0, Some(32)),
        ("l1bmr4fmaxr $aluf $lb16", "from_pe_narrow", 0, Some(16)),
        ("l1bmr4hfadd $lr0v $lbi", "from_pe_half", 0, None),
    ];
    for (text, name, parameter, address) in table {
        let PeKind::L1bm { form, address: found } = step(text).pe[0].kind else { panic!("{text}") };
        let form_name = spec.forms[form.transfer][form.form].name.as_str();
        assert_eq!((form_name, form.parameter, found), (name, parameter, address), "{text}");
    }
    let set = |first, free| UnitSet { first, free }.code();
    let upper = [
        ("l2bmb $lc16 $lb32", "down", set(0, 7), 16, 32),
        ("l2bmb@5 $lc16 $lb32", "down", set(5, 0), 16, 32),
        ("l2bmb@5/6 $lc16 $lb32", "down", set(1, 6), 16, 32),
        ("l2bmb2@0,1,4,5 $lc64 $lb32", "down", set(0, 5), 64, 32),
        ("l2bmd $lc64 $lb8", "down", set(0, 7), 64, 8),
        ("l2bmd@3,7 $lc64 $lb8", "down", set(3, 4), 64, 8),
        ("l2bmrdfadd@0/7 $lb16 $lc32", "up", set(0, 7), 16, 32),
        ("l2bmr2lor $lb16 $lc64", "up", 0, 16, 64),
        ("l2bmi@0,4 $lb16 $lb32", "between", set(0, 4), 16, 32),
        ("l2bmi@3 $lb16 $lb32", "between", set(3, 0), 16, 32),
        ("l2bmdars $lc64@.1 $dar1023", "to_buffer", 0, 64, 1023),
        ("l2bmdarw", "to_table", 0, 0, 0),
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

/// DRAM through the DAR, and a source without a selector.
#[test]
fn mvs_with_tables() {
    let table = [
        ("mvp/n64 $di1023@1 $lc64@0.0", (Some(1), None), (1023, 64)),
        ("mvp/nd3p1n128i04 $di7 $lc64@.0", (Some(3), None), (7, 64)),
        ("mvr4lband/i3fnd64n64 $lc64 $di5", (None, Some(64)), (64, 5)),
        ("mvd/n64 $p64@0 $di0", (None, Some(1)), (64, 0)),
        ("mvd/n64 $d64 $p0@2", (None, None), (64, 0)),
    ];
    for (text, tables, addresses) in table {
        let found = mv(text);
        assert_eq!((found.source_dar, found.destination_dar), tables, "{text}");
        assert_eq!((found.source, found.destination), addresses, "{text}");
    }
    let assumed = program("mvp/n64 $lc0 $d0");
    let [Item { kind: ItemKind::Mv(found), .. }] = &assumed.items[..] else { panic!("{assumed:?}") };
    assert_eq!(found.source_unit, Selected { group: None, l2b: Some(0) });
    assert!(program("mvnop").items.is_empty());
}

#[test]
fn the_size_message_is_the_known_one() {
    let error = assemble("mvp/n32 $d0@0 $p0@0\n", "test.vsm", &spec("mncore2"), Policy::Run).unwrap_err();
    assert_eq!(error.diagnostics[0].message, "nw must be aligned to the multiple of 64");
    let error = assemble("mvp/n64 $lc0 $p0\n", "test.vsm", &spec("mncore2"), Policy::Run).unwrap_err();
    assert!(error.diagnostics[0].help.contains("`$lc0@.0 $p0`"), "{error}");
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
        ("d get $omr1n0c0b0m0p0 1", "d get $omr1n0c0b0m0p0 1", None, 2),
        ("d getd $lx0n0c0b0m0p0 4", "d getd $lx0n0c0b0m0p0 4", Some("d"), 2),
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
        ("$omr15p1", Some(("omr", 2, 15, [None, None, None, None, Some(1)]))),
        ("$ly15m3", Some(("my", 2, 15, [None, None, None, Some(3), None]))),
        ("$omr16", None),
        ("$lx16", None),
        ("$llx0", None),
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

/// Programs that are not text, or are empty.
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
    assert_eq!(bytes(b"nop\nnop caf\xe9 # caf\xe9\n"), Err((Code::NotUtf8.id(), 2, 8)));
    // Comments may be in any encoding.
    assert_eq!(bytes(b"nop # caf\xe9\nnop\n"), Ok(2));
    assert_eq!(bytes(b"\xff\xfen\0o\0p\0"), Err((Code::NotUtf8.id(), 1, 1)));
    assert_eq!(bytes("\u{feff}nop # café\n".as_bytes()), Ok(1));
    assert_eq!(bytes(b"nop"), Ok(1));
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

/// Sizes and counts come from the spec: the small machine refuses values that the large one accepts.
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

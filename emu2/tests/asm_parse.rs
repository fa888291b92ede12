//! What the assembler makes of each form of the language.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use emu2::asm::*;
use emu2::error::Code;
use emu2::spec::{Spec, UnitSet};
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

/// Addresses with something added per PE.
#[test]
fn addresses_per_pe() {
    let table: &[(&str, (u32, u32, u32), bool, Option<u32>)] = &[
        ("$lmt", (2, 0, 0), true, None),
        ("$lmt0", (2, 0, 0), true, None),
        ("$mt8", (1, 8, 0), true, None),
        ("$lmt32v32", (2, 32, 32), true, None),
        ("$llmt4v", (4, 4, 4), true, None),
        ("$lm2048v4j0", (2, 2048, 4), false, Some(0)),
        ("$n4j3", (1, 4, 0), false, Some(3)),
        ("$llm8vj1", (4, 8, 4), false, Some(1)),
    ];
    for (operand, (words, base, stride), indirect, modify) in table {
        let (address, indirect, modify) = (Address::Stride { base: *base, stride: *stride }, *indirect, *modify);
        for text in [format!("lpassa {operand} $nowrite"), format!("lpassa $ls0v {operand}")] {
            let step = step(&text);
            let found = match &step.pe[0].destinations[..] {
                [written] => written.target.access().unwrap().clone(),
                _ => match &step.pe[0].sources[0].kind {
                    SourceKind::Memory(access) => access.clone(),
                    other => panic!("{text}: {other:?}"),
                },
            };
            let expected = Access { memory: found.memory, words: *words, address: address.clone(), indirect, modify };
            assert_eq!(found, expected, "{text}");
        }
    }
    let SourceKind::Memory(access) = first_source("lpassa $mt[0,2,4,6] $nowrite").kind else { panic!() };
    assert_eq!((access.address, access.indirect), (Address::Flat([0, 2, 4, 6].into()), true));
    let SourceKind::Memory(access) = first_source("dvpassa $mt4e $nowrite").kind else { panic!() };
    assert_eq!((access.address.at(1), access.indirect, access.words), (4, true, 1));
    let source = first_source("hpassa $llmtr $nowrite");
    assert_eq!(source.convert, Some(Convert::Reduce));
}

/// Base address registers, mask registers.
#[test]
fn register_destinations() {
    let spec = spec("mncore2");
    let base =
        |name: &str, words| Target::Base { base: spec.bases.iter().position(|b| b.name == name).unwrap(), words };
    let table = [
        ("$mb", base("mb", 1)),
        ("$lmb", base("mb", 2)),
        ("$nb", base("nb", 1)),
        ("$lnb", base("nb", 2)),
        ("$omr1", Target::Flags { entry: 1 }),
        ("$omr15", Target::Flags { entry: 15 }),
    ];
    for (text, target) in table {
        for line in [format!("lpassa $lr0 {text}"), format!("imm i\"1\" {text}"), format!("fvadd $lr0 $ls0 {text}")] {
            assert_eq!(step(&line).pe[0].destinations[0].target, target, "{line}");
        }
    }
    assert_eq!(step("l1bmp $lb0 $lnb").pe[0].destinations[0].target, base("nb", 2));
}

/// Matrix registers, with the rows of each precision.
#[test]
fn matrix_operands() {
    let spec = spec("mncore2");
    let bank = |name: &str| spec.banks.iter().position(|b| b.name == name).unwrap();
    let products = [
        ("dmmulu $lx $ls8v $nowrite", "x", Some(emu2::spec::Half::Upper), false, 1),
        ("dmfmadr $ly $ls8v -$mauf $n0v", "y", Some(emu2::spec::Half::Lower), true, 2),
        ("fmmul $lx $m0v $lr0v", "x", None, false, 1),
        ("gmfma $ly $lm0v $r0ve $ls0v", "y", None, false, 2),
        ("hmmulr $lx -$lr0v $ln32v", "x", None, true, 1),
    ];
    for (text, name, half, reduced, sources) in products {
        let instruction = step(text).pe[0].clone();
        let PeKind::Mau { half: found, reduced: r, bank: b, .. } = instruction.kind else { panic!("{text}") };
        assert_eq!((b, found, r), (Some(bank(name)), half, reduced), "{text}");
        assert_eq!(instruction.sources.len(), sources, "{text}");
    }
    let accesses = [
        ("dmwrite $ls0v $lx3", "mwrite", "x", 3, false),
        ("gmwrite -$m8ve $ly4", "mwrite", "y", 4, false),
        ("hmwrite $llm48vr $ly12", "mwrite", "y", 12, false),
        ("hmwrite $lls16v $llx14", "mwrite", "x", 14, true),
        ("dmread $ly0 $nowrite", "mread", "y", 0, false),
        ("fmread $lx7 $lr0v/1000 $ls0v", "mread", "x", 7, false),
        ("hmread/$llimr2 $lly8 $llr0v", "mread", "y", 8, true),
    ];
    for (text, op, name, row, wide) in accesses {
        let instruction = step(text).pe[0].clone();
        let PeKind::Matrix { op: o, bank: b, row: r, wide: w, .. } = instruction.kind else { panic!("{text}") };
        assert_eq!((spec.matrix_ops[o].name.as_str(), b, r, w), (op, bank(name), row, wide), "{text}");
        assert_eq!(instruction.sources.is_empty(), op == "mread", "{text}");
    }
}

/// Zero flush and mantissa length after the mnemonic.
#[test]
fn after_the_mnemonic() {
    let cycles = |wide, bits| Some(Mask { wide, entry: MaskEntry::Cycles(bits) });
    let register = |wide, entry| Some(Mask { wide, entry: MaskEntry::Register(entry) });
    let table = [
        ("lpassa/1000 $lm0v $ln0v", cycles(false, 0b0001), None),
        ("imm/0011 i\"1\" $ln0v", cycles(false, 0b1100), None),
        ("zero/$imr1 $ln0v", register(false, 1), None),
        ("hmmul/ll0101 $ly $ln0v $lls0v", cycles(true, 0b1010), None),
        ("hmread/$llimr2 $lly8 $llr0v", register(true, 2), None),
        ("l1bmp/1010t $lb0 $lr0v", cycles(false, 0b0101), None),
        ("l1bmd+1/$imr4 $lb0 $lr0v", register(false, 4), None),
        ("hbfn/9 $llm0vr $lr0v", None, Some(9)),
        ("hbfe/6/ll0111 $llm0v $llr0v", cycles(true, 0b1110), Some(6)),
        ("dbfn/1100 $lm0v $lr0v", cycles(false, 0b0011), None),
        ("gbfn $lm0v $lr0v", None, None),
    ];
    for (text, flush, kept) in table {
        let instruction = step(text).pe[0].clone();
        let length = match instruction.kind {
            PeKind::Alu { length, .. } => length,
            _ => None,
        };
        assert_eq!((instruction.zero_flush, length), (flush, kept), "{text}");
    }
}

/// A mask statement sets the masks of the memories it names, from the next line on; a mask of a destination goes before.
#[test]
fn mask_statements() {
    let cycles = |wide, bits| Some(Mask { wide, entry: MaskEntry::Cycles(bits) });
    let register = |wide, entry| Some(Mask { wide, entry: MaskEntry::Register(entry) });
    let line = "lpassa $lr16v $lm0v $ln0v $lr0v $ls0v $t $omr1 $lmb $lnb";
    let table: &[(&str, [Option<Mask>; 8])] = &[
        ("mask 0", [None; 8]),
        ("mask 5", [None; 8]),
        ("maskn 1", [None, register(false, 1), None, None, None, None, None, register(false, 1)]),
        ("maskm 16", [cycles(false, 0), None, None, None, None, None, cycles(false, 0), None]),
        ("maskllr 24", [None, None, cycles(true, 0b0001), None, None, None, None, None]),
        (
            "masklkts 20",
            [None, None, None, cycles(false, 0b0010), cycles(false, 0b0010), cycles(false, 0b0010), None, None],
        ),
        ("mask\tknmtsr\t31", [cycles(false, 0b1111); 8]),
        ("mask 0\nmaskn 1\nmaskr 2", [None, None, register(false, 2), None, None, None, None, None]),
        ("maskn 1 # comment\nnop\n# comment\nmask 0", [None; 8]),
    ];
    for (statement, masks) in table {
        let text = format!("{}\n{line}\n", statement.replace("mask\tk", "maskk"));
        let program = program(&text);
        let Some(ItemKind::Step(step)) = program.items.last().map(|i| &i.kind) else { panic!("{statement}") };
        let found: Vec<_> = step.pe[0].destinations.iter().map(|d| d.mask).collect();
        assert_eq!(found, *masks, "{statement}");
        assert!(
            program.items.iter().all(|i| matches!(i.kind, ItemKind::Step(_) | ItemKind::Nop { .. })),
            "{statement}"
        );
    }
    let program = program("masknr 1\nlpassa $lm0v $ln0v/1000 $lr0v\nlpassa $lm0v $ls0v $lr8v\n");
    let ItemKind::Step(step) = &program.items[0].kind else { panic!() };
    let found: Vec<_> = step.pe[0].destinations.iter().map(|d| d.mask).collect();
    assert_eq!(found, [cycles(false, 0b0001), register(false, 1)]);
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
        let address = Address::Stride { base, stride };
        SourceKind::Memory(Access { memory: memory(name), words, address, indirect: false, modify: None })
    };
    let entry = || {
        let (memory, address) = (memory("t"), Address::Cycle);
        SourceKind::Memory(Access { memory, words: 4, address, indirect: false, modify: None })
    };
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
    let cycles = |wide, bits| Some(Mask { wide, entry: MaskEntry::Cycles(bits) });
    let register = |wide, entry| Some(Mask { wide, entry: MaskEntry::Register(entry) });
    let table: &[(&str, &[Option<Mask>])] = &[
        ("$nowrite", &[]),
        ("$lr0v", &[None]),
        ("$lr0v/1000", &[cycles(false, 0b0001)]),
        ("$lr0v/0011", &[cycles(false, 0b1100)]),
        ("$lr0v/1000t", &[cycles(false, 0b0001)]),
        ("$lr0v/l1000p", &[cycles(false, 0b0001)]),
        ("$llr0v/ll0111", &[cycles(true, 0b1110)]),
        ("$lr0v/$imr3", &[register(false, 3)]),
        ("$lr0v/$imr15t", &[register(false, 15)]),
        ("$llr0v/$llimr1 $t", &[register(true, 1), None]),
        ("$omr2/$imr3 $lmb/$imr3", &[register(false, 3), register(false, 3)]),
        ("$lr0v $ls0v/0100 $t/0000", &[None, cycles(false, 0b0010), cycles(false, 0)]),
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

/// DRAM through the table, and a source that selects nothing.
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
        assert_eq!((found.source_table, found.destination_table), tables, "{text}");
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
    assert_eq!(bytes(b"nop\nnop caf\xe9 # caf\xe9\n"), Err((Code::NotUtf8.id(), 2, 8)));
    // Comments may be in any encoding.
    assert_eq!(bytes(b"nop # caf\xe9\nnop\n"), Ok(2));
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

/// What is said of a giant line is short, whatever the line holds, and names the right place.
#[test]
fn findings_of_giant_lines_are_short() {
    let spec = spec("mini");
    let many = |text: &str| text.repeat(200_000 / text.len());
    let table = [
        (many("x"), "A0102", 1),
        (many("é"), "A0101", 1),
        (format!("lpassa {}", many("$")), "A0201", 8),
        (format!("lpassa {}", many("$lr0 ")), "A0209", 328),
        (format!("lpassa $lr[{}0] $ln0", many("0,")), "A0206", 11),
        (format!("imm i\"{}\" $lr0", many("9")), "A0304", 5),
        (format!("d get{} $lm0 1", many("x")), "A0501", 3),
        (format!("lpassa{}$lr0 $lq0", many(" ")), "A0201", 200_012),
        (format!("nop/{}", many("9")), "A0104", 5),
        (format!("mask{} 1", many("q")), "A0213", 5),
        (many("zero $lr0;"), "A0601", 11),
        (many("x;"), "A0102", 1),
    ];
    for (text, code, column) in table {
        let error = assemble(&text, "test.vsm", &spec, Policy::Check).unwrap_err();
        let first = &records(&error.name, &error.text, &error.diagnostics)[0];
        assert_eq!((first.code, first.line, first.column), (code, 1, column), "{}", &first.message);
        assert!(error.diagnostics.iter().all(|d| d.message.len() + d.help.len() < 800), "{code}");
        let shown = error.to_string();
        assert!(shown.len() < 1000 * error.diagnostics.len(), "{code}: {} bytes", shown.len());
        assert!(shown.contains(&format!("test.vsm:1:{column}")), "{code} {column}: {shown}");
    }
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
        ("lpassa $lm0 $omar1", "did you mean `$omr`?"),
        ("maskx 1", "use m, n, r, s, t, k"),
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

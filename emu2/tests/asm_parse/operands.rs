//! Operands of PE instructions, masks, literals.

use super::*;

/// Addresses to which a part per PE is added.
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

/// A mask statement sets the masks of the memories that it names, from the next line on. A mask of a destination takes
/// precedence.
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

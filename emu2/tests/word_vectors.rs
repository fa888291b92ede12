//! The conformance vectors of the spec, in both directions.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use emu2::asm::{assemble, ItemKind, Policy, Program};
use emu2::spec::{Encoding, Spec};
use emu2::word::{decode_word, encode, print, statement, Content, Form, Line, Options, Word};
use std::sync::Arc;

fn spec(name: &str) -> Arc<Spec> {
    Arc::new(Spec::load(name).unwrap())
}

fn encoding(spec: &Spec) -> &Encoding {
    spec.encoding.as_ref().unwrap()
}

fn program(text: &str, spec: &Arc<Spec>) -> Program {
    assemble(text, "vector.vsm", spec, Policy::Run).unwrap_or_else(|e| panic!("{text}\n{e}"))
}

/// The only word of a program, which may use only words that have been seen.
fn word(text: &str, spec: &Arc<Spec>) -> Word {
    let lines = encode(&program(text, spec), Options::default()).unwrap_or_else(|e| panic!("{text}\n{e}"));
    match lines[..] {
        [Line { count: 1, content: Content::Word(word) }] => word,
        _ => panic!("{text}: {lines:?}"),
    }
}

/// The statement that a word spells.
fn text(word: &Word, spec: &Spec) -> String {
    let decoded = decode_word(spec, encoding(spec), word).unwrap_or_else(|e| panic!("{word}\n{}", e.message));
    assert!(decoded.inferred.is_empty(), "{:?}", decoded.inferred);
    let kind = decoded.step.map_or(ItemKind::Nop { count: 1, wait: None }, |s| ItemKind::Step(Box::new(s)));
    statement(spec, &kind)
}

/// Literals in the form that every word can have.
fn canonical(name: &str) -> &str {
    match name {
        r#"imm f"0.1" $lr0v"# => r#"imm ui"0x3DCCCCCD" $lr0v"#,
        r#"imm f"-1.0" $ls0v"# => r#"imm ui"0xBF800000" $ls0v"#,
        r#"imm f"2.0" $t"# => r#"imm ui"0x40000000" $t"#,
        r#"immu i"0x40180000" $nowrite"# => r#"immu ui"0x40180000" $nowrite"#,
        other => other,
    }
}

/// A word from hex digits. The first digit holds the remaining bits.
fn from_hex(hex: &str, spec: &Spec) -> Word {
    let digits: String = hex.chars().map(|c| format!("{:04b}", c.to_digit(16).unwrap())).collect();
    Word::from_digits(&digits.as_bytes()[digits.len() - encoding(spec).bits as usize..]).unwrap()
}

#[test]
fn vectors_encode() {
    for spec in [spec("mncore2"), spec("mini")] {
        let vectors = &encoding(&spec).vectors;
        assert_eq!(vectors.len(), 35);
        for vector in vectors {
            assert_eq!(word(&vector.name, &spec).hex(), vector.hex, "{}", vector.name);
        }
    }
}

#[test]
fn vectors_decode() {
    for spec in [spec("mncore2"), spec("mini")] {
        for vector in &encoding(&spec).vectors {
            assert_eq!(text(&from_hex(&vector.hex, &spec), &spec), canonical(&vector.name));
        }
    }
}

/// The program of each vector, printed and assembled, gives the same word.
#[test]
fn vectors_print() {
    let spec = spec("mncore2");
    for vector in &encoding(&spec).vectors {
        let printed = print(&program(&vector.name, &spec));
        assert_eq!(printed.trim_end(), canonical(&vector.name));
        assert_eq!(word(&printed, &spec).hex(), vector.hex, "{}", vector.name);
    }
}

#[test]
fn several_lines_keep_their_order() {
    let spec = spec("mncore2");
    let source = "\
# a comment
nop/3
d set $tn0c0b0m0p0 1 3ff0abcdef012345  # another
fvadd $lr64v $ls64v $ln0v;
d getf $lm0n0c0b0m0p0 4
";
    let lines = encode(&program(source, &spec), Options::default()).unwrap();
    let mut out = String::new();
    emu2::word::write(&spec, &lines, &mut |text| {
        out.push_str(text);
        Ok(())
    })
    .unwrap();
    let idle = format!("i {}", Word::idle(encoding(&spec)));
    let add = format!("i {}", word("fvadd $lr64v $ls64v $ln0v", &spec));
    let set = "d set $ltn0c0b0m0p0 1 3FF0ABCDEF012345";
    let expected = [&idle, &idle, &idle, set, &add, "d getf $lm0n0c0b0m0p0 4"];
    assert_eq!(out.lines().collect::<Vec<_>>(), expected);
}

#[test]
fn forms_of_text() {
    let spec = spec("mncore2");
    let source =
        "nop/2; wait i03\nmvp/n64i03 $p0@0 $d0@0\nladd $lm0 $ln0 $lr0\nd get $lr0 1\nfvadd $lr64v $ls64v $ln0v\n";
    let mut texts = Vec::new();
    for form in [Form::Mixed, Form::Flat] {
        let lines = encode(&program(source, &spec), Options { form, inferred: false }).unwrap();
        let shown = |l: &Line| match &l.content {
            Content::Word(_) => "i".to_string(),
            Content::Text(letter, text) => format!("{letter} {text}"),
        };
        let all: Vec<String> = lines.iter().flat_map(|l| vec![shown(l); l.count as usize]).collect();
        texts.push(all);
    }
    let mixed = ["s nop; wait i03", "i", "s mvp/n64i03 $p0@0 $d0@0", "s ladd $lm0 $ln0 $lr0", "d get $lr0 1", "i"];
    let flat = [
        "j nop; wait i03",
        "j nop",
        "m mvp/n64i03 $p0@0 $d0@0",
        "j ladd $lm0 $ln0 $lr0",
        "d get $lr0 1",
        "j fvadd $lr64v $ls64v $ln0v",
    ];
    assert_eq!(texts[0], mixed);
    assert_eq!(texts[1], flat);
}

/// Comments, blank lines, indentation, carriage returns and a byte order mark may stand beside the lines.
#[test]
fn loose_text_is_read() {
    let spec = spec("mini");
    let add = word("fvadd $lr64v $ls64v $ln0v", &spec);
    let text = format!("\u{feff}# a comment\r\n\r\n  i {add}  # a word\r\n\td set $lr0 1 0000000000000001\r\n s\tnop/2 # idle\n\ni {add}");
    let program = emu2::word::read(text.as_bytes(), "loose.asm", &spec).unwrap_or_else(|e| panic!("{e}"));
    let line = "fvadd $lr64v $ls64v $ln0v";
    assert_eq!(print(&program), format!("{line}\nd set $lr0 1 0000000000000001\nnop/2\n{line}\n"));
    assert_eq!(program.items.iter().map(|i| i.line).collect::<Vec<_>>(), [3, 4, 5, 7]);
    let shown = |i: &emu2::asm::Item| text[i.span.start as usize..i.span.end as usize].to_string();
    assert_eq!(shown(&program.items[0]), add.to_string());
    assert_eq!(shown(&program.items[1]), "d set $lr0 1 0000000000000001");
    assert_eq!(shown(&program.items[2]), "nop/2");
}

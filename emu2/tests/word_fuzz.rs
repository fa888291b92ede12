//! No assembled text of any bytes may panic, hang or cost more than its length justifies.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod support;
mod word_support;

use emu2::asm::{records, render};
use emu2::spec::Spec;
use emu2::word::{encode, print, read, unpack, Form, Options};
use proptest::prelude::*;
use std::sync::{Arc, LazyLock};
use std::time::{Duration, Instant};
use support::changes::{changed, changes, Manner};
use word_support::spec;

static SPECS: LazyLock<Vec<Arc<Spec>>> = LazyLock::new(|| vec![spec("mncore2"), spec("mini")]);

/// Texts to change at random.
static CORPUS: LazyLock<Vec<Vec<u8>>> =
    LazyLock::new(|| support::files("word/must_fail").into_iter().map(|(_, text)| text).collect());

/// Reads the text on every machine, renders the findings, and prints accepted programs as text again.
fn survive(bytes: &[u8]) -> Result<(), TestCaseError> {
    let start = Instant::now();
    for spec in SPECS.iter() {
        match read(bytes, "fuzz", spec) {
            Ok(program) => {
                prop_assert!(program.items.len() <= bytes.len());
                prop_assert!(program.items.iter().all(|i| i.span.end as usize <= bytes.len()));
                prop_assert!(program.items.windows(2).all(|w| w[0].line < w[1].line));
                let _ = render("fuzz", &program.text, &program.warnings, false);
                let _ = print(&program);
                // Only a count that nobody can write out may be refused.
                let lines = encode(&program, Options { form: Form::Mixed, inferred: true });
                prop_assert!(lines.is_ok() || program.text.contains('/'));
            }
            Err(error) => {
                prop_assert!(!error.diagnostics.is_empty() && error.diagnostics.len() <= 402);
                let all = records("fuzz", &error.text, &error.diagnostics);
                prop_assert!(all.iter().all(|r| r.line >= 1 && r.column >= 1 && !r.message.is_empty()));
                prop_assert!(!render("fuzz", &error.text, &error.diagnostics, false).is_empty());
            }
        }
    }
    let _ = unpack(bytes);
    prop_assert!(start.elapsed() < Duration::from_secs(5), "{} bytes took {:?}", bytes.len(), start.elapsed());
    Ok(())
}

/// Pieces of the text, put together at random.
fn pieces() -> impl Strategy<Value = String> {
    let idle = emu2::word::Word::idle(SPECS[0].encoding.as_ref().unwrap()).to_string();
    let words = [
        "i ",
        "s ",
        "j ",
        "m ",
        "d ",
        "r ",
        "c ",
        "i",
        "0",
        "1",
        "01",
        "x",
        " ",
        "\t",
        "\n",
        "\n",
        "\n",
        "\r\n",
        "#",
        ";",
        "nop",
        "nop/3",
        "quit",
        "wait i01",
        "lpassa $lm0v $ln0v",
        "mvp/n64 $p0@0 $d0@0",
        "set $lm0 1 0000000000000000",
        "get $lm0 1",
        "0 000000010 001 0123456789ABCDEF",
        "maskr 3",
        "µ",
        "\u{0}",
        "\u{feff}",
        "é",
    ];
    let all: Vec<String> = words.iter().map(|w| w.to_string()).chain([idle.clone(), format!("i {idle}\n")]).collect();
    proptest::collection::vec(proptest::sample::select(all), 0..30).prop_map(|parts| parts.concat())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(512))]

    #[test]
    fn random_bytes(bytes in proptest::collection::vec(any::<u8>(), 0..400)) {
        survive(&bytes)?;
    }

    #[test]
    fn random_pieces(text in pieces()) {
        survive(text.as_bytes())?;
    }

    #[test]
    fn changed_texts(
        which in any::<prop::sample::Index>(),
        edits in changes(),
    ) {
        let manner = Manner { letters: b"01 isjmdr\n#", overwrite: true, repeated: 400 };
        let bytes = changed(which.get(&CORPUS[..]).as_slice(), edits, &manner);
        survive(&bytes)?;
    }
}

/// Inputs that are made to be expensive.
#[test]
fn expensive_inputs() {
    let idle = format!("i {}\n", emu2::word::Word::idle(SPECS[0].encoding.as_ref().unwrap()));
    let inputs = [
        idle.repeat(20_000),
        "i 0\n".repeat(50_000),
        "i x\n".repeat(50_000),
        "\n".repeat(200_000),
        "#".repeat(200_000),
        "i ".to_string() + &"01".repeat(200_000),
        "x".repeat(200_000),
        "é".repeat(100_000),
        "s nop/4294967295\n".repeat(2000),
        "s lpasa $lm0 $ln0\n".repeat(5_000),
        "r 0 0 001 0\n".repeat(20_000),
        (0..5_000).map(|n| format!("i {:0292b}\n", n)).collect::<String>(),
        "d get $lm0 1\n".repeat(20_000),
    ];
    for input in inputs {
        survive(input.as_bytes()).unwrap_or_else(|e| panic!("{:.60}: {e}", input));
    }
}

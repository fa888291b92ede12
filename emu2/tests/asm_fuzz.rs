//! No input of any bytes may panic, hang or cost more than its length justifies.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod support;

use emu2::asm::{parse_location, records, render, Assembler, Policy};
use emu2::spec::Spec;
use proptest::prelude::*;
use std::sync::{Arc, LazyLock};
use std::time::{Duration, Instant};
use support::changes::{changed, changes, Manner};

static SPECS: LazyLock<Vec<Arc<Spec>>> =
    LazyLock::new(|| ["mncore2", "mini"].iter().map(|n| Arc::new(Spec::load(n).unwrap())).collect());
static ASSEMBLERS: LazyLock<Vec<Assembler>> = LazyLock::new(|| SPECS.iter().map(Assembler::new).collect());

/// Every program of the tests, as a seed for mutations.
static CORPUS: LazyLock<Vec<Vec<u8>>> = LazyLock::new(|| {
    let texts = ["asm/must_fail", "asm/must_pass", "vectors"].into_iter().flat_map(support::files);
    texts.map(|(_, text)| text).filter(|text| text.len() < 4000).collect()
});

/// Assembles under every policy on every machine, and renders the findings.
fn survive(bytes: &[u8]) -> Result<(), TestCaseError> {
    let start = Instant::now();
    for assembler in ASSEMBLERS.iter() {
        for policy in [Policy::Run, Policy::Check, Policy::Strict] {
            let (text, found) = match assembler.assemble_bytes(bytes, "fuzz", policy) {
                Ok(program) => {
                    prop_assert!(program.items.len() <= bytes.len());
                    prop_assert!(program.items.iter().all(|i| i.span.end as usize <= bytes.len()));
                    (program.text, program.warnings)
                }
                Err(error) => (error.text, error.diagnostics),
            };
            prop_assert!(found.len() <= 201);
            let all = records("fuzz", &text, &found);
            prop_assert!(all.iter().all(|r| r.line >= 1 && r.column >= 1 && !r.message.is_empty()));
            let rendered = render("fuzz", &text, &found, false);
            prop_assert_eq!(rendered.is_empty(), found.is_empty());
        }
    }
    prop_assert!(start.elapsed() < Duration::from_secs(5), "{} bytes took {:?}", bytes.len(), start.elapsed());
    Ok(())
}

/// Pieces of the language, put together at random.
fn pieces() -> impl Strategy<Value = String> {
    let words = [
        "lpassa",
        "imm",
        "fvfma",
        "hvadd",
        "dvmulu",
        "l1bmd",
        "l1bmm@3",
        "l1bmp",
        "l2bmb",
        "l2bm@1",
        "mvp/n64",
        "mvb/n128i01",
        "nop",
        "nop/3",
        "nop/99999999999",
        "wait",
        "i01",
        "noforward",
        "quit",
        "d",
        "set",
        "get",
        "getf",
        "hbfn/9",
        "hbfe/",
        "gmmul",
        "dmfmad",
        "hmwrite",
        "hmread",
        "dmwrite",
        "msl",
        "zero",
        "mask",
        "maskn",
        "maskll",
        "rstmnk",
        "$lx",
        "$ly4",
        "$llx8",
        "$lmt",
        "$lmt32v32",
        "$mt[0,2,4,6]",
        "$lm8vj1",
        "$n4",
        "j3",
        "t",
        "$lmb",
        "$nb",
        "$omr1",
        "$omr",
        "$mreadf",
        "/ll0111",
        "/$imr3",
        "/$llimr15",
        "$imr",
        "24",
        "$lm0v",
        "$lm",
        "$ln4",
        "$llr0v4",
        "$ls[0,2,4,6]",
        "$t",
        "$lt",
        "$aluf",
        "$mauf",
        "$nowrite",
        "$peid",
        "$lb0",
        "$llb64",
        "$lc0@0.0",
        "$lc64",
        "$d0@0",
        "$p0",
        "@",
        ".",
        "v",
        "e",
        "r",
        "/1000",
        "/",
        "-",
        "+",
        "f\"1.5\"",
        "i\"0x7f\"",
        "\"",
        "h\"",
        ";",
        ";",
        "#",
        "\n",
        "\n",
        "\n",
        "\r",
        "\t",
        " ",
        " ",
        " ",
        "0",
        "4096",
        "18446744073709551616",
        "0123456789abcdef",
        "n0c0b0m0p0",
        "1",
        "µ",
        "\u{0}",
    ];
    proptest::collection::vec(
        (proptest::sample::select(words.to_vec()), prop_oneof![Just(""), Just(" "), Just(" ")]),
        0..60,
    )
    .prop_map(|parts| parts.into_iter().flat_map(|(word, blank)| [word, blank]).collect())
}

proptest! {
    #[test]
    fn random_bytes(bytes in proptest::collection::vec(any::<u8>(), 0..400)) {
        survive(&bytes)?;
    }

    #[test]
    fn random_text(text in "[ -~\n\t]{0,300}") {
        survive(text.as_bytes())?;
    }

    #[test]
    fn random_pieces(text in pieces()) {
        survive(text.as_bytes())?;
    }

    #[test]
    fn mutated_programs(
        which in any::<prop::sample::Index>(),
        edits in changes(),
    ) {
        let manner = Manner { letters: b" $#;/0v\"-", overwrite: false, repeated: 20 };
        let bytes = changed(which.get(&CORPUS[..]).as_slice(), edits, &manner);
        survive(&bytes)?;
    }

    #[test]
    fn random_locations(text in "\\$?(lm|ln|ll|lt|t|d|p|lb|q|omr|lx|ly)?[0-9]{0,12}([ncbmpx][0-9]{0,11}){0,6}.{0,3}") {
        for spec in SPECS.iter() {
            if let Ok(location) = parse_location(&text, spec) {
                prop_assert!(location.address < spec.memories[location.memory].words * 2);
            }
        }
    }
}

/// Inputs that are made to be expensive.
#[test]
fn expensive_inputs() {
    let many = |line: &str, n: usize| line.repeat(n);
    let inputs = [
        "nop/4000000000\n".to_string(),
        many("nop/4294967295\n", 1000),
        many("lpasa $lm0 $ln0\n", 20_000),
        many("mvp/n64 $d0@0 $lc0@0.0\nl2bmb $lc64 $lb0\n", 10_000),
        many("mvp/n64i01 $d0@0 $lc0@0.0\nnop; wait i01\n", 10_000),
        format!("lpassa {}\n", many("$lm0 ", 50_000)),
        format!("lpassa $lm[{}] $ln0\n", many("0,", 50_000)),
        format!("lpassa $lm{} $ln0\n", many("9", 200_000)),
        format!("imm f\"{}1\" $lr0\n", many("0", 200_000)),
        format!("imm f\"0.{}1e{}\" $lr0\n", many("0", 200_000), many("9", 100_000)),
        format!("imm i\"{}\" $lr0\n", many("9", 200_000)),
        format!("d set $lm0 2048 {}\n", many("0", 2048 * 16)),
        format!("d set $d0 200000000 {}\n", many("0", 16)),
        many(";", 200_000),
        many("iinc $lm0 $lr0;", 5_000),
        many("#", 200_000),
        many("\"", 200_000),
        many("\n", 200_000),
        many("$", 100_000),
        many("é", 100_000),
        many("lpassa $aluf $lr0\n", 20_000),
        many("maskrstmnk 5\n", 20_000),
        many("maskn 5\nlpassa/$imr5 $lmt $ln0v/$imr5 $omr5\n", 10_000),
        many("lpassa $lr0 $lmb\nlpassa $lm0j3 $ls0\n", 10_000),
        many("gmwrite $lm0v $lx0; gmread $ly4 $lr0v; hbfn/9 $mreadf $ls0v\n", 10_000),
        format!("mask{} 1\n", many("m", 100_000)),
        format!("lpassa $lm0v $ln0v/{}\n", many("ll", 100_000)),
        format!("hbfn/{} $lm0v $ln0v\n", many("9", 100_000)),
        format!("lpassa $omr{} $ln0v\n", many("9", 100_000)),
    ];
    for input in inputs {
        survive(input.as_bytes()).unwrap_or_else(|e| panic!("{:.60}: {e}", input));
    }
}

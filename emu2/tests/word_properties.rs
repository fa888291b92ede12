//! Words and steps over all covered forms: each gives the other back, except for forms that share a word.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod word_support;

use emu2::asm::{PeKind, Step};
use emu2::error::Code;
use emu2::spec::{Spec, Status};
use emu2::word::{decode_word, encode_step, Word};
use proptest::prelude::*;
use std::collections::BTreeSet;
use std::sync::{Arc, LazyLock};
use word_support::{canonical, choices, covered_step, spec, NONE};

static SPECS: LazyLock<Vec<Arc<Spec>>> = LazyLock::new(|| vec![spec("mncore2"), spec("mini")]);

fn word(spec: &Spec, step: &Step) -> Result<Word, Code> {
    let encoded = encode_step(spec, spec.encoding.as_ref().unwrap(), step, NONE);
    encoded.map(|e| e.word).map_err(|all| all[0].code)
}

fn decoded(spec: &Spec, word: &Word) -> Result<Option<Step>, String> {
    let decoded = decode_word(spec, spec.encoding.as_ref().unwrap(), word);
    decoded.map(|d| d.step).map_err(|fault| fault.message)
}

fn shown(spec: &Spec, step: &Step) -> String {
    emu2::word::statement(spec, &emu2::asm::ItemKind::Step(Box::new(step.clone())))
}

/// Whether the word of a step with a matrix read differs from the word of the same step without it.
fn mread_shows(spec: &Spec, step: &Step) -> bool {
    let mut without = step.clone();
    without.pe.retain(|i| !matches!(i.kind, PeKind::Matrix { op, .. } if spec.matrix_ops[op].name == "mread"));
    without.pe.is_empty() || word(spec, &without) != word(spec, step)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(4000))]

    #[test]
    fn steps_come_back_canonical(choices in choices(), machine in 0usize..2) {
        let spec = &SPECS[machine];
        let step = covered_step(spec, &choices);
        match word(spec, &step) {
            // Parts that share a port disagree. That is a rule of the line, not a form without a word.
            Err(code) => prop_assert_eq!(code, Code::FieldConflict, "{}", shown(spec, &step)),
            Ok(word) => {
                let expected = canonical(spec, step.clone(), mread_shows(spec, &step));
                let text = shown(spec, &expected);
                match decoded(spec, &word) {
                    Ok(Some(got)) => {
                        prop_assert_eq!(shown(spec, &got), text.clone());
                        prop_assert_eq!(format!("{got:?}"), format!("{expected:?}"));
                        prop_assert_eq!(self::word(spec, &got), Ok(word));
                    }
                    // The only step without an effect: it keeps the paths and reads a value that nobody sees.
                    Ok(None) => prop_assert!(!step.forward && step.pe.len() == 1, "{}", text),
                    Err(message) => prop_assert!(false, "{}: {}", text, message),
                }
            }
        }
    }

    /// A word either spells a step that has this word, or is refused.
    #[test]
    fn changed_words(choices in choices(), flips in proptest::collection::vec(0u32..292, 1..4), machine in 0usize..2) {
        let spec = &SPECS[machine];
        let Ok(mut word) = word(spec, &covered_step(spec, &choices)) else { return Ok(()) };
        for at in flips {
            let bit = word.bit(at);
            word.set(at, 1, u64::from(!bit));
        }
        match decoded(spec, &word) {
            Ok(Some(step)) => prop_assert_eq!(self::word(spec, &step), Ok(word)),
            Ok(None) => prop_assert_eq!(word, Word::idle(spec.encoding.as_ref().unwrap())),
            Err(message) => prop_assert!(!message.is_empty()),
        }
    }

    #[test]
    fn random_words(digits in "[01]{292}", machine in 0usize..2) {
        let spec = &SPECS[machine];
        let word = Word::from_digits(digits.as_bytes()).unwrap();
        if let Ok(Some(step)) = decoded(spec, &word) {
            prop_assert_eq!(self::word(spec, &step), Ok(word));
        }
    }
}

/// The generator reaches every mnemonic that has words.
#[test]
fn every_operation_is_made() {
    let spec = &SPECS[0];
    let mut made = BTreeSet::new();
    // The upper bits of a linear congruential generator are good.
    let mut state = 1u64;
    for _ in 0..4000u32 {
        let mut next = || {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (state >> 33) as u32
        };
        let choices: Vec<u32> = (0..64).map(|_| next()).collect();
        let step = covered_step(spec, &choices);
        if word(spec, &step).is_ok() {
            let one =
                |i: &emu2::asm::PeInstruction| Step { pe: vec![i.clone()], l2bm: vec![], wait: None, forward: true };
            made.extend(step.pe.iter().map(|i| shown(spec, &one(i)).split(' ').next().unwrap().to_string()));
        }
    }
    let seen = spec.encoding.as_ref().unwrap().ops.iter().flat_map(|o| o.seen.clone());
    let missing: Vec<String> = seen.filter(|name| !made.iter().any(|m| m.starts_with(name.as_str()))).collect();
    assert!(missing.is_empty(), "{missing:?} of {made:?}");
}

/// The mnemonics whose words people have seen, typed by hand, and the mnemonics that follow from them.
#[test]
fn coverage_of_mnemonics() {
    let all = emu2::word::coverage(&SPECS[0]);
    let of =
        |status: Status| all.iter().filter(|(_, s)| *s == status).map(|(name, _)| name.as_str()).collect::<Vec<_>>();
    let mut seen = vec![
        "imm",
        "immu",
        "lpassa",
        "dpassa",
        "frsqrt",
        "drsqrt",
        "dbfn",
        "gbfn",
        "hbfe",
        "fvadd",
        "fvmul",
        "fvfma",
        "fvpassa",
        "dvadd",
        "dvmulu",
        "dvfmau",
        "dvpassa",
        "dmmulu",
        "dmfmad",
        "gmmul",
        "hmmul",
        "dmwrite",
        "gmwrite",
        "hmwrite",
        "dmread",
        "gmread",
        "hmread",
        "l1bmm",
        "l1bmrdfadd",
    ];
    seen.sort_unstable();
    assert_eq!(of(Status::Seen), seen);
    let mut inferred = vec![
        "dmfmau", "dmmuld", "dvfmad", "dvmuld", "fbfn", "fmfma", "fmmul", "fmread", "fmwrite", "fpassa", "gmfma",
        "hbfn", "hmfma", "hpassa", "hrsqrt", "hvadd", "hvfma", "hvmul", "hvpassa", "ipassa", "spassa",
    ];
    inferred.sort_unstable();
    assert_eq!(of(Status::Inferred), inferred);
    for name in ["ladd", "fvfmar", "zero", "l1bmd", "l2bmb", "mvp", "filrelud", "fmax"] {
        assert!(of(Status::Unknown).contains(&name), "{name}");
    }
}

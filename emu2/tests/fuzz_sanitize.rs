//! Random programs, sanitized. The bits are those of a plain run. A word that counts as defined does not depend on the words
//! that nothing has written: they get other values in a second run, and the word stays the same.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod naive;

use emu2::asm::{Item, ItemKind, Program};
use emu2::exec::{AssumedHost, Finding, Sanitizer};
use emu2::machine::{Machine, Region};
use emu2::spec::{Memory, Unit, WORDS_PER_LONG};
use naive::check::snapshot;
use naive::chip::Chip;
use naive::choices::Choices;
use naive::data::Fill;
use naive::generate::{program, region, TABLES};
use naive::num_reference::long;

const SPARSE_WORDS: u64 = 1 << 14;

fn whole(memory: usize, entry: &Memory) -> Region {
    let count = if entry.sparse { entry.words.min(SPARSE_WORDS) } else { entry.words };
    Region { memory, units: [None; 5], addr: 0, count }
}

/// Two machines. Both hold the same words in the memories whose bit is set in `written`, and zeros in base address
/// registers. The first one holds nothing else, the second one has arbitrary words everywhere.
fn machines(seed: u64, program: &Program, written: u64) -> (Machine, Machine) {
    let spec = &program.spec;
    let (mut some, mut all) = (Machine::new(spec.clone()), Machine::new(spec.clone()));
    Fill::all(&Chip::new(spec), seed).apply(&mut all, &mut Chip::new(spec));
    for (memory, entry) in spec.memories.iter().enumerate() {
        let region = whole(memory, entry);
        if entry.unit == Unit::Base {
            all.write(&region, &vec![0; region.count as usize]).unwrap();
        } else if written >> memory & 1 == 1 {
            some.write(&region, &all.read(&region).unwrap()).unwrap();
        }
    }
    (some, all)
}

/// Returns how many words were defined and how many were not.
fn check(seed: u64, program: &Program, written: u64) -> (u64, u64) {
    let spec = &program.spec;
    // The DAR sends the words of an MV anywhere, so what it holds must be known.
    let dar = |(_, entry): &(usize, &Memory)| entry.name.starts_with("dar");
    let tables = spec.memories.iter().enumerate().filter(dar).fold(0, |bits, (at, _)| bits | 1 << at);
    let written = written | tables;
    let (mut followed, mut other) = machines(seed, program, written);
    let (mut plain, _) = machines(seed, program, written);
    let ran = |machine: &mut Machine| emu2::exec::run(machine, program, &mut |_, _| Ok(()));
    let mut sanitizer = Sanitizer::new(spec.clone()).unwrap();
    let sanitized = sanitizer.run(&mut followed, program, &mut AssumedHost, &mut |_, _| Ok(()));
    assert_eq!(sanitized.is_ok(), ran(&mut plain).is_ok(), "seed {seed}");
    ran(&mut other).unwrap();
    assert!(snapshot(&followed) == snapshot(&plain), "seed {seed}: other bits");
    let (mut defined, mut undefined) = (0, 0);
    let looked_up = |finding: &Finding| finding.memory.as_ref().is_some_and(|name| name.starts_with("dar"));
    if sanitizer.findings(program).iter().any(looked_up) {
        return (0, 0);
    }
    for (memory, entry) in spec.memories.iter().enumerate().filter(|(at, _)| tables >> at & 1 == 0) {
        let region = whole(memory, entry);
        let validity = sanitizer.validity(&mut followed, &region).unwrap();
        let pair = followed.read(&region).unwrap().into_iter().zip(other.read(&region).unwrap());
        for (at, (validity, (one, two))) in validity.into_iter().zip(pair).enumerate() {
            let count = region.count as usize;
            assert!(
                (one ^ two) & validity == 0,
                "seed {seed}: {}, unit {}, long word {}: {one:016x} and {two:016x}, defined are {validity:016x}\n{}",
                entry.name,
                at / count,
                at % count,
                naive::print::program(program)
            );
            if validity == u64::MAX {
                defined += 1
            } else {
                undefined += 1
            }
        }
    }
    (defined, undefined)
}

#[test]
fn defined_words_depend_on_defined_words_only() {
    let (mut defined, mut undefined) = (0, 0);
    for seed in 0..if long() { 2000 } else { 60 } {
        let mut choices = Choices::seeded(seed);
        let table = &TABLES[seed as usize % 2];
        let steps = 5 + choices.below(40) as usize;
        let program = if seed % 3 == 0 { program(table, &mut choices) } else { region(table, &mut choices, steps) };
        // A `d set` of single words counts as a write of their long words.
        let of_words = |item: &Item| match &item.kind {
            ItemKind::Set(set) => set.location.words < WORDS_PER_LONG,
            _ => false,
        };
        if program.items.iter().any(of_words) {
            continue;
        }
        let written = choices.below(1 << 20) | choices.below(1 << 20);
        let (some, others) = check(seed, &program, written);
        (defined, undefined) = (defined + some, undefined + others);
    }
    println!("{defined} words are defined, {undefined} are not");
    assert!(defined > 0 && undefined > 0);
}

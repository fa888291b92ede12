//! Every MV and L2BM mode on the engine, whole memories against the manual's formulas, on machines of different counts.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod formulas;
mod num_reference;

use emu2::asm::{assemble, Policy};
use emu2::machine::{Machine, Region};
use emu2::spec::{LevelName, Spec, UnitSet};
use formulas::{Meet, Numbers, Word};
use num_reference::gen::Rng;
use num_reference::{lane, pack_lanes};
use std::path::Path;
use std::sync::Arc;

/// Number of long words of each memory that are compared.
const WINDOW: u64 = 1024;

/// The counts of each machine, as the manual and the files of the machine have them.
fn machines() -> Vec<(Arc<Spec>, Numbers)> {
    let file = |name: &str| Path::new(env!("CARGO_MANIFEST_DIR")).join(name).to_str().unwrap().to_string();
    let n =
        |groups, l2bs, l1bs, cycles, narrow, lane, block| Numbers { groups, l2bs, l1bs, cycles, narrow, lane, block };
    [
        ("mncore2".to_string(), n(4, 2, 8, 4, 16, 8, 16)),
        ("mini".to_string(), n(1, 1, 2, 4, 16, 8, 16)),
        (file("tests/naive/tree.toml"), n(2, 2, 2, 4, 16, 8, 16)),
        (file("../tests/data/spec/must_pass/odd.toml"), n(5, 2, 7, 3, 11, 9, 13)),
    ]
    .into_iter()
    .map(|(name, numbers)| (Arc::new(Spec::load(&name).unwrap()), numbers))
    .collect()
}

const MEMORIES: [&str; 4] = ["pdm", "dram", "l2bm", "l1bm"];

/// The first words of all instances of the memories above the PEs: memory, unit, offset.
#[derive(Clone, PartialEq)]
struct State(Vec<Vec<Vec<u64>>>);

impl State {
    fn random(spec: &Spec, rng: &mut Rng) -> State {
        let words = |level| (0..spec.units(level)).map(|_| (0..WINDOW).map(|_| word(rng)).collect()).collect();
        State([LevelName::Group, LevelName::Group, LevelName::L2b, LevelName::L1b].map(words).to_vec())
    }

    fn load(&self, machine: &mut Machine) {
        for (name, units) in MEMORIES.iter().zip(&self.0) {
            let memory = machine.spec().memory(name).unwrap();
            let region = Region { memory, units: [None; 5], addr: 0, count: WINDOW };
            machine.write(&region, &units.concat()).unwrap();
        }
    }

    fn read(machine: &Machine) -> State {
        let memory = |name: &&str| {
            let memory = machine.spec().memory(name).unwrap();
            let region = Region { memory, units: [None; 5], addr: 0, count: WINDOW };
            machine.read(&region).unwrap().chunks(WINDOW as usize).map(<[u64]>::to_vec).collect()
        };
        State(MEMORIES.iter().map(memory).collect())
    }

    /// The state that the formulas make of this one. All words are read before any is written.
    fn after(&self, c: Numbers, case: &Case, meets: &[Meet]) -> State {
        let unit = |memory: &str, (g, l, b, _): Word| match memory {
            "pdm" | "dram" => g,
            "l2bm" => c.l2bs * g + l,
            _ => c.l1bs * (c.l2bs * g + l) + b,
        } as usize;
        let at = |name: &str| MEMORIES.iter().position(|m| *m == name).unwrap();
        let mut after = self.clone();
        for (to, elements) in meets {
            let read = |w: Word| self.0[at(case.from)][unit(case.from, w)][(case.source + w.3) as usize];
            let values: Vec<Option<u64>> = elements.iter().map(|w| w.map(read)).collect();
            after.0[at(case.to)][unit(case.to, *to)][(case.destination + to.3) as usize] =
                reduced(c, &case.mnemonic, &values);
        }
        after
    }
}

/// Doubles, singles and halves that are close to each other, and random bits.
fn word(rng: &mut Rng) -> u64 {
    let bits = rng.next();
    match bits % 4 {
        0 => bits,
        1 => (1.0 + (bits >> 40) as f64 / 4096.0).to_bits() | bits << 63,
        2 => 0x3F80_0000_BF80_0000 ^ (bits & 0x807F_FFFF_807F_FFFF),
        _ => bits & 0x0000_0001_0001_0003,
    }
}

fn reduced(c: Numbers, mnemonic: &str, elements: &[Option<u64>]) -> u64 {
    let (mode, Some((letter, function))) = formulas::mode(mnemonic) else { return elements[0].unwrap() };
    let width = match letter {
        "d" | "l" => 64,
        "f" | "i" => 32,
        _ => 16,
    };
    let lanes: Vec<u64> = (0..64 / width)
        .map(|k| {
            let neutral = formulas::neutral(function, width);
            let lanes: Vec<u64> = elements.iter().map(|v| v.map_or(neutral, |v| lane(v, width, k))).collect();
            num_reference::reduce::tree(function, width, &formulas::tree(c, mode), &lanes)
        })
        .collect();
    pack_lanes(width, &lanes)
}

/// One instruction between two memories.
struct Case {
    mnemonic: String,
    text: String,
    from: &'static str,
    to: &'static str,
    source: u64,
    destination: u64,
}

fn check(spec: &Arc<Spec>, c: Numbers, case: &Case, meets: &[Meet], seed: u64) {
    let title = format!("{} on {}, seed {seed}", case.text, spec.machine.name);
    let program = assemble(&case.text, &title, spec, Policy::Check).unwrap_or_else(|e| panic!("{title}: {e}"));
    let before = State::random(spec, &mut Rng(seed));
    let mut machine = Machine::new(spec.clone());
    before.load(&mut machine);
    emu2::exec::run(&mut machine, &program, &mut |_, _| Ok(())).unwrap_or_else(|e| panic!("{title}: {e:?}"));
    let (after, expected) = (State::read(&machine), before.after(c, case, meets));
    assert!(expected != before, "{title}: nothing moves");
    for (memory, (units, wanted)) in MEMORIES.iter().zip(after.0.iter().zip(&expected.0)) {
        for (unit, (got, wanted)) in units.iter().zip(wanted).enumerate() {
            let differs = (0..got.len()).find(|k| got[*k] != wanted[*k]);
            assert_eq!(differs.map(|k| (k, got[k], wanted[k])), None, "{title}: {memory} of unit {unit}");
        }
    }
}

const OPERATIONS: [&str; 24] = [
    "dfadd", "ffadd", "hfadd", "dmax", "fmax", "hmax", "dmin", "fmin", "hmin", "liadd", "iiadd", "siadd", "lband",
    "iband", "sband", "lbor", "ibor", "sbor", "land", "iand", "sand", "lor", "ior", "sor",
];

#[test]
fn mv_modes() {
    let mut seed = 0x3A5E_0001;
    println!("seeds from {seed:#x}");
    for (spec, c) in machines() {
        // Mode, memories, selectors of a group or L2B, and the unit in which the size counts.
        let whole = c.groups;
        let every = c.groups * c.l2bs;
        let copy = spec.ports["mv_unit"] as u64 / c.block;
        let table: &[(&str, &'static str, &'static str, [&str; 2], u64)] = &[
            ("mvp", "pdm", "dram", ["g", "g"], copy),
            ("mvp", "dram", "pdm", ["g", "g"], copy),
            ("mvp", "pdm", "pdm", ["g", "g"], copy),
            ("mvp", "dram", "l2bm", ["g", "gl"], copy),
            ("mvp", "l2bm", "dram", ["gl", "g"], copy),
            ("mvp", "pdm", "l2bm", ["g", "gl"], copy),
            ("mvp", "l2bm", "pdm", ["gl", "g"], copy),
            ("mvp", "dram", "l2bm", ["", "l"], copy),
            ("mvp", "l2bm", "dram", ["l", ""], copy),
            ("mvp", "pdm", "l2bm", ["", "l"], copy),
            ("mvp", "l2bm", "pdm", ["l", ""], copy),
            ("mvb", "pdm", "l2bm", ["g", ""], copy),
            ("mvb", "dram", "l2bm", ["", ""], whole),
            ("mvb2", "dram", "l2bm", ["", ""], copy),
            ("mvb4", "dram", "l2bm", ["", ""], whole),
            ("mvr", "l2bm", "pdm", ["", "g"], copy),
            ("mvr", "l2bm", "dram", ["", ""], whole),
            ("mvr2", "l2bm", "dram", ["", ""], copy),
            ("mvr4", "l2bm", "dram", ["", ""], whole),
            ("mvd", "pdm", "dram", ["g", ""], whole),
            ("mvd", "dram", "pdm", ["", "g"], whole),
            ("mvd", "pdm", "l2bm", ["g", ""], every),
            ("mvd", "l2bm", "pdm", ["", "g"], every),
        ];
        for (mode, from, to, selectors, unit) in table {
            let operations: &[&str] = if mode.starts_with("mvr") { &OPERATIONS } else { &[""] };
            for operation in operations {
                for units in [1, 2] {
                    seed += 1;
                    let mut rng = Rng(seed);
                    let mut below = |n: u64| rng.next() % n;
                    let selected = selectors.map(|letters| {
                        let has = |letter: char| letters.contains(letter);
                        (has('g').then(|| below(c.groups)), has('l').then(|| below(c.l2bs)))
                    });
                    let n = unit * units * c.block;
                    let source = below(9) * c.block;
                    // Source and destination are never the same, but ranges of one memory may overlap.
                    let destination = (source / c.block + 1 + below(4)) * c.block;
                    let operand = |memory: &str, address: u64, s: (Option<u64>, Option<u64>)| {
                        let selector = match s {
                            (None, None) => String::new(),
                            (Some(g), None) => format!("@{g}"),
                            (g, Some(l)) => format!("@{}.{l}", g.map_or(String::new(), |g| g.to_string())),
                        };
                        format!(
                            "${}{address}{selector}",
                            match memory {
                                "pdm" => "p",
                                "dram" => "d",
                                _ => "lc",
                            }
                        )
                    };
                    let mnemonic = format!("{mode}{operation}");
                    let operands = [operand(from, source, selected[0]), operand(to, destination, selected[1])];
                    let text = format!("{mnemonic}/n{n}i01 {}\n", operands.join(" "));
                    let case = Case { mnemonic, text, from, to, source, destination };
                    check(&spec, c, &case, &formulas::mv(c, mode, [*from, *to], selected, n), seed);
                }
            }
        }
    }
}

#[test]
fn l2bm_modes() {
    let mut seed = 0x12B0_0001;
    println!("seeds from {seed:#x}");
    for (spec, c) in machines() {
        let bits = (c.l1bs as u32).next_power_of_two() - 1;
        let mut sets = Vec::new();
        for free in 0..=bits {
            sets.extend((0..c.l1bs as u32).map(|b| UnitSet { first: b & !free, free }));
        }
        sets.sort_by_key(|s| (s.first, s.free));
        sets.dedup();
        if c.l1bs == 8 {
            assert_eq!(sets.len(), 27);
        }
        let mut run = |mode: &str, operation: &str, parameter: &str, down: bool, set: UnitSet, x: u64| {
            seed += 1;
            let mut rng = Rng(seed);
            let pairs = c.l1bs.div_ceil(2);
            let (upper, lower) = match mode {
                "l2bmb2" | "l2bmr2" => (pairs * c.narrow, c.narrow),
                "l2bmd" => (c.l1bs * c.lane, c.lane),
                _ => (c.narrow, c.narrow),
            };
            let (from, to, [a, b]) = match (mode, down) {
                ("l2bmi", _) => ("l1bm", "l1bm", [lower, lower]),
                (_, true) => ("l2bm", "l1bm", [upper, lower]),
                (_, false) => ("l1bm", "l2bm", [lower, upper]),
            };
            let [source, destination] = [a, b].map(|align| align * (rng.next() % 3));
            let mnemonic = format!("{mode}{operation}");
            let letter = |memory: &str| if memory == "l2bm" { "lc" } else { "lb" };
            let text = format!("{mnemonic}{parameter} ${}{source} ${}{destination}\n", letter(from), letter(to));
            let case = Case { mnemonic, text, from, to, source, destination };
            let set = (set.first.into(), set.free.into());
            let all = (0..c.groups).flat_map(|g| (0..c.l2bs).map(move |l| (g, l)));
            let meets: Vec<Meet> = all.flat_map(|unit| formulas::l2bm(c, mode, down, unit, set, x)).collect();
            check(&spec, c, &case, &meets, seed);
        };
        let every = UnitSet { first: 0, free: bits };
        for mode in ["l2bmb", "l2bmb2", "l2bmd"] {
            run(mode, "", "", true, every, 0);
            for set in &sets {
                run(mode, "", &format!("@{}/{}", set.first, set.free), true, *set, 0);
            }
        }
        run("l2bmd", "", "", false, every, 0);
        for x in 0..c.l1bs {
            run("l2bm", "", &format!("@{x}"), false, every, x);
        }
        for operation in OPERATIONS {
            run("l2bmr", operation, "", false, every, 0);
            run("l2bmr2", operation, "", false, every, 0);
            let some = sets[seed_of(operation) % sets.len()];
            run("l2bmr", operation, &format!("@{}/{}", some.first, some.free), false, some, 0);
        }
        for set in &sets {
            let list: Vec<String> = set.members(c.l1bs as u32).map(|b| b.to_string()).collect();
            let known = UnitSet::of(&set.members(c.l1bs as u32).collect::<Vec<_>>(), c.l1bs as u32);
            if known == Some(*set) {
                run("l2bmr", "iiadd", &format!("@{}", list.join(",")), false, *set, 0);
            }
            if list.len() < c.l1bs as usize {
                run("l2bmi", "", &format!("@{}/{}", set.first, set.free), true, *set, 0);
            }
        }
    }
}

fn seed_of(text: &str) -> usize {
    text.bytes().fold(7, |hash, b| (hash * 31 + usize::from(b)) % 997)
}

/// `l2bmdars` and the `l2bmdarw` of its line, then 127 more: the whole buffer of 512 words, in order and into 512 entries.
#[test]
fn one_line_of_fill_and_write_then_127_writes_move_the_whole_buffer() {
    const FIRST: u64 = 100;
    for (spec, c) in machines() {
        let words = spec.ports["dar_lane"] as u64 * c.cycles * 2;
        let lines = words / c.cycles - 1;
        let l2b = c.l2bs as u32 - 1;
        let text = format!("l2bmdars $lc0@.{l2b} $dar{FIRST}; l2bmdarw\n{}", "l2bmdarw\n".repeat(lines as usize));
        let program = assemble(&text, "dar.vsm", &spec, Policy::Check).unwrap_or_else(|e| panic!("{e}"));
        let mut machine = Machine::new(spec.clone());
        let of = |name: &str, units, addr, count| Region { memory: spec.memory(name).unwrap(), units, addr, count };
        for group in 0..c.groups as u32 {
            let entry = |k: u64| u64::from(group) << 16 | (k + 1);
            let pairs: Vec<u64> = (0..words / 2).map(|k| entry(2 * k) << 32 | entry(2 * k + 1)).collect();
            let units = [Some(group), Some(l2b), None, None, None];
            machine.write(&of("l2bm", units, 0, words / 2), &pairs).unwrap();
        }
        emu2::exec::run(&mut machine, &program, &mut |_, _| Ok(())).unwrap();
        for group in 0..c.groups as u32 {
            let units = [Some(group), None, None, None, None];
            let got = machine.read(&of("dar", units, FIRST - 1, words + 2)).unwrap();
            let inner = (0..words).map(|k| u64::from(group) << 16 | (k + 1));
            let expected: Vec<u64> = [0].into_iter().chain(inner).chain([0]).collect();
            assert_eq!(got, expected, "group {group} of {}", spec.machine.name);
        }
    }
}

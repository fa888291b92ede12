//! Every L1BM form against loops that are typed from the manual. The tests compare all words of L1BM, of the turnaround
//! register and of LM0 after programs that use each form at several addresses, on the full chip, on `mini` and on a machine
//! of unequal counts.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod num_reference;

use emu2::asm::{assemble, Policy};
use emu2::machine::{Machine, Region};
use emu2::spec::Spec;
use num_reference::gen::Rng;
use num_reference::reduce::{narrowed, tree};
use num_reference::{convert, lane, pack_lanes, F, H};
use std::path::Path;
use std::sync::Arc;

/// The counts of a machine, as the manual's tables have them for the full chip.
#[derive(Clone, Copy, Debug)]
struct Numbers {
    mab: usize,
    pe: usize,
    cycle: usize,
    /// MABs of a group of a 4x4 form.
    quad: usize,
}

const FULL: Numbers = Numbers { mab: 16, pe: 4, cycle: 4, quad: 4 };
const MINI: Numbers = Numbers { mab: 4, pe: 4, cycle: 4, quad: 4 };
const ODD: Numbers = Numbers { mab: 12, pe: 4, cycle: 3, quad: 6 };

/// A long word of the PEs: MAB, PE, cycle, long word of the pair.
type Source = (usize, usize, usize, usize);

/// The words that a form towards L1BM writes: the offset, and the source words that meet there.
fn sends(n: Numbers, form: &str, halves: usize, x: i64) -> Vec<(usize, Vec<Source>)> {
    let Numbers { mab, pe, cycle, quad } = n;
    let groups = mab / quad;
    let mut all = Vec::new();
    for c in 0..cycle {
        for p in 0..pe {
            for h in 0..halves {
                let place = |m: usize| (m, p, c, h);
                match form {
                    "m" => all.push((halves * pe * c + pe * h + p, vec![place(x as usize)])),
                    "r" => all.push((halves * pe * c + pe * h + p, (0..mab).map(place).collect())),
                    "d" => {
                        let slot = |m: usize| (m as i64 + x).rem_euclid(mab as i64) as usize;
                        all.extend((0..mab).map(|m| (pe * mab * c + pe * slot(m) + p, vec![place(m)])));
                    }
                    _ => {
                        for i in 0..groups {
                            let addr = halves * pe * groups * c + halves * pe * i + pe * h + p;
                            let met = if form == "m4" {
                                i * quad + x as usize..i * quad + x as usize + 1
                            } else {
                                i * quad..i * quad + quad
                            };
                            all.push((addr, met.map(place).collect()));
                        }
                    }
                }
            }
        }
    }
    all
}

/// The offset from which a form towards the PEs reads.
fn fetches(n: Numbers, form: &str, halves: usize, x: i64, (m, p, c, h): Source) -> usize {
    let Numbers { mab, pe, cycle, quad } = n;
    match form {
        "p" => cycle * h + c,
        "m" => halves * pe * c + pe * h + p,
        "m4" => halves * pe * (mab / quad) * c + halves * pe * (m / quad) + pe * h + p,
        _ => pe * mab * c + pe * (m as i64 - x).rem_euclid(mab as i64) as usize + p,
    }
}

/// The state of one L1B as the test expects it.
struct Unit {
    l1bm: Vec<u64>,
    turnaround: Vec<u64>,
    /// By PE, `4m + p`.
    lm0: Vec<Vec<u64>>,
    lm1: Vec<Vec<u64>>,
}

struct Bench {
    n: Numbers,
    spec: Arc<Spec>,
    machine: Machine,
    units: Vec<Unit>,
    text: String,
    rng: Rng,
    /// Long words of LM0 that are written already.
    used: usize,
    /// The next destination in L1BM.
    free: usize,
    /// Long words of LM0, and of LM1 that hold data.
    lm0_words: usize,
}

/// Long words of LM1 that hold data.
const DATA: usize = 64;

impl Bench {
    fn new(name: &str, n: Numbers, seed: u64) -> Bench {
        let spec = Arc::new(Spec::load(name).unwrap());
        let c = spec.counts;
        assert_eq!((c.mab as usize, c.pe as usize, c.cycle as usize), (n.mab, n.pe, n.cycle));
        let mut rng = Rng(seed);
        let mut machine = Machine::new(spec.clone());
        let words = |name: &str| spec.memories[spec.memory(name).unwrap()].words as usize;
        let l1bs = (c.group * c.l2b * c.l1b) as usize;
        let mut random = |count: usize| (0..count).map(|_| value(&mut rng)).collect::<Vec<u64>>();
        let units: Vec<Unit> = (0..l1bs)
            .map(|_| Unit {
                l1bm: random(words("l1bm")),
                turnaround: vec![0; n.mab * n.pe * n.cycle],
                lm0: vec![vec![0; words("lm0")]; n.mab * n.pe],
                lm1: (0..n.mab * n.pe).map(|_| random(DATA)).collect(),
            })
            .collect();
        let mut write = |name: &str, count: usize, data: Vec<u64>| {
            let memory = spec.memory(name).unwrap();
            machine.write(&Region { memory, units: [None; 5], addr: 0, count: count as u64 }, &data).unwrap();
        };
        write("l1bm", words("l1bm"), units.iter().flat_map(|u| u.l1bm.clone()).collect());
        write("lm1", DATA, units.iter().flat_map(|u| u.lm1.concat()).collect());
        let lm0_words = words("lm0");
        Bench { n, spec, machine, units, text: String::new(), rng, used: 0, free: 0, lm0_words }
    }

    /// Runs the collected program and compares all of the three memories.
    fn check(&mut self) {
        let program = assemble(&self.text, "l1bm", &self.spec, Policy::Run).unwrap_or_else(|e| panic!("{e}"));
        emu2::exec::run(&mut self.machine, &program, &mut |_, _| Ok(())).unwrap_or_else(|e| panic!("{e:?}"));
        let read = |name: &str| {
            let memory = self.spec.memory(name).unwrap();
            let count = self.spec.memories[memory].words;
            self.machine.read(&Region { memory, units: [None; 5], addr: 0, count }).unwrap()
        };
        let same = |name: &str, expected: Vec<u64>| {
            let got = read(name);
            let at = (0..got.len().max(expected.len())).find(|at| got.get(*at) != expected.get(*at));
            assert_eq!(
                at,
                None,
                "{name}: {:x?} instead of {:x?}\n{}",
                at.map(|a| got[a]),
                at.map(|a| expected[a]),
                self.text
            );
        };
        same("l1bm", self.units.iter().flat_map(|u| u.l1bm.clone()).collect());
        same("turnaround", self.units.iter().flat_map(|u| u.turnaround.clone()).collect());
        same("lm0", self.units.iter().flat_map(|u| u.lm0.concat()).collect());
    }

    /// A destination that no other form has written, at a multiple of `align`, wrapping at the end.
    fn place(&mut self, align: usize, words: usize) -> usize {
        let size = self.units[0].l1bm.len();
        let at = self.free.next_multiple_of(align);
        let at = if at >= size { 0 } else { at };
        self.free = at + words;
        at
    }

    /// One form towards L1BM: `text` with `source` and then the destination. `reduce` combines the elements' long words.
    fn send(
        &mut self,
        (mnemonic, operand, widths): (&str, &str, usize),
        (form, halves, x): (&str, usize, i64),
        align: usize,
        widen: bool,
        reduce: &dyn Fn(usize, &[u64]) -> u64,
        merge: bool,
    ) {
        let n = self.n;
        let first = 2 * (self.rng.next() as usize % (DATA / 2 - 2 * n.cycle)) * 2 % (DATA - 2 * n.cycle);
        let first = first - first % 2;
        let layout = sends(n, form, halves, x);
        let unshifted = if form == "d" { sends(n, form, halves, 0) } else { layout.clone() };
        let count = layout.len();
        let at = self.place(align, count);
        let prefix = if widths == 2 { "ll" } else { "l" };
        // Consecutive long words of LM1 make the pair that a PE has in a cycle.
        let stride = if operand.starts_with("ll") { 2 } else { 1 };
        let source = format!("${operand}").replace('#', &(2 * first).to_string());
        self.text += &format!("{mnemonic} {source} ${prefix}b{at}\n");
        let size = self.units[0].l1bm.len();
        for unit in &mut self.units {
            let path = |(m, p, c, h): Source| -> u64 {
                let lm1 = &unit.lm1[n.pe * m + p];
                let l0 = lm1[first + stride * c];
                if widen {
                    let singles: Vec<u64> = (0..2).map(|k| convert(H, F, lane(l0, 16, 2 * h as u32 + k))).collect();
                    return pack_lanes(32, &singles);
                }
                match (h, stride) {
                    (0, _) => l0,
                    (_, 2) => lm1[first + 2 * c + 1],
                    _ => 0,
                }
            };
            let mut words = vec![0u64; layout.len()];
            let mut kept = words.clone();
            for (to, all) in [(&mut words, &layout), (&mut kept, &unshifted)] {
                for (addr, elements) in all {
                    let elements: Vec<u64> = elements.iter().map(|e| path(*e)).collect();
                    to[*addr] = reduce(*addr, &elements);
                }
                if merge {
                    // The two long words of a PE, of two halves each, become one. The layout is that of the form with one
                    // long word.
                    let block = 2 * n.pe;
                    let one: Vec<u64> =
                        to.chunks(block).flat_map(|b| (0..n.pe).map(|p| b[p] | b[n.pe + p] >> 32)).collect();
                    *to = one;
                }
            }
            for (offset, word) in words.iter().enumerate() {
                unit.l1bm[(at + offset) % size] = *word;
            }
            unit.turnaround[..kept.len()].copy_from_slice(&kept);
        }
    }

    /// One form towards the PEs, to LM0, from L1BM or from the turnaround register.
    fn load(&mut self, (mnemonic, form, halves, x): (&str, &str, usize, i64), at: Option<usize>) {
        let n = self.n;
        if self.used + 2 * n.cycle > self.lm0_words {
            self.used = 0;
        }
        let first = self.used;
        self.used += 2 * n.cycle;
        let prefix = if halves == 2 { "ll" } else { "l" };
        let source = at.map_or("i".to_string(), |at| at.to_string());
        self.text += &format!("{mnemonic} ${prefix}b{source} $llm{}v\n", 2 * first);
        for unit in &mut self.units {
            for m in 0..n.mab {
                for p in 0..n.pe {
                    for c in 0..n.cycle {
                        for h in 0..2 {
                            let offset = fetches(n, form, halves, x, (m, p, c, h));
                            let word = match at {
                                _ if h >= halves => 0,
                                Some(at) => unit.l1bm[(at + offset) % unit.l1bm.len()],
                                None => unit.turnaround[offset],
                            };
                            unit.lm0[n.pe * m + p][first + 2 * c + h] = word;
                        }
                    }
                }
            }
        }
    }
}

/// Words that are sometimes small numbers in every precision, and often random.
fn value(rng: &mut Rng) -> u64 {
    let bits = rng.next();
    match rng.next() % 8 {
        0 => 0,
        1 => bits & 0x0001_0001_0001_0001,
        2 | 3 => 0x3E00_3F80_BE00_BF80 ^ bits & 0x81FF_81FF_81FF_81FF,
        4 => 0x3FF0_0000_0000_0000 ^ bits & 0x803F_FFFF_FFFF_FFFF,
        _ => bits,
    }
}

fn on_machines(mut run: impl FnMut(&mut Bench)) {
    let odd = Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/data/spec/must_pass/odd.toml");
    for (name, n) in [("mini", MINI), (odd.to_str().unwrap(), ODD), ("mncore2", FULL)] {
        let seed = 0x11B_0001;
        println!("{name}, seed {seed:#x}");
        let mut bench = Bench::new(name, n, seed);
        run(&mut bench);
        bench.check();
    }
}

#[test]
fn towards_the_pes() {
    on_machines(|bench| {
        let n = bench.n;
        let (pe, size, groups) = (n.pe, bench.units[0].l1bm.len(), n.mab / n.quad);
        for (mnemonic, form, halves, align) in [
            ("l1bmp", "p", 1, 1),
            ("l1bmp", "p", 2, 2 * n.cycle),
            ("l1bmm", "m", 1, pe),
            ("l1bmm", "m", 2, 2 * pe),
            ("l1bmm4", "m4", 1, pe * groups),
            ("l1bmm4", "m4", 2, 2 * pe * groups),
            ("l1bmd", "d", 1, pe * n.mab),
        ] {
            for at in [0, align, 3 * align, (size - 1) / align * align] {
                bench.load((mnemonic, form, halves, 0), Some(at));
            }
        }
        let last = n.mab as i64 - 1;
        for shift in [1, -1, 3, -2, last, -last] {
            bench.load((&format!("l1bmd{shift:+}"), "d", 1, shift), Some(0));
        }
    });
}

/// Returns the only element of a copy.
fn copy(_: usize, elements: &[u64]) -> u64 {
    assert_eq!(elements.len(), 1);
    elements[0]
}

/// Each form towards L1BM, and in the next step its data back from the turnaround register.
#[test]
fn towards_l1bm_and_back() {
    on_machines(|bench| {
        let n = bench.n;
        let (pe, groups) = (n.pe, n.mab / n.quad);
        for x in [0, 1, n.mab - 1] {
            bench.send((&format!("l1bmm@{x}"), "ln#v", 1), ("m", 1, x as i64), pe, false, &copy, false);
            bench.load(("l1bmm", "m", 1, 0), None);
            bench.send((&format!("l1bmm@{x}"), "lln#v", 2), ("m", 2, x as i64), 2 * pe, false, &copy, false);
            bench.load(("l1bmm", "m", 2, 0), None);
            // A narrow source is followed by zeros.
            bench.send((&format!("l1bmm@{x}"), "ln#v", 2), ("m", 2, x as i64), 2 * pe, false, &copy, false);
        }
        for x in 0..n.quad {
            bench.send((&format!("l1bmm4@{x}"), "ln#v", 1), ("m4", 1, x as i64), pe * groups, false, &copy, false);
            bench.load(("l1bmm4", "m4", 1, 0), None);
            bench.send((&format!("l1bmm4@{x}"), "lln#v", 2), ("m4", 2, x as i64), 2 * pe * groups, false, &copy, false);
            bench.load(("l1bmm4", "m4", 2, 0), None);
        }
        let last = n.mab as i64 - 1;
        for shift in [0, 1, -1, 2, last, -last] {
            let mnemonic = if shift == 0 { "l1bmd".to_string() } else { format!("l1bmd{shift:+}") };
            bench.send((&mnemonic, "ln#v", 1), ("d", 1, shift), pe * n.mab, false, &copy, false);
            bench.load((&mnemonic, "d", 1, shift), None);
        }
    });
}

/// Reduces the lanes of the elements one by one, in the tree of the form.
fn reduced(name: &str, width: u32, stages: &[usize], elements: &[u64]) -> u64 {
    let lanes = 0..64 / width;
    let one = |k: u32| tree(name, width, stages, &elements.iter().map(|e| lane(*e, width, k)).collect::<Vec<_>>());
    pack_lanes(width, &lanes.map(one).collect::<Vec<_>>())
}

/// Converts two singles to two halves in the upper word.
fn reduced_to_halves(name: &str, stages: &[usize], elements: &[u64]) -> u64 {
    let one = |k: u32| narrowed(name, 32, stages, &elements.iter().map(|e| lane(*e, 32, k)).collect::<Vec<_>>());
    pack_lanes(16, &[one(0), one(1)])
}

#[test]
fn reductions() {
    let letters = |name: &str| match name {
        "fadd" | "max" | "min" => [('d', 64), ('f', 32), ('h', 16)],
        _ => [('l', 64), ('i', 32), ('s', 16)],
    };
    on_machines(|bench| {
        let n = bench.n;
        let groups = n.mab / n.quad;
        for (entry, form, stages, align) in
            [("l1bmr", "r", vec![n.quad, groups], n.pe), ("l1bmr4", "r4", vec![n.quad], n.pe * groups)]
        {
            let back = if form == "r" { ("l1bmm", "m") } else { ("l1bmm4", "m4") };
            for name in ["fadd", "max", "min", "iadd", "band", "bor", "and", "or"] {
                for (letter, width) in letters(name) {
                    let mnemonic = format!("{entry}{letter}{name}");
                    let lanes = |_: usize, elements: &[u64]| reduced(name, width, &stages, elements);
                    let halves = |_: usize, elements: &[u64]| reduced_to_halves(name, &stages, elements);
                    if letter == 'h' {
                        bench.send((&mnemonic, "ln#v", 1), (form, 2, 0), align, true, &halves, true);
                        bench.load((back.0, back.1, 1, 0), None);
                        continue;
                    }
                    bench.send((&mnemonic, "ln#v", 1), (form, 1, 0), align, false, &lanes, false);
                    bench.load((back.0, back.1, 1, 0), None);
                    if letter == 'f' || name == "bor" {
                        bench.send((&mnemonic, "lln#v", 2), (form, 2, 0), 2 * align, false, &lanes, false);
                        bench.load((back.0, back.1, 2, 0), None);
                    }
                    if letter == 'f' {
                        bench.send((&mnemonic, "ln#ve", 2), (form, 2, 0), 2 * align, true, &lanes, false);
                        let mnemonic = mnemonic + "r";
                        bench.send((&mnemonic, "lln#v", 1), (form, 2, 0), align, false, &halves, true);
                        bench.load((back.0, back.1, 1, 0), None);
                        bench.send((&mnemonic, "ln#ve", 1), (form, 2, 0), align, true, &halves, true);
                    }
                }
            }
        }
    });
}

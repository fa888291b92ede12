//! Transfer programs between all levels of the full chip, compared word by word with the formulas of the manual.

use emu2::asm::{assemble, Policy};
use emu2::machine::{Machine, Region};
use emu2::spec::{Counts, Spec};
use std::sync::Arc;

struct Bench {
    spec: Arc<Spec>,
    machine: Machine,
}

impl Bench {
    fn new() -> Bench {
        let spec = Arc::new(Spec::load("mncore2").unwrap());
        Bench { machine: Machine::new(spec.clone()), spec }
    }

    fn counts(&self) -> Counts {
        self.spec.counts
    }

    fn run(&mut self, text: &str) {
        let program = assemble(text, "acceptance.vsm", &self.spec, Policy::Check).unwrap_or_else(|e| panic!("{}", e));
        emu2::report::run(&mut self.machine, &program, &mut |_| Ok(())).unwrap_or_else(|e| panic!("{}", e.diagnostic));
    }

    fn region(&self, memory: &str, units: [Option<u32>; 5], addr: u64, count: u64) -> Region {
        Region { memory: self.spec.memory(memory).unwrap(), units, addr, count }
    }

    fn read(&self, memory: &str, units: [u32; 5], levels: usize, addr: u64, count: u64) -> Vec<u64> {
        let units = std::array::from_fn(|at| (at < levels).then_some(units[at]));
        self.machine.read(&self.region(memory, units, addr, count)).unwrap()
    }

    fn write(&mut self, memory: &str, units: [u32; 5], levels: usize, addr: u64, words: &[u64]) {
        let units = std::array::from_fn(|at| (at < levels).then_some(units[at]));
        let region = self.region(memory, units, addr, words.len() as u64);
        self.machine.write(&region, words).unwrap();
    }
}

/// A word that encodes its own place.
fn tag(unit: u64, addr: u64) -> u64 {
    (unit + 1) << 32 | addr
}

#[test]
fn dram_to_every_pe() {
    let mut bench = Bench::new();
    let c = bench.counts();
    for g in 0..c.group {
        let words: Vec<u64> = (0..512).map(|a| tag(g.into(), a)).collect();
        bench.write("dram", [g, 0, 0, 0, 0], 1, 0, &words);
    }
    bench.run("mvp/n256i01 $d0 $lc0@.0\nmvp/n256i02 $d256 $lc0@.1\nnop; wait i01\nnop; wait i02\nl2bmd $lc0 $lb0\nnop\nl1bmm $llb0 $llm0v\n");
    for (g, l, b, m, p) in units(&c) {
        let got = bench.read("lm0", [g, l, b, m, p], 5, 0, 8);
        for cycle in 0..4u64 {
            for h in 0..2u64 {
                let addr = 256 * u64::from(l) + 64 * cycle + 8 * u64::from(b) + 4 * h + u64::from(p);
                assert_eq!(got[(2 * cycle + h) as usize], tag(g.into(), addr), "{:?}", (g, l, b, m, p));
            }
        }
    }
}

#[test]
fn every_pe_of_an_l2b_to_dram() {
    let mut bench = Bench::new();
    let c = bench.counts();
    let lanes = u64::from(c.mab * c.pe);
    for (g, l, b, m, p) in units(&c) {
        let id = u64::from(((g * c.l2b + l) * c.l1b + b) * c.mab + m) * u64::from(c.pe) + u64::from(p);
        let words: Vec<u64> = (0..16).map(|a| tag(id, a)).collect();
        bench.write("lm1", [g, l, b, m, p], 5, 0, &words);
    }
    let mut text = String::new();
    for i in 0..4 {
        text += &format!("l1bmd $ln{}v $lb{}\n", 8 * i, 256 * i);
    }
    text += "nop/2\n";
    for i in 0..32 {
        text += &format!("l2bmd $lb{} $lc{}\n", 32 * i, 256 * i);
    }
    text += "nop\n";
    for i in 0..4 {
        text += &format!("mvp/n2048i{:02x} $lc{}@0.0 $d0@{i}\n", i + 1, 2048 * i);
    }
    bench.run(&text);
    for i in 0..4u64 {
        let got = bench.read("dram", [i as u32, 0, 0, 0, 0], 1, 0, 2048);
        for y in 0..32u64 {
            for b in 0..8u64 {
                for z in 0..8u64 {
                    let (cycle, lane) = ((8 * y + z) / lanes, (8 * y + z) % lanes);
                    let expected = tag(b * lanes + lane, 4 * i + cycle);
                    assert_eq!(got[(64 * y + 8 * b + z) as usize], expected, "{:?}", (i, y, b, z));
                }
            }
        }
    }
}

#[test]
fn one_mab_to_four_drams() {
    let mut bench = Bench::new();
    for p in 0..4 {
        let words: Vec<u64> = (0..32).map(|a| tag(u64::from(p), a)).collect();
        bench.write("lm1", [0, 0, 0, 0, p], 5, 0, &words);
    }
    let mut text = String::new();
    for i in 0..4 {
        text += &format!("l1bmm@0 $lln{}v $llb{}\n", 16 * i, 32 * i);
    }
    text += "nop/2\n";
    // A narrow L2BM instruction moves two 32-word blocks at a time. The test does not look at the second half of each
    // block.
    for i in 0..4 {
        text += &format!("l2bm@0 $lb{} $lc{}\n", 32 * i, 64 * i);
    }
    text += "nop\n";
    for i in 0..4 {
        text += &format!("mvp/n64i{:02x} $lc{}@0.0 $d0@{i}\n", i + 1, 64 * i);
    }
    bench.run(&text);
    for i in 0..4u64 {
        let got = bench.read("dram", [i as u32, 0, 0, 0, 0], 1, 0, 32);
        for cycle in 0..4u64 {
            for h in 0..2u64 {
                for p in 0..4u64 {
                    assert_eq!(got[(8 * cycle + 4 * h + p) as usize], tag(p, 8 * i + 2 * cycle + h));
                }
            }
        }
    }
}

#[test]
fn ids_of_all_pes_to_pdm() {
    let mut bench = Bench::new();
    let c = bench.counts();
    for (g, l, b, m, p) in units(&c) {
        let id = u64::from(((g * c.l2b + l) * c.l1b + b) * c.mab + m) * u64::from(c.pe) + u64::from(p);
        bench.write("lm0", [g, l, b, m, p], 5, 0, &[id]);
    }
    let mut text = String::from("l1bmd $lm0v $lb256\nnop/2\n");
    for b in 0..8 {
        text += &format!("l2bm@{b} $lb256 $lc{}\n", 1024 + 64 * b);
    }
    text += "nop\n";
    for q in 0..8 {
        text += &format!("mvp/n512i{:02x} $lc1024@{}.{} $p{}@0\n", q + 1, q / 2, q % 2, 512 * q);
    }
    bench.run(&text);
    let got = bench.read("pdm", [0; 5], 1, 0, 4096);
    assert!(got.iter().enumerate().all(|(at, id)| at as u64 == *id));
}

#[test]
fn dram_to_both_l2bs_to_every_pe() {
    let mut bench = Bench::new();
    let c = bench.counts();
    for g in 0..c.group {
        let words: Vec<u64> = (0..64).map(|a| tag(g.into(), a)).collect();
        bench.write("dram", [g, 0, 0, 0, 0], 1, 0, &words);
    }
    let mut text = String::from("mvb2/n64i01 $d0 $lc0\nnop; wait i01\nl2bmb $lc0 $lb0\nnop\n");
    for i in 0..8 {
        text += &format!("l1bmp $lb{} $lm{}v\n", 4 * i, 8 * i);
    }
    bench.run(&text);
    for (g, l, b, m, p) in units(&c) {
        let expected: Vec<u64> = (0..32).map(|j| tag(g.into(), j)).collect();
        assert_eq!(bench.read("lm0", [g, l, b, m, p], 5, 0, 32), expected, "{:?}", (g, l, b, m, p));
    }
}

/// The sum over all PEs: 1024 MABs hold c + 1 on every PE in cycle c.
#[test]
fn sum_over_4096_pes() {
    let mut bench = Bench::new();
    let doubles: Vec<u64> = [1.0f64, 2.0, 3.0, 4.0].map(f64::to_bits).to_vec();
    bench.write("pdm", [0; 5], 1, 0, &doubles);
    bench.run(
        "mvb/n64i01 $p0@0 $lc0\nnop; wait i01\nl2bmb $lc0 $lb0\nnop\nl1bmp $lb0 $lr0v\nnop/2\n\
         l1bmrdfadd $lr0v $lb64\nnop/2\nl2bmrdfadd $lb64 $lc64\nnop\nmvrdfadd/n64i02 $lc64 $p0@0\nnop; wait i02\n",
    );
    let got = bench.read("pdm", [0; 5], 1, 0, 16);
    for (at, word) in got.iter().enumerate() {
        assert_eq!(f64::from_bits(*word), 1024.0 * (at / 4 + 1) as f64, "{at}");
    }
}

#[test]
fn gather_of_distributed_words_is_the_same() {
    let mut bench = Bench::new();
    let words: Vec<u64> = (0..64).map(|a| tag(7, a)).collect();
    bench.write("pdm", [0; 5], 1, 0, &words);
    bench.run(
        "mvd/n64i01 $p0@0 $d0\nnop; wait i01\nmvb4/n64i02 $d0 $lc0\nnop; wait i02\nmvp/n64i03 $lc0@0.0 $p0@0\n\
         mvp/n64i04 $lc0@0.0 $p64@0\nnop; wait i03\nnop; wait i04\n",
    );
    assert_eq!(bench.read("pdm", [0; 5], 1, 0, 64), words);
    assert_eq!(bench.read("pdm", [0; 5], 1, 64, 64), words);
}

/// `mvd/n4096 $p0@0 $d0`: DRAM 0 must hold the PDM words 0..15, 64..79, ... 4032..4047.
#[test]
fn distribution_of_4096_words() {
    let mut bench = Bench::new();
    let words: Vec<u64> = (0..4096).collect();
    bench.write("pdm", [0; 5], 1, 0, &words);
    bench.run("mvd/n4096i01 $p0@0 $d0\nnop; wait i01\nmvd/n128i02 $p0@0 $lc0\nnop; wait i02\n");
    let got = bench.read("dram", [0; 5], 1, 0, 1024);
    let expected: Vec<u64> = (0..64).flat_map(|i| 64 * i..64 * i + 16).collect();
    assert_eq!(got, expected);
    assert_eq!(bench.read("l2bm", [0, 1, 0, 0, 0], 2, 0, 16), (16..32).collect::<Vec<u64>>());
}

/// An MV over a whole PDM of zeros must take no memory of the host.
#[test]
fn sparse_memories_stay_sparse() {
    let mut bench = Bench::new();
    bench.write("pdm", [0; 5], 1, 5, &[7]);
    bench.run("mvp/n524288i01 $p0@0 $d1048576@3\nnop; wait i01\nmvd/n524288i02 $d0 $p0@1\nnop; wait i02\n");
    assert_eq!(bench.read("dram", [3, 0, 0, 0, 0], 1, 1_048_576 + 5, 1), [7]);
    assert_eq!(bench.read("pdm", [1, 0, 0, 0, 0], 1, 0, 64), vec![0; 64]);
}

#[test]
fn broadcast_of_pairs_and_singles() {
    let mut bench = Bench::new();
    let words: Vec<u64> = (0xA0..0xA8).collect();
    bench.write("l1bm", [0; 5], 3, 0, &words);
    bench.run("l1bmp $llb0 $llr0v\nl1bmp $lb0 $lr16v\n");
    for (m, p) in [(0, 0), (15, 3)] {
        assert_eq!(bench.read("grf0", [0, 0, 0, m, p], 5, 0, 8), [0xA0, 0xA4, 0xA1, 0xA5, 0xA2, 0xA6, 0xA3, 0xA7]);
        assert_eq!(bench.read("grf0", [0, 0, 0, m, p], 5, 8, 4), [0xA0, 0xA1, 0xA2, 0xA3]);
    }
}

/// The part of the sum over 4096 PEs that happens inside the L1Bs, to the turnaround register and back.
#[test]
fn sums_inside_every_l1b() {
    let mut bench = Bench::new();
    let c = bench.counts();
    let words: Vec<u64> = (1..=4).map(|k| f64::from(k).to_bits()).collect();
    bench.write("pdm", [0; 5], 1, 0, &words);
    let text =
        "mvb/n64i01 $p0@0 $lc0\nnop; wait i01\nl2bmb $lc0 $lb0\nnop\nl1bmp $lb0 $lr0v\nnop\nl1bmrdfadd $lr0v $lb64\n\
                l1bmm $lbi $lm0v\n";
    bench.run(text);
    for (g, l, b, m, p) in units(&c) {
        for cycle in 0..4u64 {
            let sum = (16.0 * (cycle + 1) as f64).to_bits();
            let at = 64 + 4 * cycle + u64::from(p);
            assert_eq!(bench.read("l1bm", [g, l, b, 0, 0], 3, at, 1), [sum], "{:?}", (g, l, b, cycle, p));
            assert_eq!(bench.read("lm0", [g, l, b, m, p], 5, cycle, 1), [sum], "{:?}", (g, l, b, m, p, cycle));
        }
    }
}

fn units(c: &Counts) -> Vec<(u32, u32, u32, u32, u32)> {
    let mut all = Vec::new();
    for g in 0..c.group {
        for l in 0..c.l2b {
            for b in 0..c.l1b {
                for m in 0..c.mab {
                    all.extend((0..c.pe).map(|p| (g, l, b, m, p)));
                }
            }
        }
    }
    all
}

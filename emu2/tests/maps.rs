//! Every index map of the full chip, word by word, against formulas typed from the manual with their numbers.
//!
//! The maps of the spec are written with named counts. Here the numbers stand as in the manual, so that a wrong coefficient
//! in either shows.

use emu2::spec::{Place, Spec};
use std::collections::BTreeSet;
use std::path::Path;

/// The counts of a machine.
#[derive(Clone, Copy)]
struct Numbers {
    group: u32,
    l2b: u32,
    l1b: u32,
    mab: u32,
    pe: u32,
    cycle: u32,
    narrow: u64,
    lane: u64,
    block: u64,
    unit: u64,
    /// MABs of a group of a 4x4 form.
    quad: u32,
}

const FULL: Numbers =
    Numbers { group: 4, l2b: 2, l1b: 8, mab: 16, pe: 4, cycle: 4, narrow: 16, lane: 8, block: 16, unit: 64, quad: 4 };

/// `tests/data/spec/must_pass/odd.toml`: all of its counts differ.
const ODD: Numbers =
    Numbers { group: 5, l2b: 2, l1b: 7, mab: 12, pe: 4, cycle: 3, narrow: 11, lane: 9, block: 13, unit: 26, quad: 6 };

fn machines() -> [(Spec, Numbers); 2] {
    let odd = Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/data/spec/must_pass/odd.toml");
    [(Spec::load("mncore2").unwrap(), FULL), (Spec::load(odd.to_str().unwrap()).unwrap(), ODD)]
}

type Words = BTreeSet<(Place, Place)>;

/// The words that a form moves with the given parameters.
fn declared(spec: &Spec, transfer: &str, form: &str, parameters: &[(&str, i64)]) -> Words {
    let at = spec.transfers.iter().position(|t| t.name == transfer).unwrap_or_else(|| panic!("no {transfer}"));
    let form = spec.forms[at].iter().find(|f| f.name == form).unwrap_or_else(|| panic!("{transfer} has no {form}"));
    form.evaluate(parameters).unwrap().into_iter().collect()
}

fn pe(c: u32, m: u32, p: u32, half: u32) -> Place {
    Place { cycle: c, mab: m, pe: p, half, ..Place::default() }
}

fn at(addr: u64) -> Place {
    Place { addr, ..Place::default() }
}

/// One word per cycle, MAB, PE and half; `memory` gives the L1BM offset.
fn every_pe(n: Numbers, halves: u32, memory: impl Fn(u64, u64, u64, u64) -> u64) -> Vec<(Place, Place)> {
    let mut words = Vec::new();
    for c in 0..n.cycle {
        for m in 0..n.mab {
            for p in 0..n.pe {
                for h in 0..halves {
                    words.push((pe(c, m, p, h), at(memory(c.into(), m.into(), p.into(), h.into()))));
                }
            }
        }
    }
    words
}

fn to_pe(words: Vec<(Place, Place)>) -> Words {
    words.into_iter().map(|(pe, memory)| (memory, pe)).collect()
}

fn from_pe(words: Vec<(Place, Place)>) -> Words {
    words.into_iter().collect()
}

/// Operations on one long word that work in their own lanes.
const LONG: [&str; 21] = [
    "dfadd", "ffadd", "dmax", "fmax", "dmin", "fmin", "liadd", "iiadd", "siadd", "lband", "iband", "sband", "lbor",
    "ibor", "sbor", "land", "iand", "sand", "lor", "ior", "sor",
];

/// 4x4 forms: `16c + 4*(m/4) + p`, in two long words `32c + 8*(m/4) + 4h + p`.
fn quads(n: Numbers, halves: u32) -> Vec<(Place, Place)> {
    let (groups, pe, quad) = (u64::from(n.mab / n.quad), u64::from(n.pe), u64::from(n.quad));
    let wide = u64::from(halves);
    every_pe(n, halves, |c, m, p, h| wide * groups * pe * c + wide * pe * (m / quad) + pe * h + p)
}

#[test]
fn l1bm_maps() {
    for (spec, n) in machines() {
        let (mab, pe, cycle) = (u64::from(n.mab), u64::from(n.pe), u64::from(n.cycle));
        let last = i64::from(n.mab) - 1;
        for shift in -last..=last {
            let slot = |m: u64, sign: i64| (m as i64 + sign * shift).rem_euclid(last + 1) as u64;
            let down = every_pe(n, 1, |c, m, p, _| c * mab * pe + pe * slot(m, -1) + p);
            assert_eq!(declared(&spec, "l1bmd", "to_pe", &[("shift", shift)]), to_pe(down));
            let up = every_pe(n, 1, |c, m, p, _| c * mab * pe + pe * slot(m, 1) + p);
            assert_eq!(declared(&spec, "l1bmd", "from_pe", &[("shift", shift)]), from_pe(up));
        }
        assert_eq!(declared(&spec, "l1bmp", "to_pe", &[]), to_pe(every_pe(n, 1, |c, _, _, _| c)));
        assert_eq!(declared(&spec, "l1bmp", "to_pe_2", &[]), to_pe(every_pe(n, 2, |c, _, _, h| cycle * h + c)));
        let single = || every_pe(n, 1, |c, _, p, _| pe * c + p);
        let pair = || every_pe(n, 2, |c, _, p, h| 2 * pe * c + pe * h + p);
        assert_eq!(declared(&spec, "l1bmm", "to_pe", &[]), to_pe(single()));
        assert_eq!(declared(&spec, "l1bmm", "to_pe_2", &[]), to_pe(pair()));
        for x in 0..n.mab {
            let of_mab =
                |words: Vec<(Place, Place)>| from_pe(words.into_iter().filter(|(pe, _)| pe.mab == x).collect());
            let parameter = [("mab_number", i64::from(x))];
            assert_eq!(declared(&spec, "l1bmm", "from_pe", &parameter), of_mab(single()));
            assert_eq!(declared(&spec, "l1bmm", "from_pe_2", &parameter), of_mab(pair()));
        }
        for (entry, operations) in [("l1bmr", single()), ("l1bmr4", quads(n, 1))].map(|(e, words)| (e, from_pe(words)))
        {
            for name in LONG {
                assert_eq!(declared(&spec, &format!("{entry}{name}"), "from_pe", &[]), operations, "{entry}{name}");
            }
            let pair = from_pe(if entry == "l1bmr" { pair() } else { quads(n, 2) });
            for (names, form) in
                [(["ffadd", "fmax", "fmin"], "from_pe_2"), (["lbor", "ibor", "sbor"], "from_pe_2_bits")]
            {
                for name in names {
                    assert_eq!(declared(&spec, &format!("{entry}{name}"), form, &[]), pair, "{entry}{name}");
                }
            }
            // The two long words of a PE become one. The layout is that of one long word; the half says which of its words.
            let narrow: Words = (0..2)
                .flat_map(|half| operations.iter().map(move |(pe, at)| (Place { half, ..*pe }, Place { half, ..*at })))
                .collect();
            for (names, form) in
                [(["ffaddr", "fmaxr", "fminr"], "from_pe_narrow"), (["hfadd", "hmax", "hmin"], "from_pe_half")]
            {
                for name in names {
                    assert_eq!(declared(&spec, &format!("{entry}{name}"), form, &[]), narrow, "{entry}{name}");
                }
            }
        }
        for halves in [1, 2] {
            let (to, from) = if halves == 1 { ("to_pe", "from_pe") } else { ("to_pe_2", "from_pe_2") };
            assert_eq!(declared(&spec, "l1bmm4", to, &[]), to_pe(quads(n, halves)));
            for x in 0..n.quad {
                let of_mab = quads(n, halves).into_iter().filter(|(pe, _)| pe.mab % n.quad == x).collect();
                assert_eq!(declared(&spec, "l1bmm4", from, &[("mab_number", i64::from(x))]), from_pe(of_mab));
            }
        }
    }
}

#[test]
fn reductions_meet_low_mab_bits_first() {
    for ((spec, n), tree) in machines().into_iter().zip([[4, 4], [6, 2]]) {
        let at = spec.transfers.iter().position(|t| t.name == "l1bmrdfadd").unwrap();
        assert_eq!(spec.forms[at][0].tree, tree);
        for (transfer, forms) in spec.transfers.iter().zip(&spec.forms) {
            let expected = match transfer.entry.as_str() {
                "l1bmr" => &tree[..],
                "l1bmr4" => &tree[..1],
                _ => continue,
            };
            assert!(forms.iter().all(|f| f.tree == expected), "{}", transfer.name);
        }
        let moves = spec.forms[at][0].evaluate(&[]).unwrap();
        let mabs: Vec<u32> = moves.iter().filter(|(_, to)| to.addr == 6).map(|(from, _)| from.mab).collect();
        assert_eq!(mabs, (0..n.mab).collect::<Vec<_>>());
    }
}

#[test]
fn l2bm_maps() {
    for (spec, n) in machines() {
        let lower = |x: u32, addr: u64| Place { l1b: x, addr, ..Place::default() };
        let mut broadcast = Words::new();
        let mut distribute = Words::new();
        for c in 0..u64::from(n.cycle) {
            for x in 0..n.l1b {
                broadcast.extend((0..n.narrow).map(|k| (at(n.narrow * c + k), lower(x, n.narrow * c + k))));
                let first = n.lane * (u64::from(n.l1b) * c + u64::from(x));
                distribute.extend((0..n.lane).map(|k| (at(first + k), lower(x, n.lane * c + k))));
            }
        }
        let all = [("l1bs_first", 0), ("l1bs_free", i64::from(n.l1b.next_power_of_two() - 1))];
        assert_eq!(declared(&spec, "l2bmb", "down", &all), broadcast);
        assert_eq!(declared(&spec, "l2bmd", "down", &all), distribute);
        let collect: Words = distribute.into_iter().map(|(upper, lower)| (lower, upper)).collect();
        assert_eq!(declared(&spec, "l2bmd", "up", &[]), collect);
        for x in 0..n.l1b {
            let one: Words = (0..n.narrow * u64::from(n.cycle)).map(|k| (lower(x, k), at(k))).collect();
            assert_eq!(declared(&spec, "l2bm", "up", &[("l1b_number", i64::from(x))]), one);
        }
    }
}

/// A unit above the L1Bs: group, L2B, offset.
fn unit(group: u32, l2b: u32, addr: u64) -> Place {
    Place { group, l2b, addr, ..Place::default() }
}

#[test]
fn mv_maps() {
    for (spec, n) in machines() {
        for block in [0u64, 5] {
            copies(&spec, n, block);
            let mut gather = Words::new();
            let step = n.block * u64::from(n.group);
            for q in 0..n.group * n.l2b {
                for s in 0..n.group {
                    for k in 0..n.block {
                        let to = step * block + n.block * u64::from(s) + k;
                        gather.insert((unit(s, 0, n.block * block + k), unit(q / n.l2b, q % n.l2b, to)));
                    }
                }
            }
            assert_eq!(declared(&spec, "mvb", "dram_to_l2bm", &[("i", block as i64)]), gather);
        }
    }
}

fn copies(spec: &Spec, n: Numbers, block: u64) {
    let i = ("i", block as i64);
    let copy = |from: Place, to: Place| -> Words {
        let words = (0..n.unit).map(|k| n.unit * block + k);
        words.map(|addr| (Place { addr, ..from }, Place { addr, ..to })).collect()
    };
    for (g, h, l) in [(0, 3, 1), (2, 1, 0), (3, 3, 1)] {
        let (source, sink) = (("src_group", i64::from(g)), ("dst_group", i64::from(h)));
        let groups = copy(unit(g, 0, 0), unit(h, 0, 0));
        for form in ["pdm_to_dram", "dram_to_pdm", "pdm_to_pdm"] {
            assert_eq!(declared(spec, "mvp", form, &[source, sink, i]), groups, "{form}");
        }
        for form in ["dram_to_l2bm", "pdm_to_l2bm"] {
            let expected = copy(unit(g, 0, 0), unit(h, l, 0));
            assert_eq!(declared(spec, "mvp", form, &[source, sink, ("dst_l2b", i64::from(l)), i]), expected, "{form}");
        }
        for form in ["l2bm_to_dram", "l2bm_to_pdm"] {
            let expected = copy(unit(g, l, 0), unit(h, 0, 0));
            assert_eq!(declared(spec, "mvp", form, &[source, sink, ("src_l2b", i64::from(l)), i]), expected, "{form}");
        }
        let down: Words = (0..n.group).flat_map(|g| copy(unit(g, 0, 0), unit(g, l, 0))).collect();
        let up: Words = down.iter().map(|(a, b)| (*b, *a)).collect();
        for form in ["dram_to_l2bm_parallel", "pdm_to_l2bm_parallel"] {
            assert_eq!(declared(spec, "mvp", form, &[("dst_l2b", i64::from(l)), i]), down, "{form}");
        }
        for form in ["l2bm_to_dram_parallel", "l2bm_to_pdm_parallel"] {
            assert_eq!(declared(spec, "mvp", form, &[("src_l2b", i64::from(l)), i]), up, "{form}");
        }
        let all = (0..n.group * n.l2b).flat_map(|q| copy(unit(g, 0, 0), unit(q / n.l2b, q % n.l2b, 0)));
        assert_eq!(declared(spec, "mvb", "pdm_to_l2bm", &[source, i]), all.collect());
    }
}

/// Alignments and units as the manual's tables have them.
#[test]
fn alignments() {
    use emu2::spec::End;
    let spec = Spec::load("mncore2").unwrap();
    let table: &[(&str, &str, u64, u64, Option<u64>)] = &[
        ("l1bmp", "to_pe", 1, 0, None),
        ("l1bmp", "to_pe_2", 8, 0, None),
        ("l1bmm", "to_pe", 4, 0, None),
        ("l1bmm", "to_pe_2", 8, 0, None),
        ("l1bmm", "from_pe", 0, 4, None),
        ("l1bmm", "from_pe_2", 0, 8, None),
        ("l1bmd", "to_pe", 64, 0, None),
        ("l1bmd", "from_pe", 0, 64, None),
        ("l1bmrdfadd", "from_pe", 0, 4, None),
        ("l1bmrffadd", "from_pe_2", 0, 8, None),
        ("l1bmrlbor", "from_pe_2_bits", 0, 8, None),
        ("l1bmrfmaxr", "from_pe_narrow", 0, 4, None),
        ("l1bmrhfadd", "from_pe_half", 0, 4, None),
        ("l1bmm4", "to_pe", 16, 0, None),
        ("l1bmm4", "to_pe_2", 32, 0, None),
        ("l1bmm4", "from_pe", 0, 16, None),
        ("l1bmm4", "from_pe_2", 0, 32, None),
        ("l1bmr4dfadd", "from_pe", 0, 16, None),
        ("l1bmr4ffadd", "from_pe_2", 0, 32, None),
        ("l1bmr4lbor", "from_pe_2_bits", 0, 32, None),
        ("l1bmr4fmaxr", "from_pe_narrow", 0, 16, None),
        ("l1bmr4hfadd", "from_pe_half", 0, 16, None),
        ("l2bmb", "down", 16, 16, None),
        ("l2bmd", "down", 64, 8, None),
        ("l2bmd", "up", 8, 64, None),
        ("l2bm", "up", 16, 16, None),
        ("mvp", "pdm_to_dram", 16, 16, Some(64)),
        ("mvp", "dram_to_l2bm_parallel", 16, 16, Some(64)),
        ("mvb", "pdm_to_l2bm", 16, 16, Some(64)),
        ("mvb", "dram_to_l2bm", 16, 16, Some(64)),
        ("mvb2", "dram_to_l2bm", 16, 16, Some(64)),
        ("mvb4", "dram_to_l2bm", 16, 16, Some(64)),
        ("mvrhmax", "l2bm_to_pdm", 16, 16, Some(64)),
        ("mvrhmax", "l2bm_to_dram", 16, 16, Some(64)),
        ("mvr2hmax", "l2bm_to_dram", 16, 16, Some(64)),
        ("mvr4hmax", "l2bm_to_dram", 16, 16, Some(64)),
        ("mvd", "pdm_to_dram", 16, 16, Some(64)),
        ("mvd", "dram_to_pdm", 16, 16, Some(64)),
        ("mvd", "pdm_to_l2bm", 16, 16, Some(128)),
        ("mvd", "l2bm_to_pdm", 16, 16, Some(128)),
        ("l2bmb2", "down", 64, 16, None),
        ("l2bmrlor", "up", 16, 16, None),
        ("l2bmr2lor", "up", 16, 64, None),
        ("l2bmi", "between", 16, 16, None),
        ("l2bmdars", "to_buffer", 64, 1, None),
    ];
    let align = |end: &End| match end {
        End::Memory { align, .. } => *align,
        End::Pe => 0,
    };
    for (transfer, form, source, destination, unit) in table {
        let at = spec.transfers.iter().position(|t| t.name == *transfer).unwrap();
        let found = spec.forms[at].iter().find(|f| f.name == *form).unwrap();
        let got = (align(&found.source), align(&found.destination), found.unit);
        assert_eq!(got, (*source, *destination, *unit), "{transfer} {form}");
    }
    let [(full, _), (odd, _)] = machines();
    for (spec, unit, block) in [(full, 64, 16), (odd, 26, 13)] {
        let mvp = spec.transfers.iter().position(|t| t.name == "mvp").unwrap();
        for form in &spec.forms[mvp] {
            let got = (form.unit, align(&form.source), align(&form.destination));
            assert_eq!(got, (Some(unit), block, block), "{}", form.name);
        }
    }
    // On the odd machine: twice the cycles, the PEs of a MAB, an L1B's PEs, the lanes of all L1Bs, a block per group.
    let [_, (odd, _)] = machines();
    let table: &[(&str, &str, u64, u64, Option<u64>)] = &[
        ("l1bmp", "to_pe", 1, 0, None),
        ("l1bmp", "to_pe_2", 6, 0, None),
        ("l1bmm", "to_pe", 4, 0, None),
        ("l1bmm", "from_pe_2", 0, 8, None),
        ("l1bmd", "to_pe", 48, 0, None),
        ("l1bmrdfadd", "from_pe", 0, 4, None),
        ("l1bmrffadd", "from_pe_2", 0, 8, None),
        ("l1bmrlbor", "from_pe_2_bits", 0, 8, None),
        ("l1bmrfmaxr", "from_pe_narrow", 0, 4, None),
        ("l1bmrhfadd", "from_pe_half", 0, 4, None),
        ("l1bmm4", "to_pe", 8, 0, None),
        ("l1bmm4", "to_pe_2", 16, 0, None),
        ("l1bmm4", "from_pe", 0, 8, None),
        ("l1bmm4", "from_pe_2", 0, 16, None),
        ("l1bmr4dfadd", "from_pe", 0, 8, None),
        ("l1bmr4ffadd", "from_pe_2", 0, 16, None),
        ("l1bmr4lbor", "from_pe_2_bits", 0, 16, None),
        ("l1bmr4fmaxr", "from_pe_narrow", 0, 8, None),
        ("l1bmr4hfadd", "from_pe_half", 0, 8, None),
        ("l1bmd", "from_pe", 0, 48, None),
        ("l2bmb", "down", 11, 11, None),
        ("l2bmd", "down", 63, 9, None),
        ("l2bmd", "up", 9, 63, None),
        ("l2bm", "up", 11, 11, None),
        ("mvb", "pdm_to_l2bm", 13, 13, Some(26)),
        ("mvb", "dram_to_l2bm", 13, 13, Some(65)),
    ];
    for (transfer, form, source, destination, unit) in table {
        let at = odd.transfers.iter().position(|t| t.name == *transfer).unwrap();
        let found = odd.forms[at].iter().find(|f| f.name == *form).unwrap();
        let got = (align(&found.source), align(&found.destination), found.unit);
        assert_eq!(got, (*source, *destination, *unit), "odd {transfer} {form}");
    }
}

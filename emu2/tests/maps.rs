//! Every index map of the full chip, word by word, against formulas typed from the manual with their numbers.
//!
//! The maps of the spec are written with named counts; here the numbers stand as the manual has them, so that a slip in
//! a coefficient of either shows.

use emu2::spec::{Place, Spec};
use std::collections::BTreeSet;

type Words = BTreeSet<(Place, Place)>;

/// What a form moves with the given parameters.
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
fn every_pe(halves: u32, memory: impl Fn(u64, u64, u64, u64) -> u64) -> Vec<(Place, Place)> {
    let mut words = Vec::new();
    for c in 0..4 {
        for m in 0..16 {
            for p in 0..4 {
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

#[test]
fn l1bm_maps() {
    let spec = Spec::load("mncore2").unwrap();
    for shift in -15i64..=15 {
        let slot = |m: u64, sign: i64| (m as i64 + sign * shift).rem_euclid(16) as u64;
        let down = every_pe(1, |c, m, p, _| 64 * c + 4 * slot(m, -1) + p);
        assert_eq!(declared(&spec, "l1bmd", "to_pe", &[("shift", shift)]), to_pe(down));
        let up = every_pe(1, |c, m, p, _| 64 * c + 4 * slot(m, 1) + p);
        assert_eq!(declared(&spec, "l1bmd", "from_pe", &[("shift", shift)]), from_pe(up));
    }
    assert_eq!(declared(&spec, "l1bmp", "to_pe", &[]), to_pe(every_pe(1, |c, _, _, _| c)));
    assert_eq!(declared(&spec, "l1bmp", "to_pe_2", &[]), to_pe(every_pe(2, |c, _, _, h| 4 * h + c)));
    assert_eq!(declared(&spec, "l1bmm", "to_pe", &[]), to_pe(every_pe(1, |c, _, p, _| 4 * c + p)));
    assert_eq!(declared(&spec, "l1bmm", "to_pe_2", &[]), to_pe(every_pe(2, |c, _, p, h| 8 * c + 4 * h + p)));
    for x in 0..16 {
        let of_mab = |words: Vec<(Place, Place)>| from_pe(words.into_iter().filter(|(pe, _)| pe.mab == x).collect());
        let parameter = [("mab_number", i64::from(x))];
        assert_eq!(declared(&spec, "l1bmm", "from_pe", &parameter), of_mab(every_pe(1, |c, _, p, _| 4 * c + p)));
        let pairs = every_pe(2, |c, _, p, h| 8 * c + 4 * h + p);
        assert_eq!(declared(&spec, "l1bmm", "from_pe_2", &parameter), of_mab(pairs));
    }
    let reduced = from_pe(every_pe(1, |c, _, p, _| 4 * c + p));
    for t in spec.transfers.iter().filter(|t| t.name.starts_with("l1bmr")) {
        assert_eq!(declared(&spec, &t.name, "from_pe", &[]), reduced, "{}", t.name);
    }
}

#[test]
fn reductions_meet_four_and_four() {
    let spec = Spec::load("mncore2").unwrap();
    let at = spec.transfers.iter().position(|t| t.name == "l1bmrdfadd").unwrap();
    assert_eq!(spec.forms[at][0].tree, [4, 4]);
    let moves = spec.forms[at][0].evaluate(&[]).unwrap();
    let mabs: Vec<u32> = moves.iter().filter(|(_, to)| to.addr == 6).map(|(from, _)| from.mab).collect();
    assert_eq!(mabs, (0..16).collect::<Vec<_>>());
}

#[test]
fn l2bm_maps() {
    let spec = Spec::load("mncore2").unwrap();
    let lower = |x: u32, addr: u64| Place { l1b: x, addr, ..Place::default() };
    let mut broadcast = Words::new();
    let mut distribute = Words::new();
    for c in 0..4u64 {
        for x in 0..8u32 {
            broadcast.extend((0..16).map(|k| (at(16 * c + k), lower(x, 16 * c + k))));
            distribute.extend((0..8).map(|k| (at(64 * c + 8 * u64::from(x) + k), lower(x, 8 * c + k))));
        }
    }
    assert_eq!(declared(&spec, "l2bmb", "down", &[]), broadcast);
    assert_eq!(declared(&spec, "l2bmd", "down", &[]), distribute);
    let collect: Words = distribute.into_iter().map(|(upper, lower)| (lower, upper)).collect();
    assert_eq!(declared(&spec, "l2bmd", "up", &[]), collect);
    for x in 0..8 {
        let one: Words = (0..64).map(|k| (lower(x, k), at(k))).collect();
        assert_eq!(declared(&spec, "l2bm", "up", &[("l1b_number", i64::from(x))]), one);
    }
}

/// A unit above the L1Bs: group, L2B, offset.
fn unit(group: u32, l2b: u32, addr: u64) -> Place {
    Place { group, l2b, addr, ..Place::default() }
}

#[test]
fn mv_maps() {
    let spec = Spec::load("mncore2").unwrap();
    for block in [0u64, 5] {
        let i = ("i", block as i64);
        for (g, h, l) in [(0, 3, 1), (2, 1, 0), (3, 3, 1)] {
            let (source, sink) = (("src_group", i64::from(g)), ("dst_group", i64::from(h)));
            let words: Vec<u64> = (0..64).map(|k| 64 * block + k).collect();
            let copy = |from: Place, to: Place| -> Words {
                words.iter().map(|a| (Place { addr: *a, ..from }, Place { addr: *a, ..to })).collect()
            };
            let groups = copy(unit(g, 0, 0), unit(h, 0, 0));
            for form in ["pdm_to_dram", "dram_to_pdm", "pdm_to_pdm"] {
                assert_eq!(declared(&spec, "mvp", form, &[source, sink, i]), groups, "{form}");
            }
            let l2b = ("dst_l2b", i64::from(l));
            for form in ["dram_to_l2bm", "pdm_to_l2bm"] {
                let expected = copy(unit(g, 0, 0), unit(h, l, 0));
                assert_eq!(declared(&spec, "mvp", form, &[source, sink, l2b, i]), expected, "{form}");
            }
            let l2b = ("src_l2b", i64::from(l));
            for form in ["l2bm_to_dram", "l2bm_to_pdm"] {
                let expected = copy(unit(g, l, 0), unit(h, 0, 0));
                assert_eq!(declared(&spec, "mvp", form, &[source, sink, l2b, i]), expected, "{form}");
            }
            let all: Vec<Words> = (0..4).map(|g| copy(unit(g, 0, 0), unit(g, l, 0))).collect();
            let down: Words = all.into_iter().flatten().collect();
            let up: Words = down.iter().map(|(a, b)| (*b, *a)).collect();
            for form in ["dram_to_l2bm_parallel", "pdm_to_l2bm_parallel"] {
                assert_eq!(declared(&spec, "mvp", form, &[("dst_l2b", i64::from(l)), i]), down, "{form}");
            }
            for form in ["l2bm_to_dram_parallel", "l2bm_to_pdm_parallel"] {
                assert_eq!(declared(&spec, "mvp", form, &[l2b, i]), up, "{form}");
            }
            let broadcast: Words =
                (0..8).flat_map(|q| copy(unit(g, 0, 0), unit(q / 2, q % 2, 0))).collect();
            assert_eq!(declared(&spec, "mvb", "pdm_to_l2bm", &[source, i]), broadcast);
        }
        let mut gather = Words::new();
        for q in 0..8u32 {
            for s in 0..4u32 {
                for k in 0..16 {
                    let from = unit(s, 0, 16 * block + k);
                    gather.insert((from, unit(q / 2, q % 2, 64 * block + 16 * u64::from(s) + k)));
                }
            }
        }
        assert_eq!(declared(&spec, "mvb", "dram_to_l2bm", &[i]), gather);
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
        ("l2bmb", "down", 16, 16, None),
        ("l2bmd", "down", 64, 8, None),
        ("l2bmd", "up", 8, 64, None),
        ("l2bm", "up", 16, 16, None),
        ("mvp", "pdm_to_dram", 16, 16, Some(64)),
        ("mvp", "dram_to_l2bm_parallel", 16, 16, Some(64)),
        ("mvb", "pdm_to_l2bm", 16, 16, Some(64)),
        ("mvb", "dram_to_l2bm", 16, 16, Some(64)),
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
    for (at, transfer) in spec.transfers.iter().enumerate().filter(|(_, t)| t.name == "mvp") {
        assert!(spec.forms[at].iter().all(|f| f.unit == Some(64)), "{}", transfer.name);
        assert!(spec.forms[at].iter().all(|f| (align(&f.source), align(&f.destination)) == (16, 16)));
    }
}

//! The manual's tables of transfers above the PEs, as loops over words: which source words meet in which destination word.
//! They are typed from the manual by mode and operands, with counts instead of numbers. Nothing comes from the maps of the
//! spec.
#![allow(dead_code, unreachable_pub)] // every test binary uses its own part

/// The counts of a machine.
#[derive(Clone, Copy, Debug)]
pub struct Numbers {
    pub groups: u64,
    pub l2bs: u64,
    pub l1bs: u64,
    pub cycles: u64,
    /// Long words per cycle between L2BM and L1BMs, if all take the same data and if each takes its own.
    pub narrow: u64,
    pub lane: u64,
    /// Long words that an MV hands to one memory at a time.
    pub block: u64,
}

/// A long word above the PEs: group, L2B, L1B (0 where the memory has no such level), offset from the written address.
pub type Word = (u64, u64, u64, u64);

/// A destination and the source words that meet there. None stands for the neutral element.
pub type Meet = (Word, Vec<Option<Word>>);

fn copy(to: Word, from: Word) -> Meet {
    (to, vec![Some(from)])
}

/// The words that an MV of `n` long words moves. `from` and `to` are memories, `src` and `dst` the units that `@` selects
/// there.
pub fn mv(
    c: Numbers,
    mode: &str,
    [from, to]: [&str; 2],
    [src, dst]: [(Option<u64>, Option<u64>); 2],
    n: u64,
) -> Vec<Meet> {
    let k16 = c.block;
    let units = || (0..c.groups).flat_map(|g| (0..c.l2bs).map(move |l| (g, l)));
    let mut all = Vec::new();
    // Block i of n, four of 16 in a unit of 64 on the chip: one per group.
    let per_groups = |n: u64| n / (c.groups * k16);
    match (mode, from, to) {
        ("mvp", ..) => {
            let parallel: Vec<u64> = if src.0.is_none() && dst.0.is_none() { (0..c.groups).collect() } else { vec![0] };
            for g in parallel {
                for j in 0..n {
                    let place = |(group, l2b): (Option<u64>, Option<u64>)| (group.unwrap_or(g), l2b.unwrap_or(0), 0, j);
                    all.push(copy(place(dst), place(src)));
                }
            }
        }
        ("mvb", "pdm", "l2bm") => {
            for (g, l) in units() {
                all.extend((0..n).map(|j| copy((g, l, 0, j), (src.0.unwrap(), 0, 0, j))));
            }
        }
        ("mvb", "dram", "l2bm") => {
            for i in 0..per_groups(n) {
                for (g, l) in units() {
                    for s in 0..c.groups {
                        for k in 0..k16 {
                            all.push(copy((g, l, 0, c.groups * k16 * i + k16 * s + k), (s, 0, 0, k16 * i + k)));
                        }
                    }
                }
            }
        }
        ("mvb2", "dram", "l2bm") => {
            for (g, l) in units() {
                all.extend((0..n).map(|j| copy((g, l, 0, j), (g, 0, 0, j))));
            }
        }
        ("mvb4", "dram", "l2bm") => {
            for i in 0..per_groups(n) {
                for (g, l) in units() {
                    for s in 0..c.groups {
                        for k in 0..k16 {
                            let to = (g, l, 0, c.groups * k16 * i + k16 * s + k);
                            all.push(copy(to, (s, 0, 0, c.l2bs * k16 * i + k16 * l + k)));
                        }
                    }
                }
            }
        }
        ("mvr", "l2bm", "pdm") => {
            for j in 0..n {
                all.push(((dst.0.unwrap(), 0, 0, j), units().map(|(g, l)| Some((g, l, 0, j))).collect()));
            }
        }
        ("mvr", "l2bm", "dram") => {
            for i in 0..per_groups(n) {
                for s in 0..c.groups {
                    for k in 0..k16 {
                        let at = c.groups * k16 * i + k16 * s + k;
                        let elements = units().map(|(g, l)| Some((g, l, 0, at))).collect();
                        all.push(((s, 0, 0, k16 * i + k), elements));
                    }
                }
            }
        }
        ("mvr2", "l2bm", "dram") => {
            for g in 0..c.groups {
                all.extend((0..n).map(|j| ((g, 0, 0, j), (0..c.l2bs).map(|l| Some((g, l, 0, j))).collect())));
            }
        }
        ("mvr4", "l2bm", "dram") => {
            for i in 0..per_groups(n) {
                for s in 0..c.groups {
                    for l in 0..c.l2bs {
                        for k in 0..k16 {
                            let at = c.groups * k16 * i + k16 * s + k;
                            let elements = (0..c.groups).map(|g| Some((g, l, 0, at))).collect();
                            all.push(((s, 0, 0, c.l2bs * k16 * i + k16 * l + k), elements));
                        }
                    }
                }
            }
        }
        ("mvd", "pdm", "dram") | ("mvd", "dram", "pdm") => {
            for i in 0..per_groups(n) {
                for s in 0..c.groups {
                    for k in 0..k16 {
                        let (pdm, dram) = (c.groups * k16 * i + k16 * s + k, (s, 0, 0, k16 * i + k));
                        all.push(if from == "pdm" {
                            copy(dram, (src.0.unwrap(), 0, 0, pdm))
                        } else {
                            copy((dst.0.unwrap(), 0, 0, pdm), dram)
                        });
                    }
                }
            }
        }
        // PDM address = 128 * (x / 16) + 16 * q + x % 16 for offset x of L2BM q.
        ("mvd", "pdm", "l2bm") | ("mvd", "l2bm", "pdm") => {
            let whole = c.groups * c.l2bs * k16;
            for (g, l) in units() {
                for x in 0..n / (c.groups * c.l2bs) {
                    let (pdm, l2bm) = (whole * (x / k16) + k16 * (c.l2bs * g + l) + x % k16, (g, l, 0, x));
                    all.push(if from == "pdm" {
                        copy(l2bm, (src.0.unwrap(), 0, 0, pdm))
                    } else {
                        copy((dst.0.unwrap(), 0, 0, pdm), l2bm)
                    });
                }
            }
        }
        _ => panic!("the manual has no {mode} from {from} to {to}"),
    }
    all
}

/// The words that an L2BM instruction moves in L2B (g, l). `set`: first unit and free bits; `x`: the unit that `l2bm@`
/// names.
pub fn l2bm(c: Numbers, mode: &str, down: bool, (g, l): (u64, u64), set: (u64, u64), x: u64) -> Vec<Meet> {
    let (first, free) = set;
    let member = |b: u64| b & !free == first & !free;
    let (upper, lower) = (|addr: u64| (g, l, 0, addr), |b: u64, addr: u64| (g, l, b, addr));
    let pairs = c.l1bs.div_ceil(2);
    let mut all = Vec::new();
    for cycle in 0..c.cycles {
        for k in 0..c.narrow {
            let at = c.narrow * cycle + k;
            match (mode, down) {
                ("l2bmb", true) => {
                    all.extend((0..c.l1bs).filter(|b| member(*b)).map(|b| copy(lower(b, at), upper(at))));
                }
                ("l2bmb2", true) => {
                    let from = |b: u64| upper(pairs * c.narrow * cycle + c.narrow * (b / 2) + k);
                    all.extend((0..c.l1bs).filter(|b| member(*b)).map(|b| copy(lower(b, at), from(b))));
                }
                ("l2bm", false) => all.push(copy(upper(at), lower(x, at))),
                ("l2bmr", false) => {
                    let elements = (0..c.l1bs).map(|b| member(b).then_some(lower(b, at))).collect();
                    all.push((upper(at), elements));
                }
                ("l2bmr2", false) => {
                    for r in 0..pairs {
                        let elements = [2 * r, 2 * r + 1].map(|b| (b < c.l1bs).then_some(lower(b, at)));
                        all.push((upper(pairs * c.narrow * cycle + c.narrow * r + k), elements.to_vec()));
                    }
                }
                ("l2bmi", _) => {
                    for b in (0..c.l1bs).filter(|b| member(*b)) {
                        let goes = (0..c.l1bs).filter(|to| to & free == b & free);
                        all.extend(goes.map(|to| copy(lower(to, at), lower(b, at))));
                    }
                }
                ("l2bmd", _) => {}
                _ => panic!("the manual has no {mode}"),
            }
        }
        for k in 0..c.lane {
            for b in (0..c.l1bs).filter(|b| mode == "l2bmd" && (!down || member(*b))) {
                let (own, whole) = (lower(b, c.lane * cycle + k), upper(c.lane * (c.l1bs * cycle + b) + k));
                all.push(if down { copy(own, whole) } else { copy(whole, own) });
            }
        }
    }
    all
}

/// Inputs of the stages of a reduction, beginning with the stage of the elements. guess: `mvr` takes the L2Bs of a group
/// first, `l2bmr` has one stage.
pub fn tree(c: Numbers, mode: &str) -> Vec<usize> {
    match mode {
        "mvr" => vec![c.l2bs as usize, c.groups as usize],
        "mvr2" => vec![c.l2bs as usize],
        "mvr4" => vec![c.groups as usize],
        "l2bmr" => vec![c.l1bs as usize],
        "l2bmr2" => vec![2],
        _ => panic!("{mode} does not reduce"),
    }
}

/// The lane that stands for an absent element.
pub fn neutral(function: &str, width: u32) -> u64 {
    let ones = u64::MAX >> (64 - width);
    match function {
        "fadd" | "iadd" | "bor" | "or" => 0,
        "max" | "band" | "and" => ones,
        "min" => ones >> 1,
        _ => panic!("the manual has no reduction {function}"),
    }
}

/// The mode of a mnemonic, and the letter and the function of its reduction if it has one.
pub fn mode(mnemonic: &str) -> (&str, Option<(&str, &str)>) {
    for base in ["mvr2", "mvr4", "mvr", "l2bmr2", "l2bmr"] {
        if let Some(operation) = mnemonic.strip_prefix(base) {
            return (base, Some(operation.split_at(1)));
        }
    }
    (mnemonic, None)
}

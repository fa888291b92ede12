//! The manual's formulas of transfers, typed for a chip of 4 groups x 2 L2B x 8 L1B x 16 MAB x 4 PE. The naive machine
//! runs the spec's index maps; this is what they are held against.

use emu2::spec::{Move, Place};

/// Parameter of the mnemonic, block of an MV, and selected units.
#[derive(Clone, Copy, Debug, Default)]
pub struct Given {
    pub parameter: i64,
    pub block: u64,
    pub source: (u32, u32),
    pub destination: (u32, u32),
}

/// PE side: cycle, MAB, PE and long word.
fn pe(cycle: u64, mab: u64, pe: u64, half: u64) -> Place {
    Place { cycle: cycle as u32, mab: mab as u32, pe: pe as u32, half: half as u32, ..Place::default() }
}

/// A word of the memory of an L1B or of the unit that runs the map.
fn at(l1b: u64, addr: u64) -> Place {
    Place { l1b: l1b as u32, addr, ..Place::default() }
}

/// A word of the memory of a group or an L2B.
fn of((group, l2b): (u32, u32), addr: u64) -> Place {
    Place { group, l2b, addr, ..Place::default() }
}

/// Every combination of numbers below `n`.
fn each<const N: usize>(n: [u64; N]) -> impl Iterator<Item = [u64; N]> {
    (0..n.iter().product()).map(move |mut rest: u64| {
        let mut digits = [0; N];
        for k in (0..N).rev() {
            digits[k] = rest % n[k];
            rest /= n[k];
        }
        digits
    })
}

/// What a form moves, by the manual; None if it is not typed here.
pub fn moves(transfer: &str, form: &str, given: Given) -> Option<Vec<Move>> {
    let n = given.parameter;
    let slot = |m: u64, n: i64| (m as i64 + n).rem_euclid(16) as u64;
    let x = n as u64;
    Some(match (transfer, form) {
        ("l1bmd", "to_pe") => {
            each([4, 16, 4]).map(|[c, m, p]| (at(0, 64 * c + 4 * slot(m, -n) + p), pe(c, m, p, 0))).collect()
        }
        ("l1bmd", "from_pe") => {
            each([4, 16, 4]).map(|[c, m, p]| (pe(c, m, p, 0), at(0, 64 * c + 4 * slot(m, n) + p))).collect()
        }
        ("l1bmp", "to_pe") => each([4, 16, 4]).map(|[c, m, p]| (at(0, c), pe(c, m, p, 0))).collect(),
        ("l1bmp", "to_pe_2") => each([4, 16, 4, 2]).map(|[c, m, p, h]| (at(0, 4 * h + c), pe(c, m, p, h))).collect(),
        ("l1bmm", "to_pe") => each([4, 16, 4]).map(|[c, m, p]| (at(0, 4 * c + p), pe(c, m, p, 0))).collect(),
        ("l1bmm", "to_pe_2") => {
            each([4, 16, 4, 2]).map(|[c, m, p, h]| (at(0, 8 * c + 4 * h + p), pe(c, m, p, h))).collect()
        }
        ("l1bmm", "from_pe") => each([4, 4]).map(|[c, p]| (pe(c, x, p, 0), at(0, 4 * c + p))).collect(),
        ("l1bmm", "from_pe_2") => each([4, 4, 2]).map(|[c, p, h]| (pe(c, x, p, h), at(0, 8 * c + 4 * h + p))).collect(),
        (name, "from_pe") if name.starts_with("l1bmr") => {
            each([4, 16, 4]).map(|[c, m, p]| (pe(c, m, p, 0), at(0, 4 * c + p))).collect()
        }
        ("l2bmb", "down") => each([8, 64]).map(|[l1b, k]| (at(0, k), at(l1b, k))).collect(),
        ("l2bmd", "down") => {
            each([4, 8, 8]).map(|[c, l1b, k]| (at(0, 64 * c + 8 * l1b + k), at(l1b, 8 * c + k))).collect()
        }
        ("l2bmd", "up") => {
            each([4, 8, 8]).map(|[c, l1b, k]| (at(l1b, 8 * c + k), at(0, 64 * c + 8 * l1b + k))).collect()
        }
        ("l2bm", "up") => each([64]).map(|[k]| (at(x, k), at(0, k))).collect(),
        ("mvp", form) => copy(form, given),
        ("mvb", "pdm_to_l2bm") => {
            let k = |k| 64 * given.block + k;
            each([4, 2, 64]).map(|[g, l, j]| (of(given.source, k(j)), of((g as u32, l as u32), k(j)))).collect()
        }
        ("mvb", "dram_to_l2bm") => each([4, 2, 4, 16])
            .map(|[g, l, s, k]| {
                let from = of((s as u32, 0), 16 * given.block + k);
                (from, of((g as u32, l as u32), 64 * given.block + 16 * s + k))
            })
            .collect(),
        _ => return None,
    })
}

/// `dst[b+j] = src[a+j]`, between two units or in every group for itself.
fn copy(form: &str, given: Given) -> Vec<Move> {
    let k = |k| 64 * given.block + k;
    if form.ends_with("parallel") {
        let in_group = |g: u64, l2b: u32| (g as u32, l2b);
        each([4, 64])
            .map(|[g, j]| (of(in_group(g, given.source.1), k(j)), of(in_group(g, given.destination.1), k(j))))
            .collect()
    } else {
        each([64]).map(|[j]| (of(given.source, k(j)), of(given.destination, k(j)))).collect()
    }
}

//! Matrix-vector products of block float words against worked vectors and the exact reference.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod num_reference;

use emu2::num::matvec::{
    d_mfma, d_mfma_r, f_mfma, f_mfma_r, g_mfma, g_mfma_r, h_mfma, h_mfma_r, Cycle, DMatrix, FMatrix, GMatrix, HMatrix,
};
use emu2::num::mau::MauNeg;
use num_reference::block::{convert, dot, Cut, Unit};
use num_reference::gen::{fraction, number, Rng};
use num_reference::{fma, lane, long, pack_lanes, Fmt, D, F, H};
use proptest::prelude::*;

/// A matrix unit.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Kind {
    D,
    F,
    G,
    H,
}

const KINDS: [Kind; 4] = [Kind::D, Kind::F, Kind::G, Kind::H];

impl Kind {
    fn unit(self) -> Unit {
        match self {
            Kind::D => Unit { fmt: D, omit: 16, ignore: 0 },
            Kind::F => Unit { fmt: F, omit: 5, ignore: 0 },
            Kind::G => Unit { fmt: F, omit: 0, ignore: 5 },
            Kind::H => Unit { fmt: H, omit: 0, ignore: 0 },
        }
    }
    /// Rows and columns of the product.
    fn shape(self) -> (usize, usize) {
        match self {
            Kind::D => (4, 4),
            Kind::F => (8, 4),
            Kind::G => (8, 8),
            Kind::H => (16, 16),
        }
    }
    fn cut(self, extended: bool) -> Cut {
        match self {
            Kind::D => Cut { kept: 52, raise: 0, low: 0, extended: false },
            Kind::F => Cut { kept: 23, raise: 0, low: 0, extended: false },
            Kind::G => Cut { kept: 18, raise: 0, low: 5, extended: false },
            Kind::H => Cut { kept: 9, raise: 0, low: 0, extended },
        }
    }
    fn add(self) -> Fmt {
        if self == Kind::D {
            D
        } else {
            F
        }
    }
    fn reduced(self) -> Fmt {
        if self == Kind::D {
            F
        } else {
            H
        }
    }
}

/// Inputs of one MAB: matrix rows, vector, addends.
#[derive(Clone, Debug)]
struct Case {
    kind: Kind,
    matrix: Vec<Vec<u64>>,
    x: Vec<u64>,
    z: Vec<u64>,
    neg: [bool; 2],
    active: [bool; 4],
}

/// Runs a batch of one kind, negation and active set. Returns the plain and the reduced output of each case. There are
/// `mabs` MABs, and a cycle for each `mabs` cases. All cycles share the matrices of the first one.
fn run(cases: &[Case], mabs: usize) -> Vec<(Vec<u64>, Vec<u64>)> {
    let Case { kind, neg, active, .. } = cases[0].clone();
    let neg = MauNeg { x: neg[0], y: false, z: neg[1] };
    let pes = 4 * cases.len();
    let matrices = &cases[..mabs];
    let rows = |v: &dyn Fn(&Case, usize) -> u64| -> Vec<u64> {
        cases.iter().flat_map(|c| (0..4).map(|p| v(c, p)).collect::<Vec<_>>()).collect()
    };
    let singles = |o: &[u64]| o.iter().flat_map(|&w| [w >> 32, w & 0xFFFF_FFFF]).collect::<Vec<_>>();
    // Garbage where results are written and where the instruction does not look.
    let results = |x: &[u64], z: [&[u64]; 2], kernel: &dyn Fn(&mut [Cycle<'_>])| {
        let mut out = [vec![0x5A5A; pes], vec![0xA5A5; pes]];
        let [o0, o1] = &mut out;
        let (x, [z0, z1]) = (x.chunks(4 * mabs), z.map(|z| z.chunks(4 * mabs)));
        let out_rows = o0.chunks_mut(4 * mabs).zip(o1.chunks_mut(4 * mabs));
        let rows = x.zip(z0.zip(z1)).zip(out_rows);
        kernel(&mut rows.map(|((x, (z0, z1)), (o0, o1))| Cycle { x, z: [z0, z1], out: [o0, o1] }).collect::<Vec<_>>());
        out
    };
    let (plain, reduced): (Vec<u64>, Vec<u64>) = match kind {
        Kind::D => {
            let a: Vec<_> = matrices
                .iter()
                .map(|c| DMatrix::decode(&std::array::from_fn(|i| std::array::from_fn(|j| c.matrix[i][j])), 16))
                .collect();
            let (x, z) = (rows(&|c, p| c.x[p]), rows(&|c, p| c.z[p]));
            let [plain, _] = results(&x, [&z, &z], &|cycles| d_mfma(&a, cycles, neg, active));
            let [reduced, _] = results(&x, [&z, &z], &|cycles| d_mfma_r(&a, cycles, neg, active));
            (plain, reduced.iter().map(|v| v.rotate_left(32)).collect())
        }
        Kind::F | Kind::G => {
            let z = rows(&|c, p| pack_lanes(32, &c.z[2 * p..2 * p + 2]));
            let matrix = |c: &Case| -> [[u32; 8]; 8] {
                std::array::from_fn(|i| {
                    std::array::from_fn(|j| match kind {
                        Kind::F if j % 2 == 1 => 0xDEAD_BEEF,
                        Kind::F => c.matrix[i][j / 2] as u32,
                        _ => c.matrix[i][j] as u32,
                    })
                })
            };
            let ([plain, _], [reduced, _]) = if kind == Kind::F {
                let a: Vec<_> = matrices.iter().map(|c| FMatrix::decode(&matrix(c), 5)).collect();
                let x = rows(&|c, p| c.x[p] << 32 | 0x7EAD_BEEF);
                let plain = results(&x, [&z, &z], &|cycles| f_mfma(&a, cycles, neg));
                (plain, results(&x, [&z, &z], &|cycles| f_mfma_r(&a, cycles, neg)))
            } else {
                let a: Vec<_> = matrices.iter().map(|c| GMatrix::decode(&matrix(c), 5)).collect();
                let x = rows(&|c, p| pack_lanes(32, &c.x[2 * p..2 * p + 2]));
                let plain = results(&x, [&z, &z], &|cycles| g_mfma(&a, cycles, neg));
                (plain, results(&x, [&z, &z], &|cycles| g_mfma_r(&a, cycles, neg)))
            };
            assert!(reduced.iter().all(|v| v & 0xFFFF_FFFF == 0));
            (singles(&plain), reduced.iter().flat_map(|&v| [lane(v, 16, 0), lane(v, 16, 1)]).collect())
        }
        Kind::H => {
            let words = |c: &Case, i: usize| -> [u64; 4] {
                std::array::from_fn(|p| pack_lanes(16, &c.matrix[i][4 * p..4 * p + 4]))
            };
            let register: Vec<_> = (0..16).flat_map(|i| matrices.iter().flat_map(move |c| words(c, i))).collect();
            let a = HMatrix::decode(&register, matrices.len());
            let x = rows(&|c, p| pack_lanes(16, &c.x[4 * p..4 * p + 4]));
            let z0 = rows(&|c, p| pack_lanes(32, &c.z[4 * p..4 * p + 2]));
            let z1 = rows(&|c, p| pack_lanes(32, &c.z[4 * p + 2..4 * p + 4]));
            let [o0, o1] = results(&x, [&z0, &z1], &|cycles| h_mfma(&a, cycles, neg));
            let [reduced, _] = results(&x, [&z0, &z1], &|cycles| h_mfma_r(&a, cycles, neg));
            let plain = o0.iter().zip(&o1).flat_map(|(&a, &b)| [a >> 32, a & 0xFFFF_FFFF, b >> 32, b & 0xFFFF_FFFF]);
            (plain.collect(), reduced.iter().flat_map(|&v| [0, 1, 2, 3].map(|k| lane(v, 16, k))).collect())
        }
    };
    let n = kind.shape().0;
    plain.chunks(n).zip(reduced.chunks(n)).map(|(p, r)| (p.to_vec(), r.to_vec())).collect()
}

fn expect(case: &Case, out: Fmt) -> Vec<u64> {
    let (unit, add) = (case.kind.unit(), case.kind.add());
    let flip = |fmt: Fmt, on: bool, v: u64| v ^ u64::from(on) << (fmt.width() - 1);
    let x: Vec<u64> = case.x.iter().map(|&v| flip(unit.fmt, case.neg[0], v)).collect();
    case.matrix
        .iter()
        .enumerate()
        .map(|(i, row)| {
            let c = flip(add, case.neg[1], case.z[i]);
            if case.kind == Kind::D && !case.active[i] {
                return fma(add, add, out, 0, 0, 0, c);
            }
            dot(unit, row, &x, add, c, out)
        })
        .collect()
}

/// Runs one cycle, with a MAB for each case.
fn check(cases: &[Case]) -> Result<(), String> {
    check_cycles(cases, cases.len())
}

fn check_cycles(cases: &[Case], mabs: usize) -> Result<(), String> {
    for (case, (plain, reduced)) in cases.iter().zip(run(cases, mabs)) {
        let kind = case.kind;
        let want = (expect(case, kind.add()), expect(case, kind.reduced()));
        if (&plain, &reduced) != (&want.0, &want.1) {
            return Err(format!("{case:x?}\n got {plain:x?} {reduced:x?}\nwant {want:x?}"));
        }
    }
    Ok(())
}

/// A case from random numbers. Its blocks are converted by the rule.
fn case(kind: Kind, neg: [bool; 2], active: [bool; 4], rng: &mut Rng) -> Case {
    let (n, k) = kind.shape();
    let unit = kind.unit();
    let fmt = unit.fmt;
    let style = rng.next() % 8;
    let block = |rng: &mut Rng, len: usize| -> Vec<u64> {
        let base = fmt.exp(number(fmt, rng.words())).min(fmt.ones() - 12);
        let spread = [1, 3, 8, 20][(rng.next() % 4) as usize];
        let floats: Vec<u64> = (0..len)
            .map(|_| {
                let exp = base.saturating_sub(rng.next() % spread);
                let frac = rng.next() & (u64::MAX >> 1);
                fmt.pack(rng.next() >> 63, exp, fraction(fmt.m, frac))
            })
            .collect();
        match style {
            // The ends of the exponent field, which no conversion gives.
            7 => {
                let exp = [0, 1, fmt.ones()][(rng.next() % 3) as usize];
                floats.iter().map(|&v| fmt.pack(fmt.sign(v), exp, fmt.frac(v) * (rng.next() % 2))).collect()
            }
            // Unconverted mantissas with low bits set, so that the omission shows.
            0 | 1 => floats.iter().map(|&v| fmt.pack(fmt.sign(v), base.max(1), fmt.frac(v))).collect(),
            2 | 3 => convert(fmt, kind.cut(true), &floats),
            _ => convert(fmt, kind.cut(false), &floats),
        }
    };
    let matrix: Vec<Vec<u64>> = (0..n).map(|_| block(rng, k)).collect();
    let x = block(rng, k);
    let mut case = Case { kind, matrix, x, z: Vec::new(), neg, active };
    align(&mut case, rng);
    case
}

/// Gives a case addends near the negated product, half of the time.
fn align(case: &mut Case, rng: &mut Rng) {
    let (unit, add) = (case.kind.unit(), case.kind.add());
    let addend = |row: &Vec<u64>| {
        let near = dot(unit, row, &case.x, add, 0, add);
        let sign = 1 << (add.width() - 1);
        match rng.next() % 4 {
            0 => near ^ sign,
            1 => (near ^ sign).wrapping_add(rng.next() % 5).wrapping_sub(2) & (sign | (sign - 1)),
            2 => {
                let reach = 2 * u64::from(add.m) + 6;
                let exp = (add.exp(near) + rng.next() % (2 * reach)).saturating_sub(reach);
                add.pack(rng.next() >> 63, exp.min(add.ones()), fraction(add.m, rng.next() >> 1))
            }
            _ => number(add, rng.words()),
        }
    };
    case.z = case.matrix.iter().map(addend).collect();
}

#[test]
fn worked_vectors() {
    // Small integers, which are exact in all kinds: A[i][j] = i - j, x[j] = j + 1, z[i] = i.
    for kind in KINDS {
        let (n, k) = kind.shape();
        let (unit, add) = (kind.unit(), kind.add());
        let of = |fmt: Fmt, v: i64| {
            let bits = (v as f64).to_bits();
            num_reference::convert(D, fmt, bits)
        };
        let matrix = (0..n)
            .map(|i| {
                let row: Vec<u64> = (0..k).map(|j| of(unit.fmt, i as i64 - j as i64)).collect();
                convert(unit.fmt, kind.cut(false), &row)
            })
            .collect();
        let x: Vec<u64> = (0..k).map(|j| of(unit.fmt, j as i64 + 1)).collect();
        let x = convert(unit.fmt, kind.cut(false), &x);
        let z = (0..n).map(|i| of(add, i as i64)).collect();
        let case = Case { kind, matrix, x, z, neg: [false, true], active: [true; 4] };
        let got = run(std::slice::from_ref(&case), 1).remove(0).0;
        for (i, got) in got.into_iter().enumerate() {
            let sum: i64 = (0..k as i64).map(|j| (i as i64 - j) * (j + 1)).sum::<i64>() - i as i64;
            let want = if sum == 0 { 0 } else { of(add, sum) };
            assert_eq!(got, want, "{kind:?} row {i}");
        }
        check(&[case]).unwrap();
    }
}

#[test]
fn omission_per_product() {
    // Two equal products of lowest mantissa bits. Each leaves its stand-in 2^8 in units of 2^(2E - 2 bias - 44).
    let one = F.pack(0, 127 + 22, 1);
    let zero = F.pack(0, 127 + 22, 0);
    let row = vec![one, one, zero, one];
    let mut matrix = vec![vec![zero; 4]; 8];
    matrix[0] = row.clone();
    let case = Case {
        kind: Kind::F,
        matrix,
        x: vec![one, one, one, F.pack(1, 127 + 22, 1)],
        z: vec![0; 8],
        neg: [false; 2],
        active: [true; 4],
    };
    assert_eq!(run(std::slice::from_ref(&case), 1)[0].0[0], 0x4380_0000); // 256 + 256 - 256
    check(&[case]).unwrap();
}

#[test]
fn extended_elements_are_exact() {
    // Row: 511 and an extended 1; vector: an extended 1 and an extended 3. In units 2^-12: 511 * 64 + 3.
    let e = 31 + 8;
    let mut matrix = vec![vec![H.pack(0, e, 0); 16]; 16];
    matrix[3][0] = H.pack(0, e, 511);
    matrix[3][1] = H.pack(0, 0, 1);
    let mut x = vec![H.pack(0, e, 0); 16];
    x[0] = H.pack(0, 0, 1);
    x[1] = H.pack(0, 0, 3);
    let case = Case { kind: Kind::H, matrix, x, z: vec![0; 16], neg: [false; 2], active: [true; 4] };
    let want = ((511.0 * 64.0 + 3.0) / 4096.0f32).to_bits();
    assert_eq!(run(std::slice::from_ref(&case), 1)[0].0[3], u64::from(want));
    check(&[case]).unwrap();
}

#[test]
fn random_matrices_in_bulk() {
    for (i, kind) in KINDS.into_iter().enumerate() {
        let seed = 0x3A70_0000 + i as u64;
        let mabs = if long() { 400_000 } else { [24_000, 16_000, 10_000, 4_000][i] };
        println!("{kind:?}: {mabs} matrix-vector products, seed {seed:#x}");
        let mut rng = Rng(seed);
        for batch in 0..mabs / 16 {
            let neg = [batch & 1 != 0, batch & 2 != 0];
            let active = if batch & 4 != 0 { [true; 4] } else { std::array::from_fn(|i| (i < 2) == (batch & 8 != 0)) };
            let mut cases: Vec<_> = (0..16).map(|_| case(kind, neg, active, &mut rng)).collect();
            // Many MABs and many cycles, in numbers that are not whole pieces.
            let mabs = [16, 1, 2, 11, 3, 8, 5, 10][batch % 8];
            for k in mabs..16 {
                let (first, later) = cases.split_at_mut(mabs);
                later[k - mabs].matrix.clone_from(&first[k % mabs].matrix);
                align(&mut later[k - mabs], &mut rng);
            }
            cases.truncate(16 - 16 % mabs);
            check_cycles(&cases, mabs).unwrap();
        }
    }
}

proptest! {
    #![proptest_config(num_reference::proptest(if long() { 50_000 } else { 1_000 }))]

    #[test]
    fn random_matrices(kind in 0usize..4, neg: [bool; 2], active: [bool; 4], seed: u64) {
        let mut rng = Rng(seed);
        prop_assert_eq!(check(&[case(KINDS[kind], neg, active, &mut rng)]), Ok(()));
    }
}

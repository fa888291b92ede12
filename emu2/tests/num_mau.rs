//! Vector multiply-add rows of the MAU against worked vectors, systematic sets and the exact reference.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod num_reference;

use emu2::num::level::Level;
use emu2::num::mau::{d_add, d_fma, d_fma_r, f_add, f_fma, f_fma_r, h_fma, h_fma_r, mau_flags, MauNeg, MauOutput};
use emu2::num::MAB_PES;
use num_reference::gen::{boundary, fused, Rng};
use num_reference::{fma, lane, long, Fmt, D, F, H};
use proptest::prelude::*;

const OMIT_F: u32 = 5;
const OMIT_D: u32 = 16;
/// All PEs of a MAB multiply.
const ALL: [bool; MAB_PES] = [true; MAB_PES];
const PLUS: MauNeg = MauNeg { x: false, y: false, z: false };

/// The three operations: factor format, addend format, reduced output, omitted bits.
const KINDS: [(Fmt, Fmt, Fmt, u32); 3] = [(H, F, H, 0), (F, F, H, OMIT_F), (D, D, F, OMIT_D)];

/// Runs the kernels on single lanes `(a, b, c)`; per lane the plain and the reduced output.
fn run(fmt: Fmt, neg: MauNeg, lanes: &[[u64; 3]]) -> Vec<(u64, u64)> {
    // Every lane of a long word is used: lane j of the batch goes to long word j / n, lane j % n.
    let w = fmt.width();
    let n = (64 / w) as usize;
    let rows = lanes.len().div_ceil(n);
    let at = |j: usize| *lanes.get(j).unwrap_or(&lanes[0]);
    let pack = |w: u32, i: usize, first: usize, count: usize, operand: usize| {
        (0..count).fold(0, |v, k| v | at(i * n + first + k)[operand] << (64 - w * (k as u32 + 1)))
    };
    let x: Vec<u64> = (0..rows).map(|i| pack(w, i, 0, n, 0)).collect();
    let y: Vec<u64> = (0..rows).map(|i| pack(w, i, 0, n, 1)).collect();
    let (mut o0, mut o1, mut r) = (vec![0; rows], vec![0; rows], vec![0; rows]);
    let results =
        |o: &dyn Fn(usize) -> u64, r: &dyn Fn(usize) -> u64| (0..lanes.len()).map(|j| (o(j), r(j))).collect::<Vec<_>>();
    match w {
        16 => {
            let z0: Vec<u64> = (0..rows).map(|i| pack(32, i, 0, 2, 2)).collect();
            let z1: Vec<u64> = (0..rows).map(|i| pack(32, i, 2, 2, 2)).collect();
            h_fma(&x, &y, &z0, &z1, neg, &mut o0, &mut o1);
            h_fma_r(&x, &y, &z0, &z1, neg, &mut r);
            results(&|j| lane(if j % 4 < 2 { o0[j / 4] } else { o1[j / 4] }, 32, (j % 2) as u32), &|j| {
                lane(r[j / 4], 16, (j % 4) as u32)
            })
        }
        32 => {
            let z: Vec<u64> = (0..rows).map(|i| pack(32, i, 0, 2, 2)).collect();
            f_fma(&x, &y, &z, neg, OMIT_F, &mut o0);
            f_fma_r(&x, &y, &z, neg, OMIT_F, &mut r);
            assert!(r.iter().all(|v| v & 0xFFFF_FFFF == 0));
            results(&|j| lane(o0[j / 2], 32, (j % 2) as u32), &|j| lane(r[j / 2], 16, (j % 2) as u32))
        }
        _ => {
            let z: Vec<u64> = (0..rows).map(|i| pack(64, i, 0, 1, 2)).collect();
            d_fma(&x, &y, &z, neg, ALL, OMIT_D, &mut o0);
            d_fma_r(&x, &y, &z, neg, OMIT_D, &mut r);
            assert!(r.iter().all(|v| v & 0xFFFF_FFFF == 0));
            results(&|j| o0[j], &|j| r[j] >> 32)
        }
    }
}

/// The plain output of a case that fills a whole block. Whole blocks take paths of their own.
fn run_block(kind: (Fmt, Fmt, Fmt, u32), neg: MauNeg, [a, b, c]: [u64; 3]) -> u64 {
    let (fmt, add, ..) = kind;
    let fill = |fmt: Fmt, v: u64| (0..64 / fmt.width()).fold(0, |row, lane| row | v << (lane * fmt.width()));
    let (x, y, z) = ([fill(fmt, a); 32], [fill(fmt, b); 32], [fill(add, c); 32]);
    let (mut o0, mut o1) = ([0; 32], [0; 32]);
    match fmt.width() {
        16 => h_fma(&x, &y, &z, &z, neg, &mut o0, &mut o1),
        32 => f_fma(&x, &y, &z, neg, OMIT_F, &mut o0),
        _ => d_fma(&x, &y, &z, neg, ALL, OMIT_D, &mut o0),
    }
    let out = if fmt == H { F } else { fmt };
    let want = fill(out, o0[0] >> (64 - out.width()));
    assert!(
        o0.iter().all(|o| *o == want) && (fmt != H || o1.iter().all(|o| *o == want)),
        "lanes differ: {o0:x?} {o1:x?}"
    );
    o0[0] >> (64 - out.width())
}

/// Compares a batch with the reference, with every clone of the kernels. It runs all cases together, and also one by one,
/// each in a block of its own, so that no lane takes the exact path because of its neighbours. Returns the number of cases,
/// or the first difference.
fn check(kind: (Fmt, Fmt, Fmt, u32), neg: MauNeg, lanes: &[[u64; 3]]) -> Result<usize, String> {
    for level in Level::supported() {
        level.set();
        compare(kind, neg, lanes, run(kind.0, neg, lanes))?;
        let alone: Vec<_> = lanes.iter().map(|case| run(kind.0, neg, &[*case])[0]).collect();
        for (case, (plain, _)) in lanes.iter().zip(&alone) {
            let block = run_block(kind, neg, *case);
            if block != *plain {
                return Err(format!(
                    "{:?} {neg:?} {case:x?}: a block of it is {block:x}, alone it is {plain:x}",
                    kind.0
                ));
            }
        }
        compare(kind, neg, lanes, alone)?;
    }
    Ok(lanes.len())
}

fn compare(kind: (Fmt, Fmt, Fmt, u32), neg: MauNeg, lanes: &[[u64; 3]], all: Vec<(u64, u64)>) -> Result<(), String> {
    let (fmt, add, reduced, omit) = kind;
    let flip = |fmt: Fmt, on: bool, v: u64| v ^ u64::from(on) << (fmt.width() - 1);
    let out = if fmt == H { F } else { fmt };
    for (&[a, b, c], got) in lanes.iter().zip(all) {
        let (na, nb, nc) = (flip(fmt, neg.x, a), flip(fmt, neg.y, b), flip(add, neg.z, c));
        let want = (fma(fmt, add, out, omit, na, nb, nc), fma(fmt, add, reduced, omit, na, nb, nc));
        if got != want {
            return Err(format!(
                "{fmt:?} {neg:?} {a:x} * {b:x} + {c:x}: got {:x} / {:x}, want {:x} / {:x}",
                got.0, got.1, want.0, want.1
            ));
        }
        // Sums have kernels of their own.
        let sum = if b == fmt.one() { sums(fmt, neg, a, c) } else { None };
        if let Some(sum) = sum.filter(|sum| *sum != want.0) {
            return Err(format!("{fmt:?} {neg:?} {a:x} + {c:x}: got {sum:x}, want {:x}", want.0));
        }
    }
    Ok(())
}

/// The sum kernels on one case.
fn sums(fmt: Fmt, neg: MauNeg, a: u64, c: u64) -> Option<u64> {
    let mut out = [0];
    match fmt.width() {
        32 => f_add(&[a << 32 | a], &[c << 32 | c], neg, &mut out),
        64 => d_add(&[a], &[c], neg, &mut out),
        _ => return None,
    }
    Some(out[0] >> (64 - fmt.width()))
}

#[test]
fn worked_vectors() {
    #[rustfmt::skip]
    let table: &[(Fmt, u64, u64, u64, u64)] = &[
        // The omitted partial products show after cancellation.
        (F, 0x3F80_0001, 0x3F80_0001, 0xBF80_0002, 0x2C80_0000),
        (D, 0x3FF0_0000_0000_0001, 0x3FF0_0000_0000_0001, 0xBFF0_0000_0000_0002, 0x3B50_0000_0000_0000),
        // Outputs normalise.
        (F, 0x0000_0042, 0x3F80_0000, 0, 0),
        (F, 0x8000_0000, 0x3F80_0000, 0, 0),
        (F, 0x3F80_0000, 0x3F80_0000, 0xBF80_0000, 0),
        // 0 * infinity is 0, and infinities are large numbers.
        (F, 0x0000_0000, 0x7F80_0000, 0x3F80_0000, 0x3F80_0000),
        (F, 0x7F80_0001, 0x3F80_0000, 0, 0x7F80_0000),
        (F, 0xFF80_0000, 0x3F80_0000, 0x7F80_0000, 0),
        // Half: products and sums of small integers.
        (H, 0x3E00, 0x3E00, 0, 0x3F80_0000),
        (H, 0x4280, 0x4440, 0, 0x4234_0000),
        (H, 0x4280, 0x3E00, 0, 0x40A0_0000),
        (H, 0x4440, 0x3E00, 0, 0x4110_0000),
        (H, 0x4540, 0x3E00, 0, 0x4150_0000),
        // Double: 1*1, 2*3, 3*5, 4*7.
        (D, 0x3FF0_0000_0000_0000, 0x3FF0_0000_0000_0000, 0, 0x3FF0_0000_0000_0000),
        (D, 0x4000_0000_0000_0000, 0x4008_0000_0000_0000, 0, 0x4018_0000_0000_0000),
        (D, 0x4008_0000_0000_0000, 0x4014_0000_0000_0000, 0, 0x402E_0000_0000_0000),
        (D, 0x4010_0000_0000_0000, 0x401C_0000_0000_0000, 0, 0x403C_0000_0000_0000),
        // Underflow is judged after rounding: the second product, 1 - 2^-26 of the least normal number, rounds up to it.
        (F, 0x3F7F_FFFF, 0x0080_0000, 0x8000_0000, 0),
        (F, 0x3F7F_F800, 0x0080_0400, 0, 0x0080_0000),
        // 2^-126 less exactly half a last place rounds back up to it. Less a little more (2^46 + 1 has such factors), it
        // does not.
        (F, 0x9A00_0000, 0x1980_0000, 0x0080_0000, 0x0080_0000),
        (F, 0x99FF_E002, 0x1980_1001, 0x0080_0000, 0),
        // The stand-in of the omitted products may also decide a rounding near a tie (exact: 0x3F80_0000).
        (F, 0x3F7F_FFFF, 0x3F80_0001, 0, 0x3F80_0001),
        (F, 0x7F7F_FFFF, 0x3F80_0000, 0x737F_FFFF, 0x7F80_0000),
        (F, 0x7F7F_FFFF, 0x3F80_0000, 0x72FF_FFFF, 0x7F7F_FFFF),
    ];
    for &(fmt, a, b, c, want) in table {
        let got = run(fmt, PLUS, &[[a, b, c]])[0].0;
        assert_eq!(got, want, "{fmt:?} {a:x} * {b:x} + {c:x}: got {got:x}");
    }
    #[rustfmt::skip]
    let reduced: &[(Fmt, u64, u64, u64, u64)] = &[
        (F, 0x3F80_2000, 0x3F80_0000, 0x3080_0000, 0x3E01), // one rounding, not two
        (F, 0x3F80_2000, 0x3F80_0000, 0, 0x3E00),
        (H, 0x4280, 0x4440, 0x3F80_0000, 0x48E0),           // 5 * 9 + 1
        (H, 0x41F8, 0x3E00, 0x41F8_41F8, 0x4830),           // 3.96875 + 31.03221...
        (D, 0x4008_0000_0000_0000, 0x3FF0_0000_0000_0000, 0, 0x4040_0000),
        (D, 0x3FF0_0000_1000_0000, 0x3FF0_0000_0000_0000, 0x3000_0000_0000_0000, 0x3F80_0001),
    ];
    for &(fmt, a, b, c, want) in reduced {
        let got = run(fmt, PLUS, &[[a, b, c]])[0].1;
        assert_eq!(got, want, "{fmt:?} {a:x} * {b:x} + {c:x}: got {got:x}");
    }
}

#[test]
fn flags_are_clear_signs() {
    let (n, p) = (0x8000_0000u64, 0x3F80_0000u64);
    #[rustfmt::skip]
    let table = [
        (MauOutput::D, n << 32, 0, 0b0000), (MauOutput::D, 1, 0, 0b1111),
        (MauOutput::F, n << 32 | p, 0, 0b0011), (MauOutput::F, p << 32 | n, 0, 0b1100),
        (MauOutput::H, n << 32 | p, p << 32 | n, 0b0110), (MauOutput::H, p << 32 | n, n << 32 | p, 0b1001),
        (MauOutput::DReduced, n << 32, 0, 0b0000), (MauOutput::DReduced, n, 0, 0b1111),
        (MauOutput::FReduced, 0x8000_0000_8000_8000, 0, 0b0011), (MauOutput::FReduced, 0x0000_8000_0000_0000, 0, 0b1100),
        (MauOutput::HReduced, 0x8000_0000_0000_8000, 0, 0b0110), (MauOutput::HReduced, 0x0000_8000_8000_0000, 0, 0b1001),
    ];
    for (output, l0, l1, want) in table {
        let mut flags = [0xFF];
        mau_flags(output, &[l0], &[l1], &mut flags);
        assert_eq!(flags[0], want, "{output:?} {l0:x} {l1:x}: got {:04b}", flags[0]);
    }
}

/// All pairs of a boundary set through `vmul` (z = 0) and `vadd` (y = 1).
fn two_operand_set(kind: (Fmt, Fmt, Fmt, u32), xs: &[u64], ys: &[u64], zs: &[u64]) {
    let (fmt, ..) = kind;
    let mut total = 0;
    for &a in xs {
        let products: Vec<_> = ys.iter().map(|&b| [a, b, 0]).collect();
        let sums: Vec<_> = zs.iter().map(|&c| [a, fmt.one(), c]).collect();
        total += check(kind, PLUS, &products).unwrap() + check(kind, PLUS, &sums).unwrap();
    }
    println!("{fmt:?}: {total} two-operand cases");
}

#[test]
fn two_operand_set_half() {
    let ab = boundary(H, 1, &[0, 1, 0x100, 0x1FF]);
    let c = boundary(F, if long() { 1 } else { 4 }, &[0, 1, 0x7F_FFFF, 0x40_0000, 0x2000]);
    two_operand_set(KINDS[0], &ab, &ab, &c);
}

#[test]
fn two_operand_set_single() {
    let fractions = [0, 1, 0x7F_FFFF, 0x40_0000, 0x1F];
    let x = boundary(F, if long() { 1 } else { 6 }, &fractions);
    let y = boundary(F, 1, &fractions[..if long() { 5 } else { 3 }]);
    two_operand_set(KINDS[1], &x, &y, &y);
}

#[test]
fn two_operand_set_double() {
    let fractions = [0, 1, (1 << 52) - 1, 0xFFFF];
    let x = boundary(D, if long() { 16 } else { 128 }, &fractions);
    let y = boundary(D, if long() { 1 } else { 16 }, &fractions[..3]);
    two_operand_set(KINDS[2], &x, &y, &y);
}

/// Random fused operations in bulk; the seed of each kind is printed.
#[test]
fn fused_bulk() {
    for (i, kind) in KINDS.into_iter().enumerate() {
        let seed = 0xF00D_0000 + i as u64;
        let cases = if long() { 10_000_000 } else { 300_000 };
        println!("{:?}: {cases} fused cases, seed {seed:#x}", kind.0);
        let mut rng = Rng(seed);
        for batch in 0..cases / 1000 {
            let neg = MauNeg { x: batch & 1 != 0, y: batch & 2 != 0, z: batch & 4 != 0 };
            let lanes: Vec<_> = (0..1000).map(|_| fused(kind.0, kind.1, kind.3, rng.words())).collect();
            check(kind, neg, &lanes).unwrap();
        }
    }
}

/// If nothing is omitted, single and double are the host's fused multiply-add away from the ends of the range.
#[test]
fn without_omission_it_is_ieee() {
    let seed = 0x1EEE_0754;
    println!("seed {seed:#x}");
    let mut rng = Rng(seed);
    // The least normal number may come from a denormal that the host rounds with fewer bits.
    let in_range = |magnitude: f64, least: f64| magnitude == 0.0 || (magnitude > least && magnitude.is_finite());
    let mut compared = 0;
    for _ in 0..if long() { 5_000_000 } else { 200_000 } {
        let ordinary = |fmt: Fmt, v: u64| fmt.exp(v) != 0 && fmt.exp(v) != fmt.ones();
        let [a, b, c] = fused(F, F, 0, rng.words());
        let host = f32::from_bits(a as u32).mul_add(f32::from_bits(b as u32), f32::from_bits(c as u32));
        if [a, b, c].iter().all(|&v| ordinary(F, v)) && in_range(f64::from(host.abs()), f64::from(f32::MIN_POSITIVE)) {
            let mut out = [0];
            f_fma(&[a << 32], &[b << 32], &[c << 32], PLUS, 0, &mut out);
            assert_eq!(out[0] >> 32, u64::from((host + 0.0).to_bits()), "{a:x} * {b:x} + {c:x}");
            compared += 1;
        }
        let [a, b, c] = fused(D, D, 0, rng.words());
        let host = f64::from_bits(a).mul_add(f64::from_bits(b), f64::from_bits(c));
        if [a, b, c].iter().all(|&v| ordinary(D, v)) && in_range(host.abs(), f64::MIN_POSITIVE) {
            let mut out = [0];
            d_fma(&[a], &[b], &[c], PLUS, ALL, 0, &mut out);
            assert_eq!(out[0], (host + 0.0).to_bits(), "{a:x} * {b:x} + {c:x}");
            compared += 1;
        }
    }
    assert!(compared > 100_000);
}

/// The omission must show in many of the generated cases. Otherwise the generator is useless.
#[test]
fn generator_reaches_the_omission() {
    for (fmt, add, _, omit) in &KINDS[1..] {
        let mut rng = Rng(3);
        let seen = (0..10_000)
            .filter(|_| {
                let [a, b, c] = fused(*fmt, *add, *omit, rng.words());
                fma(*fmt, *add, *fmt, *omit, a, b, c) != fma(*fmt, *add, *fmt, 0, a, b, c)
            })
            .count();
        assert!(seen > 300, "{fmt:?}: {seen} of 10000");
    }
}

proptest! {
    #![proptest_config(num_reference::proptest(if long() { 300_000 } else { 3_000 }))]

    /// The same as `fused_bulk`, but shrinks to one small case.
    #[test]
    fn fused_shrinking(kind in 0usize..3, neg in any::<[bool; 3]>(), r in prop::collection::vec(any::<[u64; 6]>(), 1..24)) {
        let kind = KINDS[kind];
        let neg = MauNeg { x: neg[0], y: neg[1], z: neg[2] };
        let lanes: Vec<_> = r.iter().map(|&r| fused(kind.0, kind.1, kind.3, r)).collect();
        prop_assert_eq!(check(kind, neg, &lanes), Ok(lanes.len()));
    }
}

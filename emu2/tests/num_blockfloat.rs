//! Block float conversion against worked vectors and the exact reference.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod num_reference;

use emu2::num::blockfloat::{d_bfn, f_bfn, g_bfn, h_bfe, h_bfn};
use num_reference::block::{convert, Cut};
use num_reference::gen::{fraction, number, Rng};
use num_reference::{lane, long, pack_lanes, Fmt, D, F, H};
use proptest::prelude::*;

/// A conversion instruction.
#[derive(Clone, Copy, Debug)]
enum Op {
    D,
    F,
    G,
    H(u32),
    He(u32),
}

const OPS: [Op; 11] =
    [Op::D, Op::F, Op::G, Op::H(6), Op::H(7), Op::H(8), Op::H(9), Op::He(6), Op::He(7), Op::He(8), Op::He(9)];

impl Op {
    fn fmt(self) -> Fmt {
        match self {
            Op::D => D,
            Op::F | Op::G => F,
            Op::H(_) | Op::He(_) => H,
        }
    }
    fn cut(self) -> Cut {
        match self {
            Op::D => Cut { kept: 52, raise: 0, low: 0, extended: false },
            Op::F => Cut { kept: 23, raise: 0, low: 0, extended: false },
            Op::G => Cut { kept: 18, raise: 0, low: 5, extended: false },
            Op::H(n) => Cut { kept: n, raise: 9 - n, low: 0, extended: false },
            Op::He(n) => Cut { kept: n, raise: 9 - n, low: 0, extended: true },
        }
    }
    fn run(self, x: &[u64]) -> Vec<u64> {
        let mut out = vec![0; x.len()];
        match self {
            Op::D => d_bfn(x, &mut out),
            Op::F => f_bfn(x, &mut out),
            Op::G => g_bfn(x, &mut out),
            Op::H(n) => h_bfn(n, x, &mut out),
            Op::He(n) => h_bfe(n, x, &mut out),
        }
        out
    }
    /// The lanes of a MAB, block by block.
    fn blocks(self) -> Vec<Vec<(usize, u32)>> {
        let n = 64 / self.fmt().width();
        let all =
            |lanes: std::ops::Range<u32>| (0..4).flat_map(|pe| lanes.clone().map(move |k| (pe, k))).collect::<Vec<_>>();
        match self {
            Op::F => vec![all(0..1), all(1..2)],
            _ => vec![all(0..n)],
        }
    }
}

fn check(op: Op, x: &[u64]) -> Result<(), String> {
    let w = op.fmt().width();
    let got = op.run(x);
    for mab in 0..x.len() / 4 {
        for block in op.blocks() {
            let of = |row: &[u64]| -> Vec<u64> { block.iter().map(|&(pe, k)| lane(row[4 * mab + pe], w, k)).collect() };
            let (input, result) = (of(x), of(&got));
            let want = convert(op.fmt(), op.cut(), &input);
            if result != want {
                return Err(format!("{op:?} {input:x?}: got {result:x?}, want {want:x?}"));
            }
        }
    }
    Ok(())
}

/// A row for one MAB from the leading elements of its blocks, the rest +0.
fn row(op: Op, elements: &[u64]) -> Vec<u64> {
    let w = op.fmt().width();
    let n = (64 / w) as usize;
    let mut x = vec![0; 4];
    for block in op.blocks() {
        for (&(pe, k), &v) in block.iter().zip(elements) {
            x[pe] |= v << (64 - w * (k + 1));
        }
    }
    assert!(n * 4 >= elements.len());
    x
}

#[test]
fn worked_vectors() {
    #[rustfmt::skip]
    let table: &[(Op, &[u64], &[u64])] = &[
        (Op::H(9), &[0x3E00, 0x4100, 0xBC00, 0], &[0x4080, 0x4180, 0xC040, 0x4000]),
        (Op::H(6), &[0x3E00, 0x4100, 0xBC00, 0], &[0x4610, 0x4630, 0xC608, 0x4600]),
        (Op::H(9), &[0x3FFF, 0x3E00], &[0x4100, 0x4080]),
        (Op::F, &[0x3F80_0000, 0x4040_0000, 0xBF00_0000, 0], &[0x4020_0000, 0x4060_0000, 0xC010_0000, 0x4000_0000]),
        (Op::D, &[0x3FF0_0000_0000_0000, 0x4010_0000_0000_0000, 0xBFF0_0000_0000_0000, 1 << 63],
            &[0x4012_0000_0000_0000, 0x4018_0000_0000_0000, 0xC012_0000_0000_0000, 0xC010_0000_0000_0000]),
        (Op::G, &[0x3F80_0030], &[0x3FC0_0020]),
        (Op::H(9), &[0x8001, 0], &[0x8000, 0]),
        (Op::H(9), &[0x7E01, 0xBE00], &[0x7E00, 0xFE00]),
        (Op::H(6), &[0x7800, 0xBE00], &[0x7E00, 0xFE00]),
        // Extended: 2^-7 is 7 exponents below 1.0. It keeps 8 bits instead of 2.
        (Op::He(9), &[0x3E00, 0x3155, 0, 0x8000], &[0x3F00, 0x00D5, 0, 0x8000]),
        (Op::H(9), &[0x3E00, 0x3155, 0, 0x8000], &[0x3F00, 0x3E03, 0x3E00, 0xBE00]),
        // At distance 6 exactly, all ones would carry out of the extended form, so the element is not extended.
        (Op::He(9), &[0x3E00, 0x33FF, 0x33FE], &[0x3F00, 0x3E08, 0x01FF]),
    ];
    for &(op, input, want) in table {
        let x = row(op, input);
        let got = op.run(&x);
        let (w, block) = (op.fmt().width(), &op.blocks()[0]);
        let got: Vec<u64> = block.iter().take(input.len()).map(|&(pe, k)| lane(got[pe], w, k)).collect();
        assert_eq!(got, want, "{op:?} {input:x?}: got {got:x?}");
        check(op, &x).unwrap();
    }
}

/// Elements around a common exponent, with carries, far smaller ones, zeros and infinities.
fn elements(fmt: Fmt, r: &[[u64; 2]; 16]) -> Vec<u64> {
    let base = fmt.exp(number(fmt, r[0])) as i64;
    r.iter()
        .map(|q| {
            let below = match q[0] % 8 {
                0 => 0,
                1..=3 => (q[0] >> 8) % 4,
                4 | 5 => (q[0] >> 8) % 16,
                _ => (q[0] >> 8) % (u64::from(fmt.m) + 8),
            } as i64;
            match (q[0] >> 32) % 64 {
                0 => number(fmt, *q),
                1..=6 => fmt.pack(q[1] >> 63, 0, fraction(fmt.m, q[1] % (1 << 60))),
                _ => fmt.pack(q[1] >> 63, (base - below).max(0) as u64, fraction(fmt.m, q[1] % (1 << 60))),
            }
        })
        .collect()
}

/// A row of one MAB for any lane width.
fn mab(fmt: Fmt, r: &[[u64; 2]; 16]) -> Vec<u64> {
    let n = (64 / fmt.width()) as usize;
    elements(fmt, r)[..4 * n].chunks(n).map(|lanes| pack_lanes(fmt.width(), lanes)).collect()
}

#[test]
fn random_blocks_in_bulk() {
    for (i, op) in OPS.into_iter().enumerate() {
        let seed = 0xB10C_0000 + i as u64;
        let blocks = if long() { 2_000_000 } else { 40_000 };
        println!("{op:?}: {blocks} MABs, seed {seed:#x}");
        let mut rng = Rng(seed);
        for _ in 0..blocks / 16 {
            let x: Vec<u64> = (0..16).flat_map(|_| mab(op.fmt(), &std::array::from_fn(|_| rng.words()))).collect();
            check(op, &x).unwrap();
        }
    }
}

/// Every pair of one element and a largest element of every exponent distance.
#[test]
fn every_half_against_a_leader() {
    for op in OPS.into_iter().filter(|op| op.fmt() == H) {
        for leader in [0x3E00, 0x3FFF, 0x3FF0, 0x7C00, 0x7DFF] {
            for first in (0..=0xFFFFu64).step_by(15) {
                let block: Vec<u64> = std::iter::once(leader).chain(first..first + 15).map(|v| v & 0xFFFF).collect();
                check(op, &row(op, &block)).unwrap();
            }
        }
    }
}

proptest! {
    #![proptest_config(num_reference::proptest(if long() { 200_000 } else { 3_000 }))]

    #[test]
    fn random_blocks(op in 0..OPS.len(), r: [[u64; 2]; 16]) {
        prop_assert_eq!(check(OPS[op], &mab(OPS[op].fmt(), &r)), Ok(()));
    }
}

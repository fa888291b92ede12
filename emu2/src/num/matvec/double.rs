//! Double precision: 4 x 4 with the approximate multiplier, in 128-bit integers.

use super::{long_words, Cycle};
use crate::num::clone_choice::choosing_kernel;
use crate::num::format::FloatFormat;
use crate::num::mau::{d_add_round, d_product, flip, MauNeg};
use crate::num::MAB_PES;

const FRAC: u64 = (1 << 52) - 1;

/// Distance of the exponent of a mantissa unit below the exponent field.
const UNIT: i64 = 1023 + 51;

/// A matrix register of doubles, `[row][column]`.
#[derive(Clone, Debug)]
pub struct DMatrix {
    words: [[u64; MAB_PES]; MAB_PES],
    exponents: [i64; MAB_PES],
    omit: u32,
}

/// The exponent field of a block.
#[inline(always)]
fn exponent(block: &[u64; MAB_PES]) -> i64 {
    block.iter().fold(0, |e, v| e.max((v >> 52) & 0x7FF)) as i64
}

impl DMatrix {
    /// Decodes a register from its raw long words, `[row][column]`. `omit` is the number of low mantissa bits whose mutual
    /// products the multiplier omits (16 on MN-Core 2).
    #[must_use]
    pub fn decode(rows: &[[u64; MAB_PES]; MAB_PES], omit: u32) -> Self {
        Self { words: *rows, exponents: rows.map(|row| exponent(&row)), omit }
    }

    /// Row `i` times the vector, plus `z`, rounded.
    #[inline(always)]
    fn row(&self, format: FloatFormat, i: usize, x: &[u64; MAB_PES], z: u64) -> u64 {
        let mut sum = 0i128;
        for j in 0..MAB_PES {
            let (a, b) = (self.words[i][j], x[j]);
            let product = d_product(a & FRAC, b & FRAC, self.omit) as i128;
            sum += if (a ^ b) >> 63 != 0 { -product } else { product };
        }
        let exp = self.exponents[i] + exponent(x) - 2 * UNIT;
        d_add_round(format, u64::from(sum < 0), sum.unsigned_abs(), exp, z)
    }
}

choosing_kernel! {
    /// `out = A * x + z` per MAB. x, addend and result are one double per PE on L0, with element i on PE i. Rows that are
    /// not `active` (`u`: rows 2 and 3, `d`: rows 0 and 1) give the addend.
    pub fn d_mfma(a: &[DMatrix], cycles: &mut [Cycle<'_>], neg: MauNeg, active: [bool; MAB_PES]) {
        rows(a, cycles, neg, active, FloatFormat::DOUBLE, |v| v);
    }

    /// Computes [`d_mfma`], rounded once to 1 single in w0 (top 32 bits), the rest 0.
    pub fn d_mfma_r(a: &[DMatrix], cycles: &mut [Cycle<'_>], neg: MauNeg, active: [bool; MAB_PES]) {
        rows(a, cycles, neg, active, FloatFormat::SINGLE, |v| v << 32);
    }
}

#[inline(always)]
fn rows(
    a: &[DMatrix],
    cycles: &mut [Cycle<'_>],
    neg: MauNeg,
    active: [bool; MAB_PES],
    format: FloatFormat,
    place: impl Fn(u64) -> u64,
) {
    let (nx, nz) = (flip(neg.x, 64), flip(neg.z, 64));
    for Cycle { x, z: [z, _], out: [out, _] } in cycles {
        for (mab, a) in a.iter().enumerate() {
            let at = long_words(mab, 1);
            let x = std::array::from_fn(|j| x[at.start + j] ^ nx);
            for (i, (out, z)) in out[at.clone()].iter_mut().zip(&z[at]).enumerate() {
                let z = z ^ nz;
                *out = place(if active[i] { a.row(format, i, &x, z) } else { d_add_round(format, 0, 0, 0, z) });
            }
        }
    }
}

//! Single (8 x 4 with the approximate multiplier) and pseudo-single precision (8 x 8, exact products of cut mantissas).
//!
//! Mantissas are integers in doubles: products have at most 46 bits, sums of a row 48, so all of it is exact.

use super::{each_vector, power_of_two};
use crate::num::level::kernel;
use crate::num::mau::{add_odd, flip, round_to, round_to_single, single_to_f64, MauNeg};
use crate::num::MAB_PES;

/// Rows of the matrix register, and elements of a `g` block.
const N: usize = 2 * MAB_PES;

/// Where row `i` of a register is stored: all PEs' first results, then all second ones.
const fn place(i: usize) -> usize {
    i % 2 * MAB_PES + i / 2
}

/// Exponent of a mantissa unit below the exponent field.
const UNIT: i64 = 127 + 22;

/// A decoded matrix register for `f`: the even columns, `[column][place of row]`.
#[derive(Clone, Debug)]
pub struct FMatrix {
    mantissas: [[f64; N]; MAB_PES],
    low: [[f64; N]; MAB_PES],
    exponents: [i64; N],
    stand_in: f64,
    low_mask: u32,
}

/// A decoded matrix register for `g`, `[column][place of row]`.
#[derive(Clone, Debug)]
pub struct GMatrix {
    mantissas: [[f64; N]; N],
    exponents: [i64; N],
    mask: u32,
}

/// The fraction bits selected by `mask` as a signed integer.
#[inline(always)]
fn mantissa(v: u32, mask: u32) -> f64 {
    let f = (v & 0x7F_FFFF & mask) as i32;
    f64::from(if v >> 31 != 0 { -f } else { f })
}

/// The exponent field of a block.
#[inline(always)]
fn exponent(block: &[u32]) -> i64 {
    i64::from(block.iter().fold(0, |e, v| e.max(v & 0x7F80_0000)) >> 23)
}

impl FMatrix {
    /// Decodes a register from its raw words, `[row][column]`; only the even columns take part. `omit` is the number of low
    /// mantissa bits whose mutual products the multiplier omits (5 on MN-Core 2).
    #[must_use]
    pub fn decode(rows: &[[u32; N]; N], omit: u32) -> Self {
        let low_mask = (1 << omit) - 1;
        let mut matrix = Self {
            mantissas: [[0.0; N]; MAB_PES],
            low: [[0.0; N]; MAB_PES],
            exponents: [0; N],
            stand_in: if omit == 0 { 0.0 } else { power_of_two(2 * i64::from(omit) - 2) },
            low_mask,
        };
        for (i, row) in rows.iter().enumerate() {
            let used: [u32; MAB_PES] = std::array::from_fn(|j| row[2 * j]);
            for j in 0..MAB_PES {
                matrix.mantissas[j][place(i)] = mantissa(used[j], u32::MAX);
                matrix.low[j][place(i)] = mantissa(used[j], low_mask);
            }
            matrix.exponents[place(i)] = exponent(&used);
        }
        matrix
    }

    /// The exact row sums times the vector, which is w0 of each PE.
    #[inline(always)]
    fn times(&self, x: &[u64], flip: u64) -> [f64; N] {
        let x: [u32; MAB_PES] = std::array::from_fn(|p| ((x[p] ^ flip) >> 32) as u32);
        let mut sums = [0.0; N];
        for j in 0..MAB_PES {
            let b = mantissa(x[j], u32::MAX);
            let b_low = mantissa(x[j], self.low_mask);
            for i in 0..N {
                // The product of the low parts is dropped and has the sign of the whole product.
                let low = self.low[j][i] * b_low;
                let stand_in = if low == 0.0 { 0.0 } else { self.stand_in.copysign(low) };
                sums[i] += self.mantissas[j][i] * b - low + stand_in;
            }
        }
        scale(sums, &self.exponents, exponent(&x))
    }
}

impl GMatrix {
    /// Decodes a register from its raw words, `[row][column]`. `ignore` is the number of low mantissa bits that the
    /// multiplier does not see (5 on MN-Core 2).
    #[must_use]
    pub fn decode(rows: &[[u32; N]; N], ignore: u32) -> Self {
        let mask = u32::MAX << ignore;
        let mut matrix = Self { mantissas: [[0.0; N]; N], exponents: [0; N], mask };
        for (i, row) in rows.iter().enumerate() {
            for j in 0..N {
                matrix.mantissas[j][place(i)] = mantissa(row[j], mask);
            }
            matrix.exponents[place(i)] = exponent(row);
        }
        matrix
    }

    /// The exact row sums times the vector, 2 elements per PE.
    #[inline(always)]
    fn times(&self, x: &[u64], flip: u64) -> [f64; N] {
        let x: [u32; N] = std::array::from_fn(|j| ((x[j / 2] ^ flip) >> (32 * (!j & 1))) as u32);
        let mut sums = [0.0; N];
        for j in 0..N {
            let b = mantissa(x[j], self.mask);
            for i in 0..N {
                sums[i] += self.mantissas[j][i] * b;
            }
        }
        scale(sums, &self.exponents, exponent(&x))
    }
}

#[inline(always)]
fn scale(mut sums: [f64; N], rows: &[i64; N], vector: i64) -> [f64; N] {
    for (sum, row) in sums.iter_mut().zip(rows) {
        *sum *= power_of_two(row + vector - 2 * UNIT);
    }
    sums
}

/// Adds the addends and rounds: `pack` makes a long word of the two results of a PE.
#[inline(always)]
fn rows<A>(
    a: &[A],
    x: &[u64],
    z: &[u64],
    neg: MauNeg,
    out: &mut [u64],
    times: impl Fn(&A, &[u64], u64) -> [f64; N],
    pack: impl Fn(u64, u64) -> u64,
) {
    let (nx, nz) = (flip(neg.x, 32), flip(neg.z, 32));
    each_vector(a, out.len(), |a, first| {
        let (x, z, out) = (&x[first..][..MAB_PES], &z[first..][..MAB_PES], &mut out[first..][..MAB_PES]);
        let sums = times(a, x, nx);
        for p in 0..MAB_PES {
            let z = z[p] ^ nz;
            let first = add_odd(sums[p], single_to_f64(z >> 32));
            let second = add_odd(sums[MAB_PES + p], single_to_f64(z & 0xFFFF_FFFF));
            out[p] = pack(first, second);
        }
    });
}

#[inline(always)]
fn two_singles(first: u64, second: u64) -> u64 {
    round_to_single(first) << 32 | round_to_single(second)
}

#[inline(always)]
fn two_halves(first: u64, second: u64) -> u64 {
    round_to::<6, 9>(first) << 48 | round_to::<6, 9>(second) << 32
}

kernel! {
    /// `out = A * x + z` per MAB in single precision: `x` in w0 of each PE, addend and output rows of 2 singles; PE p holds
    /// results `2p` and `2p + 1`.
    pub fn f_mfma(a: &[FMatrix], x: &[u64], z: &[u64], neg: MauNeg, out: &mut [u64]) {
        rows(a, x, z, neg, out, FMatrix::times, two_singles);
    }
}

kernel! {
    /// As [`f_mfma`], rounded once to 2 halves in w0 (top 32 bits), the rest 0.
    pub fn f_mfma_r(a: &[FMatrix], x: &[u64], z: &[u64], neg: MauNeg, out: &mut [u64]) {
        rows(a, x, z, neg, out, FMatrix::times, two_halves);
    }
}

kernel! {
    /// `out = A * x + z` per MAB in pseudo-single precision: `x`, addend and output are rows of 2 singles; PE p holds elements
    /// `2p` and `2p + 1`.
    pub fn g_mfma(a: &[GMatrix], x: &[u64], z: &[u64], neg: MauNeg, out: &mut [u64]) {
        rows(a, x, z, neg, out, GMatrix::times, two_singles);
    }
}

kernel! {
    /// As [`g_mfma`], rounded once to 2 halves in w0 (top 32 bits), the rest 0.
    pub fn g_mfma_r(a: &[GMatrix], x: &[u64], z: &[u64], neg: MauNeg, out: &mut [u64]) {
        rows(a, x, z, neg, out, GMatrix::times, two_halves);
    }
}

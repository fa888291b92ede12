//! Single (8 x 4 with the approximate multiplier) and pseudo-single precision (8 x 8, exact products of cut mantissas).
//!
//! Mantissas are integers in doubles: products have at most 46 bits, sums of a row 48, so all of it is exact.

use super::{power_of_two, vectors};
use crate::num::level::fusing_kernel;
use crate::num::mau::{add_odd, flip, round_to, round_to_single, single_to_f64, MauNeg};
use crate::num::MAB_PES;

/// Rows of the matrix register, and elements of a `g` block.
const N: usize = 2 * MAB_PES;

/// Where row `i` of a register is stored, and element `i` of a `g` vector: as it lies in memory, where the last lane of a
/// little-endian long word comes first.
const fn place(i: usize) -> usize {
    i ^ 1
}

/// Exponent of a mantissa unit below the exponent field.
const UNIT: i64 = 127 + 22;

/// A decoded matrix register for `f`: the even columns, `[column][place of row]`.
#[derive(Clone, Debug)]
pub struct FMatrix {
    mantissas: [[f64; N]; MAB_PES],
    /// The low parts, whose mutual products are omitted.
    low: [[f64; N]; MAB_PES],
    /// What stands in for an omitted product that is not zero, with the sign of the element; 0 if its low part is.
    stand_in: [[f64; N]; MAB_PES],
    exponents: [i64; N],
    low_mask: u32,
}

/// A decoded matrix register for `g`, `[place of column][place of row]`.
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
    // Conditional negation; spelled as a branch it keeps the loops around it from vectorising.
    let sign = v as i32 >> 31;
    f64::from((f ^ sign) - sign)
}

/// -1, 0 or 1.
#[inline(always)]
fn sign(v: f64) -> f64 {
    f64::from(i8::from(v > 0.0) - i8::from(v < 0.0))
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
            stand_in: [[0.0; N]; MAB_PES],
            exponents: [0; N],
            low_mask,
        };
        let stand_in = if omit == 0 { 0.0 } else { power_of_two(2 * i64::from(omit) - 2) };
        for (i, row) in rows.iter().enumerate() {
            let used: [u32; MAB_PES] = std::array::from_fn(|j| row[2 * j]);
            for j in 0..MAB_PES {
                matrix.mantissas[j][place(i)] = mantissa(used[j], u32::MAX);
                matrix.low[j][place(i)] = mantissa(used[j], low_mask);
                matrix.stand_in[j][place(i)] = stand_in * sign(mantissa(used[j], low_mask));
            }
            matrix.exponents[place(i)] = exponent(&used);
        }
        matrix
    }
}

impl Matrix for FMatrix {
    /// The vector is w0 of each PE.
    #[inline(always)]
    fn times<const FUSED: bool>(&self, x: &[u64], flip: u64) -> [f64; N] {
        let mut block = [0; MAB_PES];
        for (b, x) in block.iter_mut().zip(x) {
            *b = ((x ^ flip) >> 32) as u32;
        }
        let x = block;
        let mut sums = [0.0; N];
        for j in 0..MAB_PES {
            let b = mantissa(x[j], u32::MAX);
            let b_low = mantissa(x[j], self.low_mask);
            let b_sign = sign(b_low);
            for i in 0..N {
                // All of it is integers below 2^53: exact in any order.
                let kept = fma::<FUSED>(self.mantissas[j][i], b, sums[i]);
                let kept = fma::<FUSED>(self.low[j][i], -b_low, kept);
                sums[i] = fma::<FUSED>(self.stand_in[j][i], b_sign, kept);
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
                matrix.mantissas[place(j)][place(i)] = mantissa(row[j], mask);
            }
            matrix.exponents[place(i)] = exponent(row);
        }
        matrix
    }
}

impl Matrix for GMatrix {
    /// The vector is 2 elements per PE.
    #[inline(always)]
    fn times<const FUSED: bool>(&self, x: &[u64], flip: u64) -> [f64; N] {
        let (mut block, mut vector) = ([0u32; N], [0.0; N]);
        block.copy_from_slice(bytemuck::cast_slice(x));
        for (v, x) in vector.iter_mut().zip(&mut block) {
            *x ^= flip as u32;
            *v = mantissa(*x, self.mask);
        }
        let x = block;
        let mut sums = [0.0; N];
        for j in 0..N {
            for i in 0..N {
                sums[i] = fma::<FUSED>(self.mantissas[j][i], vector[j], sums[i]);
            }
        }
        scale(sums, &self.exponents, exponent(&x))
    }
}

/// `a * b + c` where all of it is exact.
#[inline(always)]
fn fma<const FUSED: bool>(a: f64, b: f64, c: f64) -> f64 {
    if FUSED {
        a.mul_add(b, c)
    } else {
        a * b + c
    }
}

/// A decoded register.
trait Matrix {
    /// The exact row sums times the vector.
    fn times<const FUSED: bool>(&self, x: &[u64], flip: u64) -> [f64; N];
}

#[inline(always)]
fn scale(mut sums: [f64; N], rows: &[i64; N], vector: i64) -> [f64; N] {
    for (sum, row) in sums.iter_mut().zip(rows) {
        *sum *= power_of_two(row + vector - 2 * UNIT);
    }
    sums
}

/// Products plus addends of one vector, as doubles rounded to odd, in stored order.
#[inline(always)]
fn sums<const FUSED: bool, A: Matrix>(a: &A, x: &[u64], z: &[u64], neg: MauNeg) -> [u64; N] {
    let products = a.times::<FUSED>(x, flip(neg.x, 32));
    let mut addends = [0u32; N];
    addends.copy_from_slice(bytemuck::cast_slice(z));
    let mut sums = [0; N];
    for i in 0..N {
        let z = addends[i] ^ flip(neg.z, 32) as u32;
        sums[i] = add_odd(products[i], single_to_f64(u64::from(z)));
    }
    sums
}

#[inline(always)]
fn singles<const FUSED: bool, A: Matrix>(a: &[A], x: &[u64], z: &[u64], neg: MauNeg, out: &mut [u64]) {
    for (mab, first) in vectors(a.len(), out.len()) {
        let range = first..first + MAB_PES;
        let sums = sums::<FUSED, A>(&a[mab], &x[range.clone()], &z[range.clone()], neg);
        let out: &mut [u32] = bytemuck::cast_slice_mut(&mut out[range]);
        for (out, sum) in out.iter_mut().zip(sums) {
            *out = round_to_single(sum) as u32;
        }
    }
}

#[inline(always)]
fn halves<const FUSED: bool, A: Matrix>(a: &[A], x: &[u64], z: &[u64], neg: MauNeg, out: &mut [u64]) {
    for (mab, first) in vectors(a.len(), out.len()) {
        let range = first..first + MAB_PES;
        let sums = sums::<FUSED, A>(&a[mab], &x[range.clone()], &z[range.clone()], neg);
        for (p, out) in out[range].iter_mut().enumerate() {
            let half = |k: usize| round_to::<6, 9>(sums[place(2 * p + k)]);
            *out = half(0) << 48 | half(1) << 32;
        }
    }
}

fusing_kernel! {
    /// `out = A * x + z` per MAB in single precision: `x` in w0 of each PE, addend and output rows of 2 singles; PE p holds
    /// results `2p` and `2p + 1`.
    pub fn f_mfma(a: &[FMatrix], x: &[u64], z: &[u64], neg: MauNeg, out: &mut [u64]) = singles::<FUSED, _>;

    /// As [`f_mfma`], rounded once to 2 halves in w0 (top 32 bits), the rest 0.
    pub fn f_mfma_r(a: &[FMatrix], x: &[u64], z: &[u64], neg: MauNeg, out: &mut [u64]) = halves::<FUSED, _>;

    /// `out = A * x + z` per MAB in pseudo-single precision: `x`, addend and output are rows of 2 singles; PE p holds elements
    /// `2p` and `2p + 1`.
    pub fn g_mfma(a: &[GMatrix], x: &[u64], z: &[u64], neg: MauNeg, out: &mut [u64]) = singles::<FUSED, _>;

    /// As [`g_mfma`], rounded once to 2 halves in w0 (top 32 bits), the rest 0.
    pub fn g_mfma_r(a: &[GMatrix], x: &[u64], z: &[u64], neg: MauNeg, out: &mut [u64]) = halves::<FUSED, _>;
}

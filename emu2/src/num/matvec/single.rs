//! Single (8 x 4 with the approximate multiplier) and pseudo-single precision (8 x 8, exact products of cut mantissas).
//!
//! Mantissas are integers in doubles: products have at most 46 bits, sums of a row 48, so all of it is exact.

use super::{block, cycles, first, in_pieces, power_of_two, MABS, TOGETHER};
use crate::num::level::{fusing_kernel, kernel};
use crate::num::mau::{add_odd, flip, flushed_single, round_to, round_to_single, single_to_f64, MauNeg};
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
    /// What a mantissa's unit is worth in each row.
    units: [f64; N],
    low_mask: u32,
}

/// A decoded matrix register for `g`, `[place of column][place of row]`.
#[derive(Clone, Debug)]
pub struct GMatrix {
    mantissas: [[f64; N]; N],
    /// What a mantissa's unit is worth in each row.
    units: [f64; N],
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

/// What the unit of a mantissa is worth in a block with this exponent field.
#[inline(always)]
fn unit_of(field: i64) -> f64 {
    power_of_two(field - UNIT)
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
            units: [0.0; N],
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
            matrix.units[place(i)] = unit_of(exponent(&used));
        }
        matrix
    }
}

/// The exponent field of the upper word of a long word.
const UPPER_FIELD: u64 = 0x7F80_0000 << 32;

/// What the units of vectors that follow each other are worth; `taken`: the exponent fields of a long word that count. Those of
/// a vector are alike, or the largest one counts.
#[inline(always)]
fn units_of(row: &[u64], taken: u64, units: &mut [f64]) {
    let (vectors, _) = row.as_chunks::<MAB_PES>();
    let mut unlike = 0;
    for (unit, x) in units.iter_mut().zip(vectors) {
        let field = x[0] & UPPER_FIELD;
        let all = field | field >> 32;
        let differ = x.iter().fold(0, |differ, x| differ | x ^ all);
        unlike |= differ & taken;
        *unit = unit_of((field >> 55) as i64);
    }
    if unlike != 0 {
        for (unit, x) in units.iter_mut().zip(vectors) {
            let largest = x.iter().fold(0, |e, x| e.max(x & taken & UPPER_FIELD).max((x & taken) << 32));
            *unit = unit_of((largest >> 55) as i64);
        }
    }
}

/// Decoded vectors for `f`, w0 of each PE.
#[derive(Default)]
struct FVectors {
    mantissas: [[f64; MAB_PES]; MABS * TOGETHER],
    /// The low parts, negated.
    low: [[f64; MAB_PES]; MABS * TOGETHER],
    /// The signs of the low parts.
    signs: [[f64; MAB_PES]; MABS * TOGETHER],
}

impl Matrix for FMatrix {
    type Vectors = FVectors;

    #[inline(always)]
    fn decode_row(&self, row: &[u64], flip: u64, at: usize, vectors: &mut FVectors, units: &mut [f64]) {
        let end = at + units.len();
        let mantissas = vectors.mantissas[at..end].as_flattened_mut();
        let lows = vectors.low[at..end].as_flattened_mut();
        let signs = vectors.signs[at..end].as_flattened_mut();
        for (((whole, low), sign_of), x) in mantissas.iter_mut().zip(lows).zip(signs).zip(row) {
            let word = ((x ^ flip) >> 32) as u32;
            let low_part = mantissa(word, self.low_mask);
            *whole = mantissa(word, u32::MAX);
            *low = -low_part;
            *sign_of = sign(low_part);
        }
        units_of(row, UPPER_FIELD, units);
    }

    #[inline(always)]
    fn times<const FUSED: bool, const C: usize>(
        &self,
        vectors: &FVectors,
        at: usize,
        units: &[f64],
        out: &mut [[f64; N]],
    ) {
        let mut all = [[0.0; N]; C];
        for j in 0..MAB_PES {
            for c in 0..C {
                let v = at + c * MABS;
                let (whole, low, sign) = (vectors.mantissas[v][j], vectors.low[v][j], vectors.signs[v][j]);
                for i in 0..N {
                    // All of it is integers below 2^53: exact in any order.
                    let kept = fma::<FUSED>(self.mantissas[j][i], whole, all[c][i]);
                    let kept = fma::<FUSED>(self.low[j][i], low, kept);
                    all[c][i] = fma::<FUSED>(self.stand_in[j][i], sign, kept);
                }
            }
        }
        scale::<C>(&mut all, &self.units, &units[at..], &mut out[at..]);
    }
}

impl GMatrix {
    /// Decodes a register from its raw words, `[row][column]`. `ignore` is the number of low mantissa bits that the
    /// multiplier does not see (5 on MN-Core 2).
    #[must_use]
    pub fn decode(rows: &[[u32; N]; N], ignore: u32) -> Self {
        let mask = u32::MAX << ignore;
        let mut matrix = Self { mantissas: [[0.0; N]; N], units: [0.0; N], mask };
        for (i, row) in rows.iter().enumerate() {
            for j in 0..N {
                matrix.mantissas[place(j)][place(i)] = mantissa(row[j], mask);
            }
            matrix.units[place(i)] = unit_of(exponent(row));
        }
        matrix
    }
}

/// Decoded vectors for `g`, 2 elements per PE.
#[derive(Default)]
struct GVectors([[f64; N]; MABS * TOGETHER]);

impl Matrix for GMatrix {
    type Vectors = GVectors;

    #[inline(always)]
    fn decode_row(&self, row: &[u64], flip: u64, at: usize, vectors: &mut GVectors, units: &mut [f64]) {
        let words: &[u32] = bytemuck::cast_slice(row);
        for (m, v) in vectors.0[at..at + units.len()].as_flattened_mut().iter_mut().zip(words) {
            *m = mantissa(v ^ flip as u32, self.mask);
        }
        units_of(row, UPPER_FIELD | UPPER_FIELD >> 32, units);
    }

    #[inline(always)]
    fn times<const FUSED: bool, const C: usize>(
        &self,
        vectors: &GVectors,
        at: usize,
        units: &[f64],
        out: &mut [[f64; N]],
    ) {
        let mut all = [[0.0; N]; C];
        for j in 0..N {
            for c in 0..C {
                let x = vectors.0[at + c * MABS][j];
                for i in 0..N {
                    all[c][i] = fma::<FUSED>(self.mantissas[j][i], x, all[c][i]);
                }
            }
        }
        scale::<C>(&mut all, &self.units, &units[at..], &mut out[at..]);
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
    /// Decoded vectors.
    type Vectors: Default;

    /// Decodes vectors that follow each other to places from `at` on; `units`: what their mantissas' units are worth.
    fn decode_row(&self, row: &[u64], flip: u64, at: usize, vectors: &mut Self::Vectors, units: &mut [f64]);

    /// The exact products with `C` vectors from `at` on, [`MABS`] apart, as are units and results, in stored order.
    fn times<const FUSED: bool, const C: usize>(
        &self,
        vectors: &Self::Vectors,
        at: usize,
        units: &[f64],
        out: &mut [[f64; N]],
    );
}

/// Sums in units of their rows and vectors.
#[inline(always)]
fn scale<const C: usize>(sums: &mut [[f64; N]; C], rows: &[f64; N], units: &[f64], out: &mut [[f64; N]]) {
    for c in 0..C {
        let unit = units[c * MABS];
        for i in 0..N {
            sums[c][i] *= rows[i] * unit;
        }
        out[c * MABS] = sums[c];
    }
}

/// The addends of a vector as they lie in memory.
#[inline(always)]
fn addends(z: &[u64], first: usize, neg: MauNeg) -> [f64; N] {
    let words: [u32; N] = bytemuck::cast(block(z, first).map(|z| z ^ flip(neg.z, 32)));
    words.map(|z| single_to_f64(u64::from(z)))
}

/// Bits that a double has below the last place of a single, and where a tie between two singles has its one bit.
const BELOW: u64 = (1 << 29) - 1;
const TIE: u64 = 1 << 28;

#[inline(always)]
fn rows<const FUSED: bool, A: Matrix>(a: &[A], x: &[u64], z: &[u64], neg: MauNeg, out: &mut [u64]) {
    let (mabs, cycles) = (a.len(), cycles(a.len(), out.len()));
    let (nx, nz) = (flip(neg.x, 32), flip(neg.z, 32) as u32);
    let mut vectors = A::Vectors::default();
    let mut units = [0.0; MABS * TOGETHER];
    let mut products = [[0.0; N]; MABS * TOGETHER];
    in_pieces!(mabs, cycles, |mab, width, cycle, count| {
        for c in 0..count {
            let at = first(mabs, mab, cycle + c);
            let row = &x[at..at + width * MAB_PES];
            a[mab].decode_row(row, nx, c * MABS, &mut vectors, &mut units[c * MABS..c * MABS + width]);
        }
        for (m, a) in a[mab..mab + width].iter().enumerate() {
            if count == TOGETHER {
                a.times::<FUSED, TOGETHER>(&vectors, m, &units, &mut products);
            } else {
                for at in (0..count).map(|c| c * MABS + m) {
                    a.times::<FUSED, 1>(&vectors, at, &units, &mut products);
                }
            }
        }
        for c in 0..count {
            let at = first(mabs, mab, cycle + c);
            let row = at..at + width * MAB_PES;
            let products = products[c * MABS..c * MABS + width].as_flattened();
            if !add(products, &z[row.clone()], nz, &mut out[row.clone()]) {
                add_exactly(products, &z[row.clone()], nz, &mut out[row]);
            }
        }
    });
}

/// Products plus addends; false: some sum is not certain.
///
/// A sum is rounded to a double and that to a single. Ties between singles are doubles, so that the first rounding does not
/// pass one; only a sum that is rounded *to* a tie has lost on which side it was. Infinities, which are numbers to the
/// machine, and what is at most the least normal number are not certain either.
#[inline(always)]
fn add(products: &[f64], z: &[u64], flip: u32, out: &mut [u64]) -> bool {
    let (z, out): (&[u32], &mut [u32]) = (bytemuck::cast_slice(z), bytemuck::cast_slice_mut(out));
    let (mut tied, mut least, mut most) = (false, u32::MAX, 0);
    for ((out, p), z) in out.iter_mut().zip(products).zip(z) {
        let sum = p + f64::from(flushed_single(z ^ flip));
        tied |= sum.to_bits() & BELOW == TIE;
        // Adding 0 makes -0 +0.
        *out = (sum as f32 + 0.0).to_bits();
        let size = *out & 0x7FFF_FFFF;
        // 0 is certain: it becomes the largest number here.
        least = least.min(size.wrapping_sub(1));
        most = most.max(size);
    }
    !tied & (least >= f32::MIN_POSITIVE.to_bits()) & (most < f32::INFINITY.to_bits())
}

kernel! {
    /// As [`add`], by way of doubles rounded to odd.
    fn add_exactly(products: &[f64], z: &[u64], flip: u32, out: &mut [u64]) {
        let (z, out): (&[u32], &mut [u32]) = (bytemuck::cast_slice(z), bytemuck::cast_slice_mut(out));
        for ((out, p), z) in out.iter_mut().zip(products).zip(z) {
            *out = round_to_single(add_odd(*p, single_to_f64(u64::from(z ^ flip)))) as u32;
        }
    }
}

#[inline(always)]
fn halves<const FUSED: bool, A: Matrix>(a: &[A], x: &[u64], z: &[u64], neg: MauNeg, out: &mut [u64]) {
    let nx = flip(neg.x, 32);
    let mut vectors = A::Vectors::default();
    let mut units = [0.0; MABS * TOGETHER];
    let mut products = [[0.0; N]; MABS * TOGETHER];
    for (mab, first) in super::vectors(a.len(), out.len()) {
        let (a, at) = (&a[mab], first..first + MAB_PES);
        a.decode_row(&x[at.clone()], nx, 0, &mut vectors, &mut units[..1]);
        a.times::<FUSED, 1>(&vectors, 0, &units, &mut products);
        let z = addends(z, first, neg);
        for (p, out) in out[at].iter_mut().enumerate() {
            let half = |k: usize| {
                let i = place(2 * p + k);
                round_to::<6, 9>(add_odd(products[0][i], z[i]))
            };
            *out = half(0) << 48 | half(1) << 32;
        }
    }
}

fusing_kernel! {
    /// `out = A * x + z` per MAB in single precision: `x` in w0 of each PE, addend and output rows of 2 singles; PE p holds
    /// results `2p` and `2p + 1`.
    pub fn f_mfma(a: &[FMatrix], x: &[u64], z: &[u64], neg: MauNeg, out: &mut [u64]) = rows::<FUSED, _>;

    /// As [`f_mfma`], rounded once to 2 halves in w0 (top 32 bits), the rest 0.
    pub fn f_mfma_r(a: &[FMatrix], x: &[u64], z: &[u64], neg: MauNeg, out: &mut [u64]) = halves::<FUSED, _>;

    /// `out = A * x + z` per MAB in pseudo-single precision: `x`, addend and output are rows of 2 singles; PE p holds elements
    /// `2p` and `2p + 1`.
    pub fn g_mfma(a: &[GMatrix], x: &[u64], z: &[u64], neg: MauNeg, out: &mut [u64]) = rows::<FUSED, _>;

    /// As [`g_mfma`], rounded once to 2 halves in w0 (top 32 bits), the rest 0.
    pub fn g_mfma_r(a: &[GMatrix], x: &[u64], z: &[u64], neg: MauNeg, out: &mut [u64]) = halves::<FUSED, _>;
}

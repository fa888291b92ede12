//! Single precision (8 x 4 with the approximate multiplier) and pseudo-single precision (8 x 8, exact products of cut
//! mantissas).
//!
//! Elements are doubles. In units of the two blocks, products have at most 46 bits and sums of a row 48, so all of it is
//! exact.

use super::single_sums::{add, addends, settle, N, SIGN};
use super::{block, in_pieces, long_words, power_of_two, Cycle, MABS, TOGETHER};
use crate::num::clone_choice::choosing_fusing_kernel;
use crate::num::mau::{add_odd, flip, round_to, MauNeg};
use crate::num::MAB_PES;

/// Where row `i` of a register or element `i` of a `g` vector is stored: at its place in memory, where the last lane of a
/// little-endian long word comes first.
const fn place(i: usize) -> usize {
    i ^ 1
}

/// Fraction bits of a single.
const FRACTION: u32 = 23;

/// Sign and exponent field of a single, as a mask.
const TOP: u32 = u32::MAX << FRACTION;

/// Distance of the exponent of a mantissa unit below the exponent field.
const UNIT: i64 = 127 + 22;

/// A decoded matrix register for `f`: the even columns, `[column][place of row]`.
#[derive(Clone, Debug)]
#[repr(align(64))]
pub struct FMatrix {
    /// Twice the value of each element, because vectors hold half the value of their elements.
    doubled: [[f64; N]; MAB_PES],
    /// The low parts, doubled and negated. Their mutual products are omitted.
    low: [[f64; N]; MAB_PES],
    /// The stand-in for an omitted product that is not zero, divided by the hidden bit of the other factor. 0 if the low
    /// part is 0.
    stand_in: [[f64; N]; MAB_PES],
    low_mask: u32,
}

/// A decoded matrix register for `g`, `[place of column][place of row]`.
#[derive(Clone, Debug)]
#[repr(align(64))]
pub struct GMatrix {
    /// Twice the value of each element, because vectors hold half the value of their elements.
    doubled: [[f64; N]; N],
    mask: u32,
}

/// The fraction bits selected by `mask` as a signed integer.
#[inline(always)]
fn mantissa(v: u32, mask: u32) -> f64 {
    let f = f64::from(v & !TOP & mask);
    if v & SIGN == 0 {
        f
    } else {
        -f
    }
}

/// The value of a mantissa's unit in a block with the exponent field of this word.
#[inline(always)]
fn unit_of(word: u32) -> f64 {
    power_of_two(i64::from(word >> FRACTION & 0xFF) - UNIT)
}

/// The largest exponent field of a block, at its place in a word.
#[inline(always)]
fn field(block: &[u32]) -> u32 {
    block.iter().fold(0, |e, v| e.max(v & TOP & !SIGN))
}

impl FMatrix {
    /// Decodes a register from its raw words, `[row][column]`. Only the even columns take part. `omit` is the number of low
    /// mantissa bits whose mutual products the multiplier omits (5 on MN-Core 2).
    #[must_use]
    pub fn decode(rows: &[[u32; N]; N], omit: u32) -> Self {
        let low_mask = (1 << omit) - 1;
        let zero = [[0.0; N]; MAB_PES];
        let mut matrix = Self { doubled: zero, low: zero, stand_in: zero, low_mask };
        // A hidden bit is 2^22 units of its mantissa.
        let stand_in = if omit == 0 { 0.0 } else { power_of_two(2 * i64::from(omit) - 2 - 22) };
        for (i, row) in rows.iter().enumerate() {
            let used: [u32; MAB_PES] = std::array::from_fn(|j| row[2 * j]);
            let unit = unit_of(field(&used));
            for j in 0..MAB_PES {
                let low = mantissa(used[j], low_mask);
                matrix.doubled[j][place(i)] = 2.0 * unit * mantissa(used[j], u32::MAX);
                matrix.low[j][place(i)] = -2.0 * unit * low;
                matrix.stand_in[j][place(i)] = if low == 0.0 { 0.0 } else { unit * stand_in.copysign(low) };
            }
        }
        matrix
    }
}

impl GMatrix {
    /// Decodes a register from its raw words, `[row][column]`. `ignore` is the number of low mantissa bits that the
    /// multiplier does not see (5 on MN-Core 2).
    #[must_use]
    pub fn decode(rows: &[[u32; N]; N], ignore: u32) -> Self {
        let mask = u32::MAX << ignore;
        let mut matrix = Self { doubled: [[0.0; N]; N], mask };
        for (i, row) in rows.iter().enumerate() {
            let unit = unit_of(field(row));
            for j in 0..N {
                matrix.doubled[place(j)][place(i)] = 2.0 * unit * mantissa(row[j], mask);
            }
        }
        matrix
    }
}

/// Half of the value of the bits `kept` of the fraction: the number as the host reads it, less its hidden bit. The exponent
/// field must not be all zeros or all ones.
#[inline(always)]
fn half(v: u32, kept: u32) -> f32 {
    f32::from_bits(v & (TOP | kept)) - f32::from_bits(v & TOP)
}

/// Whether the blocks of `K` words seen so far are ordinary. The words of an ordinary block share an exponent field that is
/// not all ones, and that is all zeros only in words that are zero.
struct Seen<const K: usize> {
    differ: [u32; K],
    least: [u32; K],
    most: [i32; K],
}

impl<const K: usize> Seen<K> {
    const NOTHING: Self = Self { differ: [0; K], least: [u32::MAX; K], most: [0; K] };

    #[inline(always)]
    fn note(&mut self, block: [u32; K]) {
        let field = block[0] & TOP & !SIGN;
        for i in 0..K {
            self.differ[i] |= block[i] ^ field;
            // Here 0 wraps to -1, which is the largest unsigned and the least signed number.
            let size = (block[i] & !SIGN).wrapping_sub(1);
            self.least[i] = self.least[i].min(size);
            self.most[i] = self.most[i].max(size as i32);
        }
    }

    #[inline(always)]
    fn ordinary(&self) -> bool {
        let differ = self.differ.iter().fold(0, |all, d| all | d & TOP & !SIGN);
        let mut other = 0;
        for i in 0..K {
            other |= u32::from(self.least[i] < !TOP) | u32::from(self.most[i] >= (TOP & !SIGN) as i32 - 1);
        }
        (differ | other) == 0
    }
}

/// A decoded vector for `f`, taken from w0 of each PE.
#[derive(Clone, Copy, Default)]
struct FVector {
    /// Half of the value of each element.
    halves: [f64; MAB_PES],
    /// Half of the value of each low part.
    low: [f64; MAB_PES],
    /// The hidden bits of elements whose low parts are not 0.
    hidden: [f64; MAB_PES],
}

/// A decoded vector for `g`, 2 elements per PE, as half of their values.
type GVector = [f64; N];

impl Matrix for FMatrix {
    type Vector = FVector;

    #[inline(always)]
    fn decode_row(&self, row: &[[u64; MAB_PES]], flip: u64, vectors: &mut [FVector; MABS]) -> bool {
        let mut seen = Seen::NOTHING;
        for (m, x) in row.iter().enumerate() {
            let mut words = [0; MAB_PES];
            let (mut halves, mut low, mut hidden) = ([0.0; MAB_PES], [0.0; MAB_PES], [0.0; MAB_PES]);
            for i in 0..MAB_PES {
                words[i] = ((x[i] ^ flip) >> 32) as u32;
                halves[i] = half(words[i], u32::MAX);
                low[i] = half(words[i], self.low_mask);
                hidden[i] = if words[i] & self.low_mask == 0 { 0.0 } else { f32::from_bits(words[i] & TOP) };
            }
            seen.note(words);
            let vector = &mut vectors[m];
            for i in 0..MAB_PES {
                vector.halves[i] = f64::from(halves[i]);
                vector.low[i] = f64::from(low[i]);
                vector.hidden[i] = f64::from(hidden[i]);
            }
        }
        seen.ordinary()
    }

    #[inline(always)]
    fn decode_any(&self, x: &[u64; MAB_PES], flip: u64) -> FVector {
        let words = x.map(|x| ((x ^ flip) >> 32) as u32);
        let unit = unit_of(field(&words));
        let low = words.map(|word| unit * 0.5 * mantissa(word, self.low_mask));
        let hidden = low.map(|low| if low == 0.0 { 0.0 } else { (unit * power_of_two(22)).copysign(low) });
        FVector { halves: words.map(|word| unit * 0.5 * mantissa(word, u32::MAX)), low, hidden }
    }

    #[inline(always)]
    fn times<const FUSED: bool>(&self, m: usize, vectors: &Vectors<FVector>, products: &mut Products) {
        let mut all = [[0.0; N]; TOGETHER];
        for j in 0..MAB_PES {
            for c in 0..TOGETHER {
                let FVector { halves, low, hidden } = &vectors[c][m];
                for i in 0..N {
                    let kept = fma::<FUSED>(self.doubled[j][i], halves[j], all[c][i]);
                    let kept = fma::<FUSED>(self.low[j][i], low[j], kept);
                    all[c][i] = fma::<FUSED>(self.stand_in[j][i], hidden[j], kept);
                }
            }
        }
        for c in 0..TOGETHER {
            products[c][m] = all[c];
        }
    }
}

impl Matrix for GMatrix {
    type Vector = GVector;

    #[inline(always)]
    fn decode_row(&self, row: &[[u64; MAB_PES]], flip: u64, vectors: &mut [GVector; MABS]) -> bool {
        let mut seen = Seen::NOTHING;
        for (m, x) in row.iter().enumerate() {
            let mut words: [u32; N] = bytemuck::cast(*x);
            let mut halves = [0.0; N];
            for i in 0..N {
                words[i] ^= flip as u32;
                halves[i] = half(words[i], self.mask);
            }
            seen.note(words);
            let vector = &mut vectors[m];
            for i in 0..N {
                vector[i] = f64::from(halves[i]);
            }
        }
        seen.ordinary()
    }

    #[inline(always)]
    fn decode_any(&self, x: &[u64; MAB_PES], flip: u64) -> GVector {
        let words: [u32; N] = bytemuck::cast(x.map(|x| x ^ flip));
        let unit = unit_of(field(&words));
        words.map(|word| unit * 0.5 * mantissa(word, self.mask))
    }

    #[inline(always)]
    fn times<const FUSED: bool>(&self, m: usize, vectors: &Vectors<GVector>, products: &mut Products) {
        let mut all = [[0.0; N]; TOGETHER];
        for j in 0..N {
            for c in 0..TOGETHER {
                let x = vectors[c][m][j];
                for i in 0..N {
                    all[c][i] = fma::<FUSED>(self.doubled[j][i], x, all[c][i]);
                }
            }
        }
        for c in 0..TOGETHER {
            products[c][m] = all[c];
        }
    }
}

/// `a * b + c`, if all of it is exact.
#[inline(always)]
fn fma<const FUSED: bool>(a: f64, b: f64, c: f64) -> f64 {
    if FUSED {
        a.mul_add(b, c)
    } else {
        a * b + c
    }
}

/// The vectors of a piece.
type Vectors<V> = [[V; MABS]; TOGETHER];

/// The products of a piece, rows in stored order.
type Products = [[[f64; N]; MABS]; TOGETHER];

/// A decoded register.
trait Matrix {
    /// A decoded vector.
    type Vector: Copy + Default;

    /// Decodes consecutive vectors. Returns false if one of their blocks is not ordinary, see [`Seen`].
    fn decode_row(&self, row: &[[u64; MAB_PES]], flip: u64, vectors: &mut [Self::Vector; MABS]) -> bool;

    /// Decodes any vector.
    fn decode_any(&self, x: &[u64; MAB_PES], flip: u64) -> Self::Vector;

    /// The exact products of the register and the vectors of MAB `m`.
    fn times<const FUSED: bool>(&self, m: usize, vectors: &Vectors<Self::Vector>, products: &mut Products);
}

#[inline(always)]
fn rows<const FUSED: bool, A: Matrix>(a: &[A], cycles: &mut [Cycle<'_>], neg: MauNeg) {
    let (nx, nz) = (flip(neg.x, 32), flip(neg.z, 32) as u32);
    let mut vectors = [[A::Vector::default(); MABS]; TOGETHER];
    let mut products = [[[0.0; N]; MABS]; TOGETHER];
    in_pieces!(a, cycles, |mab, a, piece| {
        let row = long_words(mab, a.len());
        for (Cycle { x, .. }, vectors) in piece.iter().zip(&mut vectors) {
            let (x, _) = x[row.clone()].as_chunks();
            if !a[0].decode_row(x, nx, vectors) {
                for ((a, x), vector) in a.iter().zip(x).zip(vectors) {
                    *vector = a.decode_any(x, nx);
                }
            }
        }
        for (m, a) in a.iter().enumerate() {
            a.times::<FUSED>(m, &vectors, &mut products);
        }
        for (Cycle { z: [z, _], out: [out, _], .. }, products) in piece.iter_mut().zip(&products) {
            let ((z, _), (out, _)) = (z[row.clone()].as_chunks(), out[row.clone()].as_chunks_mut());
            if !add(products, z, nz, out) {
                settle(products[..a.len()].as_flattened(), z.as_flattened(), nz, out.as_flattened_mut());
            }
        }
    });
}

#[inline(always)]
fn halves<const FUSED: bool, A: Matrix>(a: &[A], cycles: &mut [Cycle<'_>], neg: MauNeg) {
    let nx = flip(neg.x, 32);
    let mut vectors = [[A::Vector::default(); MABS]; TOGETHER];
    let mut products = [[[0.0; N]; MABS]; TOGETHER];
    for Cycle { x, z: [z, _], out: [out, _] } in cycles {
        for (mab, a) in a.iter().enumerate() {
            vectors[0][0] = a.decode_any(&block(x, mab), nx);
            a.times::<FUSED>(0, &vectors, &mut products);
            let z = addends(z, mab, neg);
            for (p, out) in out[long_words(mab, 1)].iter_mut().enumerate() {
                let half = |k: usize| {
                    let i = place(2 * p + k);
                    round_to::<6, 9>(add_odd(products[0][0][i], z[i]))
                };
                *out = half(0) << 48 | half(1) << 32;
            }
        }
    }
}

choosing_fusing_kernel! {
    /// `out = A * x + z` per MAB in single precision. x is in w0 of each PE, addend and result are 2 singles on L0; PE p
    /// holds results `2p` and `2p + 1`.
    pub fn f_mfma(a: &[FMatrix], cycles: &mut [Cycle<'_>], neg: MauNeg) = rows::<FUSED, _>;

    /// Computes [`f_mfma`], rounded once to 2 halves in w0 (top 32 bits), the rest 0.
    pub fn f_mfma_r(a: &[FMatrix], cycles: &mut [Cycle<'_>], neg: MauNeg) = halves::<FUSED, _>;

    /// `out = A * x + z` per MAB in pseudo-single precision. x, addend and result are 2 singles on L0; PE p holds elements
    /// `2p` and `2p + 1`.
    pub fn g_mfma(a: &[GMatrix], cycles: &mut [Cycle<'_>], neg: MauNeg) = rows::<FUSED, _>;

    /// Computes [`g_mfma`], rounded once to 2 halves in w0 (top 32 bits), the rest 0.
    pub fn g_mfma_r(a: &[GMatrix], cycles: &mut [Cycle<'_>], neg: MauNeg) = halves::<FUSED, _>;
}

//! Block float: words of a block share one exponent and have no hidden bit (manual, chapter on block float).
//!
//! A block float word has the fields of its format; its value is `(-1)^s * 2^(E - bias) * F * 2^-(m - 1)`. Blocks run
//! across the PEs of a MAB. An extended half element has exponent field 0 and a non-zero fraction, and counts with `E - 6`.

use super::clone_choice::choosing_kernel;
use super::format::FloatFormat;
use super::lane::{select, Word};
use super::MAB_PES;

/// How far the exponent of an extended half element lies below its block. The kernels are built for this distance. A spec
/// with another `amount` in its extended block float is refused.
pub(crate) const EXTENSION: u32 = 6;

/// Number of fraction bits of a pseudo-single block. The kernels are built for this number. A spec whose format and
/// `ignored_bits` leave another number is refused.
///
/// guess: `gbfn` rounds to these bits (and tests them for the carry) instead of leaving the cut to the multiplier.
pub(crate) const G_KEPT: u32 = 18;

/// How the mantissas of a block are shortened.
#[derive(Clone, Copy)]
struct Cut {
    /// Mantissa bits kept.
    kept: u32,
    /// Raise of the block exponent if kept bits lie at the bottom of the fraction field. 0 if they lie at the top.
    raise: u32,
    /// Elements far below the block exponent take the extended form.
    extended: bool,
}

choosing_kernel! {
/// `dbfn`: row of doubles, one block per MAB.
pub fn d_bfn(x: &[u64], out: &mut [u64]) {
    const D: FloatFormat = FloatFormat::DOUBLE;
    blocks::<u64, u64, MAB_PES>(D, x, out, Cut { kept: 52, raise: 0, extended: false });
}

/// `fbfn`: row of 2 singles. Per MAB there is one block of all w0 and one of all w1.
pub fn f_bfn(x: &[u64], out: &mut [u64]) {
    const F: FloatFormat = FloatFormat::SINGLE;
    let cut = Cut { kept: 23, raise: 0, extended: false };
    for (x, out) in x.chunks_exact(MAB_PES).zip(out.chunks_exact_mut(MAB_PES)) {
        let (mut w0, mut w1) = ([0u32; MAB_PES], [0u32; MAB_PES]);
        for p in 0..MAB_PES {
            w0[p] = (x[p] >> 32) as u32;
            w1[p] = x[p] as u32;
        }
        let (w0, w1) = (block(F, w0, cut), block(F, w1, cut));
        for p in 0..MAB_PES {
            out[p] = u64::from(w0[p]) << 32 | u64::from(w1[p]);
        }
    }
}

/// `gbfn`: row of 2 singles, one block of 8 words per MAB.
pub fn g_bfn(x: &[u64], out: &mut [u64]) {
    const F: FloatFormat = FloatFormat::SINGLE;
    blocks::<u32, u32, { 2 * MAB_PES }>(F, x, out, Cut { kept: G_KEPT, raise: 0, extended: false });
}

/// `hbfn/kept`: row of 4 halves, one block of 16 per MAB, with `kept` mantissa bits, 6..=9. The instruction does this for
/// the rows L0 and L1.
pub fn h_bfn(kept: u32, x: &[u64], out: &mut [u64]) {
    let (x, _) = bytemuck::cast_slice::<_, u16>(x).as_chunks();
    let (out, _) = bytemuck::cast_slice_mut::<_, u16>(out).as_chunks_mut();
    for (x, out) in x.iter().zip(out) {
        half_block(x, kept, out);
    }
}

/// `hbfe/kept`: the same as [`h_bfn`], with extended elements.
pub fn h_bfe(kept: u32, x: &[u64], out: &mut [u64]) {
    let cut = Cut { kept, raise: 9 - kept, extended: true };
    // Halves are computed in 32 bits, because hosts have no 16-bit vector shifts by different counts.
    blocks::<u16, u32, { 4 * MAB_PES }>(FloatFormat::HALF, x, out, cut);
}
}

/// Converts a block of halves without extended elements. The host's addition of singles rounds: a half counts as the
/// single with the same fields, and the unit in the last place of the other addend is that of the block.
#[inline(always)]
fn half_block(x: &[u16; 4 * MAB_PES], kept: u32, out: &mut [u16; 4 * MAB_PES]) {
    const H: FloatFormat = FloatFormat::HALF;
    const M: u32 = H.frac_bits;
    const SIGN: u16 = H.sign_mask() as u16;
    // Bits between the last place of a half and that of a single.
    const FINER: u32 = FloatFormat::SINGLE.frac_bits - M;
    // The largest word has the largest exponent field, and of the words with that field it is the first to carry.
    let most = x.iter().fold(0, |most: u16, v| most.max(v & !SIGN));
    if most < 1 << M {
        // Words with exponent field 0 count as 0.
        for i in 0..x.len() {
            out[i] = x[i] & SIGN;
        }
        return;
    }
    let most = u32::from(most);
    let full = ((1u32 << kept) - 1) << (M - kept);
    let shared = (most >> M) + (M - kept) + u32::from(most & full == full);
    // Beside the anchor of a block without numbers, all words are below one half.
    let (exponent, field) =
        if shared < H.exp_max() { (shared, shared + 1 + FINER) } else { (H.exp_max(), u32::from(u8::MAX) - 1) };
    // `1.5 * 2^n`, whose low 22 bits are 0. Mantissas of a block have one bit less than significands.
    let anchor = f32::from_bits(field << FloatFormat::SINGLE.frac_bits | 1 << (FloatFormat::SINGLE.frac_bits - 1));
    let mut sums = [0u32; 4 * MAB_PES];
    for i in 0..x.len() {
        let size = u32::from(x[i] & !SIGN);
        let size = select(size < 1 << M, 0, size);
        sums[i] = (f32::from_bits(size << FINER) + anchor).to_bits();
    }
    let exponent = (exponent << M) as u16;
    for i in 0..x.len() {
        out[i] = x[i] & SIGN | exponent | sums[i] as u16;
    }
}

/// Converts blocks of `N` words of type `S`, computing in `T`.
#[inline(always)]
fn blocks<S: Word, T: Word, const N: usize>(format: FloatFormat, x: &[u64], out: &mut [u64], cut: Cut) {
    debug_assert_eq!(x.len(), out.len());
    let (x, _) = bytemuck::cast_slice::<_, S>(x).as_chunks::<N>();
    let (out, _) = bytemuck::cast_slice_mut::<_, S>(out).as_chunks_mut::<N>();
    for (x, out) in x.iter().zip(out) {
        let mut lanes = [T::ZERO; N];
        for i in 0..N {
            lanes[i] = T::from_u64(x[i].to_u64());
        }
        let lanes = block(format, lanes, cut);
        for i in 0..N {
            out[i] = S::from_u64(lanes[i].to_u64());
        }
    }
}

/// Converts one block.
#[inline(always)]
fn block<T: Word, const N: usize>(format: FloatFormat, mut x: [T; N], cut: Cut) -> [T; N] {
    let m = format.frac_bits;
    let ones = format.exp_max();
    let sign = T::from_u64(format.sign_mask());
    let all_ones = T::from_u64(format.exp_mask());
    let fraction = T::from_u64(format.frac_mask());
    let field = |v: T| (v & all_ones).shr(m).to_u32();
    // If the kept fraction bits are all 1, rounding to one bit less carries into the next exponent.
    let full = fraction & !fraction.shr(cut.kept);
    let would_carry = |v: T| v & full == full;

    // The largest field, and whether a word with that field carries: the largest of both in one number.
    let mut keys = [0; N];
    for (key, &v) in keys.iter_mut().zip(&x) {
        *key = field(v) << 1 | u32::from(would_carry(v));
    }
    let key = largest(keys);
    let (top, carry) = (key >> 1, key & 1);
    let shared = top + cut.raise + carry;
    let below = m - cut.kept - cut.raise;

    if top == 0 || top == ones || shared >= ones {
        let exponent = select(top == 0, T::ZERO, all_ones);
        for v in &mut x {
            *v = *v & sign | exponent;
        }
        return x;
    }
    let exponent = T::from_u32(shared).shl(m);
    let reach = EXTENSION + cut.raise;
    for v in &mut x {
        let diff = shared - field(*v);
        let small = cut.extended & (diff >= reach) & !((diff == reach) & would_carry(*v));
        let diff = select(small, diff.wrapping_sub(EXTENSION), diff);
        let significand = select(field(*v) == 0, T::ZERO, (*v & fraction) | T::ONE.shl(m));
        let q = shift_rne(significand, diff + 1 + below).shl(below);
        // guess: zeros of an extended block keep their sign.
        let bare = cut.extended & (small | (q == T::ZERO));
        *v = *v & sign | select(bare, T::ZERO, exponent) | q;
    }
    x
}

/// The largest of the numbers, whose count is a power of two. Folded one by one they would be a chain of scalars.
#[inline(always)]
pub(super) fn largest<T: Copy + Ord, const N: usize>(mut numbers: [T; N]) -> T {
    let mut left = N / 2;
    while left > 0 {
        for i in 0..left {
            numbers[i] = numbers[i].max(numbers[i + left]);
        }
        left /= 2;
    }
    numbers[0]
}

/// `v / 2^n` rounded to nearest even, for `n >= 1` and `v < 2^(BITS - 2)`.
#[inline(always)]
fn shift_rne<T: Word>(v: T, n: u32) -> T {
    // From BITS - 1 on the quotient is below one half.
    let n = n.min(T::BITS - 1);
    let odd = v.shr(n) & T::ONE;
    v.add(T::ONE.shl(n - 1).sub(T::ONE)).add(odd).shr(n)
}

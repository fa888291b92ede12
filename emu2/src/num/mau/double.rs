//! Double precision vector multiply-add with the approximate multiplier.
//!
//! There are three paths, from fast to exact:
//!
//! 1. [`certain_rounding`](super::certain_rounding) computes whole blocks and says which roundings are certain.
//! 2. The others are computed in smaller blocks, with zeros as the machine has them and without the products that its
//!    multiplier omits. Product, sum and omitted part are exact host doubles. The sum less a bound and the sum plus the
//!    bound are rounded; if both agree, that is the result.
//! 3. If they differ in some lane, the block is computed in 128-bit integers. The operand with the larger exponent keeps
//!    all its bits. The other one is shifted right, and its last bit notes whether a 1 left (a sticky bit).

// A function item as an argument would be a separate call that is compiled for no level.
#![allow(clippy::redundant_closure)]

use super::{certain_rounding, finish, flip, MauNeg, UNDERFLOW_AFTER_ROUNDING};
use crate::num::clone_choice::{choosing_fusing_kernel, choosing_kernel};
use crate::num::format::FloatFormat;
use crate::num::level::fusing_kernel;
use crate::num::MAB_PES;

const FRAC: u64 = (1 << 52) - 1;
const EXP_MAX: u64 = 2047;
/// Doubles that take the exact path together.
const BLOCK: usize = 8;
/// Doubles that take it together in a sum without a product.
const SUMS: usize = 32;
/// Doubles that are computed side by side: two vectors of 32 bytes.
const GROUP: usize = 8;
/// Exponent of a zero. It lies below all others, so that a zero never sets the alignment.
const NOTHING: i64 = -(1 << 40);

/// Sign, exponent field and significand with the hidden bit, which is 0 for a zero. Infinities are numbers, see
/// [`super::round`].
#[inline(always)]
fn unpack(v: u64) -> (u64, i64, u64) {
    let field = (v >> 52) & EXP_MAX;
    let significand = if field == 0 { 0 } else { (v & FRAC) | (1 << 52) };
    (v >> 63, field as i64, significand)
}

/// `v >> n` with the lost bits ORed into the last bit, for `n >= 0`.
#[inline(always)]
fn shift_sticky(v: u128, n: i64) -> u128 {
    let n = n.min(127) as u32;
    let kept = v >> n;
    kept | u128::from(kept << n != v)
}

/// Product of two significands without the omitted partial products (those of the low `omit <= 32` bits of both). If any of
/// them is non-zero, their stand-in `2^(2 * omit - 2)` is added.
#[inline(always)]
pub(crate) fn product(a: u64, b: u64, omit: u32) -> u128 {
    let mask = (1 << omit) - 1;
    let low = (a & mask) * (b & mask);
    let stand_in = if low == 0 { 0 } else { 1 << (2 * omit - 2) };
    u128::from(a) * u128::from(b) - u128::from(low) + stand_in
}

/// `+-p * 2^exp + z`, rounded once to `format` and normalised. `p < 2^126`, `negative` is 0 or 1, `z` is the bits of a
/// double.
#[inline(always)]
pub(crate) fn add_round(format: FloatFormat, negative: u64, p: u128, exp: i64, z: u64) -> u64 {
    // Both terms are brought to 126 bits, which leaves room for the sign and for the carry of the sum.
    let up = (p | 1).leading_zeros() - 2;
    let p_exp = if p == 0 { NOTHING } else { exp - i64::from(up) };
    let p = p << up;
    let (z_negative, z_field, z) = unpack(z);
    let z_exp = if z == 0 { NOTHING } else { z_field - 1023 - 52 - 73 };
    let z = u128::from(z) << 73;

    let top = p_exp.max(z_exp);
    let p = shift_sticky(p, top - p_exp) as i128;
    let z = shift_sticky(z, top - z_exp) as i128;
    let p = if negative != 0 { -p } else { p };
    let z = if z_negative != 0 { -z } else { z };
    let sum = p + z;

    let sign = u64::from(sum < 0);
    let mag = sum.unsigned_abs();
    let up = (mag | 1).leading_zeros();
    let mag = mag << up;
    // 64 bits with a sticky last bit are enough to round to at most 53.
    let mag = (mag >> 64) as u64 | u64::from(mag as u64 != 0);
    let field = top + 127 - i64::from(up) + i64::from(format.bias());
    finish(format, sign, mag, field, UNDERFLOW_AFTER_ROUNDING)
}

choosing_fusing_kernel! {
    /// `out = x * y + z` on rows of doubles. PEs of a MAB that are not `active` have the product 0; rows begin with the
    /// first PE of a MAB. `omit` is the number of low significand bits whose mutual products the multiplier omits (16 on
    /// MN-Core 2).
    pub fn d_fma(x: &[u64], y: &[u64], z: &[u64], neg: MauNeg, active: [bool; MAB_PES], omit: u32, out: &mut [u64]) = checked::<FUSED>;

    /// Both halves of a MAB one after the other: first [`d_fma`] of the `first` PEs, then [`d_fma`] of the others with that
    /// result as the addend. `x` and `y` are the factors of both.
    pub fn d_fma_both(x: &[u64], y: &[u64], z: &[u64], neg: MauNeg, first: [bool; MAB_PES], omit: u32, out: &mut [u64]) = both::<FUSED>;
}

fusing_kernel! {
    /// The second path, for blocks that are not certain.
    fn careful_both(x: &[u64], y: &[u64], z: &[u64], neg: MauNeg, first: [bool; MAB_PES], omit: u32, out: &mut [u64]) = small_blocks_of_both::<FUSED>;

    /// The second path, for blocks that are not certain.
    fn careful(x: &[u64], y: &[u64], z: &[u64], neg: MauNeg, kept: [u64; MAB_PES], omit: u32, out: &mut [u64]) = small_blocks::<FUSED>;
}

#[inline(always)]
fn checked<const FUSED: bool>(
    x: &[u64],
    y: &[u64],
    z: &[u64],
    neg: MauNeg,
    active: [bool; MAB_PES],
    omit: u32,
    out: &mut [u64],
) {
    let kept = active.map(|active| if active { u64::MAX } else { 0 });
    if !FUSED {
        return small_blocks::<FUSED>(x, y, z, neg, kept, omit, out);
    }
    let bound = error_bound(omit);
    let signs = [flip(neg.x, 64) ^ flip(neg.y, 64), flip(neg.z, 64)];
    let careful = |x: &[u64], y: &[u64], z: &[u64], out: &mut [u64]| careful(x, y, z, neg, kept, omit, out);
    match active {
        [true, true, false, false] => {
            return certain_rounding::half_of_doubles::<0>([x, y, z], signs, bound, out, careful);
        }
        [false, false, true, true] => {
            return certain_rounding::half_of_doubles::<2>([x, y, z], signs, bound, out, careful);
        }
        _ => {}
    }
    certain_rounding::doubles(
        [x, y, z],
        signs,
        // A group covers several MABs.
        std::array::from_fn(|lane| kept[lane % MAB_PES]),
        bound,
        out,
        careful,
        careful,
    );
}

#[inline(always)]
fn small_blocks<const FUSED: bool>(
    x: &[u64],
    y: &[u64],
    z: &[u64],
    neg: MauNeg,
    kept: [u64; MAB_PES],
    omit: u32,
    out: &mut [u64],
) {
    let exact = |x: &[u64], y: &[u64], z: &[u64], out: &mut [u64]| {
        let mut first = [0; BLOCK];
        // A PE that does not multiply must have the product 0, so its first factor is set to 0.
        for ((first, x), kept) in first.iter_mut().zip(x).zip(kept.iter().cycle()) {
            *first = x & kept;
        }
        rows(&first[..x.len()], y, z, neg, omit, out, |s, p, e, z| double(s, p, e, z));
    };
    let ((x, x_rest), (y, y_rest), (z, z_rest)) =
        (x.as_chunks::<BLOCK>(), y.as_chunks::<BLOCK>(), z.as_chunks::<BLOCK>());
    let (out, out_rest) = out.as_chunks_mut::<BLOCK>();
    for (((x, y), z), out) in x.iter().zip(y).zip(z).zip(out) {
        if !(FUSED && fast([x, y, z], neg, kept, omit, out)) {
            exact(x, y, z, out);
        }
    }
    if !out_rest.is_empty() {
        exact(x_rest, y_rest, z_rest, out_rest);
    }
}

/// A PE multiplies in one of the two steps. The other step only normalises its addend or its result, which does not change
/// a number. So both steps are one multiply-add.
#[inline(always)]
fn both<const FUSED: bool>(
    x: &[u64],
    y: &[u64],
    z: &[u64],
    neg: MauNeg,
    first: [bool; MAB_PES],
    omit: u32,
    out: &mut [u64],
) {
    if !FUSED {
        return small_blocks_of_both::<FUSED>(x, y, z, neg, first, omit, out);
    }
    let signs = [flip(neg.x, 64) ^ flip(neg.y, 64), flip(neg.z, 64)];
    let careful = |x: &[u64], y: &[u64], z: &[u64], out: &mut [u64]| careful_both(x, y, z, neg, first, omit, out);
    certain_rounding::doubles([x, y, z], signs, [u64::MAX; _], error_bound(omit), out, careful, careful);
}

#[inline(always)]
fn small_blocks_of_both<const FUSED: bool>(
    x: &[u64],
    y: &[u64],
    z: &[u64],
    neg: MauNeg,
    first: [bool; MAB_PES],
    omit: u32,
    out: &mut [u64],
) {
    let exact = |x: &[u64], y: &[u64], z: &[u64], out: &mut [u64]| {
        // On PEs that do not multiply in the first step, that step clears the fraction of an infinite addend.
        let mut normal = [0; BLOCK];
        for ((normal, z), multiplies) in normal.iter_mut().zip(z).zip(first.iter().cycle()) {
            let infinity = (z >> 52) & EXP_MAX == EXP_MAX && !multiplies;
            *normal = if infinity { z & !FRAC } else { *z };
        }
        rows(x, y, &normal[..x.len()], neg, omit, out, |s, p, e, z| double(s, p, e, z));
    };
    let ((x, x_rest), (y, y_rest), (z, z_rest)) =
        (x.as_chunks::<BLOCK>(), y.as_chunks::<BLOCK>(), z.as_chunks::<BLOCK>());
    let (out, out_rest) = out.as_chunks_mut::<BLOCK>();
    for (((x, y), z), out) in x.iter().zip(y).zip(z).zip(out) {
        if !(FUSED && fast([x, y, z], neg, [u64::MAX; MAB_PES], omit, out)) {
            exact(x, y, z, out);
        }
    }
    if !out_rest.is_empty() {
        exact(x_rest, y_rest, z_rest, out_rest);
    }
}

choosing_kernel! {
    /// `out = x + z` on rows of doubles.
    pub fn d_add(x: &[u64], z: &[u64], neg: MauNeg, out: &mut [u64]) {
        let ones = [1f64.to_bits(); SUMS];
        let ((x, x_rest), (z, z_rest)) = (x.as_chunks::<SUMS>(), z.as_chunks::<SUMS>());
        let (out, out_rest) = out.as_chunks_mut::<SUMS>();
        for ((x, z), out) in x.iter().zip(z).zip(out) {
            if !sum(x, z, neg, out) {
                rows(x, &ones, z, neg, 0, out, |s, p, e, z| double(s, p, e, z));
            }
        }
        if !out_rest.is_empty() {
            rows(x_rest, &ones[..x_rest.len()], z_rest, neg, 0, out_rest, |s, p, e, z| double(s, p, e, z));
        }
    }

    /// Computes [`d_fma`], rounded once to 1 single in w0 (top 32 bits), the rest 0.
    pub fn d_fma_r(x: &[u64], y: &[u64], z: &[u64], neg: MauNeg, omit: u32, out: &mut [u64]) {
        rows(x, y, z, neg, omit, out, |s, p, e, z| add_round(FloatFormat::SINGLE, s, p, e, z) << 32);
    }
}

#[inline(always)]
fn double(negative: u64, product: u128, exp: i64, z: u64) -> u64 {
    add_round(FloatFormat::DOUBLE, negative, product, exp, z)
}

/// A bound above the relative error of the multiplier. The stand-in and the largest low product both lie below
/// `2^(2 * omit)` in units of `2^-104` of the hidden bits' product. 0 if nothing is omitted.
#[inline(always)]
fn error_bound(omit: u32) -> f64 {
    if omit == 0 {
        0.0
    } else {
        f64::from_bits(u64::from(1023 - 104 + 2 * omit + 1) << 52)
    }
}

/// The host's double, with exponent field 0 read as 0.
#[inline(always)]
fn flushed(bits: u64) -> f64 {
    let v = f64::from_bits(bits);
    if v.abs() < f64::MIN_POSITIVE {
        0.0
    } else {
        v
    }
}

/// Doubles side by side.
type Group = [u64; GROUP];

/// The fast path on one block. Returns false if some lane needs the exact one. `kept` are the bits of x that take part.
/// Calls the host's fused multiply-add.
#[inline(always)]
fn fast([x, y, z]: [&[u64; BLOCK]; 3], neg: MauNeg, kept: [u64; MAB_PES], omit: u32, out: &mut [u64; BLOCK]) -> bool {
    let signs = [flip(neg.x, 64) ^ flip(neg.y, 64), flip(neg.z, 64)];
    let kept = std::array::from_fn(|lane| kept[lane % MAB_PES]);
    let [(x, _), (y, _), (z, _)] = [x, y, z].map(|row| row.as_chunks());
    let mut apart = [0.0; GROUP];
    for (((x, y), z), out) in x.iter().zip(y).zip(z).zip(out.as_chunks_mut().0) {
        let (sums, widths) = sums_of_group([*x, *y, *z], signs, kept, omit);
        for i in 0..GROUP {
            apart[i] += widths[i];
        }
        *out = sums;
    }
    apart.iter().all(|d| *d == 0.0)
}

/// The upper bound of each lane, and its distance from the lower bound.
#[inline(always)]
fn sums_of_group([x, y, z]: [Group; 3], signs: [u64; 2], kept: Group, omit: u32) -> (Group, [f64; GROUP]) {
    let low_bits = (1u64 << omit) - 1;
    // The unit is that of the last places of both factors, at their exponents.
    let unit = f64::from_bits((1023 - 104) << 52);
    let stand_in = if omit == 0 { 0.0 } else { f64::from_bits(u64::from(1023 - 104 + 2 * omit - 2) << 52) };
    // Covers the rounding errors of the low part and of its bounds.
    let rounding = f64::EPSILON * 2.0;
    // The low part of a product of at least this size is exact.
    let least = f64::from_bits((1023 - 900) << 52);
    let (mut sums, mut widths) = ([0; GROUP], [0.0; GROUP]);
    for i in 0..GROUP {
        let (x, y) = (x[i] & kept[i], y[i]);
        let (a, b, c) = (flushed(x ^ signs[0]), flushed(y), flushed(z[i] ^ signs[1]));
        // x*y + z is exactly high + (product_low + sum_low).
        let product = a * b;
        let product_low = a.mul_add(b, -product);
        let high = product + c;
        let t = high - product;
        let sum_low = (product - (high - t)) + (c - t);
        // The omitted part has at most half as many bits as a significand, so this is exact too.
        let omitted = integer(u64::from((x & low_bits) as u32) * u64::from((y & low_bits) as u32));
        let put_in = if omitted == 0.0 { 0.0 } else { stand_in - omitted * unit };
        let product_low = product_low + put_in * (power(a) * power(b));
        let low = product_low + sum_low;
        // The low part of a tiny product is not exact.
        let size = if (a == 0.0) | (b == 0.0) { f64::INFINITY } else { product.abs() };
        let tiny = if size < least { f64::INFINITY } else { 0.0 };
        // If no term is rounded away, the host's sum is the machine's, even halfway between two numbers.
        let rounded = if sum_low == 0.0 { 0.0 } else { product_low };
        let rounded = if put_in == 0.0 { rounded } else { 1.0 };
        let error = if rounded == 0.0 { tiny } else { (product_low.abs() + low.abs()).mul_add(rounding, tiny) };
        let (least_sum, most_sum) = (high + (low - error), high + (low + error));
        // Infinities turn the low part into NaN.
        widths[i] = most_sum - least_sum;
        // Adding 0 turns -0 into +0.
        sums[i] = (most_sum + 0.0).to_bits();
    }
    (sums, widths)
}

/// An integer below `2^52` as a double, computed with vector instructions.
#[inline(always)]
fn integer(v: u64) -> f64 {
    let ones = 1u64 << 52;
    f64::from_bits((1023 + 52) << 52 | v) - ones as f64
}

/// A number with its fraction cleared: sign and power of two.
#[inline(always)]
fn power(v: f64) -> f64 {
    f64::from_bits(v.to_bits() & !FRAC)
}

/// Computes the sum of one block as the host rounds it, which is as the machine does. Returns false if some lane needs the
/// exact path.
#[inline(always)]
fn sum(x: &[u64; SUMS], z: &[u64; SUMS], neg: MauNeg, out: &mut [u64; SUMS]) -> bool {
    let (nx, nz) = (flip(neg.x, 64) ^ flip(neg.y, 64), flip(neg.z, 64));
    let ((x, _), (z, _)) = (x.as_chunks::<GROUP>(), z.as_chunks::<GROUP>());
    // Sums below this are doubtful: the machine flushes small numbers to zero, as inputs and as sums.
    let least = f64::from_bits((1023 - 900) << 52);
    let mut doubtful = [0.0; GROUP];
    for ((x, z), out) in x.iter().zip(z).zip(out.as_chunks_mut::<GROUP>().0) {
        // Copies, so that nothing is stored before all is read.
        let (x, z, mut sums) = (*x, *z, [0; GROUP]);
        for i in 0..GROUP {
            let sum = f64::from_bits(x[i] ^ nx) + f64::from_bits(z[i] ^ nz);
            let size = if sum == 0.0 { f64::INFINITY } else { sum.abs() };
            let small = if size < least { f64::INFINITY } else { 0.0 };
            // This is NaN if the sum is infinite. An infinity is a number to the machine.
            doubtful[i] += sum * 0.0 + small;
            // Adding 0 turns -0 into +0.
            sums[i] = (sum + 0.0).to_bits();
        }
        *out = sums;
    }
    doubtful.iter().all(|d| *d == 0.0)
}

#[inline(always)]
fn rows(
    x: &[u64],
    y: &[u64],
    z: &[u64],
    neg: MauNeg,
    omit: u32,
    out: &mut [u64],
    finish: impl Fn(u64, u128, i64, u64) -> u64,
) {
    let (nx, ny, nz) = (flip(neg.x, 64), flip(neg.y, 64), flip(neg.z, 64));
    for (((o, &x), &y), &z) in out.iter_mut().zip(x).zip(y).zip(z) {
        let (sx, ex, mx) = unpack(x ^ nx);
        let (sy, ey, my) = unpack(y ^ ny);
        let exp = ex + ey - 2 * (1023 + 52);
        *o = finish(sx ^ sy, product(mx, my, omit), exp, z ^ nz);
    }
}

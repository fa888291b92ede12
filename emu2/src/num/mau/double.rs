//! Double precision vector multiply-add with the approximate multiplier, in 128-bit integers.
//!
//! A sum is formed at fixed width with a sticky bit: the operand with the larger exponent keeps all its bits, the other
//! one is shifted right and what leaves is remembered in the last bit.

use super::{finish, flip, MauNeg, UNDERFLOW_AFTER_ROUNDING};
use crate::num::format::FloatFormat;

const FRAC: u64 = (1 << 52) - 1;
const EXP_MAX: u64 = 2047;
/// Exponent of a zero: below everything, so that a zero never sets the alignment.
const NOTHING: i64 = -(1 << 40);

/// Sign, exponent field and significand with the hidden bit, which is 0 for a zero. Infinities are numbers, see [`super::round`].
#[inline(always)]
fn unpack(v: u64) -> (u64, i64, u64) {
    let field = (v >> 52) & EXP_MAX;
    let significand = if field == 0 { 0 } else { (v & FRAC) | (1 << 52) };
    (v >> 63, field as i64, significand)
}

/// `v >> n` with the bits that leave ORed into the last one; `n >= 0`.
#[inline(always)]
fn shift_sticky(v: u128, n: i64) -> u128 {
    let n = n.min(127) as u32;
    let kept = v >> n;
    kept | u128::from(kept << n != v)
}

/// Product of two significands less the omitted partial products (those of the low `omit <= 32` bits of both), whose
/// stand-in is `2^(2 * omit - 2)` if any of them is non-zero.
#[inline(always)]
pub(crate) fn product(a: u64, b: u64, omit: u32) -> u128 {
    let mask = (1 << omit) - 1;
    let low = (a & mask) * (b & mask);
    let stand_in = if low == 0 { 0 } else { 1 << (2 * omit - 2) };
    u128::from(a) * u128::from(b) - u128::from(low) + stand_in
}

/// `+-p * 2^exp + z`, rounded once to `format` and normalised. `p < 2^126`, `negative` is 0 or 1, `z` the
/// bits of a double.
#[inline(always)]
pub(crate) fn add_round(format: FloatFormat, negative: u64, p: u128, exp: i64, z: u64) -> u64 {
    // Both terms are brought to 126 bits: below the sign, and with room for the carry of the sum.
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
    // 64 bits with a sticky last one are enough to round to at most 53.
    let mag = (mag >> 64) as u64 | u64::from(mag as u64 != 0);
    let field = top + 127 - i64::from(up) + i64::from(format.bias());
    finish(format, sign, mag, field, UNDERFLOW_AFTER_ROUNDING)
}

/// `out = x * y + z` on rows of doubles. `omit` is the number of low significand bits whose mutual products the multiplier
/// omits (16 on MN-Core 2).
pub fn d_fma(x: &[u64], y: &[u64], z: &[u64], neg: MauNeg, omit: u32, out: &mut [u64]) {
    rows(x, y, z, neg, omit, out, |s, p, e, z| add_round(FloatFormat::DOUBLE, s, p, e, z));
}

/// As [`d_fma`], rounded once to 1 single in w0 (top 32 bits), the rest 0.
pub fn d_fma_r(x: &[u64], y: &[u64], z: &[u64], neg: MauNeg, omit: u32, out: &mut [u64]) {
    rows(x, y, z, neg, omit, out, |s, p, e, z| add_round(FloatFormat::SINGLE, s, p, e, z) << 32);
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

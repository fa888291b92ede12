//! Single precision vector multiply-add with the approximate multiplier.
//!
//! There are three paths, from fast to exact:
//!
//! 1. [`certain_rounding`](super::certain_rounding) computes whole blocks and says which roundings are certain. It needs a
//!    fused multiply-add of the host.
//! 2. The others are computed in smaller blocks, with zeros as the machine has them. Product and sum are exact, as pairs of
//!    singles or in doubles. The sum less a bound and the sum plus the bound are rounded; if both give the same single,
//!    neither the omitted partial products nor the rounding of the sum can have changed it.
//! 3. If that fails in some lane, or if a lane leaves the common range of host and machine, the block takes the exact path.

// A function item as an argument would be a separate call that is compiled for no level.
#![allow(clippy::redundant_closure)]

use super::{add_odd, certain_rounding, flip, round_to, round_to_single, single_to_f64, MauNeg};
use crate::num::clone_choice::{choosing_fusing_kernel, choosing_kernel};
use crate::num::level::{fusing_kernel, kernel};

/// Number of long words that take the exact path together.
const BLOCK: usize = 16;

/// `a * b` of the approximate multiplier. Partial products of the low `omit` bits of both significands are not formed. If
/// any of them would have been non-zero, `2^(2 * omit - 2)` in units of the last place of the product stands in.
///
/// Everything is exact: the product is an integer below 2^48 in those units.
#[inline(always)]
pub(crate) fn product(a: f64, b: f64, omit: u32) -> f64 {
    let top = u64::MAX << (29 + omit);
    let low_a = a - f64::from_bits(a.to_bits() & top);
    let low_b = b - f64::from_bits(b.to_bits() & top);
    let low = low_a * low_b;
    let exponents = 0xFFF << 52;
    let unit = f64::from_bits(a.to_bits() & exponents) * f64::from_bits(b.to_bits() & exponents);
    // 2^-46 is the unit of the last place if the hidden bits have weight 1.
    let scale = f64::from_bits(u64::from(1023 - 46 + 2 * omit - 2) << 52);
    let stand_in = if low == 0.0 { 0.0 } else { unit * scale };
    a * b - low + stand_in
}

choosing_fusing_kernel! {
    /// `out = x * y + z` on rows of 2 singles. `omit` is the number of low significand bits whose mutual products the
    /// multiplier omits (5 on MN-Core 2).
    pub fn f_fma(x: &[u64], y: &[u64], z: &[u64], neg: MauNeg, omit: u32, out: &mut [u64]) = checked::<FUSED>;
}

fusing_kernel! {
    /// The second path, for blocks that are not certain.
    fn careful(x: &[u64], y: &[u64], z: &[u64], neg: MauNeg, omit: u32, out: &mut [u64]) = small_blocks::<FUSED>;
}

#[inline(always)]
fn checked<const FUSED: bool>(x: &[u64], y: &[u64], z: &[u64], neg: MauNeg, omit: u32, out: &mut [u64]) {
    if !FUSED {
        return small_blocks::<FUSED>(x, y, z, neg, omit, out);
    }
    let bound = error_bound(omit) as f32;
    let signs = [(flip(neg.x, 32) ^ flip(neg.y, 32)) as u32, flip(neg.z, 32) as u32];
    certain_rounding::singles(
        [x, y, z],
        signs,
        [u32::MAX; _],
        bound,
        out,
        |x, y, z, out| careful(x, y, z, neg, omit, out),
        |x, y, z, out| exact(x, y, z, neg, omit, out),
    );
}

#[inline(always)]
fn small_blocks<const FUSED: bool>(x: &[u64], y: &[u64], z: &[u64], neg: MauNeg, omit: u32, out: &mut [u64]) {
    let bound = error_bound(omit);
    let blocks = x.chunks(BLOCK).zip(y.chunks(BLOCK)).zip(z.chunks(BLOCK)).zip(out.chunks_mut(BLOCK));
    for (((x, y), z), out) in blocks {
        let certain = if FUSED { pairs(x, y, z, neg, bound as f32, out) } else { fast(x, y, z, neg, bound, out) };
        if !certain {
            rows(x, y, z, neg, omit, out, |hi, lo| two_singles(hi, lo));
        }
    }
}

kernel! {
    /// The exact path.
    fn exact(x: &[u64], y: &[u64], z: &[u64], neg: MauNeg, omit: u32, out: &mut [u64]) {
        rows(x, y, z, neg, omit, out, |hi, lo| two_singles(hi, lo));
    }
}

choosing_kernel! {
    /// `out = x + z` on rows of 2 singles.
    pub fn f_add(x: &[u64], z: &[u64], neg: MauNeg, out: &mut [u64]) {
        let blocks = x.chunks(BLOCK).zip(z.chunks(BLOCK)).zip(out.chunks_mut(BLOCK));
        for ((x, z), out) in blocks {
            if !sum(x, z, neg, out) {
                rows(x, &[ONES; BLOCK][..x.len()], z, neg, 0, out, |hi, lo| two_singles(hi, lo));
            }
        }
    }

    /// Computes [`f_fma`], rounded once to 2 halves in w0 (top 32 bits), the rest 0.
    pub fn f_fma_r(x: &[u64], y: &[u64], z: &[u64], neg: MauNeg, omit: u32, out: &mut [u64]) {
        rows(x, y, z, neg, omit, out, |hi, lo| (round_to::<6, 9>(hi) << 48) | (round_to::<6, 9>(lo) << 32));
    }
}

/// 1.0 in both lanes.
const ONES: u64 = 0x3F80_0000_3F80_0000;

#[inline(always)]
fn two_singles(hi: u64, lo: u64) -> u64 {
    (round_to_single(hi) << 32) | round_to_single(lo)
}

/// A bound above the relative error of the multiplier. In units of `2^-46` of the hidden bits' product, the stand-in is
/// `2^(2 * omit - 2)` and the largest low product is `(2^omit - 1)^2`, so the bound `2^(2 * omit)` covers its own rounding
/// too. 0 if nothing is omitted.
#[inline(always)]
fn error_bound(omit: u32) -> f64 {
    if omit == 0 {
        0.0
    } else {
        f64::from_bits(u64::from(1023 - 46 + 2 * omit) << 52)
    }
}

/// The host's single, with exponent field 0 read as 0.
#[inline(always)]
pub(crate) fn flushed(bits: u32) -> f32 {
    let v = f32::from_bits(bits);
    if v.abs() < f32::MIN_POSITIVE {
        0.0
    } else {
        v
    }
}

/// The fast path on one block in singles. Returns false if some lane needs the exact one. Calls the host's fused
/// multiply-add.
#[inline(always)]
fn pairs(x: &[u64], y: &[u64], z: &[u64], neg: MauNeg, bound: f32, out: &mut [u64]) -> bool {
    let (nx, ny, nz) = (flip(neg.x, 32) as u32, flip(neg.y, 32) as u32, flip(neg.z, 32) as u32);
    let [x, y, z]: [&[u32]; 3] = [bytemuck::cast_slice(x), bytemuck::cast_slice(y), bytemuck::cast_slice(z)];
    let out: &mut [u32] = bytemuck::cast_slice_mut(out);
    // Covers the rounding errors of the low part and of its bounds.
    let rounding = f32::EPSILON * 2.0;
    // The low part of a product of at least this size is exact.
    let least = f32::from_bits((127 - 100) << 23);
    let mut doubtful = 0;
    for (((o, &x), &y), &z) in out.iter_mut().zip(x).zip(y).zip(z) {
        let (a, b, c) = (flushed(x ^ nx), flushed(y ^ ny), flushed(z ^ nz));
        // x*y + z is exactly high + (product_low + sum_low).
        let product = a * b;
        let product_low = a.mul_add(b, -product);
        let high = product + c;
        let t = high - product;
        let sum_low = (product - (high - t)) + (c - t);
        let low = product_low + sum_low;
        let error = product.abs().mul_add(bound, low.abs() * rounding);
        let (least_sum, most_sum) = (high + (low - error), high + (low + error));
        // Infinities turn the low part into NaN, which is not equal to itself.
        let tiny = u32::from(product.abs() < least) & u32::from(product != 0.0);
        let flushes = u32::from(most_sum.abs() <= f32::MIN_POSITIVE) & u32::from(most_sum != 0.0);
        doubtful |= u32::from(least_sum != most_sum) | tiny | flushes;
        // Adding 0 turns -0 into +0.
        *o = (most_sum + 0.0).to_bits();
    }
    doubtful == 0
}

/// The fast path on one block in doubles. Returns false if some lane needs the exact one.
#[inline(always)]
fn fast(x: &[u64], y: &[u64], z: &[u64], neg: MauNeg, bound: f64, out: &mut [u64]) -> bool {
    let (nx, ny, nz) = (flip(neg.x, 32) as u32, flip(neg.y, 32) as u32, flip(neg.z, 32) as u32);
    let [x, y, z]: [&[u32]; 3] = [x, y, z].map(bytemuck::cast_slice);
    let out: &mut [u32] = bytemuck::cast_slice_mut(out);
    // Covers the rounding errors of the sum and of its bounds.
    let rounding = f64::EPSILON * 2.0;
    let mut doubtful = 0;
    for (((o, &x), &y), &z) in out.iter_mut().zip(x).zip(y).zip(z) {
        let (a, b, c) = (f64::from(flushed(x ^ nx)), f64::from(flushed(y ^ ny)), f64::from(flushed(z ^ nz)));
        let product = a * b;
        let sum = product + c;
        let error = product.abs() * bound + sum.abs() * rounding;
        let (low, high) = ((sum - error) as f32, (sum + error) as f32);
        // If infinities take part, the bounds are NaN and therefore not equal.
        let least = u32::from(high.abs() <= f32::MIN_POSITIVE) & u32::from(high != 0.0);
        doubtful |= u32::from(low != high) | least;
        // Adding 0 turns -0 into +0.
        *o = (high + 0.0).to_bits();
    }
    doubtful == 0
}

/// Computes the sum of one block as the host rounds it, which is as the machine does. Returns false if some lane needs the
/// exact path.
#[inline(always)]
fn sum(x: &[u64], z: &[u64], neg: MauNeg, out: &mut [u64]) -> bool {
    let (nx, nz) = ((flip(neg.x, 32) ^ flip(neg.y, 32)) as u32, flip(neg.z, 32) as u32);
    let [x, z]: [&[u32]; 2] = [x, z].map(bytemuck::cast_slice);
    let out: &mut [u32] = bytemuck::cast_slice_mut(out);
    let mut doubtful = 0;
    for ((o, &x), &z) in out.iter_mut().zip(x).zip(z) {
        let sum = flushed(x ^ nx) + flushed(z ^ nz);
        // Infinities are numbers to the machine.
        doubtful |= u32::from(!sum.is_finite());
        // A sum below the normal numbers is exact, and flushed to zero. Adding 0 turns -0 into +0.
        let sum = if sum.abs() < f32::MIN_POSITIVE { 0.0 } else { sum };
        *o = (sum + 0.0).to_bits();
    }
    doubtful == 0
}

#[inline(always)]
fn rows(x: &[u64], y: &[u64], z: &[u64], neg: MauNeg, omit: u32, out: &mut [u64], pack: impl Fn(u64, u64) -> u64) {
    let (nx, ny, nz) = (flip(neg.x, 32), flip(neg.y, 32), flip(neg.z, 32));
    for (((o, &x), &y), &z) in out.iter_mut().zip(x).zip(y).zip(z) {
        let (x, y, z) = (x ^ nx, y ^ ny, z ^ nz);
        let lane = |shift: u32| {
            let value = |v: u64| single_to_f64((v >> shift) & 0xFFFF_FFFF);
            add_odd(product(value(x), value(y), omit), value(z))
        };
        *o = pack(lane(32), lane(0));
    }
}

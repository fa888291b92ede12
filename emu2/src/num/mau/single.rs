//! Single precision vector multiply-add with the approximate multiplier.

use super::{add_odd, flip, round_to, round_to_single, single_to_f64, MauNeg};

/// `a * b` of the approximate multiplier: partial products of the low `omit` bits of both significands are not formed; if
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
    // 2^-46 is the unit of the last place next to hidden bits of weight 1.
    let scale = f64::from_bits(u64::from(1023 - 46 + 2 * omit - 2) << 52);
    let stand_in = if low == 0.0 { 0.0 } else { unit * scale };
    a * b - low + stand_in
}

/// `out = x * y + z` on rows of 2 singles. `omit` is the number of low significand bits whose mutual products the
/// multiplier omits (5 on MN-Core 2).
pub fn f_fma(x: &[u64], y: &[u64], z: &[u64], neg: MauNeg, omit: u32, out: &mut [u64]) {
    rows(x, y, z, neg, omit, out, |hi, lo| (round_to_single(hi) << 32) | round_to_single(lo));
}

/// As [`f_fma`], rounded once to 2 halves in w0 (top 32 bits), the rest 0.
pub fn f_fma_r(x: &[u64], y: &[u64], z: &[u64], neg: MauNeg, omit: u32, out: &mut [u64]) {
    rows(x, y, z, neg, omit, out, |hi, lo| (round_to::<6, 9>(hi) << 48) | (round_to::<6, 9>(lo) << 32));
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

//! Half precision vector multiply-add: halves times halves plus singles, exact products.

use super::{add_odd, flip, half_to_f64, round_to, round_to_single, single_to_f64, MauNeg};

/// `out = x * y + z`: `x`, `y` are rows of 4 halves; addend and output are 4 singles in two rows (L0, L1).
pub fn h_fma(x: &[u64], y: &[u64], z0: &[u64], z1: &[u64], neg: MauNeg, out0: &mut [u64], out1: &mut [u64]) {
    let (nx, ny, nz) = (flip(neg.x, 16), flip(neg.y, 16), flip(neg.z, 32));
    let single = round_to_single;
    for (((((o0, o1), &x), &y), &z0), &z1) in out0.iter_mut().zip(out1).zip(x).zip(y).zip(z0).zip(z1) {
        let s = sums(x ^ nx, y ^ ny, z0 ^ nz, z1 ^ nz);
        *o0 = (single(s[0]) << 32) | single(s[1]);
        *o1 = (single(s[2]) << 32) | single(s[3]);
    }
}

/// As [`h_fma`], rounded once to a row of 4 halves.
pub fn h_fma_r(x: &[u64], y: &[u64], z0: &[u64], z1: &[u64], neg: MauNeg, out: &mut [u64]) {
    let (nx, ny, nz) = (flip(neg.x, 16), flip(neg.y, 16), flip(neg.z, 32));
    let half = round_to::<6, 9>;
    for ((((o, &x), &y), &z0), &z1) in out.iter_mut().zip(x).zip(y).zip(z0).zip(z1) {
        let s = sums(x ^ nx, y ^ ny, z0 ^ nz, z1 ^ nz);
        *o = (half(s[0]) << 48) | (half(s[1]) << 32) | (half(s[2]) << 16) | half(s[3]);
    }
}

/// The four sums of one PE as doubles rounded to odd, lane 0 first.
#[inline(always)]
fn sums(x: u64, y: u64, z0: u64, z1: u64) -> [u64; 4] {
    let lane = |shift: u32, z: u64| {
        let value = |v: u64| half_to_f64((v >> shift) & 0xFFFF);
        add_odd(value(x) * value(y), single_to_f64(z))
    };
    [lane(48, z0 >> 32), lane(32, z0 & 0xFFFF_FFFF), lane(16, z1 >> 32), lane(0, z1 & 0xFFFF_FFFF)]
}

//! Half precision vector multiply-add: halves times halves plus singles, exact products.
//!
//! A product of halves is an exact single, so the host's single addition rounds the sum as the machine does.

use super::single::flushed;
use super::{add_odd, flip, half_to_f64, round_to, round_to_single, single_to_f64, MauNeg};
use crate::num::clone_choice::choosing_kernel;
use crate::num::level::kernel;

/// Long words of a block. A block takes the careful path as a whole.
const BLOCK: usize = 32;

type Block = [u64; BLOCK];

choosing_kernel! {
    /// `out = x * y + z`: `x`, `y` are rows of 4 halves; addend and output are 4 singles in two rows (L0, L1).
    pub fn h_fma(x: &[u64], y: &[u64], z0: &[u64], z1: &[u64], neg: MauNeg, out0: &mut [u64], out1: &mut [u64]) {
        let signs = [flip(neg.x, 16) ^ flip(neg.y, 16), flip(neg.z, 32)];
        let blocks = x.chunks(BLOCK).zip(y.chunks(BLOCK)).zip(z0.chunks(BLOCK)).zip(z1.chunks(BLOCK));
        let outs = out0.chunks_mut(BLOCK).zip(out1.chunks_mut(BLOCK));
        for ((((x, y), z0), z1), (out0, out1)) in blocks.zip(outs) {
            let whole = (x.try_into(), y.try_into(), z0.try_into(), z1.try_into());
            let certain = match whole {
                (Ok(x), Ok(y), Ok(z0), Ok(z1)) if ordinary(x) & ordinary(y) => {
                    sums_of::<true>(x, y, z0, signs, out0) & sums_of::<false>(x, y, z1, signs, out1)
                }
                _ => false,
            };
            if !certain {
                careful(x, y, z0, z1, neg, out0, out1);
            }
        }
    }

    /// Computes [`h_fma`], rounded once to a row of 4 halves.
    pub fn h_fma_r(x: &[u64], y: &[u64], z0: &[u64], z1: &[u64], neg: MauNeg, out: &mut [u64]) {
        let (nx, ny, nz) = (flip(neg.x, 16), flip(neg.y, 16), flip(neg.z, 32));
        let half = round_to::<6, 9>;
        for ((((o, &x), &y), &z0), &z1) in out.iter_mut().zip(x).zip(y).zip(z0).zip(z1) {
            let s = sums(x ^ nx, y ^ ny, z0 ^ nz, z1 ^ nz);
            *o = (half(s[0]) << 48) | (half(s[1]) << 32) | (half(s[2]) << 16) | half(s[3]);
        }
    }
}

kernel! {
    /// The careful path, for blocks that are not certain.
    fn careful(x: &[u64], y: &[u64], z0: &[u64], z1: &[u64], neg: MauNeg, out0: &mut [u64], out1: &mut [u64]) {
        let upper = |v: u64| (v & 0xFFFF_0000_0000_0000) >> 16 | (v & 0x0000_FFFF_0000_0000) >> 32;
        let lower = |v: u64| (v & 0xFFFF_0000) << 16 | v & 0xFFFF;
        let certain = fast(x, y, z0, neg, upper, out0) & fast(x, y, z1, neg, lower, out1);
        if !certain {
            rows(x, y, z0, z1, neg, out0, out1);
        }
    }
}

/// Whether no half has exponent field 0 and a fraction other than 0. Only then do the fields give its value.
#[inline(always)]
fn ordinary(x: &Block) -> bool {
    let halves: &[u16; 4 * BLOCK] = bytemuck::cast_ref(x);
    // Here 0 wraps to the largest number.
    let sizes = halves.iter().map(|v| (v & 0x7FFF).wrapping_sub(1));
    sizes.fold(u16::MAX, |least, size| least.min(size)) >= 0x1FF
}

/// The sums of the upper or lower two ordinary lanes of each long word. `signs` are flipped in x and z. Returns false if
/// some sum is past the largest single or has an infinity among its terms.
#[inline(always)]
fn sums_of<const UPPER: bool>(x: &Block, y: &Block, z: &[u64; BLOCK], signs: [u64; 2], out: &mut [u64]) -> bool {
    let (mut a, mut b) = ([0; BLOCK], [0; BLOCK]);
    for i in 0..BLOCK {
        a[i] = tops::<UPPER>(x[i] ^ signs[0]);
        b[i] = tops::<UPPER>(y[i]);
    }
    let a: &[u32; 2 * BLOCK] = bytemuck::cast_ref(&a);
    let b: &[u32; 2 * BLOCK] = bytemuck::cast_ref(&b);
    let z: &[u32; 2 * BLOCK] = bytemuck::cast_ref(z);
    let mut sums = [0u32; 2 * BLOCK];
    let mut most = 0;
    for i in 0..2 * BLOCK {
        let sum = ordinary_half(a[i]) * ordinary_half(b[i]) + flushed(z[i] ^ signs[1] as u32);
        // Adding 0 turns -0 into +0.
        sums[i] = (sum + 0.0).to_bits();
        most = most.max(sums[i] & 0x7FFF_FFFF);
    }
    // The alignment always fits in this direction.
    bytemuck::cast_slice_mut::<u64, u32>(out).copy_from_slice(&sums);
    most < f32::INFINITY.to_bits()
}

/// Two lanes of a long word at the upper ends of its words.
#[inline(always)]
fn tops<const UPPER: bool>(v: u64) -> u64 {
    if UPPER {
        v & 0xFFFF_0000_0000_0000 | v >> 16 & 0xFFFF_0000
    } else {
        v << 32 & 0xFFFF_0000_0000_0000 | v << 16 & 0xFFFF_0000
    }
}

/// An ordinary half in the upper 16 bits, as a single with the same fields. The exponent of that single counts from 96
/// less.
#[inline(always)]
fn ordinary_half(bits: u32) -> f32 {
    const SCALE: f32 = f32::from_bits((127 + 96) << 23);
    f32::from_bits((bits as i32 >> 2) as u32 & 0x9FFF_FFFF) * SCALE
}

/// A half in the low 16 bits, as a single. Exponent field all ones is a number, too.
#[inline(always)]
fn half_to_single(bits: u32) -> f32 {
    let mag = bits & 0x7FFF;
    // Bias 127 - 31, and 14 more fraction bits.
    let wide = (mag << 14) + (96 << 23);
    let wide = if mag < 1 << 9 { 0 } else { wide };
    f32::from_bits(wide | (bits & 0x8000) << 16)
}

/// Computes two lanes of a block. `pair` brings their halves to the low ends of a long word's words. Returns false if some
/// lane needs the exact path, because its addend is infinite or its sum is past the largest single.
#[inline(always)]
fn fast(x: &[u64], y: &[u64], z: &[u64], neg: MauNeg, pair: impl Fn(u64) -> u64, out: &mut [u64]) -> bool {
    let (nx, nz) = ((flip(neg.x, 16) ^ flip(neg.y, 16)) as u32, flip(neg.z, 32) as u32);
    let (mut a, mut b) = ([0; BLOCK], [0; BLOCK]);
    for (((a, b), &x), &y) in a.iter_mut().zip(&mut b).zip(x).zip(y) {
        (*a, *b) = (pair(x), pair(y));
    }
    let [a, b, z]: [&[u32]; 3] = [&a, &b, z].map(bytemuck::cast_slice);
    let out: &mut [u32] = bytemuck::cast_slice_mut(out);
    let mut doubtful = 0;
    for (((o, &a), &b), &z) in out.iter_mut().zip(a).zip(b).zip(z) {
        let sum = half_to_single(a ^ nx & 0x8000) * half_to_single(b) + flushed(z ^ nz);
        doubtful |= u32::from(!sum.is_finite());
        // The smallest product is far above the smallest single. Adding 0 turns -0 into +0.
        *o = (sum + 0.0).to_bits();
    }
    doubtful == 0
}

/// The exact path.
#[inline(always)]
fn rows(x: &[u64], y: &[u64], z0: &[u64], z1: &[u64], neg: MauNeg, out0: &mut [u64], out1: &mut [u64]) {
    let (nx, ny, nz) = (flip(neg.x, 16), flip(neg.y, 16), flip(neg.z, 32));
    let single = round_to_single;
    for (((((o0, o1), &x), &y), &z0), &z1) in out0.iter_mut().zip(out1).zip(x).zip(y).zip(z0).zip(z1) {
        let s = sums(x ^ nx, y ^ ny, z0 ^ nz, z1 ^ nz);
        *o0 = (single(s[0]) << 32) | single(s[1]);
        *o1 = (single(s[2]) << 32) | single(s[3]);
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

//! What the host can do, to measure the engine against: loops with as little around them as possible, compiled for the
//! same [level](crate::num::level) as the kernels. Rows are those of the engine, `&[u64]`.

use crate::num::level::{fusing_kernel, kernel};

kernel! {
    /// `out = x + y` on 64-bit words: what a long integer ALU operation reads, computes and writes.
    pub fn add(x: &[u64], y: &[u64], out: &mut [u64]) {
        for ((o, x), y) in out.iter_mut().zip(x).zip(y) {
            *o = x.wrapping_add(*y);
        }
    }

    /// Adds the squares of 16-bit words: one load for every multiply-add of two pairs, the fewest there can be.
    pub fn multiply_add_16(x: &[i16], sum: &mut i32) {
        *sum = x.iter().fold(*sum, |sum, x| sum.wrapping_add(i32::from(*x) * i32::from(*x)));
    }
}

fusing_kernel! {
    /// `out = x * y + z` on doubles.
    pub fn fma_f64(x: &[f64], y: &[f64], z: &[f64], out: &mut [f64]) = fma::<FUSED>;
}

#[inline(always)]
fn fma<const FUSED: bool>(x: &[f64], y: &[f64], z: &[f64], out: &mut [f64]) {
    for (((o, x), y), z) in out.iter_mut().zip(x).zip(y).zip(z) {
        *o = if FUSED { x.mul_add(*y, *z) } else { x * y + z };
    }
}

/// Copies a row.
pub fn copy(x: &[u64], out: &mut [u64]) {
    out.copy_from_slice(x);
}

//! Plain loops that show what the host can do. The engine is measured against them. They are compiled for the same
//! [level](crate::num::level) as the kernels and work on the same rows, `&[u64]`.

use crate::num::level::{fusing_kernel, kernel};

kernel! {
    /// `out = x + y` on 64-bit words. A long integer ALU operation reads, computes and writes the same amount.
    pub fn add(x: &[u64], y: &[u64], out: &mut [u64]) {
        for ((o, x), y) in out.iter_mut().zip(x).zip(y) {
            *o = x.wrapping_add(*y);
        }
    }

    /// Squares 16-bit words and adds two neighbours: one load and one combining operation for the multiply-adds of a pair.
    pub fn multiply_add_16(x: &[i16], sums: &mut [i32; PAIRS]) {
        let mut all = *sums;
        for x in x.chunks_exact(2 * PAIRS) {
            for (k, sum) in all.iter_mut().enumerate() {
                let (a, b) = (i32::from(x[2 * k]), i32::from(x[2 * k + 1]));
                // With `+` the compiler would reorder the three terms and not see the two products as a pair.
                *sum ^= (a * a).wrapping_add(b * b);
            }
        }
        *sums = all;
    }
}

fusing_kernel! {
    /// `out = x * y + z` on doubles.
    pub fn fma_f64(x: &[f64], y: &[f64], z: &[f64], out: &mut [f64]) = fma::<FUSED>;

    /// Does `times` multiply-adds on each of `sums`. They stay in registers, without a load or a store.
    pub fn registers_f64(times: usize, factor: f64, sums: &mut [f64; F64S]) = in_registers::<f64, F64S, FUSED>;

    /// The same as [`registers_f64`], in singles.
    pub fn registers_f32(times: usize, factor: f32, sums: &mut [f32; F32S]) = in_registers::<f32, F32S, FUSED>;
}

/// Independent sums of [`registers_f64`] and [`registers_f32`]. A host starts two multiply-adds per cycle and each takes
/// four cycles, so eight registers must be busy. 40 doubles fill five registers of v4 or ten of v3; the factor needs one
/// more.
const F64S: usize = 40;
const F32S: usize = 2 * F64S;
/// Independent sums of [`multiply_add_16`].
const PAIRS: usize = 32;

#[inline(always)]
fn fma<const FUSED: bool>(x: &[f64], y: &[f64], z: &[f64], out: &mut [f64]) {
    for (((o, x), y), z) in out.iter_mut().zip(x).zip(y).zip(z) {
        *o = if FUSED { x.mul_add(*y, *z) } else { x * y + z };
    }
}

trait Float: Copy {
    fn multiply_add<const FUSED: bool>(self, factor: Self) -> Self;
}

macro_rules! float {
    ($type:ty) => {
        impl Float for $type {
            #[inline(always)]
            fn multiply_add<const FUSED: bool>(self, factor: Self) -> Self {
                if FUSED {
                    self.mul_add(factor, factor)
                } else {
                    self * factor + factor
                }
            }
        }
    };
}

float!(f32);
float!(f64);

#[inline(always)]
fn in_registers<T: Float, const N: usize, const FUSED: bool>(times: usize, factor: T, sums: &mut [T; N]) {
    let mut all = *sums;
    for _ in 0..times {
        for sum in &mut all {
            *sum = sum.multiply_add::<FUSED>(factor);
        }
    }
    *sums = all;
}

/// Long words of a cache line.
pub const LINE: usize = 8;
/// Long words from one memory of [`lines`] to the next. The memories lie this far apart so that they use different sets of
/// a cache.
pub const APART: usize = (1 << 13) + LINE;

kernel! {
    /// Distributes the cache lines of `x`: memory `u` of `units` takes lines `u`, `u + units`, ... The memories are
    /// [`APART`] long words apart.
    pub fn lines(x: &[u64], units: usize, out: &mut [u64]) {
        let lines = x.as_chunks::<LINE>().0;
        for (unit, out) in out.chunks_mut(APART).take(units).enumerate() {
            for (to, k) in out.as_chunks_mut::<LINE>().0.iter_mut().zip((unit..lines.len()).step_by(units)) {
                *to = lines[k];
            }
        }
    }
}

/// Copies a row.
pub fn copy(x: &[u64], out: &mut [u64]) {
    out.copy_from_slice(x);
}

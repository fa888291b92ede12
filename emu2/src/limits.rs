//! What the host can do, to measure the engine against: loops with as little around them as possible, compiled for the
//! same [level](crate::num::level) as the kernels. Rows are those of the engine, `&[u64]`.

use crate::num::level::{kernel, Level};

kernel! {
    /// `out = x + y` on 64-bit words: what a long integer ALU operation reads, computes and writes.
    pub fn add(x: &[u64], y: &[u64], out: &mut [u64]) {
        for ((o, x), y) in out.iter_mut().zip(x).zip(y) {
            *o = x.wrapping_add(*y);
        }
    }

    /// Dot products of [`DOT_ROWS`] by [`DOT_COLUMNS`] vectors of 16-bit words, added to `sums`: enough of them side by side
    /// that multiply-adds and not loads are the limit. All vectors have the length of the first one.
    pub fn multiply_add_16(x: &[&[i16]; DOT_ROWS], y: &[&[i16]; DOT_COLUMNS], sums: &mut [[i32; DOT_COLUMNS]; DOT_ROWS]) {
        let length = x[0].len();
        let (x, y) = (x.map(|x| &x[..length]), y.map(|y| &y[..length]));
        let mut dots = [[0i32; DOT_COLUMNS]; DOT_ROWS];
        for k in 0..length {
            for (dots, x) in dots.iter_mut().zip(x) {
                for (dot, y) in dots.iter_mut().zip(y) {
                    *dot = dot.wrapping_add(i32::from(x[k]) * i32::from(y[k]));
                }
            }
        }
        for (sum, dot) in sums.iter_mut().flatten().zip(dots.iter().flatten()) {
            *sum = sum.wrapping_add(*dot);
        }
    }
}

/// Vectors on either side of [`multiply_add_16`].
pub const DOT_ROWS: usize = 4;
/// See [`DOT_ROWS`].
pub const DOT_COLUMNS: usize = 2;

/// `out = x * y + z` on doubles, one rounding.
pub fn fma_f64(x: &[f64], y: &[f64], z: &[f64], out: &mut [f64]) {
    #[inline(always)]
    fn rows<const FUSED: bool>(x: &[f64], y: &[f64], z: &[f64], out: &mut [f64]) {
        for (((o, x), y), z) in out.iter_mut().zip(x).zip(y).zip(z) {
            *o = if FUSED { x.mul_add(*y, *z) } else { x * y + z };
        }
    }
    let level = Level::current();
    if level.fuses() {
        level.call(rows::<true>, (x, y, z, out));
    } else {
        level.call(rows::<false>, (x, y, z, out));
    }
}

/// Copies a row.
pub fn copy(x: &[u64], out: &mut [u64]) {
    out.copy_from_slice(x);
}

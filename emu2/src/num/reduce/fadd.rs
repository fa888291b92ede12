//! One stage of a floating point sum: inputs are rounded to the alignment of the largest exponent with three guard bits,
//! added as integers, and the sum is rounded again.
//!
//! guess: infinities are no special case, their exponent field takes part as it is and the result normalises; opposite
//! ones cancel to +0.

use crate::num::format::FloatFormat;
use crate::num::lane::Word;
use crate::num::mau::finish;

/// Guard bits below the last place of the largest input.
const GUARD: u32 = 3;

/// Lanes that are summed side by side.
const BLOCK: usize = 8;

/// A stage with results of the input precision.
pub(super) fn fadd<T: Word>(inputs: &[u64], out: &mut [u64]) {
    let width = out.len();
    let x: &[T] = bytemuck::cast_slice(inputs);
    let out: &mut [T] = bytemuck::cast_slice_mut(out);
    sums(x, width, |first, sums| {
        for (o, s) in out[first..].iter_mut().zip(sums) {
            *o = T::from_u64(s.round(T::FORMAT, T::FORMAT));
        }
    });
}

/// A stage on singles that rounds once to 2 halves in w0 (top 32 bits) of each long word, the rest 0.
pub(super) fn fadd_reduced(inputs: &[u64], out: &mut [u64]) {
    let width = out.len();
    let x: &[u32] = bytemuck::cast_slice(inputs);
    out.fill(0);
    sums(x, width, |first, sums| {
        for (k, s) in (first..).zip(sums) {
            let half = s.round(FloatFormat::SINGLE, FloatFormat::HALF);
            // Odd places in memory are the more significant lanes.
            out[k / 2] |= half << if k % 2 == 1 { 48 } else { 32 };
        }
    });
}

/// An exact sum of aligned inputs.
#[derive(Clone, Copy)]
struct Sum {
    /// Largest exponent field of the inputs.
    top: i64,
    /// In units of the guard bits' last one.
    total: i64,
}

impl Sum {
    #[inline(always)]
    fn round(self, from: FloatFormat, to: FloatFormat) -> u64 {
        let magnitude = self.total.unsigned_abs();
        let up = (magnitude | 1).leading_zeros();
        let leading = 63 - i64::from(up);
        let field = self.top + leading - i64::from(from.frac_bits + GUARD);
        let field = field + i64::from(to.bias()) - i64::from(from.bias());
        finish(to, u64::from(self.total < 0), magnitude << up, field, true)
    }
}

/// Sums the vectors of `width` long words in `x` lane by lane; `done` gets the index of the first lane and up to a block of
/// sums.
#[inline(always)]
fn sums<T: Word>(x: &[T], width: usize, mut done: impl FnMut(usize, &[Sum])) {
    let lanes = width * (64 / T::BITS) as usize;
    for first in (0..lanes).step_by(BLOCK) {
        let n = BLOCK.min(lanes - first);
        let full = |x: &[T]| {
            let mut block = [T::ZERO; BLOCK];
            block[..n].copy_from_slice(&x[first..first + n]);
            block
        };
        let mut top = [0; BLOCK];
        for x in x.chunks_exact(lanes) {
            let block = full(x);
            for k in 0..BLOCK {
                top[k] = exponent(block[k]).max(top[k]);
            }
        }
        let mut total = [0; BLOCK];
        for x in x.chunks_exact(lanes) {
            let block = full(x);
            for k in 0..BLOCK {
                total[k] += aligned(block[k], top[k]);
            }
        }
        let mut sums = [Sum { top: 0, total: 0 }; BLOCK];
        for k in 0..BLOCK {
            sums[k] = Sum { top: top[k], total: total[k] };
        }
        done(first, &sums[..n]);
    }
}

#[inline(always)]
fn exponent<T: Word>(v: T) -> i64 {
    ((v & T::EXP).to_u64() >> T::FORMAT.frac_bits) as i64
}

/// The signed significand with guard bits, shifted to the exponent `top` and rounded to nearest even.
#[inline(always)]
fn aligned<T: Word>(v: T, top: i64) -> i64 {
    let exp = exponent(v);
    let significand = ((v & T::FRAC).to_u64() | 1 << T::FORMAT.frac_bits) << GUARD;
    // guess: exponent field 0 is zero also with a non-zero fraction.
    let significand = if exp == 0 { 0 } else { significand };
    // 56 bits at most: shifted by 58 nothing is left.
    let shift = (top - exp).min(58) as u32;
    let floor = significand >> shift;
    let rest = significand - (floor << shift);
    let half = (1 << shift) >> 1;
    let up = (rest > half) | ((rest == half) & (shift != 0) & (floor & 1 == 1));
    let rounded = (floor + u64::from(up)) as i64;
    if v & T::MSB == T::ZERO {
        rounded
    } else {
        -rounded
    }
}

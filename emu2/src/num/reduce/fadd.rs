//! One stage of a floating point sum: inputs are rounded to the alignment of the largest exponent with three guard bits,
//! added as integers, and the sum is rounded again.
//!
//! guess: infinities are no special case. Their exponent field takes part as it is and the result normalises. Opposite
//! infinities cancel to +0.

use crate::num::format::FloatFormat;
use crate::num::lane::Word;
use crate::num::mau::{half_to_f64, round_to, round_to_single, single_to_f64};

/// Guard bits below the last place of the largest input.
const GUARD: u32 = 3;

/// Lanes that are summed side by side.
const BLOCK: usize = 8;

/// A stage with results of the input precision.
#[inline(always)]
pub(super) fn fadd<T: Word>(inputs: &[u64], out: &mut [u64]) {
    let lanes = out.len() * (64 / T::BITS) as usize;
    let x: &[T] = bytemuck::cast_slice(inputs);
    let out: &mut [T] = bytemuck::cast_slice_mut(out);
    for first in (0..lanes).step_by(BLOCK) {
        let n = BLOCK.min(lanes - first);
        let mut rounded = [T::ZERO; BLOCK];
        if T::BITS == 64 {
            let (top, total) = integer_sums(x, lanes, first, n);
            for k in 0..BLOCK {
                rounded[k] = T::from_u64(round_double(top[k], total[k]));
            }
        } else {
            let sums = sums(x, lanes, first, n);
            for k in 0..BLOCK {
                let bits = sums[k].to_bits();
                rounded[k] = T::from_u64(if T::BITS == 16 { round_to::<6, 9>(bits) } else { round_to_single(bits) });
            }
        }
        out[first..first + n].copy_from_slice(&rounded[..n]);
    }
}

/// A stage on singles that rounds once to 2 halves in w0 (top 32 bits) of each long word, the rest 0.
#[inline(always)]
pub(super) fn fadd_reduced<T: Word>(inputs: &[u64], out: &mut [u64]) {
    let lanes = out.len() * (64 / T::BITS) as usize;
    let x: &[T] = bytemuck::cast_slice(inputs);
    out.fill(0);
    for first in (0..lanes).step_by(BLOCK) {
        let n = BLOCK.min(lanes - first);
        let sums = sums(x, lanes, first, n);
        for (k, sum) in (first..).zip(&sums[..n]) {
            let half = round_to::<6, 9>(sum.to_bits());
            // Odd places in memory hold the more significant lanes.
            out[k / 2] |= half << if k % 2 == 1 { 48 } else { 32 };
        }
    }
}

/// Exact sums of the aligned inputs of `n` lanes of halves or singles, beginning at lane `first`.
#[inline(always)]
fn sums<T: Word>(x: &[T], lanes: usize, first: usize, n: usize) -> [f64; BLOCK] {
    let mut top = [T::ZERO; BLOCK];
    for x in x.chunks_exact(lanes) {
        let block = full(&x[first..first + n]);
        for k in 0..BLOCK {
            top[k] = (block[k] & T::EXP).max(top[k]);
        }
    }
    // Doubles next to this number are multiples of the last guard bit. So adding it rounds to that bit, to nearest even:
    // 1.5 * 2^52 units are even.
    let mut aligner = [0.0; BLOCK];
    for k in 0..BLOCK {
        let field = top[k].shr(T::FORMAT.frac_bits).to_u64() + u64::from(1023 + 52 - T::FORMAT.bias());
        aligner[k] = f64::from_bits((field - u64::from(T::FORMAT.frac_bits + GUARD)) << 52 | 1 << 51);
    }
    let mut total = [0.0; BLOCK];
    for x in x.chunks_exact(lanes) {
        let block = full(&x[first..first + n]);
        for k in 0..BLOCK {
            // guess: exponent field 0 is zero, even with a non-zero fraction.
            let v = if T::BITS == 16 { half_to_f64(block[k].to_u64()) } else { single_to_f64(block[k].to_u64()) };
            total[k] += (v + aligner[k]) - aligner[k];
        }
    }
    total
}

/// A sum of doubles, rounded to a double.
#[inline(always)]
fn round_double(top: i64, total: i64) -> u64 {
    const FRAC: u32 = FloatFormat::DOUBLE.frac_bits;
    // Both parts are exact, so their sum is rounded once, to nearest even.
    let high = (total >> 32) as i32;
    let rounded = f64::from(high) * 4_294_967_296.0 + f64::from(total as u32);
    let bits = rounded.to_bits();
    let field = ((bits >> FRAC) & 0x7FF) as i64 + top - 1023 - i64::from(FRAC + GUARD);
    let magnitude = (field << FRAC) as u64 | bits & FloatFormat::DOUBLE.frac_mask();
    let magnitude = if field >= 0x7FF { FloatFormat::DOUBLE.exp_mask() } else { magnitude };
    // Underflow is judged after rounding.
    if (field <= 0) | (total == 0) {
        0
    } else {
        magnitude | bits & FloatFormat::DOUBLE.sign_mask()
    }
}

/// Largest exponent field and exact sum of the aligned inputs of `n` lanes, beginning at lane `first`. The sum is in units
/// of the last guard bit.
#[inline(always)]
fn integer_sums<T: Word>(x: &[T], lanes: usize, first: usize, n: usize) -> ([i64; BLOCK], [i64; BLOCK]) {
    let (mut top, mut total) = ([0; BLOCK], [0; BLOCK]);
    for x in x.chunks_exact(lanes) {
        let block = full(&x[first..first + n]);
        for k in 0..BLOCK {
            top[k] = exponent(block[k]).max(top[k]);
        }
    }
    for x in x.chunks_exact(lanes) {
        let block = full(&x[first..first + n]);
        for k in 0..BLOCK {
            total[k] += aligned(block[k], top[k]);
        }
    }
    (top, total)
}

/// A block, padded with zeros.
#[inline(always)]
fn full<T: Word>(x: &[T]) -> [T; BLOCK] {
    match <[T; BLOCK]>::try_from(x) {
        Ok(block) => block,
        Err(_) => {
            let mut block = [T::ZERO; BLOCK];
            block[..x.len()].copy_from_slice(x);
            block
        }
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
    // guess: exponent field 0 is zero, even with a non-zero fraction.
    let significand = if exp == 0 { 0 } else { significand };
    // The significand has at most 56 bits, so a shift by 58 leaves nothing.
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

//! Conversions between neighbouring float formats: `e` (extend) and `r` (reduce) of operands.

use super::clone_choice::choosing_kernel;
use super::format::FloatFormat;

const H: FloatFormat = FloatFormat::HALF;
const F: FloatFormat = FloatFormat::SINGLE;
const D: FloatFormat = FloatFormat::DOUBLE;

/// Extends one lane: the exponent gets the new bias, the fraction moves left. Exact.
#[inline(always)]
fn extend(from: FloatFormat, to: FloatFormat, bits: u64) -> u64 {
    let exp = bits & from.exp_mask();
    let sign = (bits & from.sign_mask()) << (to.bits() - from.bits());
    let rebias = u64::from(to.bias() - from.bias()) << to.frac_bits;
    let mag = ((bits & (from.sign_mask() - 1)) << (to.frac_bits - from.frac_bits)) + rebias;
    let mag = if exp == 0 { 0 } else { mag };
    let mag = if exp == from.exp_mask() { to.exp_mask() } else { mag };
    sign | mag
}

/// Reduces one lane: rounds to nearest even; overflow gives infinity.
#[inline(always)]
fn reduce(from: FloatFormat, to: FloatFormat, bits: u64) -> u64 {
    let drop = from.frac_bits - to.frac_bits;
    let mag = bits & (from.sign_mask() - 1);
    let rebias = u64::from(from.bias() - to.bias()) << to.frac_bits;
    let rounded = (mag + (1 << (drop - 1)) - 1 + ((mag >> drop) & 1)) >> drop;
    let out = rounded.wrapping_sub(rebias);
    let out = if rounded < rebias + (1 << to.frac_bits) { 0 } else { out };
    let out = if rounded >= rebias + to.exp_mask() { to.exp_mask() } else { out };
    // guess: an input that underflows to zero keeps its sign (visible only through ALU inputs; MAU outputs normalise).
    let sign = (bits & from.sign_mask()) >> (from.bits() - to.bits());
    sign | out
}

/// Half to single, exact. Zero stays zero, infinity stays infinity, the sign is kept.
#[inline(always)]
#[must_use]
pub fn half_to_single(bits: u16) -> u32 {
    extend(H, F, u64::from(bits)) as u32
}

/// Single to double, exact. Zero stays zero, infinity stays infinity, the sign is kept.
#[inline(always)]
#[must_use]
pub fn single_to_double(bits: u32) -> u64 {
    extend(F, D, u64::from(bits))
}

/// Single to half, rounded to nearest even. Overflow gives infinity, underflow gives a zero that keeps the sign.
#[inline(always)]
#[must_use]
pub fn single_to_half(bits: u32) -> u16 {
    reduce(F, H, u64::from(bits)) as u16
}

/// Double to single, rounded to nearest even. Overflow gives infinity, underflow gives a zero that keeps the sign.
#[inline(always)]
#[must_use]
pub fn double_to_single(bits: u64) -> u32 {
    reduce(D, F, bits) as u32
}

/// The two halves in the low 32 bits of `pair` as two singles, MSB side first.
#[inline(always)]
fn extend_pair(pair: u64) -> u64 {
    (extend(H, F, (pair >> 16) & 0xFFFF) << 32) | extend(H, F, pair & 0xFFFF)
}

/// The two singles of a long word as two halves, in the low 32 bits.
#[inline(always)]
fn reduce_pair(pair: u64) -> u64 {
    (reduce(F, H, pair >> 32) << 16) | reduce(F, H, pair & 0xFFFF_FFFF)
}

choosing_kernel! {
/// Row of 4 halves (L0) to two rows of 2 singles each (L0: halves 0 and 1, L1: halves 2 and 3).
pub fn extend_h4(x: &[u64], out0: &mut [u64], out1: &mut [u64]) {
    for ((&v, o0), o1) in x.iter().zip(out0).zip(out1) {
        *o0 = extend_pair(v >> 32);
        *o1 = extend_pair(v & 0xFFFF_FFFF);
    }
}

/// Row with 2 halves in w0 (top 32 bits) to a row of 2 singles.
pub fn extend_h2(x: &[u64], out: &mut [u64]) {
    for (&v, o) in x.iter().zip(out) {
        *o = extend_pair(v >> 32);
    }
}

/// Row with 1 single in w0 (top 32 bits) to a row of 1 double.
pub fn extend_f(x: &[u64], out: &mut [u64]) {
    for (&v, o) in x.iter().zip(out) {
        *o = extend(F, D, v >> 32);
    }
}

/// Two rows of 2 singles (L0, L1) to one row of 4 halves.
pub fn reduce_f4(x0: &[u64], x1: &[u64], out: &mut [u64]) {
    for ((&v0, &v1), o) in x0.iter().zip(x1).zip(out) {
        *o = (reduce_pair(v0) << 32) | reduce_pair(v1);
    }
}

/// Row of 2 singles to 2 halves in w0 (top 32 bits), the rest 0; in place.
pub fn reduce_f2(row: &mut [u64]) {
    for v in row {
        *v = reduce_pair(*v) << 32;
    }
}

/// Row of 1 double to 1 single in w0 (top 32 bits), the rest 0.
pub fn reduce_d(x: &[u64], out: &mut [u64]) {
    for (&v, o) in x.iter().zip(out) {
        *o = reduce(D, F, v) << 32;
    }
}
}

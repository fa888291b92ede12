//! Exact sums in host doubles and the one rounding at the end.
//!
//! Products of half and single significands have at most 48 bits, so they are exact doubles, and every exponent that
//! occurs (also exponent field all ones taken as a number) lies far inside the double's range. A sum of two such values is
//! not exact, but rounding it *to odd* in 53 bits keeps all that a later rounding to at most 51 bits can depend on.
//!
//! guess: infinities among the inputs of the MAU, vector and matrix, are no special case. They take part as numbers with
//! exponent field all ones, so infinity times a number follows from the fields, and 0 times infinity is 0.

use crate::num::format::FloatFormat;

/// Sign mask for an operand with lanes of `width` bits in a long word: all lane signs if `negate`, otherwise 0.
#[inline(always)]
pub(crate) fn flip(negate: bool, width: u32) -> u64 {
    let signs = match width {
        16 => 0x8000_8000_8000_8000,
        32 => 0x8000_0000_8000_0000,
        _ => 1 << 63,
    };
    if negate {
        signs
    } else {
        0
    }
}

/// The value of a half (low 16 bits), exact.
#[inline(always)]
pub(crate) fn half_to_f64(bits: u64) -> f64 {
    widen::<6, 9>(bits)
}

/// The value of a single (low 32 bits), exact.
#[inline(always)]
pub(crate) fn single_to_f64(bits: u64) -> f64 {
    widen::<8, 23>(bits)
}

#[inline(always)]
fn widen<const E: u32, const M: u32>(bits: u64) -> f64 {
    let rebias = 1023 - ((1 << (E - 1)) - 1);
    let mag = bits & ((1 << (E + M)) - 1);
    let wide = f64::from_bits((mag << (52 - M)) + (rebias << 52));
    // Exponent field 0. A comparison of doubles is a cheaper vector mask than one of 64-bit integers.
    let least = f64::from_bits((rebias + 1) << 52);
    let wide = if wide < least { 0.0 } else { wide };
    f64::from_bits(wide.to_bits() | (bits >> (E + M)) << 63)
}

/// Bits of `a + b` rounded to odd: if the sum is inexact, the neighbour with an odd last bit.
#[inline(always)]
pub(crate) fn add_odd(a: f64, b: f64) -> u64 {
    let sum = a + b;
    let t = sum - a;
    let error = (a - (sum - t)) + (b - t);
    let inexact = u64::from(error != 0.0);
    let beyond = (sum.to_bits() ^ error.to_bits()) >> 63;
    // Truncate (step back if the sum went past the exact value), then set the last bit.
    (sum.to_bits() - (inexact & beyond)) | inexact
}

/// Whether an output underflows to zero by its exponent after rounding (with unbounded exponent), not by the one before.
///
/// guess: after rounding.
pub(crate) const UNDERFLOW_AFTER_ROUNDING: bool = true;

/// The least magnitude that does not underflow in the format `1 + E + M`, as a double.
#[inline(always)]
fn least_output<const E: u32, const M: u32>() -> f64 {
    let field = 1023 - ((1 << (E - 1)) - 1) + 1;
    // A magnitude from half a last place below the least normal number on is rounded up to it (a tie goes to even).
    let reach = if UNDERFLOW_AFTER_ROUNDING { 1 << (51 - M) } else { 0 };
    f64::from_bits((field << 52) - reach)
}

/// Rounds the bits of a double to the format `1 + E + M`: to nearest even with unbounded exponent, then the exponent test,
/// then the output normalisation.
#[inline(always)]
pub(crate) fn round_to<const E: u32, const M: u32>(bits: u64) -> u64 {
    let drop = 52 - M;
    let rebias = (1023 - ((1 << (E - 1)) - 1)) << M;
    let infinity = ((1 << E) - 1) << M;
    let mag = bits & (u64::MAX >> 1);
    let rounded = (mag + ((1 << (drop - 1)) - 1) + ((mag >> drop) & 1)) >> drop;
    let overflow = f64::from_bits(rounded << drop) >= f64::from_bits((rebias + infinity) << drop);
    let out = if overflow { infinity } else { rounded.wrapping_sub(rebias) };
    let out = out | (bits >> 63) << (E + M);
    if f64::from_bits(mag) < least_output::<E, M>() {
        0
    } else {
        out
    }
}

/// The same as [`round_to`] for singles. The host's own conversion does everything but the underflow.
#[inline(always)]
pub(crate) fn round_to_single(bits: u64) -> u64 {
    let v = f64::from_bits(bits);
    let v = if v.abs() < least_output::<8, 23>() { 0.0 } else { v };
    u64::from((v as f32).to_bits())
}

/// Rounds `significand * 2^(field - bias - 63)` to `format`: nearest even with unbounded exponent, exponent test, output
/// normalisation. The significand is 0 or has its top bit set; its last bit may be sticky. `negative` is 0 or 1. The
/// exponent test for underflow is done after rounding if `after`, otherwise before.
#[inline(always)]
pub(crate) fn finish(format: FloatFormat, negative: u64, significand: u64, field: i64, after: bool) -> u64 {
    let m = format.frac_bits;
    let kept = significand >> (63 - m);
    let rest = significand << (m + 1);
    let half = 1 << 63;
    let kept = kept + u64::from((rest > half) | ((rest == half) & (kept & 1 == 1)));
    // A carry out of the significand leaves a fraction of 0.
    let rounded = field + (kept >> (m + 1)) as i64;
    let value = (rounded as u64) << m | kept & format.frac_mask();
    let overflow = rounded >= i64::from(format.exp_max());
    let value = if overflow { format.exp_mask() } else { value };
    let judged = if after { rounded } else { field };
    if (significand == 0) | (judged <= 0) {
        0
    } else {
        value | negative << (format.exp_bits + m)
    }
}

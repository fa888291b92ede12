//! `floor` and the float to integer conversions.

use super::AluParams;
use crate::num::lane::{map1, select, Word};

/// Rounds toward -infinity, in the same format. Zeros and infinities pass unchanged.
#[inline(always)]
pub(super) fn floor<T: Word>(_: &AluParams, x: &[u64], _: &[u64], out: &mut [u64]) {
    let m = T::FORMAT.frac_bits;
    let bias = T::FORMAT.bias();
    let one = T::from_u32(bias).shl(m);
    map1::<T>(x, out, |a| {
        let field = (a & T::EXP).shr(m).to_u32();
        let negative = a & T::MSB != T::ZERO;
        // Fraction bits below the binary point, for 1 <= |x| < 2^m.
        let below = T::FRAC.shr(field.wrapping_sub(bias) & (T::BITS - 1)) & T::FRAC;
        // Adding to the magnitude may carry into the exponent, which is the right result.
        let whole = select(negative, a.add(below), a) & !below;
        let tiny = select(negative, one | T::MSB, T::ZERO);
        let r = select(field < bias, tiny, whole);
        select((field == 0) | (field >= bias + m), a, r)
    });
}

/// |x| rounded toward zero as an unsigned integer, and the exponent field. Valid for exponents whose result fits the lane.
#[inline(always)]
fn magnitude<T: Word>(a: T) -> (T, u32) {
    let m = T::FORMAT.frac_bits;
    let bias = T::FORMAT.bias();
    let field = (a & T::EXP).shr(m).to_u32();
    let significand = (a & T::FRAC) | T::ONE.shl(m);
    let right = significand.shr((bias + m).wrapping_sub(field) & (T::BITS - 1));
    let left = significand.shl(field.wrapping_sub(bias + m) & (T::BITS - 1));
    let v = select(field < bias + m, right, left);
    (select(field < bias, T::ZERO, v), field)
}

/// Rounds toward zero to a two's complement integer of the lane width.
#[inline(always)]
pub(super) fn ftoi<T: Word>(_: &AluParams, x: &[u64], _: &[u64], out: &mut [u64]) {
    map1::<T>(x, out, |a| {
        let (v, field) = magnitude(a);
        let negative = a & T::MSB != T::ZERO;
        let r = select(negative, T::ZERO.sub(v), v);
        // guess: out of range, infinity included, saturates to the largest or smallest integer.
        let limit = select(negative, T::MSB, !T::MSB);
        select(field >= T::FORMAT.bias() + T::BITS - 1, limit, r)
    });
}

/// |x| rounded toward zero, clipped to the largest unsigned integer of the lane width.
#[inline(always)]
pub(super) fn uftoi<T: Word>(_: &AluParams, x: &[u64], _: &[u64], out: &mut [u64]) {
    map1::<T>(x, out, |a| {
        let (v, field) = magnitude(a);
        select(field >= T::FORMAT.bias() + T::BITS, T::MAX, v)
    });
}

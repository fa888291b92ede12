//! `max` and `min`. x wins ties; result bits are never normalised.

use super::AluParams;
use crate::num::lane::{float_key, map2, select, Word};

/// A key whose unsigned order is the two's complement order.
#[inline(always)]
fn signed_key<T: Word>(v: T) -> T {
    v ^ T::MSB
}

/// Whether both are zero (exponent field 0), whatever their signs and fractions. Then x is output.
#[inline(always)]
fn both_zero<T: Word>(a: T, b: T) -> bool {
    (a | b) & T::EXP == T::ZERO
}

#[inline(always)]
pub(super) fn smax<T: Word>(_: &AluParams, x: &[u64], y: &[u64], out: &mut [u64]) {
    map2::<T>(x, y, out, |a, b| select(signed_key(a) >= signed_key(b), a, b));
}

#[inline(always)]
pub(super) fn smin<T: Word>(_: &AluParams, x: &[u64], y: &[u64], out: &mut [u64]) {
    map2::<T>(x, y, out, |a, b| select(signed_key(a) <= signed_key(b), a, b));
}

#[inline(always)]
pub(super) fn umax<T: Word>(_: &AluParams, x: &[u64], y: &[u64], out: &mut [u64]) {
    map2::<T>(x, y, out, |a, b| select(a >= b, a, b));
}

#[inline(always)]
pub(super) fn umin<T: Word>(_: &AluParams, x: &[u64], y: &[u64], out: &mut [u64]) {
    map2::<T>(x, y, out, |a, b| select(a <= b, a, b));
}

#[inline(always)]
pub(super) fn fmax<T: Word>(_: &AluParams, x: &[u64], y: &[u64], out: &mut [u64]) {
    map2::<T>(x, y, out, |a, b| select(both_zero(a, b) | (float_key(a) >= float_key(b)), a, b));
}

#[inline(always)]
pub(super) fn fmin<T: Word>(_: &AluParams, x: &[u64], y: &[u64], out: &mut [u64]) {
    map2::<T>(x, y, out, |a, b| select(both_zero(a, b) | (float_key(a) <= float_key(b)), a, b));
}

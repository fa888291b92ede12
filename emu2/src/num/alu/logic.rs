//! Copies, integer arithmetic and bitwise kernels.

use super::AluParams;
use crate::num::lane::{map1, map2, select, Word};

#[inline(always)]
pub(super) fn passa<T: Word>(_: &AluParams, x: &[u64], _: &[u64], out: &mut [u64]) {
    map1::<T>(x, out, |a| a);
}

#[inline(always)]
pub(super) fn inc<T: Word>(_: &AluParams, x: &[u64], _: &[u64], out: &mut [u64]) {
    map1::<T>(x, out, |a| a.add(T::ONE));
}

#[inline(always)]
pub(super) fn dec<T: Word>(_: &AluParams, x: &[u64], _: &[u64], out: &mut [u64]) {
    map1::<T>(x, out, |a| a.sub(T::ONE));
}

#[inline(always)]
pub(super) fn add<T: Word>(_: &AluParams, x: &[u64], y: &[u64], out: &mut [u64]) {
    map2::<T>(x, y, out, |a, b| a.add(b));
}

#[inline(always)]
pub(super) fn sub<T: Word>(_: &AluParams, x: &[u64], y: &[u64], out: &mut [u64]) {
    map2::<T>(x, y, out, |a, b| a.sub(b));
}

#[inline(always)]
pub(super) fn not<T: Word>(_: &AluParams, x: &[u64], _: &[u64], out: &mut [u64]) {
    map1::<T>(x, out, |a| !a);
}

/// 1 if the lane is 0, otherwise 0.
#[inline(always)]
pub(super) fn lnot<T: Word>(_: &AluParams, x: &[u64], _: &[u64], out: &mut [u64]) {
    map1::<T>(x, out, |a| select(a == T::ZERO, T::ONE, T::ZERO));
}

#[inline(always)]
pub(super) fn and<T: Word>(_: &AluParams, x: &[u64], y: &[u64], out: &mut [u64]) {
    map2::<T>(x, y, out, |a, b| a & b);
}

#[inline(always)]
pub(super) fn or<T: Word>(_: &AluParams, x: &[u64], y: &[u64], out: &mut [u64]) {
    map2::<T>(x, y, out, |a, b| a | b);
}

#[inline(always)]
pub(super) fn xor<T: Word>(_: &AluParams, x: &[u64], y: &[u64], out: &mut [u64]) {
    map2::<T>(x, y, out, |a, b| a ^ b);
}

/// Moves x up by one bit. The top bit of y enters at the bottom.
#[inline(always)]
pub(super) fn packbit<T: Word>(_: &AluParams, x: &[u64], y: &[u64], out: &mut [u64]) {
    map2::<T>(x, y, out, |a, b| a.shl(1) | b.shr(T::BITS - 1));
}

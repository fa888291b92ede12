//! Copies, integer arithmetic and bitwise kernels.

use super::AluParams;
use crate::num::lane::{map1, map2, select, Word};

pub(super) fn passa<T: Word>(_: &AluParams, x: &[u64], _: &[u64], out: &mut [u64]) {
    map1::<T>(x, out, |a| a);
}

pub(super) fn inc<T: Word>(_: &AluParams, x: &[u64], _: &[u64], out: &mut [u64]) {
    map1::<T>(x, out, |a| a.add(T::ONE));
}

pub(super) fn dec<T: Word>(_: &AluParams, x: &[u64], _: &[u64], out: &mut [u64]) {
    map1::<T>(x, out, |a| a.sub(T::ONE));
}

pub(super) fn add<T: Word>(_: &AluParams, x: &[u64], y: &[u64], out: &mut [u64]) {
    map2::<T>(x, y, out, |a, b| a.add(b));
}

pub(super) fn sub<T: Word>(_: &AluParams, x: &[u64], y: &[u64], out: &mut [u64]) {
    map2::<T>(x, y, out, |a, b| a.sub(b));
}

pub(super) fn not<T: Word>(_: &AluParams, x: &[u64], _: &[u64], out: &mut [u64]) {
    map1::<T>(x, out, |a| !a);
}

/// 1 where the lane is 0, else 0.
pub(super) fn lnot<T: Word>(_: &AluParams, x: &[u64], _: &[u64], out: &mut [u64]) {
    map1::<T>(x, out, |a| select(a == T::ZERO, T::ONE, T::ZERO));
}

pub(super) fn and<T: Word>(_: &AluParams, x: &[u64], y: &[u64], out: &mut [u64]) {
    map2::<T>(x, y, out, |a, b| a & b);
}

pub(super) fn or<T: Word>(_: &AluParams, x: &[u64], y: &[u64], out: &mut [u64]) {
    map2::<T>(x, y, out, |a, b| a | b);
}

pub(super) fn xor<T: Word>(_: &AluParams, x: &[u64], y: &[u64], out: &mut [u64]) {
    map2::<T>(x, y, out, |a, b| a ^ b);
}

/// x moves up one bit and the top bit of y enters at the bottom.
pub(super) fn packbit<T: Word>(_: &AluParams, x: &[u64], y: &[u64], out: &mut [u64]) {
    map2::<T>(x, y, out, |a, b| a.shl(1) | b.shr(T::BITS - 1));
}

//! Shifts and rotations. The count is y modulo twice the lane width W. From W on, shifts leave nothing.

use super::AluParams;
use crate::num::lane::{map2, select, Word};

/// The count, `y mod 2W`.
#[inline(always)]
fn count<T: Word>(y: T) -> u32 {
    y.to_u32() & (2 * T::BITS - 1)
}

#[inline(always)]
pub(super) fn lsl<T: Word>(_: &AluParams, x: &[u64], y: &[u64], out: &mut [u64]) {
    map2::<T>(x, y, out, |a, b| {
        let n = count(b);
        select(n < T::BITS, a.shl(n & (T::BITS - 1)), T::ZERO)
    });
}

#[inline(always)]
pub(super) fn lsr<T: Word>(_: &AluParams, x: &[u64], y: &[u64], out: &mut [u64]) {
    map2::<T>(x, y, out, |a, b| {
        let n = count(b);
        select(n < T::BITS, a.shr(n & (T::BITS - 1)), T::ZERO)
    });
}

/// Signed `lsr`: sign bits enter from the top.
#[inline(always)]
pub(super) fn asr<T: Word>(_: &AluParams, x: &[u64], y: &[u64], out: &mut [u64]) {
    map2::<T>(x, y, out, |a, b| a.sar(count(b).min(T::BITS - 1)));
}

#[inline(always)]
pub(super) fn bsl<T: Word>(_: &AluParams, x: &[u64], y: &[u64], out: &mut [u64]) {
    map2::<T>(x, y, out, |a, b| a.rotl(count(b) & (T::BITS - 1)));
}

#[inline(always)]
pub(super) fn bsr<T: Word>(_: &AluParams, x: &[u64], y: &[u64], out: &mut [u64]) {
    map2::<T>(x, y, out, |a, b| a.rotl(T::BITS.wrapping_sub(count(b)) & (T::BITS - 1)));
}

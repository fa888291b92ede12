//! The ReLU family: a bit of x decides whether y passes, is scaled or is dropped.

use super::AluParams;
use crate::num::lane::{map2, select, Word};

/// y if the tested bit of x is 0, otherwise -0.
#[inline(always)]
pub(super) fn relu<T: Word>(p: &AluParams, x: &[u64], y: &[u64], out: &mut [u64]) {
    let bit = T::MSB.shr(p.bit);
    map2::<T>(x, y, out, |a, b| select(a & bit == T::ZERO, b, T::MSB));
}

/// y if x is not negative, otherwise y with its exponent field lowered by `amount`. At 0 or below the result is -0.
#[inline(always)]
pub(super) fn lrelu<T: Word>(p: &AluParams, x: &[u64], y: &[u64], out: &mut [u64]) {
    let step = exponent::<T>(p.amount);
    map2::<T>(x, y, out, |a, b| {
        let exp = b & T::EXP;
        let scaled = select(exp > step, b.sub(step), T::MSB);
        // guess: an infinite y stays as it is.
        let scaled = select(exp == T::EXP, b, scaled);
        select(a & T::MSB == T::ZERO, b, scaled)
    });
}

/// y if x is not negative, otherwise y with its exponent field raised by `amount`, even from 0. Sign and fraction stay.
#[inline(always)]
pub(super) fn ilrelu<T: Word>(p: &AluParams, x: &[u64], y: &[u64], out: &mut [u64]) {
    let step = exponent::<T>(p.amount);
    map2::<T>(x, y, out, |a, b| {
        // guess: an exponent field that is already all ones stays there.
        let room = T::EXP.sub(b & T::EXP);
        let raised = b.add(select(step < room, step, room));
        select(a & T::MSB == T::ZERO, b, raised)
    });
}

/// A small exponent, moved to the exponent field.
#[inline(always)]
fn exponent<T: Word>(amount: u32) -> T {
    T::from_u32(amount).shl(T::FORMAT.frac_bits)
}

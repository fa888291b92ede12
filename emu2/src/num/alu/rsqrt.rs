//! Reciprocal square root: 5 fraction bits from a table, all remaining result bits zero.

use super::AluParams;
use crate::num::lane::{map1, select, Word};

/// `table[16 * odd + k] / 64 * 2^-h` with exponent `e = 2h + odd` and `k` the top 4 fraction bits of x; the sign of x is
/// ignored.
#[inline(always)]
pub(super) fn rsqrt<T: Word>(p: &AluParams, x: &[u64], _: &[u64], out: &mut [u64]) {
    let m = T::FORMAT.frac_bits;
    let bias = T::FORMAT.bias();
    map1::<T>(x, out, |a| {
        let field = (a & T::EXP).shr(m).to_u32();
        let k = (a & T::FRAC).shr(m - 4).to_u32();
        // The bias is odd, so the exponent is odd where the field is even.
        let odd = !field & 1;
        // bias - 1 - h with h = (field - bias - odd) / 2, kept in unsigned terms.
        let exp = (3 * bias - 2 + odd - field) / 2;
        let y = p.table[(16 * odd + k) as usize & 31];
        let frac = T::from_u32(u32::from(y) & 31).shl(m - 5);
        let root = T::from_u32(exp).shl(m) | frac;
        // guess: zero gives +infinity, infinity gives +0.
        let root = select(field == 0, T::EXP, root);
        select(a & T::EXP == T::EXP, T::ZERO, root)
    });
}

//! Reciprocal square root: 5 fraction bits come from a table, all other result bits are zero.

use super::AluParams;
use crate::num::lane::{select, Word};

/// Lanes that are looked up together.
const BLOCK: usize = 32;

/// `table[16 * odd + k] / 64 * 2^-h` with exponent `e = 2h + odd` and `k` the top 4 fraction bits of x; the sign of x is
/// ignored.
#[inline(always)]
pub(super) fn rsqrt<T: Word>(p: &AluParams, x: &[u64], _: &[u64], out: &mut [u64]) {
    let m = T::FORMAT.frac_bits;
    let bias = T::FORMAT.bias();
    let table: [T; 32] = std::array::from_fn(|k| T::from_u32(u32::from(p.table[k]) & 31).shl(m - 5));
    let parts = |a: T| {
        let field = (a & T::EXP).shr(m).to_u32();
        let k = (a & T::FRAC).shr(m - 4).to_u32();
        // The bias is odd, so the exponent is odd where the field is even.
        (field, !field & 1, k)
    };
    let root = |a: T, frac: T| {
        let (field, odd, _) = parts(a);
        // This is bias - 1 - h with h = (field - bias - odd) / 2, written without negative numbers.
        let exp = (3 * bias - 2 + odd - field) / 2;
        let root = T::from_u32(exp).shl(m) | frac;
        // guess: zero gives +infinity, infinity gives +0.
        let root = select(field == 0, T::EXP, root);
        select(a & T::EXP == T::EXP, T::ZERO, root)
    };
    let entry = |a: T| {
        let (_, odd, k) = parts(a);
        (16 * odd + k) as usize & 31
    };
    // The table is read lane by lane. The computations before and after it are vectors.
    let ((x, x_rest), (out, out_rest)) = (
        bytemuck::cast_slice::<u64, T>(x).as_chunks::<BLOCK>(),
        bytemuck::cast_slice_mut::<u64, T>(out).as_chunks_mut::<BLOCK>(),
    );
    for (x, out) in x.iter().zip(out) {
        let (x, mut at, mut fracs) = (*x, [0u8; BLOCK], [T::ZERO; BLOCK]);
        for i in 0..BLOCK {
            at[i] = entry(x[i]) as u8;
        }
        for i in 0..BLOCK {
            fracs[i] = table[usize::from(at[i]) & 31];
        }
        for i in 0..BLOCK {
            out[i] = root(x[i], fracs[i]);
        }
    }
    for (x, out) in x_rest.iter().zip(out_rest) {
        *out = root(*x, table[entry(*x)]);
    }
}

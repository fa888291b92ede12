//! Adds addends to products of single and pseudo-single precision, and rounds the sums to singles.
//!
//! The products are exact doubles. The host's double addition and its conversion to single give the right bits for almost
//! all sums; [`add`] says whether they do, and [`settle`] does the others exactly.

use super::block;
use crate::num::level::kernel;
use crate::num::mau::{add_odd, flip, flushed_single, round_to_single, single_to_f64, MauNeg};
use crate::num::MAB_PES;

/// Rows of the matrix register, and elements of a `g` block.
pub(super) const N: usize = 2 * MAB_PES;

/// Sign bit of a single.
pub(super) const SIGN: u32 = 1 << 31;

/// The bits of a double below the last place of a single. A tie between two singles has only the top bit of them set.
const BELOW: u64 = (1 << 29) - 1;
const TIE: u64 = 1 << 28;

/// Adds products and addends. Returns false if some sum is not certain.
///
/// A sum is rounded to a double and that to a single. Ties between singles are doubles, so the first rounding does not pass
/// one. Only a sum that is rounded *to* a tie has lost on which side it was. Two more cases are not certain: infinities
/// among the addends, which are numbers to the machine, and sums of at most the least normal number.
#[inline(always)]
pub(super) fn add(products: &[[f64; N]], z: &[[u64; MAB_PES]], flip: u32, out: &mut [[u64; MAB_PES]]) -> bool {
    let (mut ties, mut least, mut most) = ([0u64; N], [u32::MAX; N], [0u32; N]);
    for (m, (z, out)) in z.iter().zip(out).enumerate() {
        let z: [u32; N] = bytemuck::cast(*z);
        let products = &products[m];
        // A separate loop: the condition would be slower if it were widened together with its operand.
        let mut addends = [0.0; N];
        for i in 0..N {
            addends[i] = flushed_single(z[i] ^ flip);
            most[i] = most[i].max(z[i] & !SIGN);
        }
        let mut sums = [0.0; N];
        for i in 0..N {
            sums[i] = products[i] + f64::from(addends[i]);
            ties[i] += u64::from(sums[i].to_bits() & BELOW == TIE);
        }
        let mut results = [0; N];
        for i in 0..N {
            // Adding 0 turns -0 into +0.
            results[i] = (sums[i] as f32 + 0.0).to_bits();
            // 0 is certain. Here it wraps to the largest number.
            least[i] = least[i].min((results[i] & !SIGN).wrapping_sub(1));
        }
        *out = bytemuck::cast(results);
    }
    let mut doubtful = 0;
    for i in 0..N {
        doubtful |= u32::from(least[i] < f32::MIN_POSITIVE.to_bits()) | u32::from(most[i] >= f32::INFINITY.to_bits());
    }
    (doubtful == 0) & (ties.iter().fold(0, |all, ties| all | ties) == 0)
}

kernel! {
    /// Looks closely at the sums of which [`add`] is not certain. If necessary, does them again with doubles rounded to
    /// odd.
    pub(super) fn settle(products: &[f64], z: &[u64], flip: u32, out: &mut [u64]) {
        let (z, out): (&[u32], &mut [u32]) = (bytemuck::cast_slice(z), bytemuck::cast_slice_mut(out));
        let mut doubtful = 0;
        for (p, z) in products.iter().zip(z) {
            let z = f64::from(flushed_single(z ^ flip));
            let sum = p + z;
            let t = sum - p;
            let lost = (p - (sum - t)) + (z - t);
            doubtful |= u64::from((sum.to_bits() & BELOW == TIE) & (lost != 0.0));
            doubtful |= u64::from((sum.abs() <= f64::from(f32::MIN_POSITIVE)) & (sum != 0.0));
            doubtful |= u64::from(!sum.is_finite());
        }
        if doubtful != 0 {
            add_exactly(products, z, flip, out);
        }
    }

    /// Does the same as [`add`], with doubles rounded to odd.
    fn add_exactly(products: &[f64], z: &[u32], flip: u32, out: &mut [u32]) {
        for ((out, p), z) in out.iter_mut().zip(products).zip(z) {
            *out = round_to_single(add_odd(*p, single_to_f64(u64::from(z ^ flip)))) as u32;
        }
    }
}

/// The addends of a vector as they lie in memory.
#[inline(always)]
pub(super) fn addends(z: &[u64], mab: usize, neg: MauNeg) -> [f64; N] {
    let words: [u32; N] = bytemuck::cast(block(z, mab).map(|z| z ^ flip(neg.z, 32)));
    words.map(|z| single_to_f64(u64::from(z)))
}

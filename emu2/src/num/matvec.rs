//! Matrix-vector products of a MAB: `out = A * x + z` on block float, one rounding (manual, chapters on the matrix registers
//! and on the numerics of the MAU).
//!
//! A matrix register is decoded once (`HMatrix::decode` and so on, one per MAB) and then meets the vectors of all cycles:
//! rows hold any number of cycles, `[cycle][lane]`. A vector lies across the PEs of a MAB, and so does the result. The sum over a row is exact, also with the
//! addend; `mmul` passes a row of +0 as z. Of `MauNeg`, `x` and `z` count.
//!
//! Multiplicands must be block float. Elements of one block that do not share their exponent are undefined on the machine;
//! here the largest exponent field of the block counts for all of them.

mod double;
mod half;
mod single;

pub use double::{d_mfma, d_mfma_r, DMatrix};
pub use half::{h_mfma, h_mfma_r, HMatrix};
pub use single::{f_mfma, f_mfma_r, g_mfma, g_mfma_r, FMatrix, GMatrix};

use super::MAB_PES;

/// `2^exp` as a double, for normal exponents.
#[inline(always)]
fn power_of_two(exp: i64) -> f64 {
    f64::from_bits(((exp + 1023) as u64) << 52)
}

/// Number of the MAB and first long word of every vector in rows of `length` long words, all cycles of a MAB together.
#[inline(always)]
fn vectors(mabs: usize, length: usize) -> impl Iterator<Item = (usize, usize)> {
    let cycles = if mabs == 0 { 0 } else { length / (mabs * MAB_PES) };
    (0..mabs).flat_map(move |mab| (0..cycles).map(move |c| (mab, (c * mabs + mab) * MAB_PES)))
}

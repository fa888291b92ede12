//! Matrix-vector products of a MAB: `out = A * x + z` on block float, one rounding (manual, chapters on the matrix
//! registers and on the numerics of the MAU).
//!
//! A matrix register is decoded once (`HMatrix::decode` and so on, one per MAB) and then multiplied with the vectors of all
//! cycles, whose rows may lie anywhere. A vector lies across the PEs of a MAB, and so does the result. The sum over a row,
//! including the addend, is exact. `mmul` passes a row of +0 as z. `MauNeg::y` has no effect.
//!
//! Multiplicands must be block float. Elements of one block with different exponents are undefined on the machine. Here the
//! largest exponent field of the block counts for all of them.

mod double;
mod half;
mod half_element;
mod single;
mod single_sums;

pub use double::{d_mfma, d_mfma_r, DMatrix};
pub use half::{h_mfma, h_mfma_onto, h_mfma_r, HMatrix};
pub use single::{f_mfma, f_mfma_r, g_mfma, g_mfma_r, FMatrix, GMatrix};

use super::MAB_PES;

/// `2^exp` as a double, for normal exponents.
#[inline(always)]
fn power_of_two(exp: i64) -> f64 {
    f64::from_bits(((exp + 1023) as u64) << 52)
}

/// The rows of one cycle, with one long word for each PE.
#[derive(Debug)]
pub struct Cycle<'a> {
    /// The vectors.
    pub x: &'a [u64],
    /// The addends, L0 and L1. Only half precision reads L1; otherwise it may be empty.
    pub z: [&'a [u64]; 2],
    /// The results, L0 and L1. Only [`h_mfma`] writes L1; otherwise it may be empty.
    pub out: [&'a mut [u64]; 2],
}

/// Number of vectors that are multiplied together, so that each element of the register is loaded once for all of them.
const TOGETHER: usize = 4;

/// Number of MABs whose vectors are computed together. Decoding, products and rounding are separate loops with buffers
/// between them, because the compiler does not vectorise a single loop that does it all.
const MABS: usize = 8;

/// Calls `$work(first MAB, matrices, cycles)` for pieces of at most [`MABS`] MABs and [`TOGETHER`] cycles. It is a macro,
/// because only inlined code is compiled for a level.
macro_rules! in_pieces {
    ($a:expr, $cycles:expr, |$mab:ident, $matrices:ident, $piece:ident| $work:block) => {
        for $piece in $cycles.chunks_mut(TOGETHER) {
            for ($mab, $matrices) in $a.chunks(MABS).enumerate().map(|(k, a)| (k * MABS, a)) {
                $work
            }
        }
    };
}
use in_pieces;

/// The long words of consecutive MABs.
#[inline(always)]
fn long_words(first: usize, mabs: usize) -> std::ops::Range<usize> {
    first * MAB_PES..(first + mabs) * MAB_PES
}

/// The long words of a MAB.
#[inline(always)]
fn block(row: &[u64], mab: usize) -> [u64; MAB_PES] {
    let mut block = [0; MAB_PES];
    block.copy_from_slice(&row[long_words(mab, 1)]);
    block
}

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
    let cycles = cycles(mabs, length);
    (0..mabs).flat_map(move |mab| (0..cycles).map(move |c| (mab, first(mabs, mab, c))))
}

/// Cycles in rows of `length` long words.
#[inline(always)]
fn cycles(mabs: usize, length: usize) -> usize {
    length.checked_div(mabs * MAB_PES).unwrap_or(0)
}

/// First long word of the vector of a MAB in a cycle.
#[inline(always)]
fn first(mabs: usize, mab: usize, cycle: usize) -> usize {
    (cycle * mabs + mab) * MAB_PES
}

/// Vectors that a matrix meets at once, so that each element of the register is loaded once for all of them.
const TOGETHER: usize = 4;

/// MABs whose vectors are worked on together. Decoding, products and rounding are loops of their own, with what they hand on
/// in memory: joined, they become too much for the compiler to vectorise.
const MABS: usize = 8;

/// Calls `$work(first MAB, MABs, first cycle, cycles)` for pieces of at most [`MABS`] MABs and [`TOGETHER`] cycles. A macro,
/// since only what is inlined is compiled for a level.
macro_rules! in_pieces {
    ($mabs:expr, $cycles:expr, |$mab:ident, $width:ident, $cycle:ident, $count:ident| $work:block) => {
        let mut $cycle = 0;
        while $cycle < $cycles {
            let $count = TOGETHER.min($cycles - $cycle);
            let mut $mab = 0;
            while $mab < $mabs {
                let $width = MABS.min($mabs - $mab);
                // The work may `continue`.
                for _ in 0..1 {
                    $work
                }
                $mab += $width;
            }
            $cycle += $count;
        }
    };
}
use in_pieces;

/// The long words of a vector.
#[inline(always)]
fn block(row: &[u64], first: usize) -> [u64; MAB_PES] {
    let mut block = [0; MAB_PES];
    block.copy_from_slice(&row[first..first + MAB_PES]);
    block
}

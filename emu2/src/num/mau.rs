//! Vector multiply-add rows of the MAU: `out = x * y + z`, rounded once (manual, chapter on the MAU).
//!
//! Inputs are already converted lanes. `vmul` passes a row of +0 as z, `vadd` a row of 1.0 as y and its second operand as
//! z, `vpassa` both. A PE that an instruction leaves out (`u`/`d` of the double forms) has the product 0. Kernels named
//! `_r` round directly to the next lower format and pack the result from the MSB side; the rest of the long word is 0.
//!
//! Outputs are normalised: infinities have fraction 0, zeros are +0, nothing is denormal.

use super::clone_choice::choosing_kernel;

mod certain_rounding;
mod double;
mod half;
mod round;
mod single;

pub use double::{d_add, d_fma, d_fma_both, d_fma_r};
pub use half::{h_fma, h_fma_r};
pub(crate) use single::flushed as flushed_single;
pub use single::{f_add, f_fma, f_fma_r};

pub(crate) use double::{add_round as d_add_round, product as d_product};
pub(crate) use round::{
    add_odd, finish, flip, half_to_f64, round_to, round_to_single, single_to_f64, UNDERFLOW_AFTER_ROUNDING,
};

/// The operands whose lanes all have their sign bit flipped (`-` before a source), after any conversion.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MauNeg {
    /// The first multiplicand.
    pub x: bool,
    /// The second multiplicand.
    pub y: bool,
    /// The addend.
    pub z: bool,
}

/// How the final output of a MAU instruction lies on the 128-bit path.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum MauOutput {
    /// One double in L0.
    D,
    /// Two singles in L0.
    F,
    /// Four singles in L0 and L1.
    H,
    /// One single in w0 (reduced double).
    DReduced,
    /// Two halves in w0 (reduced single).
    FReduced,
    /// Four halves in L0 (reduced half-precision product).
    HReduced,
}

choosing_kernel! {
/// MAU flags: 1 if the sign of the output lane is 0. `out0` is the L0 row. `out1` is the L1 row; only [`MauOutput::H`] uses
/// it, otherwise it may be empty. `flags` has one entry per PE, b0 = value 8.
pub fn mau_flags(output: MauOutput, out0: &[u64], out1: &[u64], flags: &mut [u8]) {
    let sign = |v: u64, bit: u32, flags: u64| ((v >> bit) & 1) * flags;
    match output {
        MauOutput::D | MauOutput::DReduced => fill(out0, flags, |v| sign(v, 63, 0b1111)),
        MauOutput::F => fill(out0, flags, |v| sign(v, 63, 0b1100) | sign(v, 31, 0b0011)),
        MauOutput::FReduced => fill(out0, flags, |v| sign(v, 63, 0b1100) | sign(v, 47, 0b0011)),
        MauOutput::HReduced => fill(out0, flags, |v| sign(v, 63, 8) | sign(v, 47, 4) | sign(v, 31, 2) | sign(v, 15, 1)),
        MauOutput::H => {
            for ((flag, &v), &w) in flags.iter_mut().zip(out0).zip(out1) {
                let signs = sign(v, 63, 8) | sign(v, 31, 4) | sign(w, 63, 2) | sign(w, 31, 1);
                *flag = !signs as u8 & 15;
            }
        }
    }
}
}

#[inline(always)]
fn fill(row: &[u64], flags: &mut [u8], signs: impl Fn(u64) -> u64) {
    debug_assert_eq!(row.len(), flags.len());
    for (flag, &v) in flags.iter_mut().zip(row) {
        *flag = !signs(v) as u8 & 15;
    }
}

//! Number formats, rounding and the arithmetic kernels: pure functions on bits.
//!
//! A **row** is `&[u64]` with one 64-bit long word per PE, PEs side by side (PE index `4 * mab + pe`). The PE data path is
//! 128 bits: two rows, L0 (MSB side) and L1. Lane 0 of a long word is the most significant one. Kernels are straight loops
//! over rows of equal length, without branches per element.
//!
//! Nothing here knows the machine. Kernels are found by name ([`alu::alu_kernel`], [`flags::FlagRule::from_name`]).
//! Parameters of a spec (shift amounts, omitted multiplier bits, tables) are arguments. Each behaviour that no source
//! establishes has exactly one place, marked `guess:`.

#[cfg(target_endian = "big")]
compile_error!("lanes of a row are viewed in place as u16/u32, which needs a little-endian host");

/// PEs of a MAB. The shapes of blocks and matrix registers follow from this number (a half matrix is 16 x 16), so the
/// kernels are built for it. Rows hold whole MABs.
pub const MAB_PES: usize = 4;

pub mod alu;
pub mod blockfloat;
pub mod clone_choice;
pub mod convert;
pub mod flags;
pub mod format;
pub mod lane;
pub mod level;
pub mod matvec;
pub mod mau;
pub mod reduce;

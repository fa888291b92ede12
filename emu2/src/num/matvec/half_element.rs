//! Elements of a block of halves: mantissas, and what their units are worth.

use crate::num::blockfloat::EXTENSION;

pub(super) const EXP: u16 = 0x7E00;
pub(super) const FRAC: u16 = 0x01FF;

/// Signed mantissa in units of an extended element.
#[inline(always)]
pub(super) fn mantissa(v: u16) -> i16 {
    let (short, usual) = (short_mantissa(v), i16::from(v & EXP != 0));
    (short & (usual - 1)) | (short << EXTENSION & -usual)
}

/// Signed mantissa of an element that is not extended.
#[inline(always)]
pub(super) fn short_mantissa(v: u16) -> i16 {
    // This is a conditional negation. Written as a branch it keeps the loops around it from vectorising.
    let sign = v as i16 >> 15;
    ((v & FRAC) as i16 ^ sign) - sign
}

/// How many units of an extended element make the unit of another element.
pub(super) const EXTENDED: f32 = (1u32 << EXTENSION) as f32;

/// The value of a signed mantissa's unit in a block with this exponent field: `2^(E - 31 - 8)`, divided by 2^6, because it
/// is the unit of an extended element.
#[inline(always)]
pub(super) fn unit_of(field: u16) -> f32 {
    f32::from_bits((u32::from(field >> 9) + 127 - 31 - 8 - EXTENSION) << 23)
}

/// Whether the element is extended and not 0.
#[inline(always)]
pub(super) fn is_extended(v: u16) -> bool {
    // `&&` would be a branch.
    (v & EXP == 0) & (v & FRAC != 0)
}

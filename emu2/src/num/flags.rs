//! Flag vectors: 4 bits per PE and cycle, b0 (MSB side) = value 8.
//!
//! With n lanes, each lane's flag is repeated 4/n times, lane 0 first (manual, chapter on flag generation).

use super::alu::AluParams;
use super::clone_choice::choosing_kernel;
use super::lane::{Lane, Word};

/// The condition under which a lane's flag is 1. The spec names one rule per instruction.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum FlagRule {
    /// The instruction produces no flag.
    None,
    /// All bits of the result are 0.
    ResultZero,
    /// The top bit of the result is 0 (signed add, sub, inc, dec; float outputs of the MAU).
    MsbClear,
    /// Unsigned x + y or x + 1 did not carry out.
    NoCarry,
    /// Unsigned x - y or x - 1 did not borrow.
    NoBorrow,
    /// All bits of x are 0.
    XZero,
    /// The top bit of x is 0.
    XMsbClear,
    /// Bit `AluParams::bit` of x, counted from the top, is 0.
    XBitClear,
    /// The top bit of y is 0.
    YMsbClear,
    /// x was the output (max and min; ties included).
    XChosen,
}

/// The names that the spec uses.
const NAMES: [(&str, FlagRule); 10] = [
    ("none", FlagRule::None),
    ("result_zero", FlagRule::ResultZero),
    ("msb_clear", FlagRule::MsbClear),
    ("no_carry", FlagRule::NoCarry),
    ("no_borrow", FlagRule::NoBorrow),
    ("x_zero", FlagRule::XZero),
    ("x_msb_clear", FlagRule::XMsbClear),
    ("x_bit_clear", FlagRule::XBitClear),
    ("y_msb_clear", FlagRule::YMsbClear),
    ("x_chosen", FlagRule::XChosen),
];

impl FlagRule {
    /// The rule of a spec name.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        NAMES.iter().find(|(n, _)| *n == name).map(|(_, rule)| *rule)
    }

    /// The spec name of the rule.
    #[must_use]
    pub fn name(self) -> &'static str {
        NAMES.iter().find(|(_, rule)| *rule == self).map_or("none", |(name, _)| name)
    }

    /// All names, for messages.
    pub fn names() -> impl Iterator<Item = &'static str> {
        NAMES.iter().map(|(name, _)| *name)
    }

    /// Computes the flags of one cycle. `x` and `y` are the input rows, `out` is the result row before any flush, `flags`
    /// has one entry per PE. Rules that do not mention y ignore that row.
    pub fn eval(self, lane: Lane, params: &AluParams, x: &[u64], y: &[u64], out: &[u64], flags: &mut [u8]) {
        match lane.width() {
            16 => eval_h(self, params, x, y, out, flags),
            32 => eval_f(self, params, x, y, out, flags),
            _ => eval_d(self, params, x, y, out, flags),
        }
    }

    #[inline(always)]
    fn eval_lanes<T: Word>(self, params: &AluParams, x: &[u64], y: &[u64], out: &[u64], flags: &mut [u8]) {
        match self {
            // guess: writing the flags of an instruction without a flag rule stores 0.
            Self::None => flags.fill(0),
            Self::ResultZero => fill::<T>(out, out, flags, |r, _| r == T::ZERO),
            // guess: on signed overflow this is the sign of the wrapped result, not of the mathematical one.
            Self::MsbClear => fill::<T>(out, out, flags, |r, _| r & T::MSB == T::ZERO),
            // A sum wraps exactly if it is below an addend, a difference exactly if it is above the minuend.
            Self::NoCarry => fill::<T>(x, out, flags, |a, r| r >= a),
            Self::NoBorrow => fill::<T>(x, out, flags, |a, r| r <= a),
            Self::XZero => fill::<T>(x, x, flags, |a, _| a == T::ZERO),
            Self::XMsbClear => fill::<T>(x, x, flags, |a, _| a & T::MSB == T::ZERO),
            Self::XBitClear => {
                let bit = T::MSB.shr(params.bit);
                fill::<T>(x, x, flags, |a, _| a & bit == T::ZERO);
            }
            Self::YMsbClear => fill::<T>(y, y, flags, |b, _| b & T::MSB == T::ZERO),
            // If y is the output and has the bits of x, that is a tie, which counts as x.
            Self::XChosen => fill::<T>(x, out, flags, |a, r| a == r),
        }
    }
}

choosing_kernel! {
    fn eval_h(rule: FlagRule, params: &AluParams, x: &[u64], y: &[u64], out: &[u64], flags: &mut [u8]) {
        rule.eval_lanes::<u16>(params, x, y, out, flags);
    }

    fn eval_f(rule: FlagRule, params: &AluParams, x: &[u64], y: &[u64], out: &[u64], flags: &mut [u8]) {
        rule.eval_lanes::<u32>(params, x, y, out, flags);
    }

    fn eval_d(rule: FlagRule, params: &AluParams, x: &[u64], y: &[u64], out: &[u64], flags: &mut [u8]) {
        rule.eval_lanes::<u64>(params, x, y, out, flags);
    }
}

#[inline(always)]
fn fill<T: Word>(a: &[u64], b: &[u64], flags: &mut [u8], f: impl Fn(T, T) -> bool) {
    debug_assert_eq!(a.len(), flags.len());
    debug_assert_eq!(b.len(), flags.len());
    let lanes = (64 / T::BITS) as usize;
    let (a, b): (&[T], &[T]) = (bytemuck::cast_slice(a), bytemuck::cast_slice(b));
    for ((flag, a), b) in flags.iter_mut().zip(a.chunks_exact(lanes)).zip(b.chunks_exact(lanes)) {
        // In memory the last lane of the little-endian long word comes first.
        let mut bits = 0;
        for k in 0..lanes {
            let repeated = (1u8 << (4 / lanes)) - 1;
            bits |= (u8::from(f(a[k], b[k])) * repeated) << (k * (4 / lanes));
        }
        *flag = bits;
    }
}

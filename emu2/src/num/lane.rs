//! Lanes of a long word, and the word type in which a kernel computes.

use super::format::FloatFormat;
use bytemuck::Pod;
use std::ops::{BitAnd, BitOr, BitXor, Not};

/// Precision prefix of an instruction: how a long word is cut into lanes, and whether a lane is a float or an integer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Lane {
    /// One double.
    D,
    /// Two singles.
    F,
    /// Four halves.
    H,
    /// One 64-bit integer.
    L,
    /// Two 32-bit integers.
    I,
    /// Four 16-bit integers.
    S,
}

impl Lane {
    /// All precisions.
    pub const ALL: [Self; 6] = [Self::D, Self::F, Self::H, Self::L, Self::I, Self::S];

    /// The precision of an opcode letter.
    #[must_use]
    pub fn from_letter(letter: char) -> Option<Self> {
        match letter {
            'd' => Some(Self::D),
            'f' => Some(Self::F),
            'h' => Some(Self::H),
            'l' => Some(Self::L),
            'i' => Some(Self::I),
            's' => Some(Self::S),
            _ => None,
        }
    }

    /// Width of a lane in bits.
    #[must_use]
    pub const fn width(self) -> u32 {
        match self {
            Self::D | Self::L => 64,
            Self::F | Self::I => 32,
            Self::H | Self::S => 16,
        }
    }

    /// Lanes in a long word.
    #[must_use]
    pub const fn count(self) -> usize {
        (64 / self.width()) as usize
    }

    /// The floating point format of a float lane, `None` for integers.
    #[must_use]
    pub const fn format(self) -> Option<FloatFormat> {
        match self {
            Self::D => Some(FloatFormat::DOUBLE),
            Self::F => Some(FloatFormat::SINGLE),
            Self::H => Some(FloatFormat::HALF),
            Self::L | Self::I | Self::S => None,
        }
    }
}

/// An unsigned word that holds one lane. Each width has one float format, so the word type names it as well.
pub(crate) trait Word:
    Pod + Ord + Not<Output = Self> + BitAnd<Output = Self> + BitOr<Output = Self> + BitXor<Output = Self>
{
    /// Width in bits.
    const BITS: u32;
    /// Float format of this width.
    const FORMAT: FloatFormat;
    const ZERO: Self;
    const ONE: Self;
    const MAX: Self;
    /// Only the top bit.
    const MSB: Self;
    /// Exponent field of the float format.
    const EXP: Self;
    /// Fraction field of the float format.
    const FRAC: Self;

    /// The low bits of `v`.
    fn from_u32(v: u32) -> Self;
    /// The low bits of the word.
    fn to_u32(self) -> u32;
    /// The low bits of `v`.
    fn from_u64(v: u64) -> Self;
    fn to_u64(self) -> u64;
    fn add(self, other: Self) -> Self;
    fn sub(self, other: Self) -> Self;
    /// Shift left by `n < BITS`.
    fn shl(self, n: u32) -> Self;
    /// Logical shift right by `n < BITS`.
    fn shr(self, n: u32) -> Self;
    /// Arithmetic shift right by `n < BITS`.
    fn sar(self, n: u32) -> Self;
    fn rotl(self, n: u32) -> Self;
}

macro_rules! impl_word {
    ($word:ty, $signed:ty, $format:expr) => {
        impl Word for $word {
            const BITS: u32 = <$word>::BITS;
            const FORMAT: FloatFormat = $format;
            const ZERO: Self = 0;
            const ONE: Self = 1;
            const MAX: Self = <$word>::MAX;
            const MSB: Self = 1 << (<$word>::BITS - 1);
            const EXP: Self = $format.exp_mask() as $word;
            const FRAC: Self = $format.frac_mask() as $word;

            #[inline(always)]
            fn from_u32(v: u32) -> Self {
                v as $word
            }
            #[inline(always)]
            fn to_u32(self) -> u32 {
                self as u32
            }
            #[inline(always)]
            fn from_u64(v: u64) -> Self {
                v as $word
            }
            #[inline(always)]
            fn to_u64(self) -> u64 {
                self as u64
            }
            #[inline(always)]
            fn add(self, other: Self) -> Self {
                self.wrapping_add(other)
            }
            #[inline(always)]
            fn sub(self, other: Self) -> Self {
                self.wrapping_sub(other)
            }
            #[inline(always)]
            fn shl(self, n: u32) -> Self {
                self.wrapping_shl(n)
            }
            #[inline(always)]
            fn shr(self, n: u32) -> Self {
                self.wrapping_shr(n)
            }
            #[inline(always)]
            fn sar(self, n: u32) -> Self {
                (self as $signed).wrapping_shr(n) as $word
            }
            #[inline(always)]
            fn rotl(self, n: u32) -> Self {
                self.rotate_left(n)
            }
        }
    };
}

impl_word!(u16, i16, FloatFormat::HALF);
impl_word!(u32, i32, FloatFormat::SINGLE);
impl_word!(u64, i64, FloatFormat::DOUBLE);

/// `if cond { a } else { b }`, in a form that LLVM turns into a vector select.
#[inline(always)]
pub(crate) fn select<T>(cond: bool, a: T, b: T) -> T {
    if cond {
        a
    } else {
        b
    }
}

/// A key whose unsigned order is the order as sign-magnitude integers.
#[inline(always)]
pub(crate) fn float_key<T: Word>(v: T) -> T {
    // Negative numbers are complemented, so that larger magnitudes sort lower. Of the others, only the top bit is flipped.
    v ^ (v.sar(T::BITS - 1) | T::MSB)
}

/// `out[lane] = f(x[lane])`.
#[inline(always)]
pub(crate) fn map1<T: Word>(x: &[u64], out: &mut [u64], f: impl Fn(T) -> T) {
    debug_assert_eq!(x.len(), out.len());
    let x: &[T] = bytemuck::cast_slice(x);
    let out: &mut [T] = bytemuck::cast_slice_mut(out);
    for (o, &a) in out.iter_mut().zip(x) {
        *o = f(a);
    }
}

/// `out[lane] = f(x[lane], y[lane])`.
#[inline(always)]
pub(crate) fn map2<T: Word>(x: &[u64], y: &[u64], out: &mut [u64], f: impl Fn(T, T) -> T) {
    debug_assert_eq!(x.len(), out.len());
    debug_assert_eq!(y.len(), out.len());
    let x: &[T] = bytemuck::cast_slice(x);
    let y: &[T] = bytemuck::cast_slice(y);
    let out: &mut [T] = bytemuck::cast_slice_mut(out);
    for ((o, &a), &b) in out.iter_mut().zip(x).zip(y) {
        *o = f(a, b);
    }
}

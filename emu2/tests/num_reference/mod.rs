//! Slow, obviously correct arithmetic: the rules of the manual on exact big numbers, one lane at a time. Shares no code
//! with the kernels of `emu2::num`.
#![allow(dead_code, unreachable_pub)] // every test binary uses its own part

pub mod alu;
pub mod block;
pub mod gen;
pub mod reduce;

use num_bigint::{BigInt, Sign};

/// A float format: exponent and fraction widths.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fmt {
    pub e: u32,
    pub m: u32,
}

pub const H: Fmt = Fmt { e: 6, m: 9 };
pub const F: Fmt = Fmt { e: 8, m: 23 };
pub const D: Fmt = Fmt { e: 11, m: 52 };

impl Fmt {
    pub fn width(self) -> u32 {
        1 + self.e + self.m
    }
    pub fn bias(self) -> i64 {
        (1 << (self.e - 1)) - 1
    }
    pub fn ones(self) -> u64 {
        (1 << self.e) - 1
    }
    pub fn sign(self, bits: u64) -> u64 {
        (bits >> (self.e + self.m)) & 1
    }
    pub fn exp(self, bits: u64) -> u64 {
        (bits >> self.m) & self.ones()
    }
    pub fn frac(self, bits: u64) -> u64 {
        bits & ((1 << self.m) - 1)
    }
    pub fn pack(self, sign: u64, exp: u64, frac: u64) -> u64 {
        assert!(sign < 2 && exp <= self.ones() && frac >> self.m == 0);
        (sign << (self.e + self.m)) | (exp << self.m) | frac
    }
    pub fn one(self) -> u64 {
        self.pack(0, self.bias() as u64, 0)
    }
    /// Exact value. Exponent field 0 is zero; all ones is a number like any other.
    pub fn value(self, bits: u64) -> Exact {
        if self.exp(bits) == 0 {
            return Exact::zero();
        }
        let m = BigInt::from((1u64 << self.m) + self.frac(bits));
        Exact::new(if self.sign(bits) == 1 { -m } else { m }, self.exp(bits) as i64 - self.bias() - i64::from(self.m))
    }
}

/// An exact dyadic number `mant * 2^exp`.
#[derive(Clone, Debug)]
pub struct Exact {
    pub mant: BigInt,
    pub exp: i64,
}

impl Exact {
    pub fn new(mant: BigInt, exp: i64) -> Self {
        Self { mant, exp }
    }
    pub fn zero() -> Self {
        Self::new(BigInt::ZERO, 0)
    }
    pub fn is_zero(&self) -> bool {
        self.mant.sign() == Sign::NoSign
    }
    pub fn plus(&self, other: &Self) -> Self {
        // The exponent of a zero has no meaning and must not decide the alignment.
        if self.is_zero() {
            return other.clone();
        }
        if other.is_zero() {
            return self.clone();
        }
        let exp = self.exp.min(other.exp);
        let a = &self.mant << (self.exp - exp) as u64;
        let b = &other.mant << (other.exp - exp) as u64;
        Self::new(a + b, exp)
    }
    pub fn times(&self, other: &Self) -> Self {
        Self::new(&self.mant * &other.mant, self.exp + other.exp)
    }
    pub fn negative(&self) -> bool {
        self.mant.sign() == Sign::Minus
    }
    /// Floor of the value as an integer.
    pub fn floor(&self) -> BigInt {
        if self.exp >= 0 {
            &self.mant << self.exp as u64
        } else {
            &self.mant >> (-self.exp) as u64 // rounds toward -infinity
        }
    }
}

/// `mag / 2^shift` to the nearest integer, ties to even; negative shifts multiply.
pub fn rne(mag: &BigInt, shift: i64) -> BigInt {
    assert!(mag.sign() != Sign::Minus);
    if shift <= 0 {
        return mag << (-shift) as u64;
    }
    let quotient: BigInt = mag >> shift as u64;
    let twice_rest: BigInt = (mag - (&quotient << shift as u64)) * 2;
    let one: BigInt = BigInt::from(1) << shift as u64;
    let up = twice_rest > one || (twice_rest == one && quotient.bit(0));
    quotient + u32::from(up)
}

/// Rounds to the nearest value of the format with unbounded exponent. Zero gives `None`, others (exponent field, fraction).
fn round_unbounded(fmt: Fmt, v: &Exact) -> Option<(i64, u64)> {
    if v.is_zero() {
        return None;
    }
    let mag = BigInt::from(v.mant.magnitude().clone());
    let drop = mag.bits() as i64 - i64::from(fmt.m + 1);
    let mut q = u64::try_from(rne(&mag, drop)).expect("fits");
    let mut exp = v.exp + drop + i64::from(fmt.m) + fmt.bias();
    if q >> (fmt.m + 1) != 0 {
        q >>= 1;
        exp += 1;
    }
    Some((exp, q - (1 << fmt.m)))
}

/// MAU output: nearest even, exponent test after rounding, no -0, infinities without fraction.
pub fn round_output(fmt: Fmt, v: &Exact) -> u64 {
    let sign = u64::from(v.negative());
    match round_unbounded(fmt, v) {
        Some((exp, _)) if exp >= fmt.ones() as i64 => fmt.pack(sign, fmt.ones(), 0),
        Some((exp, frac)) if exp > 0 => fmt.pack(sign, exp as u64, frac),
        _ => 0,
    }
}

/// Operand conversion between formats. It keeps the sign, even of zeros.
pub fn convert(from: Fmt, to: Fmt, bits: u64) -> u64 {
    let sign = from.sign(bits);
    if from.exp(bits) == from.ones() {
        return to.pack(sign, to.ones(), 0);
    }
    let magnitude = round_output(to, &from.value(bits)) & ((1 << (to.width() - 1)) - 1);
    (sign << (to.width() - 1)) | magnitude
}

/// Product of two integers. Their bits, counted from `m` (the last one) upwards to 1, are partial product columns. Pairs
/// with both bits among the last `omit` are not formed. If any of the dropped pairs is non-zero, a stand-in of weight
/// `2^(2 omit - 2)` is added.
pub fn approximate(a: u64, b: u64, omit: u32) -> u128 {
    let mut sum = 0u128;
    let mut dropped = false;
    for j in 0..64 {
        if (a >> j) & 1 == 0 {
            continue;
        }
        for k in 0..64 {
            if (b >> k) & 1 == 0 {
                continue;
            }
            if j < omit && k < omit {
                dropped = true;
            } else {
                sum += 1u128 << (j + k);
            }
        }
    }
    if dropped {
        sum += 1u128 << (2 * omit - 2);
    }
    sum
}

/// Product as the vector MAU forms it. With `omit` = 0 it is exact.
pub fn product(fmt: Fmt, a: u64, b: u64, omit: u32) -> Exact {
    if fmt.exp(a) == 0 || fmt.exp(b) == 0 {
        return Exact::zero();
    }
    let hidden = 1u64 << fmt.m;
    let (sa, sb) = (hidden | fmt.frac(a), hidden | fmt.frac(b));
    let mant =
        if omit == 0 { BigInt::from(u128::from(sa) * u128::from(sb)) } else { BigInt::from(approximate(sa, sb, omit)) };
    let exp = fmt.exp(a) as i64 + fmt.exp(b) as i64 - 2 * (fmt.bias() + i64::from(fmt.m));
    Exact::new(if fmt.sign(a) == fmt.sign(b) { mant } else { -mant }, exp)
}

/// One lane of a vector multiply-add: factors in `fmt`, addend in `add`, output in `out`.
pub fn fma(fmt: Fmt, add: Fmt, out: Fmt, omit: u32, a: u64, b: u64, c: u64) -> u64 {
    round_output(out, &product(fmt, a, b, omit).plus(&add.value(c)))
}

/// Lane `k` (0 = most significant) of a long word.
pub fn lane(word: u64, width: u32, k: u32) -> u64 {
    let v = word >> (64 - width * (k + 1));
    if width == 64 {
        v
    } else {
        v & ((1 << width) - 1)
    }
}

/// Long word from lanes, most significant first.
pub fn pack_lanes(width: u32, lanes: &[u64]) -> u64 {
    lanes.iter().enumerate().fold(0, |w, (k, &v)| w | v << (64 - width * (k as u32 + 1)))
}

/// 4 flag bits from the flags of n lanes.
pub fn flag_bits(flags: &[bool]) -> u8 {
    let n = flags.len();
    (0..4).fold(0, |bits, b| bits << 1 | u8::from(flags[b * n / 4]))
}

/// Whether the long test variants are requested.
pub fn long() -> bool {
    std::env::var("EMU2_LONG").is_ok_and(|v| v == "1")
}

/// Configuration of a property test. A failure prints its minimal input; no regression files are left in the tree.
pub fn proptest(cases: u32) -> proptest::test_runner::Config {
    proptest::test_runner::Config { cases, failure_persistence: None, ..Default::default() }
}

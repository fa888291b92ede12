//! Block float: conversion by value, and matrix-vector products of block float words.

use super::{approximate, rne, round_output, Exact, Fmt, H};
use num_bigint::BigInt;

/// How a block is cut: the mantissa bits that are kept, the raise of the exponent, the low fraction bits that stay 0.
#[derive(Clone, Copy, Debug)]
pub struct Cut {
    pub kept: u32,
    pub raise: u32,
    pub low: u32,
    pub extended: bool,
}

/// The mantissa under the block exponent `exp`: `|value| / 2^(exp - bias - (m - 1) + low)`, rounded to nearest even.
fn mantissa(fmt: Fmt, bits: u64, exp: i64, low: u32) -> u64 {
    let v = fmt.value(bits);
    let magnitude = BigInt::from(v.mant.magnitude().clone());
    let unit = exp - fmt.bias() - i64::from(fmt.m - 1) + i64::from(low);
    u64::try_from(rne(&magnitude, unit - v.exp)).expect("fits")
}

/// Converts one block of floats.
pub fn convert(fmt: Fmt, cut: Cut, block: &[u64]) -> Vec<u64> {
    let top = block.iter().map(|&v| fmt.exp(v)).max().expect("elements");
    let bare = |exp: u64| block.iter().map(|&v| fmt.pack(fmt.sign(v), exp, 0)).collect();
    if top == 0 {
        return bare(0);
    }
    if top == fmt.ones() {
        return bare(fmt.ones());
    }
    let raised = (top + u64::from(cut.raise)) as i64;
    let limit = 1u64 << cut.kept;
    // The largest elements carry if their mantissa does not fit the kept bits.
    let carry = block.iter().any(|&v| fmt.exp(v) == top && mantissa(fmt, v, raised, cut.low) >= limit);
    let exp = raised + i64::from(carry);
    if exp >= fmt.ones() as i64 {
        return bare(fmt.ones());
    }
    block
        .iter()
        .map(|&v| {
            if fmt.exp(v) == 0 {
                return fmt.pack(fmt.sign(v), if cut.extended { 0 } else { exp as u64 }, 0);
            }
            if cut.extended {
                let far = exp - fmt.exp(v) as i64 >= 6 + i64::from(cut.raise);
                let q = mantissa(fmt, v, exp - 6, cut.low);
                if far && q < limit {
                    return fmt.pack(fmt.sign(v), 0, q);
                }
            }
            let q = mantissa(fmt, v, exp, cut.low);
            let field = if cut.extended && q == 0 { 0 } else { exp as u64 };
            fmt.pack(fmt.sign(v), field, q << cut.low)
        })
        .collect()
}

/// How a matrix unit multiplies mantissas.
#[derive(Clone, Copy, Debug)]
pub struct Unit {
    pub fmt: Fmt,
    /// Low bits whose mutual products are omitted.
    pub omit: u32,
    /// Number of low bits that the multiplier does not see.
    pub ignore: u32,
}

/// The value of an element of a block with shared exponent `exp`, as sign, mantissa and power of two.
fn element(unit: Unit, bits: u64, exp: u64) -> (bool, u64, i64) {
    let fmt = unit.fmt;
    let f = fmt.frac(bits) >> unit.ignore << unit.ignore;
    let extended = fmt == H && fmt.exp(bits) == 0 && f != 0;
    let power = exp as i64 - fmt.bias() - i64::from(fmt.m - 1) - if extended { 6 } else { 0 };
    (fmt.sign(bits) == 1, f, power)
}

/// One row of a matrix times a vector plus a normal float, rounded to `out`.
pub fn dot(unit: Unit, row: &[u64], x: &[u64], add: Fmt, c: u64, out: Fmt) -> u64 {
    let exp = |block: &[u64]| block.iter().map(|&v| unit.fmt.exp(v)).max().expect("elements");
    let (ea, ex) = (exp(row), exp(x));
    let mut sum = Exact::zero();
    for (&a, &b) in row.iter().zip(x) {
        let (na, fa, pa) = element(unit, a, ea);
        let (nb, fb, pb) = element(unit, b, ex);
        let product = BigInt::from(approximate(fa, fb, unit.omit));
        sum = sum.plus(&Exact::new(if na == nb { product } else { -product }, pa + pb));
    }
    round_output(out, &sum.plus(&add.value(c)))
}

//! The reduction network: one stage on one lane.

use super::{convert, rne, round_output, Exact, Fmt, D, F, H};
use num_bigint::BigInt;

/// One stage of a float sum. Alignment and result are rounded.
pub fn fadd(fmt: Fmt, out: Fmt, lanes: &[u64]) -> u64 {
    let top = lanes.iter().map(|&v| fmt.exp(v)).max().expect("elements") as i64;
    // The last guard bit of an input with the largest exponent.
    let unit = top - fmt.bias() - i64::from(fmt.m) - 3;
    let mut total = BigInt::ZERO;
    for &v in lanes {
        let x = fmt.value(v);
        let aligned = rne(&BigInt::from(x.mant.magnitude().clone()), unit - x.exp);
        total += if fmt.sign(v) == 1 { -aligned } else { aligned };
    }
    round_output(out, &Exact::new(total, unit))
}

fn order(width: u32, v: u64) -> i128 {
    let magnitude = i128::from(v & (u64::MAX >> (65 - width)));
    // -0 lies below +0.
    if v >> (width - 1) == 1 {
        -magnitude - 1
    } else {
        magnitude
    }
}

/// One stage of any reduction.
pub fn stage(name: &str, width: u32, lanes: &[u64]) -> u64 {
    let mask = u64::MAX >> (64 - width);
    let fmt = [H, F, D][(width / 32) as usize];
    let all = lanes.iter().copied();
    match name {
        "fadd" => fadd(fmt, fmt, lanes),
        "max" => all.max_by_key(|&v| order(width, v)).expect("elements"),
        "min" => all.min_by_key(|&v| order(width, v)).expect("elements"),
        "iadd" => (all.map(u128::from).sum::<u128>() & u128::from(mask)) as u64,
        "band" => all.fold(mask, |a, b| a & b),
        "bor" => all.fold(0, |a, b| a | b),
        "and" => u64::from(lanes.iter().all(|&v| v != 0)),
        "or" => u64::from(lanes.iter().any(|&v| v != 0)),
        _ => panic!("no reference for {name}"),
    }
}

/// A tree of stages over consecutive groups.
pub fn tree(name: &str, width: u32, fan_in: &[usize], lanes: &[u64]) -> u64 {
    let mut level = lanes.to_vec();
    for &n in fan_in {
        level = level.chunks(n).map(|group| stage(name, width, group)).collect();
    }
    assert_eq!(level.len(), 1);
    level[0]
}

/// The same, with a last stage that gives halves: sums are rounded once, a winner is converted.
pub fn narrowed(name: &str, width: u32, fan_in: &[usize], lanes: &[u64]) -> u64 {
    assert_eq!(width, 32);
    let (last, inner) = fan_in.split_last().expect("a stage");
    let mut level = lanes.to_vec();
    for &n in inner {
        level = level.chunks(n).map(|group| stage(name, width, group)).collect();
    }
    assert_eq!(level.len(), *last);
    match name {
        "fadd" => fadd(F, H, &level),
        _ => convert(F, H, stage(name, width, &level)),
    }
}

//! The ALU rules on one lane.

use super::{Exact, Fmt, D, F, H};
use num_bigint::BigInt;

/// Parameters, as the spec states them.
#[derive(Clone, Debug, Default)]
pub struct Params {
    pub bit: u32,
    pub amount: u32,
    pub table: [u8; 32],
}

fn float(width: u32) -> Fmt {
    match width {
        16 => H,
        32 => F,
        _ => D,
    }
}

fn mask(width: u32) -> u64 {
    u64::MAX >> (64 - width)
}

fn signed(width: u32, v: u64) -> i128 {
    let v = i128::from(v);
    if v >> (width - 1) == 1 {
        v - (1 << width)
    } else {
        v
    }
}

fn wrap(width: u32, v: i128) -> u64 {
    v as u64 & mask(width)
}

fn sign_magnitude(width: u32, v: u64) -> i128 {
    let magnitude = i128::from(v & (mask(width) >> 1));
    if v >> (width - 1) == 1 {
        -magnitude
    } else {
        magnitude
    }
}

/// Result and flag (`None`: no flag) of `name` on a lane; `class` is 'i' signed, 'u' unsigned, 'f' float, 'v' unsigned
/// float.
pub fn alu(name: &str, class: char, width: u32, p: &Params, x: u64, y: u64) -> (u64, Option<bool>) {
    let w = width;
    let fmt = float(w);
    let msb = 1u64 << (w - 1);
    let count = y % u64::from(2 * w);
    let zero = |r: u64| (r, Some(r == 0));
    let sum = |exact: i128| {
        let r = wrap(w, exact);
        let flag = if class == 'u' { (0..1i128 << w).contains(&exact) } else { r & msb == 0 };
        (r, Some(flag))
    };
    let num = |v: u64| if class == 'u' { i128::from(v) } else { signed(w, v) };
    match name {
        "passa" => zero(x),
        "inc" => sum(num(x) + 1),
        "dec" => sum(num(x) - 1),
        "add" => sum(num(x) + num(y)),
        "sub" => sum(num(x) - num(y)),
        "not" => zero(!x & mask(w)),
        "lnot" => zero(u64::from(x == 0)),
        "and" => zero(x & y),
        "or" => zero(x | y),
        "xor" => zero(x ^ y),
        "packbit" => ((x << 1 | y >> (w - 1)) & mask(w), Some(y & msb == 0)),
        "lsl" => zero((0..count).fold(x, |v, _| (v << 1) & mask(w))),
        "lsr" if class == 'u' => zero((0..count).fold(x, |v, _| v >> 1)),
        "lsr" => zero((0..count).fold(x, |v, _| v >> 1 | (v & msb))),
        "bsl" => zero((0..count).fold(x, |v, _| (v << 1 | v >> (w - 1)) & mask(w))),
        "bsr" => zero((0..count).fold(x, |v, _| v >> 1 | (v & 1) << (w - 1))),
        "max" | "min" => {
            let greater = name == "max";
            let x_out = if class != 'f' {
                num(x) == num(y) || (num(x) > num(y)) == greater
            } else if x == y || (fmt.exp(x) == 0 && fmt.exp(y) == 0) {
                true
            } else {
                (sign_magnitude(w, x) > sign_magnitude(w, y)) == greater
            };
            (if x_out { x } else { y }, Some(x_out))
        }
        "relu" => {
            let clear = (x >> (w - 1 - p.bit)) & 1 == 0;
            (if clear { y } else { msb }, Some(clear))
        }
        "lrelu" => {
            let exp = fmt.exp(y) as i64 - i64::from(p.amount);
            let divided = if fmt.exp(y) == fmt.ones() {
                y
            } else if exp <= 0 {
                msb
            } else {
                fmt.pack(fmt.sign(y), exp as u64, fmt.frac(y))
            };
            (if x & msb == 0 { y } else { divided }, Some(x & msb == 0))
        }
        "ilrelu" => {
            let exp = (fmt.exp(y) + u64::from(p.amount)).min(fmt.ones());
            let raised = fmt.pack(fmt.sign(y), exp, fmt.frac(y));
            (if x & msb == 0 { y } else { raised }, Some(x & msb == 0))
        }
        "rsqrt" => (rsqrt(fmt, p, x), Some(x & msb == 0)),
        "floor" => (floor(fmt, x), None),
        "ftoi" => (ftoi(fmt, class, x), None),
        _ => panic!("no reference for {name}"),
    }
}

fn rsqrt(fmt: Fmt, p: &Params, x: u64) -> u64 {
    if fmt.exp(x) == 0 {
        return fmt.pack(0, fmt.ones(), 0);
    }
    if fmt.exp(x) == fmt.ones() {
        return 0;
    }
    let e = fmt.exp(x) as i64 - fmt.bias();
    let odd = e.rem_euclid(2);
    let h = (e - odd) / 2;
    let k = fmt.frac(x) >> (fmt.m - 4);
    let y = u64::from(p.table[(16 * odd) as usize + k as usize]);
    fmt.pack(0, (fmt.bias() - 1 - h) as u64, (y - 32) << (fmt.m - 5))
}

fn floor(fmt: Fmt, x: u64) -> u64 {
    if fmt.exp(x) == 0 || fmt.exp(x) == fmt.ones() {
        return x;
    }
    // The floor of a number is exact in its own format.
    super::round_output(fmt, &Exact::new(fmt.value(x).floor(), 0))
}

fn ftoi(fmt: Fmt, class: char, x: u64) -> u64 {
    let w = fmt.width();
    let value = fmt.value(x & (mask(w) >> 1)); // infinities are larger than every integer as they stand
    let magnitude = value.floor();
    if class == 'v' {
        return u64::try_from(magnitude.min(BigInt::from(mask(w)))).expect("clipped");
    }
    let signed = if fmt.sign(x) == 1 { -magnitude } else { magnitude };
    let limit = BigInt::from(1) << (w - 1);
    let clipped = signed.clamp(-limit.clone(), limit - 1);
    wrap(w, i128::try_from(clipped).expect("clipped"))
}

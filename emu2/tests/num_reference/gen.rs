//! Operands that make error-prone cases likely, and the systematic boundary sets.

use super::{fma, product, round_output, Fmt};

/// A small, seedable generator (splitmix64) for bulk runs; print the seed of a run that fails.
pub struct Rng(pub u64);

impl Rng {
    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    }
    pub fn words<const N: usize>(&mut self) -> [u64; N] {
        std::array::from_fn(|_| self.next())
    }
}

/// Fractions where carries, ties and omitted low bits show.
pub fn fraction(m: u32, r: u64) -> u64 {
    let all = (1u64 << m) - 1;
    let v = r >> 8;
    let bit = 1u64 << (v % u64::from(m));
    match r % 12 {
        0 => 0,
        1 => 1,
        2 => all,
        3 => all - 1,
        4 => bit,
        5 => all ^ bit,
        6 => bit - 1,
        7 => all & !(bit - 1),
        8 => v & all & 0xFFFF, // only low bits
        9 => (v & all) | 1,
        10 => (v & all) >> (m / 2) << (m / 2), // only high bits
        _ => v & all,
    }
}

/// Any lane of the format: all exponent fields, but ordinary ones more often.
pub fn number(fmt: Fmt, r: [u64; 2]) -> u64 {
    let exp = match r[0] % 8 {
        0 => (r[0] >> 8) & fmt.ones(),
        1 => (r[0] >> 8) % 3,
        2 => fmt.ones() - (r[0] >> 8) % 3,
        3 => fmt.bias() as u64,
        _ => (fmt.bias() as u64 + (r[0] >> 8) % 8) - 4,
    };
    fmt.pack(r[1] >> 63, exp, fraction(fmt.m, r[1] & (u64::MAX >> 1)))
}

/// Operands of a fused operation: factors in `fmt`, addend in `add`.
pub fn fused(fmt: Fmt, add: Fmt, omit: u32, r: [u64; 6]) -> [u64; 3] {
    let a = number(fmt, [r[0], r[1]]);
    let b = number(fmt, [r[2], r[3]]);
    let p = product(fmt, a, b, omit);
    let sign = 1 << (add.width() - 1);
    let near = round_output(add, &p);
    let c = match r[4] % 6 {
        // Cancellation: the leading bits of the product with the other sign, a few units in the last place off.
        0 | 1 => (near ^ sign).wrapping_add((r[4] >> 8) % 5).wrapping_sub(2),
        // The same exponent, any fraction.
        2 => add.pack(r[4] >> 63, add.exp(near), fraction(add.m, r[5])),
        // Exponents so far apart that one term is only a sticky bit or a half of the last place.
        3 | 4 => {
            let reach = 2 * u64::from(add.m) + 6;
            let exp = (add.exp(near) + (r[4] >> 8) % (2 * reach)).saturating_sub(reach);
            add.pack(r[4] >> 63, exp.min(add.ones()), fraction(add.m, r[5]))
        }
        _ => number(add, [r[4] >> 8, r[5]]),
    };
    [a, b, c & (u64::MAX >> (64 - add.width()))]
}

/// Random bits with a tendency to float structure: sometimes a number, sometimes plain bits.
pub fn word(fmt: Fmt, r: [u64; 2]) -> u64 {
    if r[0] >> 60 < 6 {
        r[1] & (u64::MAX >> (64 - fmt.width()))
    } else {
        number(fmt, r)
    }
}

/// All exponent fields (thinned to every `step`-th, the ends always) x boundary fractions x signs.
pub fn boundary(fmt: Fmt, step: u64, fractions: &[u64]) -> Vec<u64> {
    let ends = |e: u64| e < 3 || e + 3 > fmt.ones() || (e as i64 - fmt.bias()).abs() < 2;
    let mut set = Vec::new();
    for e in (0..=fmt.ones()).filter(|&e| e % step == 0 || ends(e)) {
        for &f in fractions {
            set.push(fmt.pack(0, e, f));
            set.push(fmt.pack(1, e, f));
        }
    }
    set
}

/// `fma` with the operands as one array.
pub fn fma_of(fmt: Fmt, add: Fmt, out: Fmt, omit: u32, [a, b, c]: [u64; 3]) -> u64 {
    fma(fmt, add, out, omit, a, b, c)
}

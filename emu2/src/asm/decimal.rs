//! Converts decimal text to the nearest value of a float format, with one rounding.

use std::cmp::Ordering;

/// Why a text has no value in a format.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum DecimalError {
    /// Not `[+-]digits[.digits][e[+-]digits]` or `[+-]inf`.
    Malformed,
    /// Rounds past the largest finite value.
    TooLarge,
}

const F64_FRACTION: u32 = f64::MANTISSA_DIGITS - 1;
const F64_BIAS: i32 = 1 - f64::MIN_EXP + 1;
/// The exact value of an `f64` has at most this many significant decimal digits.
const F64_DIGITS: usize = 770;

/// The bits of the value nearest to `text`, ties to even. The format has `exponent` and `fraction` bits, the bias and
/// layout of IEEE 754 (also for subnormals), and is narrower than a double.
pub(super) fn nearest(text: &str, exponent: u32, fraction: u32) -> Result<u64, DecimalError> {
    let (negative, magnitude) = match text.as_bytes().first() {
        Some(b'-') => (true, &text[1..]),
        Some(b'+') => (false, &text[1..]),
        _ => (false, text),
    };
    let infinity = ((1u64 << exponent) - 1) << fraction;
    let bits = match magnitude {
        "inf" => infinity,
        _ if !is_decimal(magnitude) => return Err(DecimalError::Malformed),
        _ => {
            let bits = round(magnitude, exponent, fraction)?;
            if bits >= infinity {
                return Err(DecimalError::TooLarge);
            }
            bits
        }
    };
    Ok(bits | (u64::from(negative) << (exponent + fraction)))
}

fn is_decimal(text: &str) -> bool {
    let (mantissa, exponent) = text.split_once(['e', 'E']).map_or((text, None), |(m, e)| (m, Some(e)));
    let (whole, part) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    let digits = |t: &str| t.bytes().all(|b| b.is_ascii_digit());
    let exponent = exponent.map(|e| e.strip_prefix(['+', '-']).unwrap_or(e));
    digits(whole)
        && digits(part)
        && !(whole.is_empty() && part.is_empty())
        && exponent.is_none_or(|e| !e.is_empty() && digits(e))
}

/// Rounds through a double. A second rounding can be wrong only if the double is a tie of the format. Then the text is
/// compared with the double to find on which side of the tie it lies.
fn round(text: &str, exponent: u32, fraction: u32) -> Result<u64, DecimalError> {
    let value: f64 = text.parse().map_err(|_| DecimalError::Malformed)?;
    if value.is_infinite() {
        return Err(DecimalError::TooLarge);
    }
    let raw = value.to_bits();
    let field = (raw >> F64_FRACTION) as i32;
    if field == 0 {
        return Ok(0); // too small for every format narrower than a double
    }
    let significand = (raw & ((1 << F64_FRACTION) - 1)) | (1 << F64_FRACTION);
    let bias = (1i32 << (exponent - 1)) - 1;
    let target = field - F64_BIAS + bias;
    // Subnormals have the same quantum as the smallest normal value.
    let drop = F64_FRACTION - fraction + (1 - target).max(0) as u32;
    if drop > F64_FRACTION + 1 {
        return Ok(0);
    }
    let (kept, rest, half) = (significand >> drop, significand & ((1 << drop) - 1), 1u64 << (drop - 1));
    let up = match rest.cmp(&half) {
        Ordering::Less => false,
        Ordering::Greater => true,
        Ordering::Equal => match compare(text, value) {
            Ordering::Less => false,
            Ordering::Greater => true,
            Ordering::Equal => kept & 1 == 1,
        },
    };
    // The hidden bit of `kept` adds the last 1 to the exponent field, and so does a carry out of the fraction.
    Ok(((target - 1).max(0) as u64) * (1 << fraction) + kept + u64::from(up))
}

/// Compares a decimal text with the exact value of a double. Both are positive.
fn compare(text: &str, value: f64) -> Ordering {
    let exact = format!("{value:.F64_DIGITS$e}");
    let ((a, x), (b, y)) = (scientific(text), scientific(&exact));
    x.cmp(&y).then_with(|| a.cmp(&b))
}

/// Splits a number into the digits `d1 d2 ...` and the exponent of `0.d1d2... * 10^exponent`, without leading and
/// trailing zeros.
fn scientific(text: &str) -> (Vec<u8>, i64) {
    let (mantissa, exponent) = text.split_once(['e', 'E']).unwrap_or((text, "0"));
    let (whole, part) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    let mut digits: Vec<u8> = whole.bytes().chain(part.bytes()).collect();
    let leading = digits.iter().take_while(|d| **d == b'0').count();
    digits.drain(..leading);
    let trailing = digits.iter().rev().take_while(|d| **d == b'0').count();
    digits.truncate(digits.len() - trailing);
    let exponent: i64 = exponent.parse().unwrap_or(0); // only ties of a format come here, so it parses
    (digits, exponent.saturating_add(whole.len() as i64 - leading as i64))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn singles_agree_with_the_library() {
        let table = [
            "0",
            "1",
            "3.14",
            "1e10",
            ".5",
            "5.",
            "1e-45",
            "7e-46",
            "1.1754943508222875e-38",
            "3.4028235e38",
            "16777217",
            "16777217.0000000000000000000000000000000000000001",
            "16777219",
            "0.1",
            "123456789e-5",
            "1E5",
            "8388608.5",
            "8388609.5",
            "8388609.499999999999999999999999999999",
            "1e-400",
        ];
        for text in table {
            let expected: f32 = text.parse().unwrap();
            assert_eq!(nearest(text, 8, 23), Ok(u64::from(expected.to_bits())), "{text}");
            let negative = nearest(&format!("-{text}"), 8, 23);
            assert_eq!(negative, Ok(u64::from((-expected).to_bits())), "-{text}");
        }
    }

    #[test]
    fn halves() {
        let table: &[(&str, Result<u64, DecimalError>)] = &[
            ("1.0", Ok(0x3E00)),
            ("-2", Ok(0xC000)),
            ("inf", Ok(0x7E00)),
            ("-inf", Ok(0xFE00)),
            // 1 + 2^-10 is a tie and rounds down to even. Any text above it rounds up, however late the digit comes.
            ("1.0009765625", Ok(0x3E00)),
            ("1.00097656250000000000000000000000000000000000001", Ok(0x3E01)),
            ("1.0009765624999999999999999999999999999999999999", Ok(0x3E00)),
            ("1.0029296875", Ok(0x3E02)),
            ("1.00292968749999999999999999999999999999999999999999", Ok(0x3E01)),
            ("4290772992", Ok(0x7DFF)),
            ("4292870143", Ok(0x7DFF)),
            ("4292870144", Err(DecimalError::TooLarge)),
            ("1e5000", Err(DecimalError::TooLarge)),
            ("", Err(DecimalError::Malformed)),
            (".", Err(DecimalError::Malformed)),
            ("1e", Err(DecimalError::Malformed)),
            ("nan", Err(DecimalError::Malformed)),
            ("infinity", Err(DecimalError::Malformed)),
            ("0x10", Err(DecimalError::Malformed)),
            ("1 2", Err(DecimalError::Malformed)),
            ("é", Err(DecimalError::Malformed)),
        ];
        for (text, expected) in table {
            assert_eq!(nearest(text, 6, 9), *expected, "{text}");
        }
    }

    proptest! {
        #[test]
        fn any_single(bits in any::<u32>(), digits in 0usize..60) {
            let value = f32::from_bits(bits & 0x7fff_ffff);
            prop_assume!(value.is_finite());
            let between = f64::from(value) + f64::from(f32::from_bits((bits & 0x7fff_ffff) + 1)) / 2.0 - f64::from(value) / 2.0;
            for text in [format!("{value:e}"), format!("{between:.digits$e}")] {
                let expected: f32 = text.parse().unwrap();
                prop_assume!(expected.is_finite());
                prop_assert_eq!(nearest(&text, 8, 23), Ok(u64::from(expected.to_bits())), "{}", text);
            }
        }
    }
}

//! Numbers as C's `%g` prints them.

/// Significant digits of `%g`.
const DIGITS: i32 = 6;

/// `value` as C's `printf("%g")` writes it, infinities as `inf` and `-inf`.
pub fn general(value: f64) -> String {
    if value == 0.0 {
        return if value.is_sign_negative() { "-0".into() } else { "0".into() };
    }
    if !value.is_finite() {
        return if value.is_nan() {
            "nan"
        } else if value > 0.0 {
            "inf"
        } else {
            "-inf"
        }
        .into();
    }
    // Rounding to the digits kept may raise the exponent, so it is read after rounding.
    let scientific = format!("{value:.*e}", DIGITS as usize - 1);
    let (mantissa, exponent) = scientific.split_once('e').unwrap_or((&scientific, "0"));
    let exponent: i32 = exponent.parse().unwrap_or(0);
    if (-4..DIGITS).contains(&exponent) {
        return trim(&format!("{value:.*}", (DIGITS - 1 - exponent) as usize)).to_string();
    }
    let sign = if exponent < 0 { '-' } else { '+' };
    format!("{}e{sign}{:02}", trim(mantissa), exponent.abs())
}

fn trim(digits: &str) -> &str {
    if digits.contains('.') {
        digits.trim_end_matches('0').trim_end_matches('.')
    } else {
        digits
    }
}

#[cfg(test)]
mod tests {
    use super::general;

    /// The expected texts come from the C library.
    #[test]
    fn like_c() {
        let table: &[(f64, &str)] = &[
            (0.0, "0"),
            (-0.0, "-0"),
            (1.0, "1"),
            (-2.5, "-2.5"),
            (1e6, "1e+06"),
            (999999.0, "999999"),
            (999999.5, "1e+06"),
            (1000005.0, "1e+06"),
            (1000015.0, "1.00002e+06"),
            (6.98492e-09, "6.98492e-09"),
            (5.421875, "5.42188"),
            (2.765625, "2.76562"),
            (0.0001, "0.0001"),
            (0.00001, "1e-05"),
            (0.000099999951, "0.0001"),
            (2.002_68e-307, "2.00268e-307"),
            (5e-324, "4.94066e-324"),
            (f64::MAX, "1.79769e+308"),
            (f64::INFINITY, "inf"),
            (f64::NEG_INFINITY, "-inf"),
            (100000.5, "100000"),
            (100001.5, "100002"),
        ];
        for (value, text) in table {
            assert_eq!(general(*value), *text, "{value:?}");
        }
    }
}

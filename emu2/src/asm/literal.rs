//! Reads literals of immediates: `f"3.14"`, `i"-12"`, `s"0b101"`.

use super::cursor::{fault, fault_help, shorten, Parse};
use super::decimal::{nearest, DecimalError};
use super::parser::Parser;
use crate::error::{Code, Span};
use crate::spec::{Literal, LiteralKind, WORD_BITS};

const QUOTE: u8 = b'"';

impl Parser<'_> {
    /// Reads a literal and returns its 32-bit word.
    pub(super) fn literal(&mut self) -> Parse<u32> {
        self.cursor.skip_blanks();
        let start = self.cursor.at();
        let kind = self.cursor.letters();
        let literal = self.spec.literals.iter().find(|l| l.name == kind);
        let (Some(literal), Some(QUOTE)) = (literal, self.cursor.peek()) else {
            let names: Vec<String> = self.spec.literals.iter().map(|l| format!("{}\"..\"", l.name)).collect();
            self.cursor.move_to(start);
            let message = match self.cursor.word() {
                word if word.is_empty() => "a literal is missing".to_string(),
                word => format!("`{word}` is not a literal"),
            };
            let help = format!("literals are {}", names.join(", "));
            return Err(fault_help(Code::LiteralMissing, self.cursor.word_span(), message, help));
        };
        self.cursor.eat(QUOTE);
        let from = self.cursor.at();
        self.cursor.skip_to(QUOTE);
        let text = self.cursor.slice(from, self.cursor.at());
        let span = Span::new(start, self.cursor.at() + 1);
        if !self.cursor.eat(QUOTE) {
            let span = Span::new(start, self.cursor.end());
            return Err(fault(Code::LiteralUnterminated, span, format!("`{kind}\"` is never closed")));
        }
        let word = self.literal_word(literal, text, span)?;
        self.expect_break("the literal")?;
        Ok(word)
    }

    fn literal_word(&self, literal: &Literal, text: &str, span: Span) -> Parse<u32> {
        let bits = WORD_BITS / literal.repeat.max(1);
        let value = match literal.kind {
            LiteralKind::Float => {
                let format = literal.format.as_deref().and_then(|f| self.spec.format(f));
                let (exponent, fraction) = format.map_or((0, 0), |f| (f.exponent, f.fraction));
                nearest(text, exponent, fraction).map_err(|error| match error {
                    DecimalError::Malformed => malformed(text, span),
                    DecimalError::TooLarge => {
                        let message = format!("{} is past the largest value of `{}`", shorten(text), literal.name);
                        let help = format!("write `{}\"inf\"` if infinity is meant", literal.name);
                        fault_help(Code::LiteralRange, span, message, help)
                    }
                })?
            }
            LiteralKind::Signed | LiteralKind::Unsigned => {
                let signed = literal.kind == LiteralKind::Signed;
                let (low, high) =
                    if signed { (-(1i128 << (bits - 1)), (1 << (bits - 1)) - 1) } else { (0, (1 << bits) - 1) };
                let value = integer(text).ok_or_else(|| malformed(text, span))?;
                if !(low..=high).contains(&value) {
                    let (text, name) = (shorten(text), &literal.name);
                    let message = format!("{text} is outside {low} to {high}, the range of `{name}`");
                    return Err(fault(Code::LiteralRange, span, message));
                }
                value as u64
            }
        };
        let lane = (value as u32) & (u32::MAX >> (WORD_BITS - bits));
        Ok((0..literal.repeat).fold(0, |word, at| word | (lane << (at * bits))))
    }
}

fn malformed(text: &str, span: Span) -> Box<crate::error::Diagnostic> {
    fault(Code::LiteralMalformed, span, format!("`{}` is not a number of this kind", shorten(text)))
}

/// Reads a signed integer: decimal, or with `0x` or `0b`. Values that exceed `i128` saturate, which is past the range
/// of every literal.
fn integer(text: &str) -> Option<i128> {
    let (negative, magnitude) = match text.as_bytes().first()? {
        b'-' => (true, &text[1..]),
        b'+' => (false, &text[1..]),
        _ => (false, text),
    };
    let prefixed = |lower: &str, upper: &str| magnitude.strip_prefix(lower).or_else(|| magnitude.strip_prefix(upper));
    let (radix, digits) = match (prefixed("0x", "0X"), prefixed("0b", "0B")) {
        (Some(digits), _) => (16, digits),
        (None, Some(digits)) => (2, digits),
        (None, None) => (10, magnitude),
    };
    if digits.is_empty() || !digits.chars().all(|c| c.is_digit(radix)) {
        return None;
    }
    let value = i128::from_str_radix(digits, radix).unwrap_or(i128::MAX);
    Some(if negative { -value } else { value })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn integers() {
        let table = [
            ("12", Some(12)),
            ("-12", Some(-12)),
            ("0x40000000", Some(0x4000_0000)),
            ("-0x10", Some(-16)),
            ("0b111", Some(7)),
            ("007", Some(7)),
            ("", None),
            ("-", None),
            ("0x", None),
            ("0b2", None),
            ("1 ", None),
            ("--1", None),
            ("ff", None),
            ("99999999999999999999999999999999999999999999999999", Some(i128::MAX)),
        ];
        for (text, expected) in table {
            assert_eq!(integer(text), expected, "{text}");
        }
    }
}

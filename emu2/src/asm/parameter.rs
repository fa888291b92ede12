//! Reads parameters of transfers: a number or a set of units after the mnemonic.

use super::cursor::{fault_help, Cursor, Parse};
use super::parser::{Head, Parser};
use crate::error::{Code, Span};
use crate::spec::{ParameterStyle, ResolvedForm, ResolvedParameter, UnitSet};

impl Parser<'_> {
    /// Reads `@3`, `+3`, `-3` or `@0/6` right after the mnemonic and returns the value with its span. With `flushable`
    /// a mask may follow.
    pub(super) fn parameter(&mut self, head: Head<'_>, transfer: usize, flushable: bool) -> Parse<Option<(i64, Span)>> {
        let start = self.cursor.at();
        let style = match self.cursor.peek() {
            Some(b'@') => ParameterStyle::At,
            Some(b'+' | b'-') => ParameterStyle::Signed,
            _ => return Ok(None),
        };
        let all = self.spec.parameters[transfer].as_ref();
        if let Some(set) = all.filter(|p| p.style == ParameterStyle::Set && style == ParameterStyle::At) {
            return self.set(head, set).map(Some);
        }
        let Some(parameter) = all.filter(|p| p.style == style) else {
            let message = format!("`{}` does not take `{}`", head.text, self.cursor.word());
            let help = "remove it, or use another transfer";
            return Err(fault_help(Code::BadParameter, self.cursor.word_span(), message, help));
        };
        let negative = self.cursor.peek() == Some(b'-');
        self.cursor.move_to(start + 1);
        let ended = |cursor: &Cursor<'_>| cursor.at_break() || (flushable && cursor.peek() == Some(b'/'));
        let number = if ended(&self.cursor) { None } else { Some(self.cursor.number32("the parameter")?) };
        let end = if ended(&self.cursor) { self.cursor.at() } else { self.cursor.word_span().end as usize };
        let span = Span::new(start, end);
        let range = || {
            let ResolvedRange { low, high } = ResolvedRange::of(parameter.minimum, parameter.maximum, style);
            format!("use {low} to {high}")
        };
        let text = self.cursor.quote(span);
        let Some(number) = number.filter(|_| ended(&self.cursor)) else {
            let message = format!("`{text}` is not a parameter of `{}`", head.text);
            return Err(fault_help(Code::BadParameter, span, message, range()));
        };
        let value = if negative { -i64::from(number) } else { i64::from(number) };
        if !(parameter.minimum..=parameter.maximum).contains(&value) {
            let message = format!("`{text}` is out of range");
            return Err(fault_help(Code::BadParameter, span, message, range()));
        }
        Ok(Some((value, span)))
    }

    /// Reads a set of units: `@3`, `@0/6` or `@0,2,4,6`. The set holds all units whose numbers differ in certain bits
    /// only.
    fn set(&mut self, head: Head<'_>, parameter: &ResolvedParameter) -> Parse<(i64, Span)> {
        let start = self.cursor.at();
        let span = self.cursor.word_span();
        let help = || "write `@` and one unit, `@0/1` with the bits that may differ, or a list such as `@0,1`";
        let wrong = |why: String| fault_help(Code::BadParameter, span, why, help());
        let (text, count) = (self.cursor.quote(span), parameter.maximum as u32 + 1);
        self.cursor.move_to(start + 1);
        let mut numbers = Vec::new();
        let mut free = None;
        loop {
            if !self.cursor.peek().is_some_and(|b| b.is_ascii_digit()) {
                return Err(wrong(format!("`{text}` is not a set of `{}`", head.text)));
            }
            numbers.push(self.cursor.number32("the number of the unit")?);
            if self.cursor.eat(b'/') && numbers.len() == 1 {
                free = Some(self.cursor.number32("the free bits")?);
            }
            if self.cursor.at_break() {
                break;
            }
            if free.is_some() || !self.cursor.eat(b',') {
                return Err(wrong(format!("`{text}` is not a set of `{}`", head.text)));
            }
        }
        let all = parameter.all();
        if numbers.iter().any(|n| *n >= count) || free.is_some_and(|f| f > all.free) {
            return Err(wrong(format!("`{text}` is out of range: units are 0 to {}", parameter.maximum)));
        }
        let set = match free {
            Some(free) => UnitSet { first: numbers[0] & !free, free },
            None => UnitSet::of(&numbers, count).ok_or_else(|| {
                wrong(format!("`{text}` lists units that do not differ in whole bits, or not in ascending order"))
            })?,
        };
        if parameter.partial && set.members(count).count() as u32 == count {
            return Err(wrong(format!(
                "`{text}` is all units, and `{}` needs some that send to the others",
                head.text
            )));
        }
        Ok((set.code(), span))
    }

    /// The value of the parameter in the form that the operands select.
    pub(super) fn form_parameter(
        &self,
        head: Head<'_>,
        transfer: usize,
        form: &ResolvedForm,
        written: Option<(i64, Span)>,
    ) -> Parse<i64> {
        let all = self.spec.parameters[transfer].as_ref();
        let parameter = all.filter(|p| p.forms.is_empty() || p.forms.contains(&form.name));
        match (parameter, written) {
            (Some(_), Some((value, _))) => Ok(value),
            (Some(p), None) if p.style == ParameterStyle::Set => p.default.ok_or_else(|| {
                let span = Span::new(head.start, head.start + head.text.len());
                let help = format!("write `{}@` and a set of units", head.text);
                fault_help(Code::MissingParameter, span, format!("`{}` needs a set of units", head.text), help)
            }),
            (Some(p), None) => p.default.ok_or_else(|| {
                let ResolvedRange { low, high } = ResolvedRange::of(p.minimum, p.maximum, p.style);
                let span = Span::new(head.start, head.start + head.text.len());
                let message = format!("`{}` needs a parameter in this direction", head.text);
                fault_help(Code::MissingParameter, span, message, format!("write `{0}{low}` to `{0}{high}`", head.text))
            }),
            (None, None) => Ok(0),
            (None, Some((_, span))) => {
                let message = format!("`{}` takes no parameter in this direction", head.text);
                Err(fault_help(Code::BadParameter, span, message, "remove it, or check the order of the operands"))
            }
        }
    }
}

/// The range of a parameter as assembly text.
struct ResolvedRange {
    low: String,
    high: String,
}

impl ResolvedRange {
    fn of(minimum: i64, maximum: i64, style: ParameterStyle) -> Self {
        let write = |value: i64| match style {
            ParameterStyle::At | ParameterStyle::Set => format!("@{value}"),
            ParameterStyle::Signed => format!("{value:+}"),
        };
        ResolvedRange { low: write(minimum), high: write(maximum) }
    }
}

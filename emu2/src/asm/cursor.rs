//! A position in the source, with the basic moves that read a statement.

use crate::error::{Code, Diagnostic, Span};

/// The result of reading something: the value, or the diagnostic of the failure.
pub(super) type Parse<T> = Result<T, Box<Diagnostic>>;

/// An error with the remedy of the error table.
pub(super) fn fault(code: Code, span: Span, message: impl Into<String>) -> Box<Diagnostic> {
    Box::new(Diagnostic::error(code, Some(span), message))
}

/// An error with a remedy of its own.
pub(super) fn fault_help(
    code: Code,
    span: Span,
    message: impl Into<String>,
    help: impl Into<String>,
) -> Box<Diagnostic> {
    Box::new(Diagnostic::error(code, Some(span), message).help(help))
}

/// Reads one statement. Positions are byte offsets in the whole source. The cursor steps over ASCII only, so a position
/// always lies between characters.
#[derive(Clone, Debug)]
pub(super) struct Cursor<'a> {
    text: &'a str,
    at: usize,
    end: usize,
}

impl<'a> Cursor<'a> {
    /// A cursor over `text[at..end]`.
    pub(super) fn new(text: &'a str, at: usize, end: usize) -> Self {
        Cursor { text, at, end: end.min(text.len()) }
    }

    pub(super) fn at(&self) -> usize {
        self.at
    }

    pub(super) fn end(&self) -> usize {
        self.end
    }

    pub(super) fn move_to(&mut self, at: usize) {
        self.at = at.min(self.end);
    }

    #[inline]
    pub(super) fn peek(&self) -> Option<u8> {
        if self.at < self.end {
            self.text.as_bytes().get(self.at).copied()
        } else {
            None
        }
    }

    /// Steps over `byte` if it comes next.
    #[inline]
    pub(super) fn eat(&mut self, byte: u8) -> bool {
        let found = self.peek() == Some(byte);
        self.at += usize::from(found);
        found
    }

    /// Whether `letter` of the language comes next.
    #[inline]
    pub(super) fn at_letter(&self, letter: char) -> bool {
        self.peek().map(char::from) == Some(letter)
    }

    /// Steps over `letter` if it comes next.
    #[inline]
    pub(super) fn eat_letter(&mut self, letter: char) -> bool {
        let found = self.at_letter(letter);
        self.at += usize::from(found);
        found
    }

    /// Steps over `word` if it comes next.
    pub(super) fn eat_str(&mut self, word: &str) -> bool {
        let found = self.rest().starts_with(word);
        self.at += if found { word.len() } else { 0 };
        found
    }

    #[inline]
    pub(super) fn skip_blanks(&mut self) {
        while matches!(self.peek(), Some(b' ' | b'\t')) {
            self.at += 1;
        }
    }

    /// The text that is left.
    pub(super) fn rest(&self) -> &'a str {
        self.slice(self.at, self.end)
    }

    /// `text[from..to]`, or empty if the range is not a valid slice.
    #[inline]
    pub(super) fn slice(&self, from: usize, to: usize) -> &'a str {
        self.text.get(from..to).unwrap_or("")
    }

    /// Steps over the ASCII bytes that `accept` takes and returns them.
    #[inline]
    pub(super) fn take(&mut self, accept: impl Fn(u8) -> bool) -> &'a str {
        let from = self.at;
        while self.peek().is_some_and(|b| b.is_ascii() && accept(b)) {
            self.at += 1;
        }
        self.slice(from, self.at)
    }

    /// Steps to the next `stop` or the end.
    pub(super) fn skip_to(&mut self, stop: u8) {
        let left = self.text.as_bytes().get(self.at..self.end).unwrap_or(&[]);
        self.at += left.iter().position(|b| *b == stop).unwrap_or(left.len());
    }

    /// Steps over a run of lower-case letters and returns it.
    pub(super) fn letters(&mut self) -> &'a str {
        self.take(|b| b.is_ascii_lowercase())
    }

    /// The text of a span, shortened for messages.
    pub(super) fn quote(&self, span: Span) -> String {
        shorten(self.slice(span.start as usize, span.end as usize))
    }

    /// The span from `from` to the cursor.
    pub(super) fn span_from(&self, from: usize) -> Span {
        Span::new(from, self.at)
    }

    /// The span of the word at the cursor, up to a blank or `;`. Empty if there is no word.
    pub(super) fn word_span(&self) -> Span {
        let word = self.rest().find([' ', '\t', ';']).unwrap_or(self.end - self.at.min(self.end));
        Span::new(self.at, self.at + word)
    }

    /// The word at [`Cursor::word_span`], shortened for messages.
    pub(super) fn word(&self) -> String {
        self.quote(self.word_span())
    }

    /// True at a blank, a `;` or the end.
    #[inline]
    pub(super) fn at_break(&self) -> bool {
        matches!(self.peek(), None | Some(b' ' | b'\t' | b';'))
    }

    /// Reads a decimal number without sign. `what` names it in messages.
    #[inline]
    pub(super) fn number(&mut self, what: &str) -> Parse<u64> {
        let from = self.at;
        let mut value = Some(0u64);
        while let Some(digit) = self.peek().map(|b| b.wrapping_sub(b'0')).filter(|d| *d < 10) {
            value = value.and_then(|v| v.checked_mul(10)?.checked_add(u64::from(digit)));
            self.at += 1;
        }
        if self.at == from {
            return Err(fault(Code::NumberExpected, self.word_span(), format!("{what} is missing here")));
        }
        value.ok_or_else(|| {
            let message = format!("{what} {} is too large", shorten(self.slice(from, self.at)));
            fault(Code::TooLarge, self.span_from(from), message)
        })
    }

    /// Reads a decimal number that fits a `u32`.
    #[inline]
    pub(super) fn number32(&mut self, what: &str) -> Parse<u32> {
        let from = self.at;
        let value = self.number(what)?;
        u32::try_from(value)
            .map_err(|_| fault(Code::TooLarge, self.span_from(from), format!("{what} {value} is too large")))
    }

    /// Refuses anything but blanks up to the end of the statement.
    pub(super) fn expect_end(&mut self, after: &str) -> Parse<()> {
        self.skip_blanks();
        match self.peek() {
            None => Ok(()),
            Some(first) => {
                // A debug statement goes to the end of its line, so a `;` in it is ordinary text.
                let word = if first == b';' { ";".to_string() } else { self.word() };
                let message = format!("`{word}` after {after}");
                Err(fault(Code::UnexpectedText, Span::new(self.at, self.end), message))
            }
        }
    }
}

/// At most 40 characters of `text` for messages, without control characters.
pub(super) fn shorten(text: &str) -> String {
    const LIMIT: usize = 40;
    let visible = |c: char| if c.is_control() { char::REPLACEMENT_CHARACTER } else { c };
    let mut short: String = text.chars().take(LIMIT).map(visible).collect();
    if text.chars().nth(LIMIT).is_some() {
        short.push('…');
    }
    short
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers() {
        let table: &[(&str, Result<u64, Code>)] = &[
            ("0", Ok(0)),
            ("0042x", Ok(42)),
            ("18446744073709551615", Ok(u64::MAX)),
            ("18446744073709551616", Err(Code::TooLarge)),
            ("", Err(Code::NumberExpected)),
            ("x1", Err(Code::NumberExpected)),
            ("é", Err(Code::NumberExpected)),
        ];
        for (text, expected) in table {
            let value = Cursor::new(text, 0, text.len()).number("the number");
            assert_eq!(value.map_err(|d| d.code), *expected, "{text}");
        }
    }
}

//! Reads the payload of `d set`: long words as bare hex digits, or as typed items.

use super::cursor::{fault, fault_help, Parse};
use super::parser::Parser;
use crate::error::Code;
use crate::spec::{LaneKind, LONG_BITS};

const HEX_DIGITS: usize = LONG_BITS as usize / 4;
/// The letter of an item of two words, which [`Parser::pair`] reads.
const PAIR: char = 's';
/// What stands between the two words.
const BETWEEN: char = '_';

impl Parser<'_> {
    /// Reads `count` long words up to the end of the statement.
    pub(super) fn payload(&mut self, count: u64) -> Parse<Vec<u64>> {
        self.cursor.skip_blanks();
        let start = self.cursor.at();
        let typed = match self.cursor.peek() {
            None => return Err(fault(Code::PayloadCount, self.cursor.word_span(), "the payload is missing")),
            Some(first) => self.item_digits(first).is_some(),
        };
        // The text bounds the payload. A huge count alone must not reserve memory.
        let text = self.cursor.rest().len().div_ceil(HEX_DIGITS);
        let mut words = Vec::with_capacity(usize::try_from(count).map_or(text, |count| count.min(text)));
        if typed {
            self.items(&mut words)?;
        } else {
            self.bare(&mut words)?;
        }
        if words.len() as u64 != count {
            let message = format!("{} long words for a count of {count}", words.len());
            return Err(fault(Code::PayloadCount, self.cursor.span_from(start), message));
        }
        Ok(words)
    }

    /// Reads hex digits without blanks, 16 a long word.
    fn bare(&mut self, words: &mut Vec<u64>) -> Parse<()> {
        while self.cursor.peek().is_some() {
            match self.hex(HEX_DIGITS) {
                Some(word) => words.push(word),
                None => {
                    let message = format!("`{}` does not begin with {HEX_DIGITS} hex digits", self.cursor.word());
                    return Err(fault(Code::BadPayload, self.cursor.word_span(), message));
                }
            }
        }
        Ok(())
    }

    /// Reads items of one letter and its digits, and pairs of words. They fill a long word from its most significant end. Blanks may lie
    /// between them.
    ///
    /// guess: the letters of words and halves are those of the integer precisions, and an item begins at a multiple of
    /// its own width.
    fn items(&mut self, words: &mut Vec<u64>) -> Parse<()> {
        let mut word = 0;
        let mut filled = 0;
        let mut last = self.cursor.at();
        loop {
            self.cursor.skip_blanks();
            let at = self.cursor.at();
            let Some(letter) = self.cursor.peek() else { break };
            if filled == 0 {
                if let Some(pair) = self.pair() {
                    words.push(pair);
                    continue;
                }
            }
            let digits = self.item_digits(letter);
            self.cursor.move_to(at + usize::from(digits.is_some()));
            let Some((digits, value)) = digits.and_then(|digits| Some((digits, self.hex(digits)?))) else {
                self.cursor.move_to(at);
                let message = format!("`{}` is no typed item", self.cursor.word());
                let help = format!("typed items are {}; bare digits cannot stand among them", self.item_forms());
                return Err(fault_help(Code::BadPayload, self.cursor.word_span(), message, help));
            };
            if filled % digits != 0 {
                let span = self.cursor.span_from(at);
                let message = format!("`{}` begins inside an item of its width", self.cursor.quote(span));
                let help = "fill the half or word before it first";
                return Err(fault_help(Code::BadPayload, span, message, help));
            }
            word |= value << (4 * (HEX_DIGITS - digits - filled));
            filled += digits;
            if filled == HEX_DIGITS {
                words.push(word);
                (word, filled) = (0, 0);
            }
            last = at;
        }
        if filled != 0 {
            let message = format!("the last long word has {filled} of its {HEX_DIGITS} digits");
            let help = "add items until it is full; memories of words use its upper half";
            return Err(fault_help(Code::PayloadCount, self.cursor.span_from(last), message, help));
        }
        Ok(())
    }

    /// Steps over an item of two words of up to 8 hex digits each, such as `s1_2`, if it comes next. The first word is the
    /// upper one.
    ///
    /// guess: public generators of programs write it, and only as the whole payload of one long word.
    fn pair(&mut self) -> Option<u64> {
        let rest = self.cursor.rest().strip_prefix(PAIR)?;
        let word = |text: &str| {
            let length = text.bytes().take_while(u8::is_ascii_hexdigit).count();
            let digits = text.get(..length)?;
            Some((u32::from_str_radix(digits, 16).ok()?, length))
        };
        let (first, length) = word(rest)?;
        let (second, more) = word(rest.get(length..)?.strip_prefix(BETWEEN)?)?;
        self.cursor.move_to(self.cursor.at() + length + more + [PAIR, BETWEEN].len());
        Some(u64::from(first) << 32 | u64::from(second))
    }

    /// The number of hex digits of an item that begins with `letter`.
    fn item_digits(&self, letter: u8) -> Option<usize> {
        let named = |p: &&crate::spec::Precision| p.kind == LaneKind::Int && p.name.as_bytes() == [letter];
        let lanes = self.spec.precisions.iter().find(named)?.lanes as usize;
        HEX_DIGITS.checked_div(lanes)
    }

    fn item_forms(&self) -> String {
        let int = self.spec.precisions.iter().filter(|p| p.kind == LaneKind::Int);
        let forms = int.map(|p| format!("`{}` and {} hex digits", p.name, HEX_DIGITS / p.lanes.max(1) as usize));
        let pair = format!("`{PAIR}` and two hex numbers with `{BETWEEN}` between them");
        forms.chain([pair]).collect::<Vec<_>>().join(", ")
    }

    /// Steps over exactly `digits` hex digits if they come next.
    fn hex(&mut self, digits: usize) -> Option<u64> {
        let text = self.cursor.rest().get(..digits)?;
        let value = text.bytes().try_fold(0u64, |value, b| {
            let digit = char::from(b).to_digit(16)?;
            Some(value << 4 | u64::from(digit))
        })?;
        self.cursor.move_to(self.cursor.at() + digits);
        Some(value)
    }
}

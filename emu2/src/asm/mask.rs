//! Reads masks: after the `/` of a destination or mnemonic, and in the mask statement, which sets masks for the lines
//! after it.

use super::cursor::{fault, fault_help, Parse};
use super::parser::{Head, Parser};
use super::statement::{Mask, MaskEntry};
use super::token::SIGIL;
use crate::error::{Code, Span};

impl Parser<'_> {
    /// Reads a mask. `/1000` and `/ll1000` have one digit per cycle, cycle 0 first. `/$imr1` and `/$llimr1` name a mask
    /// register.
    pub(super) fn mask(&mut self) -> Parse<Mask> {
        let start = self.cursor.at();
        self.cursor.eat(b'/');
        let register = self.cursor.eat(SIGIL);
        let wide = self.mask_length();
        let entry = if register { self.mask_register(start)? } else { self.mask_cycles() };
        let _ = self.spec.syntax.mask_assertions.iter().any(|letter| self.cursor.eat_letter(*letter));
        match entry.filter(|_| self.cursor.at_break()) {
            Some(entry) => Ok(Mask { wide, entry }),
            None => {
                let span = Span::new(start, self.cursor.word_span().end as usize);
                let message =
                    format!("`{}` is not a mask of {} cycles", self.cursor.quote(span), self.spec.counts.cycle);
                Err(fault(Code::BadMask, span, message))
            }
        }
    }

    /// Reads the mask after a mnemonic, if there is one.
    pub(super) fn zero_flush(&mut self) -> Parse<Option<Mask>> {
        let flush = if self.cursor.peek() == Some(b'/') { Some(self.mask()?) } else { None };
        self.expect_break("the mnemonic")?;
        Ok(flush)
    }

    /// Refuses a mask after the mnemonic of an instruction that takes no zero flush.
    pub(super) fn no_zero_flush(&self, head: Head<'_>) -> Parse<()> {
        if self.cursor.peek() == Some(b'/') {
            let message = format!("`{}` takes no zero flush", head.text);
            return Err(fault_help(Code::BadMask, self.cursor.word_span(), message, "remove the mask"));
        }
        self.expect_break("the mnemonic")
    }

    /// Reads the width prefix of a mask and returns whether the mask is wide. Without a prefix it is a long mask.
    fn mask_length(&mut self) -> bool {
        let lexicon = self.lexicon;
        let found = lexicon.mask_lengths.iter().find(|(prefix, _)| self.cursor.eat_str(prefix));
        found.is_some_and(|(_, wide)| *wide)
    }

    fn mask_cycles(&mut self) -> Option<MaskEntry> {
        let cycles = self.spec.counts.cycle as usize;
        let digits = self.cursor.take(|b| matches!(b, b'0' | b'1'));
        let fits = digits.len() == cycles && cycles <= u32::BITS as usize;
        fits.then(|| MaskEntry::Cycles(digits.bytes().rev().fold(0, |bits, d| (bits << 1) | u32::from(d == b'1'))))
    }

    fn mask_register(&mut self, start: usize) -> Parse<Option<MaskEntry>> {
        let mask = &self.spec.mask;
        if !self.cursor.eat_str(&mask.source) || !self.cursor.peek().is_some_and(|b| b.is_ascii_digit()) {
            return Ok(None);
        }
        let entry = self.cursor.number32("the number of the mask register")?;
        if !(1..mask.entries).contains(&entry) {
            let message = format!("there is no mask register {entry} to mask with");
            let help = format!("use `${0}1` to `${0}{1}`", mask.source, mask.entries - 1);
            return Err(fault_help(Code::BadMask, self.cursor.span_from(start), message, help));
        }
        Ok(Some(MaskEntry::Register(entry)))
    }

    /// Reads the letters and the entry of a mask statement, whose first word is `head`.
    pub(super) fn mask_statement(&mut self, head: Head<'_>) -> Parse<()> {
        let (lexicon, cycles) = (self.lexicon, self.spec.counts.cycle);
        let letters = head.text.strip_prefix(self.spec.mask.statement.as_str()).unwrap_or_default();
        let length = lexicon.mask_lengths.iter().find(|(prefix, _)| letters.starts_with(prefix.as_str()));
        let (prefix, wide) = length.map_or(("", false), |(prefix, wide)| (prefix.as_str(), *wide));
        let mut memories: Vec<usize> = Vec::new();
        let first = head.start + head.text.len() - letters.len() + prefix.len();
        for (at, letter) in letters[prefix.len()..].bytes().enumerate() {
            let span = Span::new(first + at, first + at + 1);
            let entry = lexicon.mask_letters.iter().find(|(known, _)| *known == char::from(letter));
            let Some((_, named)) = entry else {
                let message = format!("`{}` is not a letter of a memory that masks apply to", self.cursor.quote(span));
                let known: Vec<String> = lexicon.mask_letters.iter().map(|(letter, _)| letter.to_string()).collect();
                return Err(fault_help(Code::BadMask, span, message, format!("use {}", known.join(", "))));
            };
            if named.iter().any(|m| memories.contains(m)) {
                let message = format!("`{}` stands there twice", self.cursor.quote(span));
                return Err(fault_help(Code::BadMask, span, message, "remove it"));
            }
            memories.extend(named);
        }
        self.expect_break("the letters")?;
        self.cursor.skip_blanks();
        let at = self.cursor.at();
        let number = self.cursor.number32("the entry")?;
        let span = self.cursor.span_from(at);
        self.expect_break("the entry")?;
        let (entries, patterns) = (self.spec.mask.entries, 1u32.checked_shl(cycles).unwrap_or(0));
        let entry = match number.checked_sub(entries) {
            None if number == 0 => None,
            None => Some(MaskEntry::Register(number)),
            // In a fixed pattern the highest bit is cycle 0.
            Some(pattern) if pattern < patterns => {
                Some(MaskEntry::Cycles(pattern.reverse_bits() >> (u32::BITS - cycles)))
            }
            Some(_) => {
                let message = format!("there is no mask entry {number}");
                let help = format!("use 0 to {}", entries.saturating_add(patterns) - 1);
                return Err(fault_help(Code::BadMask, span, message, help));
            }
        };
        self.masks.fill(None);
        for memory in memories {
            self.masks[memory] = entry.map(|entry| Mask { wide, entry });
        }
        Ok(())
    }

    /// The mask that the last mask statement set for a memory.
    pub(super) fn statement_mask(&self, memory: Option<usize>) -> Option<Mask> {
        memory.and_then(|m| self.masks.get(m).copied().flatten())
    }
}

//! Reads operands of instructions: `$`, a width prefix, a letter and an address, or `$` and a name.

use super::cursor::{fault, fault_help, shorten, Parse};
use super::lexicon::Name;
use super::operand::{Bank, Kind, Operand};
use super::parser::Parser;
use super::statement::Convert;
use super::token::{Token, SIGIL};
use crate::error::{Code, Span};
use crate::spec::Unit;

/// The bound on operands. No legal instruction has half as many.
const MOST_OPERANDS: usize = 64;

impl Parser<'_> {
    /// Reads operands into `self.operands` up to a `;` or the end.
    pub(super) fn read_operands(&mut self) -> Parse<()> {
        self.operands.clear();
        loop {
            self.cursor.skip_blanks();
            if matches!(self.cursor.peek(), None | Some(b';')) {
                return Ok(());
            }
            let operand = self.operand()?;
            if self.operands.len() == MOST_OPERANDS {
                let message = format!("no instruction takes more than {MOST_OPERANDS} operands");
                return Err(fault(Code::ExtraOperand, operand.span, message));
            }
            self.operands.push(operand);
        }
    }

    fn operand(&mut self) -> Parse<Operand> {
        let start = self.cursor.at();
        let negate = self.cursor.eat(b'-');
        if !self.cursor.eat(SIGIL) {
            let message = format!("`{}` is not an operand: operands begin with `$`", self.cursor.word());
            return Err(fault(Code::UnexpectedText, self.cursor.word_span(), message));
        }
        let name_at = self.cursor.at();
        let letters = self.cursor.letters();
        let lexicon = self.lexicon;
        let kind = match lexicon.token(letters) {
            Some(token) if token.pe => Kind::Pe(self.access(token, false, start)?),
            Some(token) => Kind::AbovePe(self.above_pe_operand(token, start)?),
            None => match lexicon.name(letters) {
                Some(name) => self.named(name, start)?,
                None => {
                    self.cursor.move_to(name_at);
                    self.composed(start)?
                }
            },
        };
        let converts = matches!(kind, Kind::Pe(_) | Kind::Forward(_) | Kind::Fixed(_));
        let convert = if converts { self.conversion() } else { None };
        let span = self.cursor.span_from(start);
        let mask = if self.cursor.peek() == Some(b'/') { Some(self.mask()?) } else { None };
        if !self.cursor.at_break() {
            return Err(self.glued(start));
        }
        Ok(Operand { span, kind, negate, convert, mask })
    }

    fn conversion(&mut self) -> Option<Convert> {
        if self.cursor.eat_letter(self.spec.syntax.extend) {
            Some(Convert::Extend)
        } else if self.cursor.eat_letter(self.spec.syntax.reduce) {
            Some(Convert::Reduce)
        } else {
            None
        }
    }

    /// The error for text that directly follows an operand but does not belong to it.
    fn glued(&self, start: usize) -> Box<crate::error::Diagnostic> {
        let read = self.cursor.slice(start, self.cursor.at());
        if read.is_empty() || self.cursor.peek() == Some(SIGIL) {
            let message = format!("a blank is missing before `{}`", self.cursor.word());
            return fault(Code::UnexpectedText, self.cursor.word_span(), message);
        }
        if self.cursor.at_letter(self.spec.syntax.stride) {
            let message = format!("`{}` takes no stride", shorten(read));
            return fault_help(Code::BadOperandAddress, self.cursor.word_span(), message, "remove it");
        }
        let message = format!("`{}` cannot follow `{}`", self.cursor.word(), shorten(read));
        let help =
            "separate operands by blanks; after an address may stand a stride, `j` and a PE, `e` or `r`, and `/` \
                    with a mask, as the operand allows";
        fault_help(Code::BadOperandAddress, self.cursor.word_span(), message, help)
    }

    /// Reads the rest of an operand whose name has been read.
    fn named(&mut self, name: Name, start: usize) -> Parse<Kind> {
        Ok(match name {
            Name::Nowrite => Kind::Nowrite,
            Name::Forward(path) => Kind::Forward(path),
            Name::Fixed(fixed) => Kind::Fixed(fixed),
            Name::Turnaround { words } => Kind::Turnaround(words),
            Name::Base { base, words } => Kind::Base { base, words },
            Name::Bank { bank, wide } => {
                let digit = self.cursor.peek().is_some_and(|b| b.is_ascii_digit());
                let row = if digit { Some(self.cursor.number32("the row")?) } else { None };
                Kind::Bank(Bank { bank, wide, row })
            }
            Name::Flags => {
                let entry = self.cursor.number32("the number of the mask register")?;
                let entries = self.spec.mask.entries;
                if !(1..entries).contains(&entry) {
                    let span = self.cursor.span_from(start);
                    let message = format!("mask register {entry} does not exist or cannot be written");
                    let help = format!("use `${0}1` to `${0}{1}`", self.spec.mask.destination, entries - 1);
                    return Err(fault_help(Code::OperandRange, span, message, help));
                }
                Kind::Flags(entry)
            }
        })
    }

    /// Reads a name with digits or a conversion (`$l2bid`, `$aluf` with `r`), an indirect address (`$lmt`), or the T
    /// register with a conversion (`$te`).
    fn composed(&mut self, start: usize) -> Parse<Kind> {
        let (at, lexicon) = (self.cursor.at(), self.lexicon);
        let letters = self.cursor.letters();
        for stem in [letters, self.unconverted(letters)] {
            let token = stem.strip_suffix(self.spec.syntax.indirect).and_then(|t| lexicon.token(t));
            if let Some(token) = token.filter(|t| t.pe && t.unit == Unit::Word) {
                self.cursor.move_to(at + stem.len());
                return Ok(Kind::Pe(self.access(token, true, start)?));
            }
        }
        self.cursor.move_to(at);
        let word = self.cursor.take(|b| b.is_ascii_lowercase() || b.is_ascii_digit());
        for stem in [word, self.unconverted(word)] {
            if let Some(name @ (Name::Nowrite | Name::Forward(_) | Name::Fixed(_))) = lexicon.name(stem) {
                self.cursor.move_to(at + stem.len());
                return self.named(name, start);
            }
        }
        let stem = self.unconverted(word);
        if let Some(token) = lexicon.token(stem).filter(|t| t.unit == Unit::Cycle) {
            self.cursor.move_to(at + stem.len());
            return Ok(Kind::Pe(self.access(token, false, start)?));
        }
        self.cursor.move_to(at);
        Err(self.unknown_operand(word, start))
    }

    fn unknown_operand(&self, word: &str, start: usize) -> Box<crate::error::Diagnostic> {
        let span = Span::new(start, self.cursor.word_span().end as usize);
        let message = format!("`{}` has no operand `{}`", self.spec.machine.name, self.cursor.quote(span));
        let names = || self.lexicon.names.iter().map(|(name, _)| name.as_str());
        let help = match self.suggestion(word, names()) {
            Some(known) => format!("did you mean `${known}`?"),
            None => {
                let memories = self.lexicon.tokens.iter().map(|t: &Token| t.text.as_str());
                let all: Vec<&str> = memories.chain(names()).collect();
                format!("operands are ${}", all.join(", $"))
            }
        };
        fault_help(Code::UnknownOperand, span, message, help)
    }

    /// The word without the letter of a conversion, or empty if it has none.
    fn unconverted<'w>(&self, word: &'w str) -> &'w str {
        let syntax = &self.spec.syntax;
        word.strip_suffix([syntax.extend, syntax.reduce]).unwrap_or("")
    }
}

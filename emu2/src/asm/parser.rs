//! The state that all statement readers share: the spec, its tables, the place in the source, the findings.

use super::cursor::{fault, fault_help, shorten, Cursor, Parse};
use super::lexicon::Lexicon;
use super::operand::Operand;
use super::sink::Sink;
use super::statement::Mask;
use super::suggest::closest;
use crate::error::{Code, Span};
use crate::spec::{Mnemonic, Spec};

/// Reads statements of one source.
#[derive(Debug)]
pub(super) struct Parser<'a> {
    pub(super) spec: &'a Spec,
    pub(super) lexicon: &'a Lexicon,
    pub(super) cursor: Cursor<'a>,
    pub(super) sink: Sink,
    /// Operands of the current instruction. It is a field so that its storage is reused.
    pub(super) operands: Vec<Operand>,
    /// The masks that the last mask statement has set, by entry of `memories`.
    pub(super) masks: Vec<Option<Mask>>,
}

/// The mnemonic of an instruction and where it begins.
#[derive(Clone, Copy, Debug)]
pub(super) struct Head<'a> {
    pub(super) text: &'a str,
    pub(super) start: usize,
    pub(super) mnemonic: Mnemonic,
}

impl<'a> Parser<'a> {
    /// Reads a mnemonic, without the parameter that may follow it.
    pub(super) fn head(&mut self) -> Parse<Head<'a>> {
        let start = self.cursor.at();
        let text = self.cursor.take(|b| b.is_ascii_alphanumeric() || b == b'_');
        match self.spec.mnemonics.get(text).copied().or_else(|| self.lexicon.mask_statement(self.spec, text)) {
            Some(mnemonic) => Ok(Head { text, start, mnemonic }),
            None => {
                self.cursor.move_to(start);
                Err(self.unknown_mnemonic(text))
            }
        }
    }

    fn unknown_mnemonic(&self, text: &str) -> Box<crate::error::Diagnostic> {
        let start = self.cursor.at();
        if text.is_empty() {
            let message = format!("an instruction cannot begin with `{}`", self.cursor.word());
            return fault(Code::UnexpectedText, self.cursor.word_span(), message);
        }
        let span = Span::new(start, start + text.len());
        let message = format!("`{}` has no instruction `{}`", self.spec.machine.name, shorten(text));
        match self.suggestion(text, self.spec.mnemonics.keys().map(String::as_str)) {
            Some(known) => fault_help(Code::UnknownMnemonic, span, message, format!("did you mean `{known}`?")),
            None => fault(Code::UnknownMnemonic, span, message),
        }
    }

    /// The candidate closest to `word`. `None` if the list of errors is full, because nobody would read the suggestion.
    pub(super) fn suggestion<'c>(&self, word: &str, candidates: impl Iterator<Item = &'c str>) -> Option<&'c str> {
        if self.sink.full() {
            None
        } else {
            closest(word, candidates)
        }
    }

    /// Refuses text that directly follows the part just read. `after` names that part.
    pub(super) fn expect_break(&self, after: &str) -> Parse<()> {
        if self.cursor.at_break() {
            return Ok(());
        }
        let message = format!("`{}` right after {after}", self.cursor.word());
        Err(fault(Code::UnexpectedText, self.cursor.word_span(), message))
    }

    /// The span from `start` to the cursor, without trailing blanks.
    pub(super) fn span(&self, start: usize) -> Span {
        let text = self.cursor.slice(start, self.cursor.at());
        Span::new(start, start + text.trim_end_matches([' ', '\t']).len())
    }
}

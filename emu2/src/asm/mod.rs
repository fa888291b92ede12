//! The assembler: text to a checked [`Program`].
//!
//! A line is read by the tables of the [`Spec`]: mnemonics, operand classes, transfer forms, literals. Nothing of the
//! machine stands in the code here, only the shape of the language: `;` between instructions, `#` before comments,
//! `$` before operands, `d` before debug statements.

mod address;
mod check;
mod cursor;
mod debug;
mod decimal;
mod ends;
mod instruction;
mod lexicon;
mod line;
mod literal;
mod location;
mod mask;
mod matrix;
mod mv;
mod operand;
mod parameter;
mod parser;
mod payload;
mod program;
mod reader;
pub(crate) mod record;
mod render;
mod rest;
mod sink;
mod suggest;
mod transfer;

pub use location::parse_location;
pub use program::*;
pub use render::{records, render, Positions, Record};
pub use rest::Rest;

use crate::error::{Code, Diagnostic, Span};
use crate::spec::Spec;
use lexicon::Lexicon;
use reader::Reader;
use rest::{Room, KEPT};
use std::borrow::Cow;
use std::sync::Arc;

/// Which findings refuse a program. Errors of grammar, ranges and parallel issue always do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Policy {
    /// Hazards warn: results are those of immediate execution anyway.
    Run,
    /// Hazards refuse the program, but for rows of the spec that are guesses.
    Check,
    /// Every warning refuses the program.
    Strict,
}

/// Assembles `text`; `name` is what messages call it.
///
/// # Errors
/// [`AssembleError`] with every finding (up to a bound) if at least one of them refuses the program.
pub fn assemble(text: &str, name: &str, spec: &Arc<Spec>, policy: Policy) -> Result<Program, AssembleError> {
    Assembler::new(spec).assemble(text, name, policy)
}

/// The same for the bytes of a file, which may turn out not to be UTF-8.
///
/// # Errors
/// As for [`assemble`]; the text of the error has U+FFFD from the first bad byte on.
pub fn assemble_bytes(bytes: &[u8], name: &str, spec: &Arc<Spec>, policy: Policy) -> Result<Program, AssembleError> {
    Assembler::new(spec).assemble_bytes(bytes, name, policy)
}

/// The text of a file. Comments in another encoding than UTF-8 are read over: their bytes become `?`. Otherwise the place of
/// the first byte that is no text.
pub(crate) fn decoded(bytes: &[u8]) -> Result<Cow<'_, str>, usize> {
    if let Ok(text) = std::str::from_utf8(bytes) {
        return Ok(Cow::Borrowed(text));
    }
    let mut text = bytes.to_vec();
    for line in text.split_mut(|b| *b == b'\n') {
        let comment = line.iter().position(|b| *b == COMMENT).unwrap_or(line.len());
        let comment = &mut line[comment..];
        if std::str::from_utf8(comment).is_err() {
            comment.iter_mut().filter(|b| !b.is_ascii()).for_each(|b| *b = b'?');
        }
    }
    String::from_utf8(text).map(Cow::Owned).map_err(|error| error.utf8_error().valid_up_to())
}

/// An assembler with its tables laid out, for many programs of one machine.
#[derive(Debug)]
pub struct Assembler {
    spec: Arc<Spec>,
    lexicon: Lexicon,
    room: Room,
}

/// A comment begins here, and ends with the line.
const COMMENT: u8 = b'#';
const BYTE_ORDER_MARK: &str = "\u{feff}";

impl Assembler {
    /// Lays out the tables of `spec`.
    pub fn new(spec: &Arc<Spec>) -> Self {
        Assembler { spec: Arc::clone(spec), lexicon: Lexicon::new(spec), room: KEPT }
    }

    /// Keeps all statements of a program, however long it is.
    pub(crate) fn keeping_all(spec: &Arc<Spec>) -> Self {
        Assembler { room: Room { kept: usize::MAX, ..KEPT }, ..Assembler::new(spec) }
    }

    /// Keeps so many statements of a program and reads the others again, in blocks, when they are needed.
    #[must_use]
    pub fn keeping(self, kept: usize, block: usize) -> Self {
        Assembler { room: Room { kept, block }, ..self }
    }

    /// As [`assemble_bytes`].
    ///
    /// # Errors
    /// As [`assemble_bytes`].
    pub fn assemble_bytes(&self, bytes: &[u8], name: &str, policy: Policy) -> Result<Program, AssembleError> {
        match decoded(bytes) {
            Ok(text) => self.assemble(&text, name, policy),
            Err(at) => {
                let byte = bytes.get(at).copied().unwrap_or(0);
                let message = format!("byte {at} of the file, 0x{byte:02x}, is not UTF-8 text");
                let text = String::from_utf8_lossy(bytes);
                let span = Span::new(at, at + char::REPLACEMENT_CHARACTER.len_utf8());
                Err(refuse(&text, name, Diagnostic::error(Code::NotUtf8, Some(span), message)))
            }
        }
    }

    /// As [`assemble`].
    ///
    /// # Errors
    /// As [`assemble`].
    pub fn assemble(&self, text: &str, name: &str, policy: Policy) -> Result<Program, AssembleError> {
        if text.is_empty() {
            let message = format!("{name} holds no byte");
            return Err(refuse(text, name, Diagnostic::error(Code::EmptyFile, Some(Span::default()), message)));
        }
        if u32::try_from(text.len()).is_err() {
            let message = format!("the source has {} bytes; at most {} are possible", text.len(), u32::MAX);
            return Err(refuse("", name, Diagnostic::error(Code::TooLarge, None, message)));
        }
        let mut reader = Reader::new(self, text, policy);
        reader.read();
        let (items, rest, (diagnostics, refused)) = reader.finish();
        let (name, text) = (name.to_string(), Arc::from(text));
        if refused {
            return Err(AssembleError { name, text, diagnostics });
        }
        Ok(Program { spec: Arc::clone(&self.spec), name, text, items, warnings: diagnostics, rest })
    }
}

fn refuse(text: &str, name: &str, diagnostic: Diagnostic) -> AssembleError {
    AssembleError { name: name.to_string(), text: Arc::from(text), diagnostics: vec![diagnostic] }
}

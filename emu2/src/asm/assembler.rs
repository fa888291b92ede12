//! The assembler: turns a text into a checked program.

use super::blocks::{BlockLimits, KEPT};
use super::lexicon::Lexicon;
use super::policy::Policy;
use super::program::{AssembleError, Program};
use super::reader::Reader;
use super::text::decoded;
use crate::error::{Code, Diagnostic, Span};
use crate::interrupt::Interrupt;
use crate::spec::Spec;
use std::sync::Arc;

/// Assembles `text`. Messages call it `name`.
///
/// # Errors
/// [`AssembleError`] with every finding (up to a bound) if at least one of the findings is an error.
pub fn assemble(text: &str, name: &str, spec: &Arc<Spec>, policy: Policy) -> Result<Program, AssembleError> {
    Assembler::new(spec).assemble(text, name, policy)
}

/// Assembles the bytes of a file, which need not be UTF-8.
///
/// # Errors
/// As for [`assemble`], and [`Code::NotUtf8`]. The text of that error has U+FFFD in place of the bad bytes.
pub fn assemble_bytes(bytes: &[u8], name: &str, spec: &Arc<Spec>, policy: Policy) -> Result<Program, AssembleError> {
    Assembler::new(spec).assemble_bytes(bytes, name, policy)
}

/// An assembler that keeps its tables, for many programs of one machine.
#[derive(Debug)]
pub struct Assembler {
    spec: Arc<Spec>,
    lexicon: Lexicon,
    room: BlockLimits,
    interrupt: Interrupt,
}

impl Assembler {
    /// Makes the tables of `spec`.
    pub fn new(spec: &Arc<Spec>) -> Self {
        let (lexicon, interrupt) = (Lexicon::new(spec), Interrupt::default());
        Assembler { spec: Arc::clone(spec), lexicon, room: KEPT, interrupt }
    }

    /// Refuses a source with [`Code::Interrupted`] soon after `interrupt` is requested.
    #[must_use]
    pub fn interrupted_by(self, interrupt: &Interrupt) -> Self {
        Assembler { interrupt: interrupt.clone(), ..self }
    }

    /// Keeps all statements of a program, however long it is.
    pub(crate) fn keeping_all(spec: &Arc<Spec>) -> Self {
        Assembler { room: BlockLimits { kept: usize::MAX, ..KEPT }, ..Assembler::new(spec) }
    }

    /// Keeps the first `kept` statements of a program. The others are read again when they are needed, in blocks of
    /// `block` statements.
    #[must_use]
    pub fn keeping(self, kept: usize, block: usize) -> Self {
        Assembler { room: BlockLimits { kept, block }, ..self }
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
        let mut reader = Reader::new(&self.spec, &self.lexicon, self.room, text, policy);
        reader.read(&self.interrupt);
        if let Err(stopped) = self.interrupt.check() {
            return Err(refuse("", name, *stopped.0));
        }
        let (items, blocks, (diagnostics, refused)) = reader.finish();
        let (name, text) = (name.to_string(), Arc::from(text));
        if refused {
            return Err(AssembleError { name, text, diagnostics });
        }
        Ok(Program { spec: Arc::clone(&self.spec), name, text, items, warnings: diagnostics, blocks })
    }
}

fn refuse(text: &str, name: &str, diagnostic: Diagnostic) -> AssembleError {
    AssembleError { name: name.to_string(), text: Arc::from(text), diagnostics: vec![diagnostic] }
}

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
mod parser;
mod payload;
mod program;
pub(crate) mod record;
mod render;
mod sink;
mod suggest;
mod transfer;

pub use location::parse_location;
pub use program::*;
pub use render::{records, render, Positions, Record};

use crate::error::{Code, Diagnostic, Span};
use crate::spec::Spec;
use check::{Hazards, Place, Ports};
use cursor::Cursor;
use lexicon::Lexicon;
use line::Line;
use parser::Parser;
use sink::Sink;
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
}

/// A comment begins here, and ends with the line.
const COMMENT: u8 = b'#';
const BYTE_ORDER_MARK: &str = "\u{feff}";

impl Assembler {
    /// Lays out the tables of `spec`.
    pub fn new(spec: &Arc<Spec>) -> Self {
        Assembler { spec: Arc::clone(spec), lexicon: Lexicon::new(spec) }
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
        let cursor = Cursor::new(text, 0, 0);
        let parser = Parser {
            spec: &self.spec,
            lexicon: &self.lexicon,
            cursor,
            sink: Sink::new(policy),
            operands: Vec::new(),
            masks: vec![None; self.spec.memories.len()],
        };
        let (ports, hazards) = (Ports::new(&self.spec), Hazards::new(&self.spec));
        let mut reader =
            Reader { text, parser, line: Line::default(), number: 0, items: Vec::new(), ports, hazards, quit: false };
        reader.read();
        let (diagnostics, refused) = reader.parser.sink.finish();
        let (name, text) = (name.to_string(), Arc::from(text));
        if refused {
            return Err(AssembleError { name, text, diagnostics });
        }
        Ok(Program { spec: Arc::clone(&self.spec), name, text, items: reader.items, warnings: diagnostics })
    }
}

fn refuse(text: &str, name: &str, diagnostic: Diagnostic) -> AssembleError {
    AssembleError { name: name.to_string(), text: Arc::from(text), diagnostics: vec![diagnostic] }
}

/// The source while it is read, line by line.
struct Reader<'a> {
    text: &'a str,
    parser: Parser<'a>,
    line: Line,
    /// Of the line at hand, from 1.
    number: u32,
    items: Vec<Item>,
    ports: Ports,
    hazards: Hazards,
    quit: bool,
}

impl<'a> Reader<'a> {
    fn read(&mut self) {
        let bytes = self.text.as_bytes();
        let mut at = if self.text.starts_with(BYTE_ORDER_MARK) { BYTE_ORDER_MARK.len() } else { 0 };
        while at < bytes.len() && !self.quit {
            self.number += 1;
            let line = &bytes[at..];
            let length = line.iter().position(|b| *b == b'\n').unwrap_or(line.len());
            self.statement(at, &line[..length]);
            at += length + 1;
        }
    }

    /// One line: `bytes` is what lies at `at` up to the line feed.
    fn statement(&mut self, at: usize, bytes: &[u8]) {
        let code = bytes.iter().position(|b| *b == COMMENT).map_or(bytes, |comment| &bytes[..comment]);
        if let Some(inside) = bytes[code.len()..].iter().position(|b| *b == b'\r').map(|inside| code.len() + inside) {
            // A comment would swallow what a text with bare carriage returns has on its next lines.
            if inside + 1 < bytes.len() {
                let span = Span::new(at + inside, at + inside + 1);
                let message = "a carriage return inside a line";
                let fault = Diagnostic::error(Code::UnexpectedText, Some(span), message);
                self.parser.sink.push(fault.help("end lines with a line feed"));
            }
        }
        let blank = |b: &u8| matches!(b, b' ' | b'\t' | b'\r');
        let Some(first) = code.iter().position(|b| !blank(b)) else { return };
        let last = code.iter().rposition(|b| !blank(b)).unwrap_or(first);
        let span = Span::new(at + first, at + last + 1);
        self.parser.cursor = Cursor::new(self.text, at + first, at + last + 1);
        let code = &code[first..=last];
        let letter = Some(code[0]).filter(|_| code.get(1).is_none_or(|b| matches!(b, b' ' | b'\t'))).map(char::from);
        let kind = match letter {
            Some(debug::DEBUG) => self.lettered(Parser::debug),
            Some(record::RECORD) => self.lettered(Parser::record),
            Some(record::HOST) => self.lettered(|_| Err(record::host_command(span))),
            _ => self.instructions(),
        };
        if let Some(kind) = kind {
            self.items.push(Item { line: self.number, span, kind });
        }
    }

    /// A statement that begins with a letter of its own.
    fn lettered(&mut self, read: impl FnOnce(&mut Parser<'a>) -> cursor::Parse<ItemKind>) -> Option<ItemKind> {
        self.parser.cursor.move_to(self.parser.cursor.at() + 1);
        match read(&mut self.parser) {
            Ok(kind) => Some(kind),
            Err(fault) => {
                self.parser.sink.push(*fault);
                None
            }
        }
    }

    /// A PE or MV line.
    fn instructions(&mut self) -> Option<ItemKind> {
        self.line.clear();
        let mut clean = true;
        loop {
            self.parser.cursor.skip_blanks();
            if self.parser.cursor.eat(b';') {
                continue;
            }
            // With more instructions than slots one is taken twice: the rest of the line cannot make it legal.
            if self.parser.cursor.peek().is_none() || self.line.uses.len() > self.parser.spec.slots.len() {
                break;
            }
            if let Err(fault) = self.parser.instruction(&mut self.line) {
                clean = false;
                self.parser.sink.push(*fault);
                self.parser.cursor.skip_to(b';');
            }
        }
        if clean && self.line.uses.is_empty() {
            let (cursor, sink) = (&self.parser.cursor, &mut self.parser.sink);
            let span = Span::new(cursor.end() - 1, cursor.end());
            sink.push(Diagnostic::error(Code::UnexpectedText, Some(span), "`;` without an instruction"));
            return None;
        }
        let Parser { spec, lexicon, sink, .. } = &mut self.parser;
        clean = clean
            && check::check_slots(spec, lexicon, &self.line, sink)
            && check::check_units(spec, lexicon, &self.line, sink)
            && check::check_masks(&self.line, sink)
            && self.ports.check(spec, lexicon, &self.line, sink);
        self.quit = self.line.quit;
        if !clean {
            self.hazards.refused();
            return None;
        }
        self.finish()
    }

    /// The item that a line without fault makes, after the hazard table.
    fn finish(&mut self) -> Option<ItemKind> {
        let Parser { spec, lexicon, sink, .. } = &mut self.parser;
        let line = &mut self.line;
        let place = Place { spec, lexicon, line: self.number };
        if let Some(tag) = line.wait {
            self.hazards.wait(tag);
        }
        if line.quit || line.mask || line.idle_mv {
            return None;
        }
        if let Some(mv) = line.mv.take() {
            let span = line.uses.first().map_or(Span::default(), |u| u.span);
            self.hazards.mv(place, &mv, span, sink);
            return Some(ItemKind::Mv(mv));
        }
        if let Some(count) = line.nop {
            self.hazards.skip(count);
            return Some(ItemKind::Nop { count, wait: line.wait });
        }
        self.hazards.step(place, line, sink);
        let step = Step {
            pe: line.pe.drain(..).collect(),
            l2bm: line.l2bm.drain(..).collect(),
            wait: line.wait,
            forward: !line.noforward,
        };
        Some(ItemKind::Step(Box::new(step)))
    }
}

//! Reads a source line by line.

use super::blocks::{Block, BlockLimits, BlockWriter, SourceBlocks};
use super::check::{self, Hazards, LineContext, Ports};
use super::cursor::{Cursor, Parse};
use super::lexicon::Lexicon;
use super::line::Line;
use super::parser::Parser;
use super::policy::Policy;
use super::sink::Sink;
use super::statement::{Item, ItemKind, Step};
use super::text::{code_length, BYTE_ORDER_MARK};
use super::{debug, host_command, record};
use crate::error::{Code, Diagnostic, Span};
use crate::interrupt::Interrupt;
use crate::spec::Spec;
use std::ops::Range;

/// A source while it is being read.
pub(super) struct Reader<'a> {
    text: &'a str,
    parser: Parser<'a>,
    line: Line,
    /// The number of the current line, from 1.
    number: u32,
    items: Vec<Item>,
    /// Collects where the statements that are not kept lie.
    blocks: BlockWriter,
    /// `None` for a source that was checked before.
    checks: Option<Checks>,
    quit: bool,
}

/// The checks that need the lines before or storage of their own.
struct Checks {
    ports: Ports,
    hazards: Hazards,
}

impl<'a> Reader<'a> {
    /// Makes a reader that checks the source.
    pub(super) fn new(spec: &'a Spec, lexicon: &'a Lexicon, room: BlockLimits, text: &'a str, policy: Policy) -> Self {
        let mut reader = Reader::again(spec, lexicon, text, Vec::new());
        reader.parser.masks = vec![None; spec.memories.len()];
        reader.parser.sink = Sink::new(policy);
        reader.checks = Some(Checks { ports: Ports::new(spec), hazards: Hazards::new(spec) });
        reader.blocks = BlockWriter::new(room);
        reader
    }

    /// Makes a reader for blocks of a source that was checked. It finds nothing and keeps all statements.
    pub(super) fn again(spec: &'a Spec, lexicon: &'a Lexicon, text: &'a str, items: Vec<Item>) -> Self {
        let parser = Parser {
            spec,
            lexicon,
            cursor: Cursor::new(text, 0, 0),
            sink: Sink::new(Policy::Run),
            operands: Vec::new(),
            masks: Vec::new(),
        };
        let blocks = BlockWriter::new(BlockLimits::ALL);
        Reader { text, parser, line: Line::default(), number: 0, items, blocks, checks: None, quit: false }
    }

    /// Reads the source to its end, or until `interrupt` is requested.
    pub(super) fn read(&mut self, interrupt: &Interrupt) {
        let mark = if self.text.starts_with(BYTE_ORDER_MARK) { BYTE_ORDER_MARK.len() } else { 0 };
        self.lines(mark..self.text.len(), || interrupt.requested());
    }

    /// Reads a block again.
    pub(super) fn block(&mut self, block: &Block) {
        self.number = block.line;
        self.parser.masks.clone_from(&block.masks);
        self.lines(block.text.clone(), || false);
    }

    /// Returns the kept statements, the blocks of the others, and the findings with whether they refuse the program.
    pub(super) fn finish(self) -> (Vec<Item>, SourceBlocks, (Vec<Diagnostic>, bool)) {
        (self.items, self.blocks.finish(), self.parser.sink.finish())
    }

    pub(super) fn items(self) -> Vec<Item> {
        self.items
    }

    fn lines(&mut self, text: Range<usize>, stop: impl Fn() -> bool) {
        let bytes = &self.text.as_bytes()[..text.end];
        let mut at = text.start;
        while at < bytes.len() && !self.quit && !stop() {
            self.blocks.line(at, self.number, self.items.len(), &self.parser.masks);
            self.number += 1;
            let line = &bytes[at..];
            let length = line.iter().position(|b| *b == b'\n').unwrap_or(line.len());
            self.statement(at, &line[..length]);
            at += length + 1;
        }
        self.blocks.end(at.min(bytes.len()));
    }

    /// Reads one line. `bytes` is its text without the line feed and begins at `at`.
    fn statement(&mut self, at: usize, bytes: &[u8]) {
        let code = &bytes[..code_length(bytes)];
        if let Some(inside) = bytes[code.len()..].iter().position(|b| *b == b'\r').map(|inside| code.len() + inside) {
            // If bare carriage returns end the lines, a comment would swallow the lines after it.
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
            Some(letter) if host_command::is_letter(letter) => self.lettered(|parser| parser.host_command(letter)),
            _ => self.instructions(),
        };
        let Some(kind) = kind else { return };
        if !self.blocks.takes() {
            self.items.push(Item { line: self.number, span, kind });
        }
    }

    /// Reads a statement that begins with a letter of its own.
    fn lettered(&mut self, read: impl FnOnce(&mut Parser<'a>) -> Parse<ItemKind>) -> Option<ItemKind> {
        self.parser.cursor.move_to(self.parser.cursor.at() + 1);
        match read(&mut self.parser) {
            Ok(kind) => Some(kind),
            Err(fault) => {
                self.parser.sink.push(*fault);
                None
            }
        }
    }

    /// Reads and checks a PE or MV line.
    fn instructions(&mut self) -> Option<ItemKind> {
        self.line.clear();
        let mut clean = true;
        loop {
            self.parser.cursor.skip_blanks();
            if self.parser.cursor.eat(b';') {
                continue;
            }
            // With more instructions than slots one slot is taken twice, so the rest of the line cannot make it legal.
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
        self.quit = self.line.quit;
        let Parser { spec, lexicon, sink, .. } = &mut self.parser;
        let Some(Checks { ports, hazards }) = &mut self.checks else { return self.item() };
        clean = clean
            && check::check_slots(spec, lexicon, &self.line, sink)
            && check::check_units(spec, lexicon, &self.line, sink)
            && check::check_masks(&self.line, sink)
            && ports.check(spec, lexicon, &self.line, sink);
        if !clean {
            hazards.refused(&self.line);
            return None;
        }
        follow(hazards, LineContext { spec, lexicon, line: self.number }, &self.line, sink);
        self.item()
    }

    /// The item of a line without fault, if it makes one.
    fn item(&mut self) -> Option<ItemKind> {
        let line = &mut self.line;
        if line.quit || line.mask || line.idle_mv {
            return None;
        }
        if let Some(mv) = line.mv.take() {
            return Some(ItemKind::Mv(mv));
        }
        if let Some(count) = line.nop {
            return Some(ItemKind::Nop { count, wait: line.wait });
        }
        let step = Step {
            pe: line.pe.drain(..).collect(),
            l2bm: line.l2bm.drain(..).collect(),
            wait: line.wait,
            forward: !line.noforward,
        };
        Some(ItemKind::Step(Box::new(step)))
    }
}

/// Checks a line without fault against the hazard table.
fn follow(hazards: &mut Hazards, context: LineContext<'_>, line: &Line, sink: &mut Sink) {
    if let Some(tag) = line.wait {
        hazards.wait(tag);
    }
    if line.quit || line.mask || line.idle_mv {
        return;
    }
    if let Some(mv) = &line.mv {
        let span = line.uses.first().map_or(Span::default(), |u| u.span);
        hazards.mv(context, mv, span, sink);
    } else if let Some(count) = line.nop {
        hazards.skip(count);
    } else {
        hazards.step(context, line, sink);
    }
}

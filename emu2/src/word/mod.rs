//! Machine words: converts programs to assembled text (`.asm`) and back.
//!
//! The `encoding` sections of the spec describe the words. An instruction that they do not cover is refused by name.
//! [`encode`] makes the lines of a program and [`write()`] makes their text. [`read`] converts such text to a
//! [`Program`], and [`print()`] writes a program as assembly. [`pack`] and [`unpack`] write and read a container for
//! programs that this project defines.

mod bits;
mod container;
mod coverage;
mod decode;
mod draft;
mod encode;
mod hidden;
mod print;
mod read;

pub use bits::Word;
pub use container::{pack, tag_uses, unpack, TagUse, BLOCK, MAGIC, VERSION};
pub use coverage::coverage;
pub use decode::{decode_word, Decoded, WordFault};
pub use encode::{encode_step, StepWord};
pub use print::{print, statement};
pub use read::{read, read_until};

use crate::asm::host_command;
use crate::asm::record::{records, RECORD};
use crate::asm::{AssembleError, Item, ItemKind, Program, Step};
use crate::error::{Code, Diagnostic, Error, Severity, Span};
use crate::spec::{Encoding, Spec};
use draft::refuse;
use hidden::{MatrixPath, Written};
use std::convert::Infallible;

/// Assembled text has at most this many lines.
pub const MAX_LINES: u64 = 1 << 24;
/// At most this many errors of a program are listed. The others are counted.
const LIMIT: usize = 100;
/// Text goes to the sink in pieces of about this many bytes.
const CHUNK: usize = 1 << 16;
/// The text of a program without statements.
const NOTHING: &str = "# no statement\n";

/// The first letter of a debug line.
pub const DEBUG: char = 'd';
/// The first letter of a line that holds a statement.
pub const STATEMENT: char = 's';
/// The first letter of a PE line in flat mode.
pub const FLAT_PE: char = 'j';
/// The first letter of an MV line in flat mode.
pub const FLAT_MV: char = 'm';

/// How to write a program, and its statements without a known machine word.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Form {
    /// Words only. A statement without a known word is refused.
    #[default]
    Words,
    /// Words, and an `s` line with the statement if no word is known.
    Mixed,
    /// Flat mode: no words. Every step is a `j` line with its statement, and every MV an `m` line.
    Flat,
}

/// How to encode a program.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct Options {
    /// The form of the lines.
    pub form: Form,
    /// Also write words that rest on inferred positions or values.
    pub inferred: bool,
}

/// A run of equal lines of assembled text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Line {
    /// How many lines.
    pub count: u64,
    /// The content of each line.
    pub content: Content,
}

/// The content of a line of assembled text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Content {
    /// A machine word.
    Word(Word),
    /// A letter, a blank and a statement.
    Text(char, String),
}

/// Makes the lines of assembled text of `program`, in its order.
///
/// # Errors
/// [`AssembleError`] with one finding for each instruction without a known word, or with an inferred word that the
/// options do not allow. Also for steps whose words would be read as others, and for more than [`MAX_LINES`] lines.
pub fn encode(program: &Program, options: Options) -> Result<Vec<Line>, AssembleError> {
    let mut writer = Writer {
        program,
        options,
        lines: Vec::with_capacity(program.statements()),
        matrix_path: MatrixPath::default(),
        refused: Vec::new(),
        more: 0,
    };
    let mut total = 0u64;
    let Ok(()) = program.for_each(|item| {
        let from = writer.lines.len();
        writer.item(item);
        total = writer.lines[from..].iter().fold(total, |sum, line| sum.saturating_add(line.count));
        Ok::<(), Infallible>(())
    });
    if total > MAX_LINES {
        let message = format!("the program has {total} lines; at most {MAX_LINES} are written");
        writer.refuse(vec![Diagnostic::error(Code::LineCount, None, message)]);
    }
    if writer.refused.is_empty() {
        return Ok(writer.lines);
    }
    let mut diagnostics = writer.refused;
    if writer.more > 0 {
        let message = format!("and {} more", writer.more);
        let last = diagnostics.last().and_then(|d| d.span);
        diagnostics.push(Diagnostic::error(Code::TooMany, last, message));
    }
    Err(AssembleError { name: program.name.clone(), text: program.text.clone(), diagnostics })
}

struct Writer<'a> {
    program: &'a Program,
    options: Options,
    lines: Vec<Line>,
    matrix_path: MatrixPath,
    refused: Vec<Diagnostic>,
    /// The number of errors past the limit.
    more: usize,
}

impl Writer<'_> {
    fn item(&mut self, item: &Item) {
        let spec = &self.program.spec;
        let (count, tag) = match &item.kind {
            ItemKind::Set(_) | ItemKind::Get(_) => return self.debug(&item.kind),
            ItemKind::Host(command) => {
                let text = host_command::text(spec, command);
                return self.push(1, Content::Text(host_command::letter(command), text));
            }
            ItemKind::Nop { count, wait } => (*count, *wait),
            ItemKind::Step(_) | ItemKind::Mv(_) => (1, None),
        };
        if count == 0 {
            return;
        }
        if self.options.form == Form::Flat {
            let letter = if matches!(item.kind, ItemKind::Mv(_)) { FLAT_MV } else { FLAT_PE };
            let text = match item.kind {
                ItemKind::Nop { .. } => print::nop(spec, 1, tag),
                _ => statement(spec, &item.kind),
            };
            self.push(1, Content::Text(letter, text));
            return self.push(count - 1, Content::Text(letter, print::nop(spec, 1, None)));
        }
        let word = self.word(item);
        if let ItemKind::Step(step) = &item.kind {
            self.check_matrix_path(item, step, word.as_ref().ok().copied());
        }
        match word {
            Ok(word) => self.push(count, Content::Word(word)),
            Err(_) if self.options.form == Form::Mixed => {
                let first = match item.kind {
                    ItemKind::Nop { .. } => print::nop(spec, 1, tag),
                    _ => statement(spec, &item.kind),
                };
                self.push(1, Content::Text(STATEMENT, first));
                let idle = spec.encoding.as_ref().map(|e| Content::Word(Word::idle(e)));
                let rest = idle.unwrap_or_else(|| Content::Text(STATEMENT, print::nop(spec, 1, None)));
                self.push(count - 1, rest);
            }
            Err(refused) => self.refuse(refused),
        }
    }

    /// Finds earlier steps whose words would be read as other steps because of this step. They become statements or are
    /// refused.
    fn check_matrix_path(&mut self, item: &Item, step: &Step, word: Option<Word>) {
        let written = Written { line: self.lines.len(), number: item.line, span: item.span, word };
        for ambiguous in self.matrix_path.step(&self.program.spec, step, written) {
            if self.options.form == Form::Mixed {
                self.lines[ambiguous.step.line].content = Content::Text(STATEMENT, ambiguous.statement);
            } else {
                let found = Diagnostic::error(Code::AmbiguousWord, Some(ambiguous.step.span), ambiguous.message);
                self.refuse(vec![found]);
            }
        }
    }

    /// The word of a step or an idle step, or the errors why there is none.
    fn word(&self, item: &Item) -> Result<Word, Vec<Diagnostic>> {
        let spec: &Spec = &self.program.spec;
        let none = |what: &str| vec![Diagnostic { span: Some(item.span), ..*encode::no_word(what) }];
        let Some(encoding) = &spec.encoding else {
            return Err(none(&format!("any statement of `{}`", spec.machine.name)));
        };
        match &item.kind {
            ItemKind::Nop { wait: None, .. } => Ok(Word::idle(encoding)),
            ItemKind::Nop { wait: Some(tag), .. } => Err(none(&print::wait(spec, *tag))),
            ItemKind::Step(step) => self.step(encoding, step, item.span),
            ItemKind::Mv(mv) => Err(none(&spec.transfers[mv.form.transfer].name)),
            ItemKind::Set(_) | ItemKind::Get(_) | ItemKind::Host(_) => Err(none("a debug statement")),
        }
    }

    fn step(&self, encoding: &Encoding, step: &Step, span: Span) -> Result<Word, Vec<Diagnostic>> {
        let StepWord { word, mut inferred } = encode_step(&self.program.spec, encoding, step, span)?;
        inferred.extend(self.masked_by_a_statement(step));
        match inferred.first().filter(|_| !self.options.inferred) {
            None => Ok(word),
            Some(reason) => {
                let message = format!("the machine word of this step is inferred: {reason}");
                Err(vec![Diagnostic { span: Some(span), ..*refuse(Code::InferredWord, message) }])
            }
        }
    }

    /// The first destination whose mask comes from a mask statement before the line. It is inferred that such a mask
    /// makes the same word as a mask after the destination. Programs that were not read from a text have no such
    /// statements.
    fn masked_by_a_statement(&self, step: &Step) -> Option<String> {
        let after = |span: Span| self.program.text.get(span.end as usize..).filter(|_| span.end > span.start);
        let masked = step.pe.iter().flat_map(|i| &i.destinations).filter(|d| d.mask.is_some());
        let found = masked.into_iter().find(|d| after(d.span).is_some_and(|rest| !rest.starts_with('/')))?;
        Some(format!("`{}`, whose mask is that of a statement", print::destination(&self.program.spec, found)))
    }

    fn debug(&mut self, kind: &ItemKind) {
        if let ItemKind::Set(set) = kind {
            // The vendor's tools write such words as `r` lines and have no `d set` for them.
            if let Some(lines) = records(&self.program.spec, set) {
                return lines.into_iter().for_each(|line| self.push(1, Content::Text(RECORD, line)));
            }
        }
        let text = statement(&self.program.spec, kind);
        let bare = text.strip_prefix(DEBUG).map_or(text.as_str(), str::trim_start).to_string();
        self.push(1, Content::Text(DEBUG, bare));
    }

    fn push(&mut self, count: u64, content: Content) {
        if count > 0 {
            self.lines.push(Line { count, content });
        }
    }

    fn refuse(&mut self, refused: Vec<Diagnostic>) {
        for diagnostic in refused {
            match self.refused.len() < LIMIT {
                true => self.refused.push(diagnostic),
                false => self.more += usize::from(diagnostic.severity == Severity::Error),
            }
        }
    }
}

/// Hands the text of `lines` to `sink`, piece by piece.
///
/// # Errors
/// The error that `sink` returns.
pub fn write(spec: &Spec, lines: &[Line], sink: &mut dyn FnMut(&str) -> Result<(), Error>) -> Result<(), Error> {
    let letter = spec.encoding.as_ref().map_or('i', |e| e.letter);
    let mut text = String::new();
    for line in lines {
        let one = match &line.content {
            Content::Word(word) => format!("{letter} {word}\n"),
            Content::Text(letter, statement) if statement.is_empty() => format!("{letter}\n"),
            Content::Text(letter, statement) => format!("{letter} {statement}\n"),
        };
        for _ in 0..line.count {
            text.push_str(&one);
            if text.len() >= CHUNK {
                sink(&text)?;
                text.clear();
            }
        }
    }
    if lines.is_empty() {
        // No reader takes a text without a byte.
        text.push_str(NOTHING);
    }
    if text.is_empty() {
        return Ok(());
    }
    sink(&text)
}

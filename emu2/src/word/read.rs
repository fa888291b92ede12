//! Reads assembled text (`.asm`) into a program.
//!
//! Words are decoded here. Debug lines and statements go to the assembler at their own places in the text, so its
//! findings point there.

use super::bits::Word;
use super::decode::{decode_word, Decoded};
use super::hidden::{reads_path, with_hidden};
use super::print::statement;
use super::{DEBUG, FLAT_MV, FLAT_PE, STATEMENT};
use crate::asm::host_command::is_letter;
use crate::asm::record::RECORD;
use crate::asm::{code_length, decoded, AssembleError, Assembler, Item, ItemKind, Policy, Program, Step};
use crate::error::{Code, Diagnostic, Severity, Span};
use crate::interrupt::Interrupt;
use crate::spec::{ControlKernel, Mnemonic, Spec, LONG_BITS};
use std::collections::{HashMap, HashSet};
use std::sync::Arc;

const BYTE_ORDER_MARK: char = '\u{feff}';
/// The codes of hazard findings begin with this. They are dropped here, because only sources are checked for hazards.
const HAZARDS: &str = "A07";
/// At most this many findings of each severity are listed.
const LIMIT: usize = 100;

/// Reads a program from the bytes of a file of assembled text. Messages call it `name`.
///
/// # Errors
/// [`AssembleError`] for lines of no known form, words of the wrong length or with other characters than binary digits,
/// words that cannot be decoded, and statements that do not assemble.
pub fn read(bytes: &[u8], name: &str, spec: &Arc<Spec>) -> Result<Program, AssembleError> {
    read_until(bytes, name, spec, &Interrupt::default())
}

/// As [`read`], but stops soon after `interrupt` is requested.
///
/// # Errors
/// As [`read`], and [`Code::Interrupted`].
pub fn read_until(bytes: &[u8], name: &str, spec: &Arc<Spec>, interrupt: &Interrupt) -> Result<Program, AssembleError> {
    let assembler = Assembler::keeping_all(spec).interrupted_by(interrupt);
    // The assembler refuses files that are empty, too long or not UTF-8, as it refuses such a source.
    let text = decoded(bytes).ok().filter(|t| !t.is_empty() && u32::try_from(t.len()).is_ok());
    let Some(text) = text.as_deref() else {
        return assembler.assemble_bytes(bytes, name, Policy::Run);
    };
    let mut reader = Reader {
        spec,
        assembler: &assembler,
        cache: HashMap::new(),
        items: Vec::new(),
        hidden: HashMap::new(),
        statements: String::with_capacity(text.len()),
        kinds: HashMap::new(),
        found: Vec::new(),
        said: HashSet::new(),
        more: 0,
    };
    reader.read(text, interrupt);
    // After an interrupt, the assembler reads the text next and refuses it.
    reader.finish(text, name)
}

struct Reader<'a> {
    spec: &'a Arc<Spec>,
    assembler: &'a Assembler,
    /// The words that were decoded before.
    cache: HashMap<Word, Result<Decoded, Diagnostic>>,
    items: Vec<Item>,
    /// By line, the instruction that the word cannot show beside the others.
    hidden: HashMap<u32, crate::asm::PeInstruction>,
    /// The text, with blanks in place of everything except debug lines and statements.
    statements: String,
    /// The letters of lines that hold statements, by line number.
    kinds: HashMap<u32, (char, Span)>,
    found: Vec<Diagnostic>,
    /// The inferred readings that a warning was already given for.
    said: HashSet<String>,
    /// The number of findings past the limit.
    more: usize,
}

impl Reader<'_> {
    fn read(&mut self, text: &str, interrupt: &Interrupt) {
        let body = text.strip_prefix(BYTE_ORDER_MARK).unwrap_or(text);
        let mut at = text.len() - body.len();
        self.statements.extend(std::iter::repeat_n(' ', at));
        let lines = body.split_inclusive('\n').take_while(|_| !interrupt.requested());
        for (number, line) in lines.enumerate() {
            let code = line.trim_end_matches('\n');
            let code = code[..code_length(code.as_bytes())].trim_end();
            let kept = match self.line(code, at, number as u32 + 1) {
                Ok(kept) => kept,
                Err(diagnostic) => {
                    self.push(*diagnostic);
                    None
                }
            };
            // Text that is left out becomes as many blanks, so places stay the same.
            let from = kept.unwrap_or(code.len());
            self.statements.extend(std::iter::repeat_n(' ', from));
            self.statements.push_str(&code[from..]);
            self.statements.extend(std::iter::repeat_n(' ', line.trim_end_matches('\n').len() - code.len()));
            self.statements.extend(line.ends_with('\n').then_some('\n'));
            at += line.len();
        }
    }

    /// Reads one line, which begins at byte `at`. Returns the byte of the line from which the assembler reads it, if it
    /// does.
    fn line(&mut self, line: &str, at: usize, number: u32) -> Result<Option<usize>, Box<Diagnostic>> {
        let code = line.trim_start_matches([' ', '\t']);
        let indent = line.len() - code.len();
        let at = at + indent;
        let Some(letter) = code.chars().next() else { return Ok(None) };
        let rest = &code[letter.len_utf8()..];
        let whole = Span::new(at, at + code.len());
        if is_letter(letter) && (rest.is_empty() || rest.starts_with([' ', '\t'])) {
            return Ok(Some(0));
        }
        if !rest.starts_with([' ', '\t']) {
            return Err(bad_line(whole, code, "a line begins with a letter and a blank"));
        }
        let operands = rest.trim_start_matches([' ', '\t']);
        let start = at + code.len() - operands.len();
        let word_letter = self.spec.encoding.as_ref().map(|e| e.letter);
        match letter {
            _ if Some(letter) == word_letter => self.word(operands, start, number).map(|()| None),
            DEBUG => Ok(Some(0)),
            STATEMENT | FLAT_PE | FLAT_MV => {
                let digits = operands.len() > LONG_BITS as usize && operands.bytes().all(|b| matches!(b, b'0' | b'1'));
                if digits {
                    return Err(bad_line(whole, &code[..1], "nobody knows the machine words of flat mode"));
                }
                let first = operands.split([' ', '\t', ';']).next().unwrap_or("");
                if let Some(Mnemonic::Control(control)) = self.spec.mnemonics.get(first) {
                    if self.spec.controls[*control].kernel == ControlKernel::Quit {
                        return Err(bad_line(whole, code, "assembled text ends where the file ends"));
                    }
                }
                if operands.is_empty() {
                    return Err(bad_line(whole, code, "the statement is missing"));
                }
                self.kinds.insert(number, (letter, whole));
                Ok(Some(indent + letter.len_utf8()))
            }
            RECORD => Ok(Some(0)),
            _ => Err(bad_line(whole, code, "this letter begins no line of assembled text")),
        }
    }

    fn word(&mut self, digits: &str, start: usize, number: u32) -> Result<(), Box<Diagnostic>> {
        let Some(encoding) = &self.spec.encoding else { return Ok(()) };
        let span = Span::new(start, start + digits.len());
        let fault = |code, span, message: String| Err(Box::new(Diagnostic::error(code, Some(span), message)));
        if let Some((at, other)) = digits.char_indices().find(|(_, c)| !matches!(c, '0' | '1')) {
            let message = format!("`{}` among the binary digits of a word", other.escape_default());
            return fault(Code::WordDigit, Span::new(start + at, start + at + other.len_utf8()), message);
        }
        let Some(word) = Word::from_digits(digits.as_bytes()).filter(|w| w.bits() == encoding.bits) else {
            let message =
                format!("a word of {} digits; `{}` has {}", digits.len(), self.spec.machine.name, encoding.bits);
            return fault(Code::WordLength, span, message);
        };
        let place = |d: &Diagnostic| {
            let inside = d.span.unwrap_or_default();
            Span::new(start + inside.start as usize, start + inside.end as usize)
        };
        let decoded = match self.cache.get(&word) {
            Some(known) => known,
            None => {
                let decoded = self.decode(&word);
                self.cache.entry(word).or_insert(decoded)
            }
        };
        let decoded = match decoded {
            Ok(decoded) => decoded.clone(),
            Err(d) => return Err(Box::new(Diagnostic { span: Some(place(d)), ..d.clone() })),
        };
        if let Some(reason) = decoded.inferred.first().filter(|r| self.said.insert((*r).clone())) {
            let message = format!("the reading of this word is inferred: {reason}");
            self.push(Diagnostic::warning(Code::InferredReading, Some(span), message));
        }
        if let Some(instruction) = decoded.hidden {
            self.hidden.insert(number, instruction);
        }
        let kind = match decoded.step {
            Some(step) => ItemKind::Step(Box::new(placed(step, span))),
            None => ItemKind::Nop { count: 1, wait: None },
        };
        self.items.push(Item { line: number, span, kind });
        Ok(())
    }

    /// Decodes a word to a step that the assembler accepts too. Spans of errors count from the first digit of the word.
    fn decode(&self, word: &Word) -> Result<Decoded, Diagnostic> {
        let Some(encoding) = &self.spec.encoding else {
            return Ok(Decoded { step: None, inferred: Vec::new(), hidden: None });
        };
        let decoded = decode_word(self.spec, encoding, word).map_err(|fault| {
            let (first, count) = fault.digits;
            let span = Span::new(first as usize, (first + count) as usize);
            Diagnostic::error(fault.code, Some(span), fault.message)
        })?;
        let Some(step) = &decoded.step else { return Ok(decoded) };
        let text = statement(self.spec, &ItemKind::Step(Box::new(step.clone())));
        match self.assembler.assemble(&text, "", Policy::Run) {
            Ok(_) => Ok(decoded),
            Err(error) => {
                let first = error.diagnostics.iter().find(|d| d.severity == Severity::Error);
                let why = first.map_or(String::new(), |d| format!(": {}", d.message));
                let span = Span::new(0, encoding.bits as usize);
                let message = format!("the word spells `{text}`, which is not legal{why}");
                Err(Diagnostic::error(Code::UnreadableWord, Some(span), message))
            }
        }
    }

    fn push(&mut self, diagnostic: Diagnostic) {
        let same = self.found.iter().filter(|d| d.severity == diagnostic.severity).count();
        match same < LIMIT {
            true => self.found.push(diagnostic),
            false => self.more += 1,
        }
    }

    fn finish(mut self, text: &str, name: &str) -> Result<Program, AssembleError> {
        let statements = std::mem::take(&mut self.statements);
        let mut items = match self.assembler.assemble(&statements, name, Policy::Run) {
            Ok(program) => {
                self.found.extend(program.warnings.into_iter().filter(|d| !d.code.id().starts_with(HAZARDS)));
                program.items
            }
            Err(error) => {
                self.found.extend(error.diagnostics.into_iter().filter(|d| !d.code.id().starts_with(HAZARDS)));
                Vec::new()
            }
        };
        for item in &items {
            let mv = matches!(item.kind, ItemKind::Mv(_));
            let wrong = |letter: char| (letter == FLAT_PE && mv) || (letter == FLAT_MV && !mv);
            if let Some((letter, span)) = self.kinds.get(&item.line).filter(|(letter, _)| wrong(*letter)).copied() {
                let what = if letter == FLAT_MV { "an MV" } else { "a PE line" };
                let message = format!("a line with `{letter}` holds {what}");
                self.found.push(Diagnostic::error(Code::BadLine, Some(span), message));
            }
        }
        sorting::sort_by_key(&mut self.found, |d| d.span.map(|s| s.start));
        if self.more > 0 {
            let last = self.found.last().and_then(|d| d.span);
            let message = format!("and {} more", self.more);
            let any = self.found.iter().any(|d| d.severity == Severity::Error);
            let more = Diagnostic::warning(Code::TooMany, last, message);
            self.found.push(Diagnostic { severity: if any { Severity::Error } else { Severity::Warning }, ..more });
        }
        let (name, text) = (name.to_string(), Arc::from(text));
        if self.found.iter().any(|d| d.severity == Severity::Error) {
            return Err(AssembleError { name, text, diagnostics: self.found });
        }
        items.append(&mut self.items);
        sorting::sort_by_key(&mut items, |item| item.line);
        show(&mut items, &self.hidden, self.assembler, self.spec);
        Ok(Program { spec: Arc::clone(self.spec), name, text, items, warnings: self.found, blocks: Default::default() })
    }
}

/// Adds matrix reads that words do not show. If a step reads the path of the matrix reads, only the last step that
/// updates the forwarding paths can have filled it.
fn show(items: &mut [Item], hidden: &HashMap<u32, crate::asm::PeInstruction>, assembler: &Assembler, spec: &Spec) {
    let mut last: Option<usize> = None;
    for at in 0..items.len() {
        let ItemKind::Step(step) = &items[at].kind else { continue };
        let (wanted, forward) = (reads_path(spec, step), step.forward);
        if let Some(before) = last.filter(|_| wanted) {
            let Item { line, span, kind } = &mut items[before];
            if let (ItemKind::Step(earlier), Some(instruction)) = (kind, hidden.get(line)) {
                if let Some(whole) = with_hidden(assembler, spec, earlier, instruction) {
                    **earlier = placed(whole, *span);
                }
            }
        }
        if forward {
            last = Some(at);
        }
    }
}

/// The step with the place of the word in every part.
fn placed(mut step: Step, span: Span) -> Step {
    for instruction in &mut step.pe {
        instruction.span = span;
        instruction.sources.iter_mut().for_each(|s| s.span = span);
        instruction.destinations.iter_mut().for_each(|d| d.span = span);
    }
    step
}

fn bad_line(span: Span, code: &str, why: &str) -> Box<Diagnostic> {
    const SHOWN: usize = 40;
    let shown: String = code.chars().take(SHOWN).flat_map(char::escape_default).collect();
    Box::new(Diagnostic::error(Code::BadLine, Some(span), format!("`{shown}`: {why}")))
}

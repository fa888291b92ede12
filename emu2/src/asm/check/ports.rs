//! Checks how one line accesses each PE memory. It may write the memory once. All its reads must be of the same words.
//! If the memory has one port, the write must be of those words too.

use crate::asm::lexicon::Lexicon;
use crate::asm::line::Line;
use crate::asm::sink::Sink;
use crate::asm::statement::{Access, Destination, PeInstruction, PeKind, SourceKind};
use crate::error::{Code, Diagnostic, Span};
use crate::spec::{Ports as PortKind, Spec};

/// The accesses of a memory that were seen in a line so far.
#[derive(Clone, Copy, Debug, Default)]
struct Seen {
    /// The operand that first read it: number of the instruction, number of the source.
    read: Option<(usize, usize)>,
    written: bool,
}

/// Checks lines. It keeps its storage between them.
#[derive(Debug)]
pub(in crate::asm) struct Ports {
    seen: Vec<Seen>,
}

impl Ports {
    pub(in crate::asm) fn new(spec: &Spec) -> Self {
        Ports { seen: vec![Seen::default(); spec.memories.len()] }
    }

    /// Checks the PE instructions of a line. Returns true if nothing was found.
    pub(in crate::asm) fn check(&mut self, spec: &Spec, lexicon: &Lexicon, line: &Line, sink: &mut Sink) -> bool {
        self.seen.fill(Seen::default());
        let mut check = Check { spec, lexicon, pe: &line.pe, sink, clean: true };
        for (i, instruction) in line.pe.iter().enumerate() {
            for (at, source) in instruction.sources.iter().enumerate() {
                let SourceKind::Memory(access) = &source.kind else { continue };
                let seen = &mut self.seen[access.memory];
                match seen.read.and_then(|first| read_access(&line.pe, first)) {
                    None => seen.read = Some((i, at)),
                    Some(first) => check.reads(first, access, source.span),
                }
            }
        }
        for instruction in &line.pe {
            for destination in &instruction.destinations {
                let Some(memory) = lexicon.target_memory(&destination.target) else { continue };
                let seen = &mut self.seen[memory];
                if std::mem::replace(&mut seen.written, true) {
                    check.written_twice(memory, destination.span);
                }
                let read = seen.read.and_then(|first| read_access(&line.pe, first));
                if let (Some(read), Some(access)) = (read, destination.target.access()) {
                    check.shared(read, access, destination.span);
                }
            }
        }
        check.exclusions();
        check.clean
    }
}

/// Whether two accesses of one memory touch the same words in every cycle, on every PE.
pub(super) fn same_words(spec: &Spec, lexicon: &Lexicon, a: &Access, b: &Access) -> bool {
    if a.words != b.words || a.indirect != b.indirect || a.modify != b.modify {
        return false;
    }
    let size = lexicon.sizes[a.memory];
    let word = |access: &Access, c| u64::from(access.address.at(c)) % size;
    a.address == b.address || (0..spec.counts.cycle).all(|c| word(a, c) == word(b, c))
}

fn read_access(pe: &[PeInstruction], (instruction, source): (usize, usize)) -> Option<&Access> {
    match &pe.get(instruction)?.sources.get(source)?.kind {
        SourceKind::Memory(access) => Some(access),
        _ => None,
    }
}

struct Check<'c> {
    spec: &'c Spec,
    lexicon: &'c Lexicon,
    pe: &'c [PeInstruction],
    sink: &'c mut Sink,
    clean: bool,
}

impl Check<'_> {
    fn report(&mut self, code: Code, span: Span, message: String) {
        self.clean = false;
        self.sink.push(Diagnostic::error(code, Some(span), message));
    }

    fn name(&self, memory: usize) -> &str {
        &self.spec.memories[memory].name
    }

    fn reads(&mut self, first: &Access, second: &Access, span: Span) {
        if !same_words(self.spec, self.lexicon, first, second) {
            let message = format!("{} is read at other words by another source of the line", self.name(second.memory));
            self.report(Code::ReadTwice, span, message);
        }
    }

    fn written_twice(&mut self, memory: usize, span: Span) {
        let message = format!("{} is written by another destination of the line too", self.name(memory));
        self.report(Code::WrittenTwice, span, message);
    }

    fn shared(&mut self, read: &Access, written: &Access, span: Span) {
        if self.spec.memories[written.memory].ports == PortKind::Shared
            && !same_words(self.spec, self.lexicon, read, written)
        {
            let message =
                format!("{} is read at other words on this line, and has one port", self.name(written.memory));
            self.report(Code::SharedPort, span, message);
        }
    }

    /// Checks that no operand uses a memory that an ALU operation of the line excludes.
    fn exclusions(&mut self) {
        let pe = self.pe;
        for instruction in pe {
            let PeKind::Alu { op, .. } = instruction.kind else { continue };
            for memory in &self.lexicon.excludes[op] {
                let read = pe.iter().flat_map(|i| &i.sources).find_map(|s| match &s.kind {
                    SourceKind::Memory(access) if access.memory == *memory => Some(s.span),
                    _ => None,
                });
                let writes = |d: &&Destination| d.target.access().is_some_and(|a| a.memory == *memory);
                let written = pe.iter().flat_map(|i| &i.destinations).find(writes);
                if let Some(span) = read.or(written.map(|d| d.span)) {
                    let message = format!("`{}` excludes {}", self.spec.alu[op].name, self.name(*memory));
                    self.report(Code::Excluded, span, message);
                }
            }
        }
    }
}

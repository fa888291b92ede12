//! Checks the instructions of a line that share a unit: their number, precisions, matrix registers and inputs.

use super::ports::same_words;
use crate::asm::lexicon::Lexicon;
use crate::asm::line::Line;
use crate::asm::sink::Sink;
use crate::asm::statement::{PeInstruction, PeKind, Source, SourceKind};
use crate::error::{Code, Diagnostic, Span};
use crate::spec::{Ports, Share, Spec};

/// Checks the shared units of a line. Returns true if nothing was found.
pub(in crate::asm) fn check_units(spec: &Spec, lexicon: &Lexicon, line: &Line, sink: &mut Sink) -> bool {
    if line.pe.len() < 2 {
        return true;
    }
    let mut check = Check { spec, lexicon, pe: &line.pe, sink, clean: true };
    for share in &spec.shares {
        check.share(share);
    }
    check.banks();
    check.inputs();
    check.clean
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

    /// Checks that at most `share.limit` instructions use the unit, all of one precision.
    fn share(&mut self, share: &Share) {
        let mut count = 0;
        let mut precision = None;
        for instruction in self.pe {
            let slot = &self.spec.slots[self.lexicon.kind_slot(&instruction.kind)].name;
            if !share.slots.contains(slot) {
                continue;
            }
            count += 1;
            if count > share.limit {
                let (slots, limit) = (share.slots.join("`, `"), share.limit);
                let message = format!("of the slots `{slots}` a line uses at most {limit}");
                self.report(Code::UnitFull, instruction.span, message);
                return;
            }
            let own = precision_of(&instruction.kind);
            if *precision.get_or_insert(own) != own {
                let name = |p: Option<usize>| p.map_or("none", |p| self.spec.precisions[p].name.as_str());
                let (own, other) = (name(own), name(precision.flatten()));
                let message = format!("precision `{own}` beside `{other}` in the unit `{}`", share.name);
                self.report(Code::UnitPrecisions, instruction.span, message);
            }
        }
    }

    /// Checks matrix registers: one with one port serves one instruction, one with two ports serves one write and one
    /// read.
    fn banks(&mut self) {
        let mut used: Vec<(usize, bool)> = Vec::new();
        for instruction in self.pe {
            let Some(bank) = bank_of(&instruction.kind) else { continue };
            let Some(memory) = self.lexicon.bank_memories[bank] else { continue };
            let writes = matches!(instruction.kind, PeKind::Matrix { .. }) && !instruction.sources.is_empty();
            let shared = self.spec.memories[memory].ports == Ports::Shared;
            if used.iter().any(|(b, wrote)| *b == bank && (shared || *wrote == writes)) {
                let message = format!("the matrix register {} is used twice on this line", self.spec.banks[bank].name);
                self.report(Code::BankTwice, instruction.span, message);
            }
            used.push((bank, writes));
        }
    }

    /// Checks that a matrix write and a MAU operation have the same source if both read through the same input.
    fn inputs(&mut self) {
        let (spec, pe) = (self.spec, self.pe);
        for (at, matrix) in pe.iter().enumerate() {
            let PeKind::Matrix { op, .. } = matrix.kind else { continue };
            let (Some(port), Some(source)) = (spec.matrix_ops[op].port, matrix.sources.first()) else { continue };
            for (other_at, other) in pe.iter().enumerate() {
                let PeKind::Mau { op, .. } = other.kind else { continue };
                let read = spec.mau[op].sources.iter().position(|p| *p == port).and_then(|i| other.sources.get(i));
                let Some(read) = read.filter(|read| !self.same_source(source, read)) else { continue };
                let later = if other_at < at { source } else { read };
                let message = "another source of the line comes through the same input and is another operand";
                self.report(Code::SharedInput, later.span, message.to_string());
            }
        }
    }

    fn same_source(&self, a: &Source, b: &Source) -> bool {
        let same = match (&a.kind, &b.kind) {
            (SourceKind::Memory(a), SourceKind::Memory(b)) => {
                a.memory == b.memory && same_words(self.spec, self.lexicon, a, b)
            }
            (a, b) => a == b,
        };
        same && a.negate == b.negate && a.convert == b.convert
    }
}

fn precision_of(kind: &PeKind) -> Option<usize> {
    match kind {
        PeKind::Alu { precision, .. } => *precision,
        PeKind::Mau { precision, .. } | PeKind::Matrix { precision, .. } => Some(*precision),
        PeKind::L1bm { .. } => None,
    }
}

/// The matrix register that an instruction uses.
fn bank_of(kind: &PeKind) -> Option<usize> {
    match kind {
        PeKind::Mau { bank, .. } => *bank,
        PeKind::Matrix { bank, .. } => Some(*bank),
        PeKind::Alu { .. } | PeKind::L1bm { .. } => None,
    }
}

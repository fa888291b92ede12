//! Matrix reads that a machine word does not show.
//!
//! A matrix read without destination sets no field of its own. Beside other instructions, the word of the step is the
//! same with and without it. If a step reads the forwarding path of the matrix reads, the reader of words adds the
//! matrix read to the last step before it that updates the forwarding paths. The writer of words uses the same rule to
//! find words that would be read as another program.

use super::bits::Word;
use super::decode::{decode_word, Decoded};
use super::print::{instruction, statement};
use crate::asm::{Assembler, ItemKind, PeInstruction, PeKind, Policy, SourceKind, Step};
use crate::error::Span;
use crate::spec::{ForwardUnit, MatrixKernel, Spec};
use std::sync::Arc;

/// Whether a step reads the forwarding path of the matrix reads.
pub(super) fn reads_path(spec: &Spec, step: &Step) -> bool {
    let path = |kind: &SourceKind| matches!(kind, SourceKind::Forward(path) if spec.forwards[*path].unit == ForwardUnit::Matrix);
    step.pe.iter().flat_map(|i| &i.sources).any(|source| path(&source.kind))
}

/// The step with the matrix read that its word does not show. `None` if the assembler refuses such a line.
pub(super) fn with_hidden(assembler: &Assembler, spec: &Spec, step: &Step, hidden: &PeInstruction) -> Option<Step> {
    let mut whole = step.clone();
    whole.pe.push(hidden.clone());
    let text = statement(spec, &ItemKind::Step(Box::new(whole.clone())));
    assembler.assemble(&text, "", Policy::Run).is_ok().then_some(whole)
}

fn has_matrix_read(spec: &Spec, step: &Step) -> bool {
    let reads =
        |kind: &PeKind| matches!(kind, PeKind::Matrix { op, .. } if spec.matrix_ops[*op].kernel == MatrixKernel::Read);
    step.pe.iter().any(|i| reads(&i.kind))
}

/// A step that was written.
#[derive(Clone, Copy, Debug)]
pub(super) struct Written {
    /// Index of the written line.
    pub(super) line: usize,
    /// Line in the source. `span` is the place of the step in it.
    pub(super) number: u32,
    pub(super) span: Span,
    /// `None` if the step is written as a statement.
    pub(super) word: Option<Word>,
}

/// A step whose word would be read as another step.
pub(super) struct Ambiguous {
    pub(super) step: Written,
    pub(super) statement: String,
    pub(super) message: String,
}

/// Follows a program while its words are written. It tracks which step filled the forwarding path of the matrix reads,
/// and to which step a reader of the words would add a matrix read.
#[derive(Debug, Default)]
pub(super) struct MatrixPath {
    /// The last step that updates the paths.
    last: Option<Written>,
    /// The last of these steps with a matrix read, and whether a reader of the words finds that read.
    filled: Option<(Written, bool)>,
    assembler: Option<Assembler>,
}

impl MatrixPath {
    /// Takes the next step, written as `written`. Returns the earlier steps that must not be written as words.
    pub(super) fn step(&mut self, spec: &Arc<Spec>, step: &Step, written: Written) -> Vec<Ambiguous> {
        let found = if reads_path(spec, step) { self.read(spec, written.number) } else { Vec::new() };
        if step.forward {
            self.last = Some(written);
            if has_matrix_read(spec, step) {
                self.filled = Some((written, false));
            }
        }
        found
    }

    /// Takes a read of the path by the step of source line `number`.
    fn read(&mut self, spec: &Arc<Spec>, number: u32) -> Vec<Ambiguous> {
        let mut found = Vec::new();
        let filled_by_last = match (&self.last, &mut self.filled) {
            (Some(last), Some((filled, shown))) if last.line == filled.line => {
                *shown = true;
                true
            }
            _ => false,
        };
        if filled_by_last {
            return found;
        }
        let assembler = self.assembler.get_or_insert_with(|| Assembler::new(spec));
        if let Some((last, shown, hidden)) = self.last.and_then(|s| hidden_of(spec, s)) {
            if with_hidden(assembler, spec, &shown, &hidden).is_some() {
                let read = instruction(spec, &hidden);
                let message = format!(
                    "the machine word of this step stands for `{read}` too, and line {number} would read its result"
                );
                let statement = statement(spec, &ItemKind::Step(Box::new(shown)));
                found.push(Ambiguous { step: last, statement, message });
                self.last = Some(Written { word: None, ..last });
            }
        }
        if let Some((step, shown)) = self.filled.as_mut().filter(|(_, shown)| !*shown) {
            *shown = true;
            if let Some((step, mut whole, hidden)) = hidden_of(spec, *step) {
                let read = instruction(spec, &hidden);
                let message = format!(
                    "the machine word of this step does not show `{read}`, whose result line {number} reads after other steps"
                );
                whole.pe.push(hidden);
                let statement = statement(spec, &ItemKind::Step(Box::new(whole)));
                found.push(Ambiguous { step, statement, message });
            }
        }
        found
    }
}

/// The step that a word shows, and the matrix read that the word does not show.
fn hidden_of(spec: &Spec, written: Written) -> Option<(Written, Step, PeInstruction)> {
    let decoded = decode_word(spec, spec.encoding.as_ref()?, &written.word?).ok()?;
    let Decoded { step: Some(step), hidden: Some(hidden), .. } = decoded else { return None };
    Some((written, step, hidden))
}

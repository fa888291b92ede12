//! Checks reads of the turnaround register: that a line has sent something, when, and in the layout of the reader.

use super::line_context::LineContext;
use crate::asm::line::Line;
use crate::asm::sink::Sink;
use crate::asm::statement::{FormRef, PeInstruction, PeKind};
use crate::error::{Code, Diagnostic, Span};
use crate::spec::{End, Spec};

/// The state of the turnaround register: what the PEs sent last.
#[derive(Debug, Default)]
pub(super) enum Turnaround {
    #[default]
    Nothing,
    /// A line was refused, so the contents are unknown.
    Unknown,
    Sent {
        step: u64,
        line: u32,
        layout: Layout,
    },
}

/// The layout of the data in the register. A sending and a reading instruction with the same layout are counterparts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Layout {
    /// The long words of L1BM that a step covers.
    words: u64,
    /// The 32-bit words per PE and cycle on the L1BM side.
    width: Option<u32>,
    /// The shift, if the transfer has one in both directions.
    shift: Option<i64>,
}

impl Layout {
    fn of(context: LineContext<'_>, form: FormRef, reach: u64, end: &End) -> Layout {
        let both_ways = context.spec.parameters[form.transfer].as_ref().filter(|p| p.default.is_some());
        let width = match end {
            End::Memory { width, .. } => *width,
            End::Pe => None,
        };
        Layout { words: reach, width, shift: both_ways.map(|_| form.parameter) }
    }

    /// Words for the difference from another layout.
    fn differs(self, other: Layout) -> &'static str {
        match self {
            Layout { words, width, .. } if (words, width) != (other.words, other.width) => "at another rate",
            _ => "with another shift",
        }
    }
}

/// Whether an L1BM instruction brings data to the PEs.
fn to_pe(spec: &Spec, form: FormRef) -> bool {
    matches!(spec.forms[form.transfer][form.form].destination, End::Pe)
}

impl Turnaround {
    pub(super) fn assume(&mut self) {
        *self = Turnaround::Unknown;
    }

    /// Checks one PE line in step `step`. It reads the data of earlier lines, even if it sends something itself.
    pub(super) fn step(&mut self, context: LineContext<'_>, line: &Line, step: u64, sink: &mut Sink) {
        let mut sent = None;
        let mut loads = 0;
        for PeInstruction { kind, span, .. } in &line.pe {
            let PeKind::L1bm { form, address } = *kind else { continue };
            let (resolved, reach) = (
                &context.spec.forms[form.transfer][form.form],
                context.lexicon.reach(context.spec, form.transfer, form.form),
            );
            if !to_pe(context.spec, form) {
                sent = Some(Layout::of(context, form, reach.destination, &resolved.destination));
                if line.noforward && address.is_none() {
                    let message = "the step keeps the turnaround register, so this instruction does nothing";
                    let finding = Diagnostic::warning(Code::TurnaroundLost, Some(*span), message);
                    sink.push(finding);
                }
                continue;
            }
            loads += 1;
            // guess: the PEs take one long word or pair a cycle, whichever slot brings it.
            if loads > 1 {
                let message = "this is the second instruction of the line that brings data to the PEs";
                sink.push(Diagnostic::error(Code::UnitFull, Some(*span), message));
            }
            if address.is_none() {
                self.read(context, Layout::of(context, form, reach.source, &resolved.source), step, *span, sink);
            }
        }
        if let Some(layout) = sent.filter(|_| !line.noforward) {
            *self = Turnaround::Sent { step, line: context.line, layout };
        }
    }

    fn read(&self, context: LineContext<'_>, reader: Layout, step: u64, span: Span, sink: &mut Sink) {
        match *self {
            Turnaround::Unknown => {}
            Turnaround::Nothing => {
                // guess: the register keeps its contents between programs, and a reader gets them.
                let message = "no instruction before this one has sent anything to the turnaround register";
                sink.push(Diagnostic::warning(Code::TurnaroundLate, Some(span), message));
            }
            Turnaround::Sent { line, layout, .. } if layout != reader => {
                let message = format!("line {line} sent to the turnaround register {}", layout.differs(reader));
                let counterparts = counterparts(context, layout);
                let finding = Diagnostic::error(Code::TurnaroundPair, Some(span), message);
                sink.push(if counterparts.is_empty() {
                    finding
                } else {
                    finding.help(format!("its counterpart is {}", counterparts.join(" or ")))
                });
            }
            // guess: the register keeps its contents, and a later reader still gets them.
            Turnaround::Sent { step: sent, line, .. } if step > sent + 1 => {
                let message = format!("line {line} sent to the turnaround register {} steps before", step - sent);
                sink.push(Diagnostic::warning(Code::TurnaroundLate, Some(span), message));
            }
            Turnaround::Sent { .. } => {}
        }
    }
}

/// The instructions that read the register in a layout, as assembly text.
fn counterparts(context: LineContext<'_>, layout: Layout) -> Vec<String> {
    let spec = context.spec;
    let mut all = Vec::new();
    for (transfer, entry) in spec.transfers.iter().enumerate() {
        for (form, resolved) in spec.forms[transfer].iter().enumerate() {
            let (End::Memory { operand, width, .. }, End::Pe) = (&resolved.source, &resolved.destination) else {
                continue;
            };
            let reach = context.lexicon.reach(spec, transfer, form);
            let form = FormRef { transfer, form, parameter: layout.shift.unwrap_or(0) };
            if Layout::of(context, form, reach.source, &resolved.source) != layout {
                continue;
            }
            let prefix = spec.widths.iter().find(|w| Some(w.words) == *width || width.is_none());
            let prefix = prefix.filter(|w| spec.operands[*operand].widths.contains(&w.prefix));
            let shift = layout.shift.filter(|s| *s != 0).map_or(String::new(), |s| format!("{s:+}"));
            let name = &spec.turnaround.name;
            all.push(format!("`{}{shift} ${}{name}`", entry.name, prefix.map_or("", |w| w.prefix.as_str())));
        }
    }
    all
}

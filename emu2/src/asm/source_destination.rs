//! Checks operands at their place in the instruction and makes sources and destinations of them.

use super::cursor::{fault, fault_help, Parse};
use super::operand::{Kind, Operand};
use super::parser::Parser;
use super::statement::{Convert, Destination, Source, SourceKind, Target};
use crate::error::{Code, Diagnostic, Span};

/// What a source may be in addition to a plain PE memory or forwarding path.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Port {
    /// It is the first input of an ALU op. Only this input takes fixed inputs, and certain forwarding paths.
    pub(super) first_alu: bool,
    /// The instruction has lanes. A fixed input fills them.
    pub(super) lanes: bool,
    pub(super) negate: bool,
    pub(super) extend: bool,
    pub(super) reduce: bool,
}

/// What an instruction can write to its destinations.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Writes {
    Result,
    ResultAndFlags,
}

impl Parser<'_> {
    fn text(&self, span: Span) -> String {
        self.cursor.quote(span)
    }

    /// Makes a source of an operand at `port`.
    pub(super) fn source(&self, operand: Operand, port: Port) -> Parse<Source> {
        let Operand { span, kind, negate, convert, mask } = operand;
        if mask.is_some() {
            let message = format!("`{}` is read: only destinations have a write mask", self.text(span));
            return Err(fault_help(Code::BadMask, span, message, "remove the mask"));
        }
        if negate && !port.negate {
            return Err(fault(Code::BadNegation, span, format!("`{}` cannot be negated here", self.text(span))));
        }
        let allowed = match convert {
            None => true,
            Some(Convert::Extend) => port.extend,
            Some(Convert::Reduce) => port.reduce,
        };
        if !allowed {
            let message = format!("`{}` cannot be converted here", self.text(span));
            return Err(fault(Code::BadConversion, span, message));
        }
        let kind = match kind {
            Kind::Pe(access) => SourceKind::Memory(access),
            Kind::Forward(path) if self.spec.forwards[path].first_alu_input_only && !port.first_alu => {
                return Err(self.only_first(span));
            }
            Kind::Forward(path) => SourceKind::Forward(path),
            Kind::Fixed(_) if !port.first_alu => return Err(self.only_first(span)),
            Kind::Fixed(_) if !port.lanes => {
                let message = format!("`{}` fills lanes, and this instruction has none", self.text(span));
                return Err(fault_help(Code::WrongOperand, span, message, "use an ALU op with a precision first"));
            }
            Kind::Fixed(_) if convert.is_some() => {
                let message = format!("`{}` fills every lane as it is", self.text(span));
                return Err(fault(Code::BadConversion, span, message));
            }
            Kind::Fixed(fixed) => SourceKind::Fixed(fixed),
            Kind::Nowrite | Kind::Base { .. } | Kind::Flags(_) => {
                let message = format!("`{}` is a destination, and a source is missing before it", self.text(span));
                return Err(fault(Code::WrongOperand, span, message));
            }
            Kind::Bank(_) => {
                let message = format!("`{}` cannot be read here", self.text(span));
                let help = "only the first operand of matrix products and of matrix reads is a matrix register";
                return Err(fault_help(Code::WrongOperand, span, message, help));
            }
            Kind::AbovePe(_) | Kind::Turnaround(_) => {
                let message = format!("`{}` is not an operand of the PEs", self.text(span));
                let help = "bring the data to the PEs with an L1BM instruction";
                return Err(fault_help(Code::WrongOperand, span, message, help));
            }
        };
        Ok(Source { span, kind, negate, convert })
    }

    fn only_first(&self, span: Span) -> Box<Diagnostic> {
        let message = format!("`{}` is possible as first ALU input only", self.text(span));
        fault_help(Code::WrongOperand, span, message, "bring it to a memory with an ALU instruction first")
    }

    /// Makes destinations of the remaining operands of an instruction. `$nowrite` makes none.
    pub(super) fn destinations(
        &self,
        operands: impl ExactSizeIterator<Item = Operand>,
        writes: Writes,
    ) -> Parse<Vec<Destination>> {
        let count = operands.len();
        let mut destinations = Vec::with_capacity(count);
        for Operand { span, kind, negate, convert, mask } in operands {
            if negate {
                let message = format!("`{}` is written and cannot be negated", self.text(span));
                return Err(fault(Code::BadNegation, span, message));
            }
            if convert.is_some() {
                let message = format!("`{}` is written and cannot be converted", self.text(span));
                return Err(fault(Code::BadConversion, span, message));
            }
            let target = match kind {
                Kind::Pe(access) => Target::Memory(access),
                Kind::Base { base, words } => Target::Base { base, words },
                Kind::Flags(entry) if writes == Writes::ResultAndFlags => Target::Flags { entry },
                Kind::Nowrite if count > 1 => {
                    return Err(fault(Code::NowriteCompany, span, "`$nowrite` is not the only destination"));
                }
                Kind::Nowrite if mask.is_some() => {
                    let help = "remove the mask; a mask on the mnemonic clears bits of the result";
                    return Err(fault_help(Code::BadMask, span, "`$nowrite` writes nothing to mask", help));
                }
                Kind::Nowrite => continue,
                other => return Err(self.not_written(span, &other)),
            };
            let mask = mask.or_else(|| self.statement_mask(self.lexicon.target_memory(&target)));
            destinations.push(Destination { span, target, mask });
        }
        Ok(destinations)
    }

    /// The error for an operand that cannot be a destination.
    fn not_written(&self, span: Span, kind: &Kind) -> Box<Diagnostic> {
        let text = self.text(span);
        let (message, help) = match kind {
            Kind::Flags(_) => {
                (format!("`{text}` takes flags, and this instruction makes none"), "use an ALU or MAU op")
            }
            Kind::Bank(_) => (format!("`{text}` cannot be written here"), "use a matrix write"),
            Kind::AbovePe(_) | Kind::Turnaround(_) => {
                (format!("`{text}` cannot be written here"), "write a PE memory here")
            }
            _ => (format!("`{text}` can only be read"), Code::WrongOperand.remedy()),
        };
        fault_help(Code::WrongOperand, span, message, help)
    }
}

/// The error for too few operands.
pub(super) fn missing(mnemonic: &str, sources: usize, written: usize, span: Span) -> Box<Diagnostic> {
    let plural = |n: usize, what: &str| format!("{n} {what}{}", if n == 1 { "" } else { "s" });
    let (needed, have) = (plural(sources, "source"), plural(written, "operand"));
    fault(Code::MissingOperand, span, format!("`{mnemonic}` needs {needed} and a destination; {have} written"))
}

//! PE lines: ALU and MAU instructions, and the control statements that share their lines.

use super::cursor::{fault, fault_help, Parse};
use super::lexicon::{alu_reduces, mau_conversions, slot_of};
use super::line::{Line, Use};
use super::operand::{Kind, Operand};
use super::parser::{Head, Parser};
use super::program::{Mask, MaskEntry, Target, Convert, Destination, PeInstruction, PeKind, Source, SourceKind};
use crate::error::{Code, Span};
use crate::spec::{ControlKernel, Mnemonic};

/// What a source may be besides a plain PE memory or forwarding path.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Port {
    pub(super) fixed: bool,
    pub(super) negate: bool,
    pub(super) extend: bool,
    pub(super) reduce: bool,
}

impl Parser<'_> {
    /// Reads one instruction into `line`.
    pub(super) fn instruction(&mut self, line: &mut Line) -> Parse<()> {
        let head = self.head()?;
        let span = match head.mnemonic {
            Mnemonic::Alu { .. } | Mnemonic::Mau { .. } => self.compute(head, line)?,
            Mnemonic::Matrix { .. } => self.control(head, 0, line)?,
            Mnemonic::Transfer(transfer) => self.transfer(head, transfer, line)?,
            Mnemonic::Control(control) => self.control(head, control, line)?,
        };
        line.uses.push(Use { slot: slot_of(self.lexicon, head.mnemonic), span });
        Ok(())
    }

    fn compute(&mut self, head: Head<'_>, line: &mut Line) -> Parse<Span> {
        if self.cursor.peek() == Some(b'/') {
            let message = format!("`{}` cannot take a `/` part: zero flush is not supported", head.text);
            return Err(fault(Code::Unsupported, self.cursor.word_span(), message));
        }
        self.expect_break("the mnemonic")?;
        let spec = self.spec;
        let (kind, count) = match head.mnemonic {
            Mnemonic::Mau { op, precision, mau_precision, half, reduced } => {
                (PeKind::Mau { op, precision, mau_precision, half, reduced, bank: None }, spec.mau[op].sources.len())
            }
            Mnemonic::Alu { op, precision, unsigned } => {
                let literal = if spec.alu[op].literal { Some(self.literal()?) } else { None };
                (PeKind::Alu { op, precision, unsigned, literal, length: None }, spec.alu[op].sources as usize)
            }
            Mnemonic::Matrix { .. } | Mnemonic::Transfer(_) | Mnemonic::Control(_) => return Ok(Span::default()),
        };
        self.read_operands()?;
        let span = self.span(head.start);
        if self.operands.len() <= count {
            return Err(missing(head.text, count, self.operands.len(), span));
        }
        let mut operands = std::mem::take(&mut self.operands);
        let mut written = operands.drain(..);
        let mut sources = Vec::with_capacity(count);
        for (at, operand) in written.by_ref().take(count).enumerate() {
            let port = match operand.convert {
                None => Port { fixed: true, negate: true, ..Port::default() },
                Some(_) => self.conversion_port(&kind, at),
            };
            let alu = matches!(kind, PeKind::Alu { .. });
            let port = Port { fixed: alu && at == 0, negate: !alu, ..port };
            sources.push(self.source(operand, port)?);
        }
        let destinations = self.destinations(written.by_ref())?;
        drop(written);
        self.operands = operands;
        line.pe.push(PeInstruction { span, kind, sources, destinations, zero_flush: None });
        Ok(span)
    }

    fn conversion_port(&self, kind: &PeKind, at: usize) -> Port {
        let (extend, reduce) = match kind {
            PeKind::Mau { op, precision, mau_precision, .. } => {
                mau_conversions(self.spec, *precision, *mau_precision, self.spec.mau[*op].sources[at])
            }
            PeKind::Alu { precision, .. } => (false, alu_reduces(self.spec, *precision)),
            PeKind::Matrix { .. } | PeKind::L1bm { .. } => (false, false),
        };
        Port { extend, reduce, ..Port::default() }
    }

    /// Makes a source of an operand that stands at `port`.
    pub(super) fn source(&self, operand: Operand, port: Port) -> Parse<Source> {
        let Operand { span, kind, negate, convert, mask } = operand;
        let text = || self.cursor.quote(span);
        if mask.is_some() {
            return Err(fault(
                Code::BadMask,
                span,
                format!("`{}` is read: only destinations have a write mask", text()),
            ));
        }
        if negate && !port.negate {
            return Err(fault(Code::BadNegation, span, format!("`{}` cannot be negated here", text())));
        }
        let allowed = match convert {
            None => true,
            Some(Convert::Extend) => port.extend,
            Some(Convert::Reduce) => port.reduce,
        };
        if !allowed {
            let message = format!("`{}` cannot be converted here", text());
            return Err(fault(Code::BadConversion, span, message));
        }
        let kind = match kind {
            Kind::Pe(access) => SourceKind::Memory(access),
            Kind::Forward(path) => SourceKind::Forward(path),
            Kind::Fixed(_) if !port.fixed => {
                let message = format!("`{}` is possible as first ALU input only", text());
                return Err(fault(Code::WrongOperand, span, message));
            }
            Kind::Fixed(_) if convert.is_some() => {
                return Err(fault(Code::BadConversion, span, format!("`{}` fills every lane as it is", text())));
            }
            Kind::Fixed(fixed) => SourceKind::Fixed(fixed),
            Kind::Nowrite => {
                return Err(fault(
                    Code::WrongOperand,
                    span,
                    "`$nowrite` is a destination, and a source is missing before it",
                ));
            }
            Kind::Upper(_) => {
                let message = format!("`{}` is not an operand of the PEs", text());
                return Err(fault_help(
                    Code::WrongOperand,
                    span,
                    message,
                    "bring the data to the PEs with an L1BM instruction",
                ));
            }
        };
        Ok(Source { span, kind, negate, convert })
    }

    /// Makes the destinations of what is left of an instruction's operands; none for `$nowrite`.
    pub(super) fn destinations(&self, operands: impl ExactSizeIterator<Item = Operand>) -> Parse<Vec<Destination>> {
        let count = operands.len();
        let mut destinations = Vec::with_capacity(count);
        for Operand { span, kind, negate, convert, mask } in operands {
            let text = || self.cursor.quote(span);
            if negate {
                return Err(fault(Code::BadNegation, span, format!("`{}` is written and cannot be negated", text())));
            }
            if convert.is_some() {
                return Err(fault(
                    Code::BadConversion,
                    span,
                    format!("`{}` is written and cannot be converted", text()),
                ));
            }
            match kind {
                Kind::Pe(access) => destinations.push(Destination { span, target: Target::Memory(access), mask: mask.map(|c| Mask { wide: false, entry: MaskEntry::Cycles(c) }) }),
                Kind::Nowrite if count == 1 => {}
                Kind::Nowrite => {
                    return Err(fault(Code::NowriteCompany, span, "`$nowrite` is not the only destination"));
                }
                Kind::Forward(_) | Kind::Fixed(_) => {
                    return Err(fault(Code::WrongOperand, span, format!("`{}` can only be read", text())));
                }
                Kind::Upper(_) => {
                    let message = format!("`{}` cannot be written here", text());
                    return Err(fault_help(Code::WrongOperand, span, message, "write a PE memory here"));
                }
            }
        }
        Ok(destinations)
    }

    fn control(&mut self, head: Head<'_>, control: usize, line: &mut Line) -> Parse<Span> {
        let entry = &self.spec.controls[control];
        match entry.kernel {
            ControlKernel::Nop => {
                let count = if self.cursor.eat(b'/') { self.cursor.number32("the count")? } else { 1 };
                line.nop = Some(u64::from(count));
            }
            ControlKernel::Wait => {
                self.expect_break("the mnemonic")?;
                self.cursor.skip_blanks();
                line.wait = Some(self.wait_tag()?);
            }
            ControlKernel::Noforward => line.noforward = true,
            ControlKernel::Quit => line.quit = true,
        }
        let span = self.cursor.span_from(head.start);
        self.cursor.skip_blanks();
        if !matches!(self.cursor.peek(), None | Some(b';')) {
            let message = format!("`{}` after `{}`", self.cursor.word(), self.cursor.quote(span));
            let help = format!("the statement is `{}`", entry.syntax);
            return Err(fault_help(Code::UnexpectedText, self.cursor.word_span(), message, help));
        }
        Ok(span)
    }
}

/// Too few operands.
pub(super) fn missing(mnemonic: &str, sources: usize, written: usize, span: Span) -> Box<crate::error::Diagnostic> {
    let plural = |n: usize, what: &str| format!("{n} {what}{}", if n == 1 { "" } else { "s" });
    let (needed, have) = (plural(sources, "source"), plural(written, "operand"));
    fault(Code::MissingOperand, span, format!("`{mnemonic}` needs {needed} and a destination; {have} written"))
}

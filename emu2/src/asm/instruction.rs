//! Reads PE lines: ALU and MAU instructions, and the control statements that share their lines.

use super::cursor::{fault_help, Parse};
use super::lexicon::{alu_reduces, mau_conversions, slot_of};
use super::line::{Line, Use};
use super::matrix::MatrixForm;
use super::parser::{Head, Parser};
use super::source_destination::{missing, Port, Writes};
use super::statement::{PeInstruction, PeKind};
use crate::error::{Code, Span};
use crate::spec::{ControlKernel, Lengths, Mnemonic};

impl Parser<'_> {
    /// Reads one instruction into `line`.
    pub(super) fn instruction(&mut self, line: &mut Line) -> Parse<()> {
        let head = self.head()?;
        let span = match head.mnemonic {
            Mnemonic::Alu { op, precision, unsigned } => {
                let length = self.length(head, op, precision)?;
                self.compute(head, PeKind::Alu { op, precision, unsigned, literal: None, length }, line)?
            }
            Mnemonic::Mau { op, precision, mau_precision, half, reduced } => {
                self.compute(head, PeKind::Mau { op, precision, mau_precision, half, reduced, bank: None }, line)?
            }
            Mnemonic::Matrix { op, precision, mau_precision } => {
                self.matrix(head, MatrixForm { op, precision, mau_precision }, line)?
            }
            Mnemonic::Transfer(transfer) => self.transfer(head, transfer, line)?,
            Mnemonic::Control(control) => self.control(head, control, line)?,
        };
        // The slot of an L1BM instruction depends on its source.
        let l1bm = line.pe.last().filter(|i| i.span == span && matches!(i.kind, PeKind::L1bm { .. }));
        let slot = match l1bm {
            Some(instruction) => self.lexicon.kind_slot(&instruction.kind),
            None => slot_of(self.lexicon, head.mnemonic),
        };
        line.uses.push(Use { slot, span });
        Ok(())
    }

    /// Reads the mantissa length of a block float conversion, such as `/9`. `None` if the op has no length.
    fn length(&mut self, head: Head<'_>, op: usize, precision: Option<usize>) -> Parse<Option<u32>> {
        let lengths = self.spec.alu[op].lengths.as_ref();
        let named = |l: &&Lengths| precision.is_some_and(|p| self.spec.precisions[p].name == l.precision);
        let Some(Lengths { minimum, maximum, .. }) = lengths.filter(named) else { return Ok(None) };
        let start = self.cursor.at();
        let help = || format!("write `{0}/{minimum}` to `{0}/{maximum}`", head.text);
        if !self.cursor.eat(b'/') || !self.cursor.peek().is_some_and(|b| b.is_ascii_digit()) {
            let span = Span::new(head.start, self.cursor.word_span().end as usize);
            return Err(fault_help(Code::BadLength, span, format!("`{}` needs a mantissa length", head.text), help()));
        }
        let length = self.cursor.number32("the mantissa length")?;
        if !(*minimum..=*maximum).contains(&length) {
            let message = format!("`{}` keeps no mantissa of {length} bits", head.text);
            return Err(fault_help(Code::BadLength, self.cursor.span_from(start), message, help()));
        }
        Ok(Some(length))
    }

    /// Reads an ALU or MAU instruction after its mnemonic and mantissa length.
    fn compute(&mut self, head: Head<'_>, mut kind: PeKind, line: &mut Line) -> Parse<Span> {
        let spec = self.spec;
        let zero_flush = self.zero_flush()?;
        let mut matrix = false;
        let count = match &mut kind {
            PeKind::Alu { op, literal, .. } => {
                *literal = if spec.alu[*op].literal { Some(self.literal()?) } else { None };
                spec.alu[*op].sources as usize
            }
            PeKind::Mau { op, .. } => {
                matrix = spec.mau[*op].matrix;
                spec.mau[*op].sources.len()
            }
            PeKind::Matrix { .. } | PeKind::L1bm { .. } => 0,
        };
        self.read_operands()?;
        let span = self.span(head.start);
        let read = count + usize::from(matrix);
        if self.operands.len() <= read {
            return Err(missing(head.text, read, self.operands.len(), span));
        }
        let mut operands = std::mem::take(&mut self.operands);
        let mut written = operands.drain(..);
        if let PeKind::Mau { bank, .. } = &mut kind {
            *bank = if matrix { written.next().map(|o| self.whole_bank(&o)).transpose()? } else { None };
        }
        let mut sources = Vec::with_capacity(count);
        for (at, operand) in written.by_ref().take(count).enumerate() {
            let port = self.port(&kind, at, operand.convert.is_some());
            sources.push(self.source(operand, port)?);
        }
        let destinations = self.destinations(written.by_ref(), Writes::ResultAndFlags)?;
        drop(written);
        self.operands = operands;
        line.pe.push(PeInstruction { span, kind, sources, destinations, zero_flush });
        Ok(span)
    }

    /// What source `at` of an ALU or MAU instruction may be. The conversions are computed only if the source has one.
    fn port(&self, kind: &PeKind, at: usize, converted: bool) -> Port {
        let spec = self.spec;
        match kind {
            PeKind::Alu { precision, .. } => Port {
                first_alu: at == 0,
                lanes: precision.is_some(),
                reduce: converted && alu_reduces(spec, *precision),
                ..Port::default()
            },
            PeKind::Mau { op, precision, mau_precision, .. } => {
                let entry = &spec.mau[*op];
                let (extend, reduce) = match converted {
                    true => mau_conversions(spec, *precision, *mau_precision, entry.matrix, entry.sources[at]),
                    false => (false, false),
                };
                Port { negate: true, extend, reduce, ..Port::default() }
            }
            PeKind::Matrix { .. } | PeKind::L1bm { .. } => Port::default(),
        }
    }

    fn control(&mut self, head: Head<'_>, control: usize, line: &mut Line) -> Parse<Span> {
        let entry = &self.spec.controls[control];
        match entry.kernel {
            ControlKernel::Nop => {
                let count = if self.cursor.eat(b'/') { self.cursor.number32("the count")? } else { 1 };
                line.nop = Some(u64::from(count));
            }
            ControlKernel::Wait => {
                line.waits = true;
                self.expect_break("the mnemonic")?;
                self.cursor.skip_blanks();
                line.wait = Some(self.wait_tag()?);
            }
            ControlKernel::Noforward => line.noforward = true,
            ControlKernel::Mvnop => line.idle_mv = true,
            ControlKernel::Quit => line.quit = true,
            ControlKernel::Mask => {
                self.mask_statement(head)?;
                line.mask = true;
            }
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

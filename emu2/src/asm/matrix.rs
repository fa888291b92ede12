//! Reads instructions with matrix registers: products take a whole register, writes go by rows, reads by columns.

use super::cursor::{fault, fault_help, Parse};
use super::lexicon::mau_conversions;
use super::line::Line;
use super::operand::{Bank, Kind, Operand};
use super::parser::{Head, Parser};
use super::source_destination::{missing, Port, Writes};
use super::statement::{Convert, PeInstruction, PeKind};
use crate::error::{Code, Span};
use crate::spec::{MatrixKernel, MauPort, HALVES};

/// The operation and the precision that the mnemonic of a matrix access gives.
#[derive(Clone, Copy, Debug)]
pub(super) struct MatrixForm {
    /// Entry of `matrix_ops`.
    pub(super) op: usize,
    /// Entry of `precisions`.
    pub(super) precision: usize,
    /// Entry of `mau_precisions`.
    pub(super) mau_precision: usize,
}

impl Parser<'_> {
    /// The matrix register of a product. It has no row, and its width is the long word.
    pub(super) fn whole_bank(&self, operand: &Operand) -> Parse<usize> {
        let bank = self.bank(operand)?;
        if bank.wide || bank.row.is_some() {
            let message = format!("`{}` names rows, and a product takes the whole register", self.quote(operand));
            let name = self.bank_name(Bank { wide: false, row: None, ..bank });
            return Err(fault_help(Code::WrongOperand, operand.span, message, format!("use `{name}`")));
        }
        Ok(bank.bank)
    }

    /// Reads a matrix write or read after its mnemonic.
    pub(super) fn matrix(&mut self, head: Head<'_>, form: MatrixForm, line: &mut Line) -> Parse<Span> {
        let entry = &self.spec.matrix_ops[form.op];
        let zero_flush = match entry.kernel {
            MatrixKernel::Write => self.no_zero_flush(head).map(|()| None),
            MatrixKernel::Read => self.zero_flush(),
        }?;
        self.read_operands()?;
        let span = self.span(head.start);
        if self.operands.len() < 2 {
            return Err(missing(head.text, 1, self.operands.len(), span));
        }
        let mut operands = std::mem::take(&mut self.operands);
        let mut written = operands.drain(..);
        let Some(first) = written.next() else { return Ok(span) };
        let instruction = match entry.kernel {
            MatrixKernel::Write => {
                let Some(second) = written.next() else { return Ok(span) };
                let kind = self.rows(head, form, &second)?;
                if let Some(extra) = written.next() {
                    let message = format!("`{}` has one source and one matrix register", head.text);
                    return Err(fault(Code::ExtraOperand, extra.span, message));
                }
                let port = entry.port.unwrap_or(MauPort::Y);
                let (extend, reduce) = mau_conversions(self.spec, form.precision, form.mau_precision, false, port);
                let two_rows = matches!(kind, PeKind::Matrix { wide: true, .. });
                if two_rows && first.convert == Some(Convert::Reduce) {
                    let message = format!("`{}` is one row, and two are written", self.quote(&first));
                    let help = "write one row a cycle";
                    return Err(fault_help(Code::BadConversion, first.span, message, help));
                }
                let port = Port { negate: true, extend, reduce, ..Port::default() };
                let sources = vec![self.source(first, port)?];
                PeInstruction { span, kind, sources, destinations: Vec::new(), zero_flush }
            }
            MatrixKernel::Read => {
                let kind = self.rows(head, form, &first)?;
                let destinations = self.destinations(written.by_ref(), Writes::Result)?;
                PeInstruction { span, kind, sources: Vec::new(), destinations, zero_flush }
            }
        };
        drop(written);
        self.operands = operands;
        line.pe.push(instruction);
        Ok(span)
    }

    /// Checks the rows or columns that an access names and returns its operation.
    fn rows(&self, head: Head<'_>, form: MatrixForm, operand: &Operand) -> Parse<PeKind> {
        let MatrixForm { op, precision, mau_precision } = form;
        let bank = self.bank(operand)?;
        let (entry, letter) = (&self.spec.matrix_ops[op], &self.spec.precisions[precision].name);
        let span = operand.span;
        let text = self.quote(operand);
        let legal = match bank.wide {
            true => entry.wide.contains(letter),
            false => !entry.wide_only.contains(letter),
        };
        if !legal {
            let count = if bank.wide { "two rows or columns" } else { "one row or column" };
            let message = format!("`{}` does not move {count} a cycle, as `{text}` says", head.text);
            let name = self.bank_name(Bank { wide: !bank.wide, row: bank.row.or(Some(0)), ..bank });
            return Err(fault_help(Code::WrongOperand, span, message, format!("use `{name}`")));
        }
        let Some(row) = bank.row else {
            let name = self.bank_name(Bank { row: Some(0), ..bank });
            let message = format!("`{text}` names no row");
            return Err(fault_help(Code::BadOperandAddress, span, message, format!("write `{name}`")));
        };
        let rows = self.spec.mau_precisions[mau_precision].rows;
        let step = if bank.wide { HALVES } else { 1 };
        if row >= rows {
            let message = format!("row {row} is past the {rows} rows that the register has for `{}`", head.text);
            return Err(fault_help(
                Code::OperandRange,
                span,
                message,
                format!("use 0 to {}", rows.saturating_sub(step)),
            ));
        }
        if row % step != 0 {
            let message = format!("row {row} is no multiple of {step}, the rows of a cycle");
            return Err(fault_help(Code::Misaligned, span, message, format!("use {} or {}", row - 1, row + 1)));
        }
        Ok(PeKind::Matrix { op, precision, mau_precision, bank: bank.bank, row, wide: bank.wide })
    }

    fn bank(&self, operand: &Operand) -> Parse<Bank> {
        let Operand { span, kind, negate, mask, .. } = operand;
        let Kind::Bank(bank) = kind else {
            let names: Vec<String> = self
                .spec
                .banks
                .iter()
                .map(|b| format!("`${}{}`", b.widths.first().map_or("", String::as_str), b.name))
                .collect();
            let message = format!("`{}` is not a matrix register", self.quote(operand));
            return Err(fault_help(Code::WrongOperand, *span, message, format!("use {}", names.join(" or "))));
        };
        if *negate {
            let message = format!("`{}`: a matrix register cannot be negated", self.quote(operand));
            return Err(fault(Code::BadNegation, *span, message));
        }
        if mask.is_some() {
            let message = format!("`{}`: a matrix register has no mask", self.quote(operand));
            return Err(fault_help(Code::BadMask, *span, message, "remove the mask"));
        }
        Ok(*bank)
    }

    fn bank_name(&self, bank: Bank) -> String {
        let Bank { bank, wide, row } = bank;
        let named = |(_, name): &&(String, super::lexicon::Name)| *name == super::lexicon::Name::Bank { bank, wide };
        let name = self.lexicon.names.iter().find(named).map_or("", |(name, _)| name.as_str());
        format!("${name}{}", row.map(|r| r.to_string()).unwrap_or_default())
    }

    fn quote(&self, operand: &Operand) -> String {
        self.cursor.quote(operand.span)
    }
}

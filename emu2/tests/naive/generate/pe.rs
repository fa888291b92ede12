//! ALU, MAU, matrix register and L1BM instructions.

use super::line::Line;
use super::operand::{note_read, Port};
use super::Generator;
use emu2::asm::{FormRef, Mask, PeInstruction, PeKind, Source, SourceKind};
use emu2::error::Span;
use emu2::spec::{DataWidth, End, MatrixKernel, MauPort, Mnemonic, Widen, HALVES};

/// At most two MAU instructions share a line.
const MAU_PER_LINE: usize = 2;

impl Generator<'_> {
    /// Adds instructions, with these chances in percent: ALU, MAU, matrix write, matrix read, L1BM.
    pub fn fill(&mut self, line: &mut Line, chances: [u64; 5]) {
        let l1bm_again = chances[4] * 2;
        let [alu, mau, write, read, l1bm] = chances.map(|percent| self.choices.chance(percent));
        if alu {
            let mnemonic = self.choices.pick(&self.table.alu);
            self.alu(line, mnemonic);
        }
        if mau && line.mau_count < MAU_PER_LINE {
            let same = |m: &Mnemonic| mau_precision(m) == line.mau || line.mau.is_none();
            let fits: Vec<Mnemonic> = self.table.vector.iter().copied().filter(same).collect();
            if !fits.is_empty() {
                let mnemonic = self.choices.pick(&fits);
                self.vector(line, mnemonic);
            }
        }
        for (wanted, kernel) in [(write, MatrixKernel::Write), (read, MatrixKernel::Read)] {
            if wanted && line.mau_count < MAU_PER_LINE {
                self.matrix(line, kernel);
            }
        }
        if l1bm {
            let (transfer, form) = self.choices.pick(&self.table.l1bm);
            self.l1bm(line, transfer, form);
        }
        if self.choices.chance(l1bm_again) {
            self.turn_around(line);
        }
    }

    fn flush(&mut self, line: &mut Line) -> Option<Mask> {
        let flush = !line.flushed && self.choices.chance(15);
        line.flushed |= flush;
        flush.then(|| line.mask(self.table, self.choices))
    }

    /// Adds an ALU instruction, unless it excludes a memory of the line.
    pub fn alu(&mut self, line: &mut Line, mnemonic: Mnemonic) {
        let Some(kind) = self.alu_kind(mnemonic) else { return };
        let PeKind::Alu { op, precision, .. } = kind else { return };
        let entry = &self.table.spec.alu[op];
        let excluded: Vec<usize> = entry.excludes.iter().filter_map(|n| self.table.spec.memory(n)).collect();
        if excluded.iter().any(|m| line.touches(*m)) {
            return;
        }
        line.off_limits.extend(excluded);
        let reduce = precision.and_then(|p| self.table.float_bits(p)).is_some_and(|b| self.table.conversions(b).1);
        let count = entry.sources;
        let first = Port { first_alu: true, fixed: precision.is_some(), reduce, ..Port::default() };
        let ports = [first, Port { reduce, ..Port::default() }];
        let sources = ports.into_iter().take(count as usize).map(|port| self.source(line, port)).collect();
        let zero_flush = self.flush(line);
        let destinations = self.destinations(line, true);
        line.pe.push(PeInstruction { span: Span::default(), kind, sources, destinations, zero_flush });
    }

    /// The kind of an instruction, with a literal and a mantissa length if the op has them.
    pub fn alu_kind(&mut self, mnemonic: Mnemonic) -> Option<PeKind> {
        let Mnemonic::Alu { op, precision, unsigned } = mnemonic else { return None };
        let spec = &self.table.spec;
        let literal = spec.alu[op].literal.then(|| super::super::data::long_word(self.choices) as u32);
        let lengths = spec.alu[op].lengths.as_ref();
        let lengths = lengths.filter(|l| precision.is_some_and(|p| spec.precisions[p].name == l.precision));
        let length = lengths.map(|l| l.minimum + self.choices.below(u64::from(l.maximum - l.minimum + 1)) as u32);
        Some(PeKind::Alu { op, precision, unsigned, literal, length })
    }

    /// The sources that an input port of a MAU instruction takes.
    pub fn mau_port(&self, precision: usize, mau_precision: usize, port: MauPort) -> Port {
        let entry = &self.table.spec.mau_precisions[mau_precision];
        let bits = self.table.float_bits(precision).expect("a float");
        let wide = port == MauPort::Z && entry.addend == DataWidth::Path;
        let (extend, reduce) = self.table.conversions(if wide { bits * HALVES } else { bits });
        Port { negate: true, extend, reduce, ..Port::default() }
    }

    fn vector(&mut self, line: &mut Line, mnemonic: Mnemonic) {
        let Mnemonic::Mau { op, precision, mau_precision, half, reduced } = mnemonic else { return };
        let ports = self.table.spec.mau[op].sources.clone();
        let sources = ports.iter().map(|port| {
            let port = self.mau_port(precision, mau_precision, *port);
            self.source(line, port)
        });
        let sources = sources.collect();
        let kind = PeKind::Mau { op, precision, mau_precision, half, reduced, bank: None };
        self.mau(line, kind, sources, mau_precision);
    }

    /// Ends a MAU compute instruction.
    pub fn mau(&mut self, line: &mut Line, kind: PeKind, sources: Vec<Source>, mau_precision: usize) {
        let zero_flush = self.flush(line);
        let destinations = self.destinations(line, true);
        line.mau = Some(mau_precision);
        line.mau_count += 1;
        line.pe.push(PeInstruction { span: Span::default(), kind, sources, destinations, zero_flush });
    }

    fn matrix(&mut self, line: &mut Line, kernel: MatrixKernel) {
        let mnemonics = self.table.matrix_ops(kernel, line.mau);
        let banks: Vec<usize> = (0..self.table.spec.banks.len()).filter(|b| !line.banks.contains(b)).collect();
        if mnemonics.is_empty() || banks.is_empty() {
            return;
        }
        let mnemonic = self.choices.pick(&mnemonics);
        let bank = self.choices.pick(&banks);
        let Some(kind) = self.matrix_kind(mnemonic, bank) else { return };
        match kernel {
            MatrixKernel::Write => self.matrix_write(line, kind),
            MatrixKernel::Read => {
                let zero_flush = self.flush(line);
                let destinations = self.destinations(line, false);
                self.push_matrix(
                    line,
                    PeInstruction { span: Span::default(), kind, sources: vec![], destinations, zero_flush },
                );
            }
        }
    }

    /// An access to a matrix register at any row or column.
    pub fn matrix_kind(&mut self, mnemonic: Mnemonic, bank: usize) -> Option<PeKind> {
        let Mnemonic::Matrix { op, precision, mau_precision } = mnemonic else { return None };
        let spec = &self.table.spec;
        let letter = &spec.precisions[precision].name;
        let wide = spec.matrix_ops[op].wide_only.contains(letter)
            || (spec.matrix_ops[op].wide.contains(letter) && self.choices.chance(50));
        let rows = spec.mau_precisions[mau_precision].rows;
        let row = self.choices.below(u64::from(rows)) as u32;
        let row = if wide { row - row % HALVES } else { row };
        Some(PeKind::Matrix { op, precision, mau_precision, bank, row, wide })
    }

    fn matrix_write(&mut self, line: &mut Line, kind: PeKind) {
        let PeKind::Matrix { precision, wide, .. } = kind else { return };
        // A product of the line shares the port of its second factor with the write.
        let second = line.pe.iter().find_map(|i| match i.kind {
            PeKind::Mau { op, bank: None, .. } => {
                let at = self.table.spec.mau[op].sources.iter().position(|p| *p == MauPort::Y)?;
                i.sources.get(at).cloned()
            }
            _ => None,
        });
        let source = match second {
            Some(source) => source,
            None => {
                let (extend, reduce) = self.table.conversions(self.table.float_bits(precision).expect("a float"));
                self.source(line, Port { negate: true, extend, reduce: reduce && !wide, ..Port::default() })
            }
        };
        if wide && source.convert.is_some() {
            return;
        }
        self.push_write(line, kind, source);
    }

    /// Ends a write to a matrix register.
    pub fn push_write(&mut self, line: &mut Line, kind: PeKind, source: Source) {
        if let SourceKind::Memory(access) = &source.kind {
            note_read(line, access);
        }
        let instruction = PeInstruction {
            span: Span::default(),
            kind,
            sources: vec![source],
            destinations: vec![],
            zero_flush: None,
        };
        self.push_matrix(line, instruction);
    }

    fn push_matrix(&mut self, line: &mut Line, instruction: PeInstruction) {
        let PeKind::Matrix { mau_precision, bank, .. } = instruction.kind else { return };
        line.mau = Some(mau_precision);
        line.mau_count += 1;
        line.banks.push(bank);
        line.pe.push(instruction);
    }

    fn l1bm(&mut self, line: &mut Line, transfer: usize, form: usize) {
        let spec = self.table.spec.clone();
        let resolved = &spec.forms[transfer][form];
        let form = FormRef { transfer, form, parameter: self.parameter(transfer, &resolved.name) };
        if matches!(resolved.destination, End::Pe) {
            let address = self.upper_address(&resolved.source);
            self.load(line, form, Some(address));
            return;
        }
        let address = self.upper_address(&resolved.destination);
        // Sometimes the words go to the turnaround register only.
        let address = (!self.choices.chance(25)).then_some(address);
        let port = Port { extend: resolved.widen == Some(Widen::Written), ..Port::default() };
        let sources = vec![self.source(line, port)];
        line.stores |= address.is_some();
        line.sends = Some(form);
        let kind = PeKind::L1bm { form, address };
        line.pe.push(PeInstruction { span: Span::default(), kind, sources, destinations: vec![], zero_flush: None });
    }

    fn load(&mut self, line: &mut Line, form: FormRef, address: Option<u64>) {
        let zero_flush = self.flush(line);
        let destinations = self.destinations(line, false);
        line.loads = true;
        let kind = PeKind::L1bm { form, address };
        line.pe.push(PeInstruction { span: Span::default(), kind, sources: vec![], destinations, zero_flush });
    }

    /// Brings back the words that an earlier line sent, with the counterpart of its instruction.
    fn turn_around(&mut self, line: &mut Line) {
        let Some(sent) = self.sent.filter(|_| !line.loads) else { return };
        let counterparts = self.table.counterparts(sent.transfer, sent.form);
        if counterparts.is_empty() {
            return;
        }
        let (transfer, form) = self.choices.pick(&counterparts);
        // A shift is the same in both directions.
        let shifts = self.table.spec.transfers[transfer].name == "l1bmd";
        let parameter = if shifts { sent.parameter } else { 0 };
        self.load(line, FormRef { transfer, form, parameter }, None);
    }
}

fn mau_precision(mnemonic: &Mnemonic) -> Option<usize> {
    match mnemonic {
        Mnemonic::Mau { mau_precision, .. } | Mnemonic::Matrix { mau_precision, .. } => Some(*mau_precision),
        _ => None,
    }
}

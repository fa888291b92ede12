//! Matrix-vector products. Their factors must be block float, so the lines that prepare them come with the product.

use super::line::Line;
use super::operand::note_read;
use super::Generator;
use emu2::asm::{Access, Destination, PeKind, Source, SourceKind, Target};
use emu2::error::Span;
use emu2::spec::{MatrixKernel, Mnemonic, HALVES, WORDS_PER_LONG};

impl Generator<'_> {
    /// Lines that fill a matrix register and a vector with block float values, and lines that multiply.
    pub fn product(&mut self) {
        let mnemonic = self.choices.pick(&self.table.product);
        let Mnemonic::Mau { precision, mau_precision, .. } = mnemonic else { return };
        let block_ops = self.table.block_ops(precision);
        let write = self.table.matrix_ops(MatrixKernel::Write, Some(mau_precision));
        let bank = self.choices.below(self.table.spec.banks.len() as u64) as usize;
        if block_ops.is_empty() || write.is_empty() {
            return;
        }
        let rows = self.table.spec.mau_precisions[mau_precision].rows;
        let Some(mut kind) = self.matrix_kind(write[0], bank) else { return };
        let mut covered = 0;
        while covered < rows {
            let op = self.choices.pick(&block_ops);
            let (source, kept) = self.blocks(op);
            kind = self.next_rows(kind, rows, covered);
            let PeKind::Matrix { wide, .. } = kind else { return };
            covered += self.table.spec.counts.cycle * if wide { HALVES } else { 1 };
            let mut line = self.reading(&source, &kept);
            self.push_write(&mut line, kind, source);
            self.fill(&mut line, [30, 0, 0, 15, 15]);
            self.push(line);
        }
        let op = self.choices.pick(&block_ops);
        let (x, kept) = self.blocks(op);
        self.multiply(mnemonic, bank, &x, &kept);
        if !kept.is_empty() && self.choices.chance(40) {
            let same = |m: &Mnemonic| matches!(m, Mnemonic::Mau { mau_precision: p, .. } if *p == mau_precision);
            let others: Vec<Mnemonic> = self.table.product.iter().copied().filter(same).collect();
            let mnemonic = self.choices.pick(&others);
            self.multiply(mnemonic, bank, &x, &kept);
        }
    }

    /// The access that follows on `kind` after `covered` rows. The first access has the address of `kind`.
    fn next_rows(&mut self, kind: PeKind, rows: u32, covered: u32) -> PeKind {
        let PeKind::Matrix { op, precision, mau_precision, bank, row, wide } = kind else { return kind };
        let step = self.table.spec.counts.cycle * if wide { HALVES } else { 1 };
        let row = if covered == 0 { row } else { (row + step) % rows };
        PeKind::Matrix { op, precision, mau_precision, bank, row, wide }
    }

    /// A line that makes blocks, and the place where the next line finds them: in a memory, which must be left alone, or on
    /// the forwarding path.
    fn blocks(&mut self, op: Mnemonic) -> (Source, Vec<usize>) {
        let mut line = Line::new(self.table, self.choices);
        line.forward = Some(true);
        // The mask lets through all of a block or nothing of it.
        line.flushed = true;
        let both = self.wide_possible(op) || self.choices.chance(50);
        let words = if both { WORDS_PER_LONG * HALVES } else { WORDS_PER_LONG };
        let stretch = if self.choices.chance(60) { self.stretch(&line, words) } else { None };
        let mut kept = Vec::new();
        if let Some(access) = &stretch {
            kept = self.kept(access);
            line.no_write.extend(&kept);
            line.writes.push((access.memory, Some(access.clone())));
        }
        self.alu(&mut line, op);
        let mut found = SourceKind::Forward(self.table.alu_forward);
        if let (Some(access), Some(instruction)) = (stretch, line.pe.last_mut()) {
            instruction.destinations.push(whole(&access));
            found = SourceKind::Memory(access);
        }
        self.fill(&mut line, [0, 25, 0, 15, 15]);
        self.push(line);
        (Source { span: Span::default(), kind: found, negate: false, convert: None }, kept)
    }

    /// Whether two rows of this precision may be written at a time, from both long words.
    fn wide_possible(&self, op: Mnemonic) -> bool {
        let Mnemonic::Alu { precision: Some(precision), .. } = op else { return false };
        let letter = &self.table.spec.precisions[precision].name;
        self.table.spec.matrix_ops.iter().any(|m| m.wide.contains(letter))
    }

    /// The memories of an access, and the memories that decide about its address.
    fn kept(&self, access: &Access) -> Vec<usize> {
        let bases = self.table.spec.bases.iter().filter_map(|b| self.table.spec.memory(&b.memory));
        std::iter::once(access.memory).chain(bases).collect()
    }

    /// A line that reads `source` and leaves the memories `kept` alone.
    fn reading(&mut self, source: &Source, kept: &[usize]) -> Line {
        let mut line = Line::new(self.table, self.choices);
        line.no_write.extend(kept);
        if let SourceKind::Memory(access) = &source.kind {
            note_read(&mut line, access);
        }
        line
    }

    fn multiply(&mut self, mnemonic: Mnemonic, bank: usize, x: &Source, kept: &[usize]) {
        let Mnemonic::Mau { op, precision, mau_precision, half, reduced } = mnemonic else { return };
        let mut line = self.reading(x, kept);
        line.banks.push(bank);
        let mut sources = vec![Source { negate: self.choices.chance(25), ..x.clone() }];
        let ports = self.table.spec.mau[op].sources.clone();
        for port in &ports[1..] {
            let port = self.mau_port(precision, mau_precision, *port);
            sources.push(self.source(&mut line, port));
        }
        let kind = PeKind::Mau { op, precision, mau_precision, half, reduced, bank: Some(bank) };
        self.mau(&mut line, kind, sources, mau_precision);
        self.fill(&mut line, [40, 0, 15, 15, 15]);
        self.push(line);
    }
}

/// A destination that takes the whole result.
fn whole(access: &Access) -> Destination {
    Destination { span: Span::default(), target: Target::Memory(access.clone()), mask: None }
}

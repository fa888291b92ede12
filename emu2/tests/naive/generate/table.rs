//! The lists of a spec from which the generator draws.

use emu2::spec::{
    End, ForwardUnit, LaneKind, LevelName, MatrixKernel, Mnemonic, Spec, Unit, BLOCK, BLOCK_EXTENDED, LONG_BITS,
};
use std::sync::Arc;

/// The instructions and operands of a machine, by kind. Numbers index the lists of the spec.
pub struct Table {
    pub spec: Arc<Spec>,
    /// ALU mnemonics.
    pub alu: Vec<Mnemonic>,
    /// MAU mnemonics without a matrix register.
    pub vector: Vec<Mnemonic>,
    /// MAU mnemonics with a matrix register.
    pub product: Vec<Mnemonic>,
    /// Access to matrix registers.
    pub matrix: Vec<Mnemonic>,
    /// Transfer and form between L1BM and PEs, between L2BM and L1BMs, and of MVs.
    pub l1bm: Vec<(usize, usize)>,
    pub l2bm: Vec<(usize, usize)>,
    pub mv: Vec<(usize, usize)>,
    /// The same, grouped by entry of the spec, because many forms of an entry may differ only in their reduction.
    pub l2bm_families: Vec<Vec<(usize, usize)>>,
    pub mv_families: Vec<Vec<(usize, usize)>>,
    /// Operand classes of the PEs' memories.
    pub pe_operands: Vec<usize>,
    /// Operand classes of all memories.
    pub operands: Vec<usize>,
    /// Forwarding path of the ALU.
    pub alu_forward: usize,
    /// Entry of the mask registers' memory.
    pub masks: usize,
}

impl Table {
    /// Sorts the lists of `spec` by their use.
    pub fn new(spec: &Arc<Spec>) -> Table {
        // The order of the spec's own table is not fixed.
        let mut mnemonics: Vec<_> = spec.mnemonics.iter().collect();
        mnemonics.sort_by_key(|(text, _)| *text);
        let of = |wanted: &dyn Fn(&Mnemonic) -> bool| -> Vec<Mnemonic> {
            mnemonics.iter().map(|(_, m)| **m).filter(|m| wanted(m)).collect()
        };
        let with_matrix = |m: &Mnemonic| matches!(m, Mnemonic::Mau { op, .. } if spec.mau[*op].matrix);
        let forms = |wanted: &dyn Fn(LevelName) -> bool| -> Vec<(usize, usize)> {
            let transfers = spec.transfers.iter().enumerate().filter(|(_, t)| wanted(t.level));
            transfers.flat_map(|(t, _)| (0..spec.forms[t].len()).map(move |f| (t, f))).collect()
        };
        let memory = |o: usize| &spec.memories[spec.memory(&spec.operands[o].memory).expect("a memory")];
        let operands: Vec<usize> = (0..spec.operands.len()).filter(|o| spec.operands[*o].table.is_none()).collect();
        let pe = |o: &usize| memory(*o).level == LevelName::Pe;
        let families = |forms: &[(usize, usize)]| -> Vec<Vec<(usize, usize)>> {
            let name = |(t, _): &(usize, usize)| spec.entry_name(&spec.transfers[*t]);
            forms.chunk_by(|a, b| name(a) == name(b)).map(<[_]>::to_vec).collect()
        };
        let (l2bm, mv) = (forms(&|l| matches!(l, LevelName::Group | LevelName::L2b)), forms(&|l| l == LevelName::Chip));
        Table {
            spec: spec.clone(),
            l2bm_families: families(&l2bm),
            mv_families: families(&mv),
            alu: of(&|m| matches!(m, Mnemonic::Alu { .. })),
            vector: of(&|m| matches!(m, Mnemonic::Mau { .. }) && !with_matrix(m)),
            product: of(&with_matrix),
            matrix: of(&|m| matches!(m, Mnemonic::Matrix { .. })),
            l1bm: forms(&|level| level == LevelName::L1b),
            l2bm,
            mv,
            pe_operands: operands.iter().copied().filter(pe).collect(),
            operands,
            alu_forward: spec.forwards.iter().position(|f| f.unit == ForwardUnit::Alu).expect("a path"),
            masks: spec.memory(&spec.mask.memory).expect("a memory"),
        }
    }

    /// Entry of the memory of an operand class.
    pub fn memory(&self, operand: usize) -> usize {
        self.spec.memory(&self.spec.operands[operand].memory).expect("a memory")
    }

    /// Entry of the memory at an end of a form.
    pub fn end(&self, end: &End) -> Option<usize> {
        match end {
            End::Pe => None,
            End::Memory { operand, .. } => Some(self.memory(*operand)),
        }
    }

    /// Forms that bring back the words that a form sends: the same long words of L1BM, of the same width.
    pub fn counterparts(&self, transfer: usize, form: usize) -> Vec<(usize, usize)> {
        let rate = |(t, f): (usize, usize), sends: bool| {
            let form = &self.spec.forms[t][f];
            let (End::Memory { width, .. }, true) = (
                if sends { &form.destination } else { &form.source },
                matches!(if sends { &form.source } else { &form.destination }, End::Pe),
            ) else {
                return None;
            };
            let parameter = self.spec.parameters[t].as_ref().map(|p| (p.name.as_str(), 0));
            let moves = form.evaluate(parameter.as_slice()).expect("a map that was checked");
            let last = moves.iter().map(|(from, to)| if sends { to.addr } else { from.addr }).max();
            Some((last, *width))
        };
        let sent = rate((transfer, form), true);
        self.l1bm.iter().copied().filter(|at| sent.is_some() && rate(*at, false) == sent).collect()
    }

    /// Whether an input with lanes of `bits` takes `e` (there is a next lower format) or `r` (it is the lowest).
    pub fn conversions(&self, bits: u32) -> (bool, bool) {
        let format = |bits: u32| self.spec.formats.iter().any(|f| 1 + f.exponent + f.fraction == bits);
        (format(bits / 2), !format(bits / 2) && format(2 * bits))
    }

    /// Bits of a lane of a precision, if it is a float.
    pub fn float_bits(&self, precision: usize) -> Option<u32> {
        let p = &self.spec.precisions[precision];
        (p.kind == LaneKind::Float).then(|| LONG_BITS / p.lanes)
    }

    /// ALU mnemonics that make block float values of a precision.
    pub fn block_ops(&self, precision: usize) -> Vec<Mnemonic> {
        let makes = |m: &Mnemonic| match m {
            Mnemonic::Alu { op, precision: p, .. } => {
                *p == Some(precision) && [BLOCK, BLOCK_EXTENDED].contains(&self.spec.alu[*op].kernel.as_str())
            }
            _ => false,
        };
        self.alu.iter().copied().filter(makes).collect()
    }

    /// Mnemonics that write or read a matrix register, in one precision or in any.
    pub fn matrix_ops(&self, kernel: MatrixKernel, mau_precision: Option<usize>) -> Vec<Mnemonic> {
        let fits = |m: &Mnemonic| match m {
            Mnemonic::Matrix { op, mau_precision: p, .. } => {
                self.spec.matrix_ops[*op].kernel == kernel && mau_precision.is_none_or(|wanted| wanted == *p)
            }
            _ => false,
        };
        self.matrix.iter().copied().filter(fits).collect()
    }

    /// Whether an operand class is the T register.
    pub fn is_cycle(&self, operand: usize) -> bool {
        self.spec.memories[self.memory(operand)].unit == Unit::Cycle
    }
}

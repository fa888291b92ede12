//! The computation of a PE instruction: one call on whole rows, of one cycle or of all cycles.

use super::l1bm::{L1bPlace, Load, Sent};
use super::l1bm_map::{part, PeRun, ReduceBuffers, ReductionLayout};
use super::matrix::{MatrixAccess, MatrixRegisters, Product};
use super::mau_op::MauOp;
use super::wrap::write_wrapped;
use crate::machine::{L1b, Out, Path, Words};
use crate::num::alu::{AluKernel, AluParams};
use crate::num::blockfloat;
use crate::num::reduce::ReduceKernel;
use std::sync::Arc;

/// An operation with its kernel and all parameters.
#[derive(Clone, Debug)]
pub(super) enum Compute {
    /// A lane function. With `path` it works on both long words, otherwise L1 of the result is L1 of x.
    Alu { kernel: AluKernel, params: AluParams, path: bool },
    /// The same long word on every PE.
    Constant(u64),
    /// L0 comes from the PE that is `distance` further in its MAB of `pes` PEs, L1 from the PE itself.
    Rotate { distance: usize, pes: usize },
    /// Block float.
    Block { kernel: BlockKernel, path: bool },
    /// A MAU operation.
    Mau(MauOp),
    /// L1BM to PE.
    Load(Load),
    /// PE to L1BM; the source path is the result.
    Store(Sent<Arc<[PeRun]>>),
    /// PE to L1BM through the reduction network; the source path is the result.
    Reduce { sent: Sent<()>, kernel: ReduceKernel, reduction_layout: Arc<ReductionLayout> },
    /// Rows of a matrix register; the source path is the result.
    MatrixWrite(MatrixAccess),
    /// Columns of a matrix register.
    MatrixRead(MatrixAccess),
}

/// Block float conversions.
#[derive(Clone, Copy, Debug)]
pub(super) enum BlockKernel {
    D,
    F,
    G,
    H { kept: u32, extended: bool },
}

impl BlockKernel {
    fn run(self, x: &[u64], out: &mut [u64]) {
        match self {
            BlockKernel::D => blockfloat::d_bfn(x, out),
            BlockKernel::F => blockfloat::f_bfn(x, out),
            BlockKernel::G => blockfloat::g_bfn(x, out),
            BlockKernel::H { kept, extended: false } => blockfloat::h_bfn(kept, x, out),
            BlockKernel::H { kept, extended: true } => blockfloat::h_bfe(kept, x, out),
        }
    }
}

/// Where the second long word of a result comes from, as far as lowering can tell.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum SecondLongWord {
    Zero,
    Any,
    /// It is zero if the second long word of the first source is.
    Source,
}

impl Compute {
    /// Decodes the matrix register of a product, unless that is done.
    pub(super) fn prepare(&self, l1b: &mut L1b, lanes: usize) {
        if let Some((_, product)) = self.product() {
            product.prepare(l1b, lanes);
        }
    }

    /// Where L1 of the result comes from. `plane`: long words of L0.
    pub(super) fn second(&self, plane: usize) -> SecondLongWord {
        let zero = |zero: bool| if zero { SecondLongWord::Zero } else { SecondLongWord::Any };
        match self {
            Compute::Alu { path: true, .. } => SecondLongWord::Any,
            // A block of zeros stays one.
            Compute::Alu { .. } | Compute::Block { .. } | Compute::Rotate { .. } => SecondLongWord::Source,
            Compute::Store(_) | Compute::Reduce { .. } | Compute::MatrixWrite(_) => SecondLongWord::Source,
            Compute::Constant(word) => zero(*word == 0),
            Compute::Mau(op) => zero(op.narrow()),
            Compute::Load(load) => zero(load.runs.iter().all(|run| run.path + run.length <= plane)),
            Compute::MatrixRead(access) => zero(access.halves() == 1),
        }
    }

    /// Slot of the matrix register that is read or written.
    pub(super) fn matrix_slot(&self) -> Option<usize> {
        match self {
            Compute::Mau(op) => op.matrix.map(|product| product.slot),
            Compute::MatrixWrite(access) | Compute::MatrixRead(access) => Some(access.slot),
            _ => None,
        }
    }

    /// The matrix product, if the operation is one. A product takes all cycles at once, wherever the rows lie.
    pub(super) fn product(&self) -> Option<(&MauOp, &Product)> {
        match self {
            Compute::Mau(op) => Some((op, op.matrix.as_ref()?)),
            _ => None,
        }
    }

    /// Whether the operation reads only L0 of its sources and gives a result whose L1 is zero.
    pub(super) fn reads_l0(&self) -> bool {
        matches!(self, Compute::Mau(op) if op.one_long_word())
    }

    /// Slots of the memories of the L1B that the operation reads and writes, as bits.
    pub(super) fn own_slots(&self) -> (u64, u64) {
        let place = |place: &L1bPlace| 1 << place.slot;
        match self {
            Compute::Load(load) => (place(&load.place), 0),
            Compute::Store(sent) => (0, sent.places(true).fold(0, |all, (to, _)| all | place(to))),
            Compute::Reduce { sent, .. } => (0, sent.places(true).fold(0, |all, (to, ())| all | place(to))),
            _ => (0, 0),
        }
    }

    /// The words that the operation leaves in the turnaround register: where the last one ends, and how many of them are
    /// contiguous from the start of the register on.
    pub(super) fn kept(&self) -> (usize, usize) {
        let (end, words) = match self {
            Compute::Store(Sent { kept: (place, runs), .. }) => {
                let ends = runs.iter().map(|run| (place.address + run.offset) as usize + run.length);
                (ends.max().unwrap_or(0), runs.iter().map(|run| run.length).sum())
            }
            Compute::Reduce { sent: Sent { kept: (place, ()), .. }, reduction_layout, .. } => {
                let words =
                    if reduction_layout.narrow { reduction_layout.results / 2 } else { reduction_layout.results };
                (place.address as usize + words, words)
            }
            _ => (0, 0),
        };
        // No word is sent twice, so the words are contiguous if there are as many as the last one's end says.
        (end, if words == end { end } else { 0 })
    }

    /// Whether the operation sends words of the PEs to L1BM.
    pub(super) fn sends(&self) -> bool {
        matches!(self, Compute::Store(_) | Compute::Reduce { .. })
    }

    /// Whether the operation reads or writes memories of the L1B.
    pub(super) fn in_l1bm(&self) -> bool {
        self.sends() || matches!(self, Compute::Load(_))
    }

    /// Sends a path to L1BM, and to the turnaround register if `keep`.
    pub(super) fn send(&self, path: Path<'_>, keep: bool, own: &mut [Words], reduce: &mut ReduceBuffers) {
        match self {
            Compute::Store(sent) => {
                for (place, runs) in sent.places(keep) {
                    for run in runs.iter() {
                        let words = part(path, run.path, run.length);
                        write_wrapped(&mut own[place.slot], place.address + run.offset, words);
                    }
                }
            }
            Compute::Reduce { sent, kernel, reduction_layout } => {
                reduction_layout.reduce(*kernel, path, reduce);
                for (place, ()) in sent.places(keep) {
                    write_wrapped(&mut own[place.slot], place.address, &reduce.out);
                }
            }
            _ => {}
        }
    }

    /// Writes the result of the rows from cycle `c` on to `out`. `tmp` holds [`SPARE_PLANES`] times as many rows. Must not
    /// be called for [`Compute::Load`], which has no rows to compute from.
    pub(super) fn run(&self, sources: &[Path<'_>], rows: MatrixRegisters<'_>, c: usize, tmp: &mut [u64], out: Out<'_>) {
        let (x, y) = match sources {
            [] => ((rows.zeros, rows.zeros), (rows.zeros, rows.zeros)),
            [x] => (*x, (rows.zeros, rows.zeros)),
            [x, y, ..] => (*x, *y),
        };
        match self {
            Compute::Alu { kernel, params, path: true } => {
                kernel.run(params, x.0, y.0, out.l0);
                if let Some(l1) = out.l1 {
                    kernel.run(params, x.1, y.1, l1);
                }
            }
            Compute::Block { kernel, path: true } => {
                kernel.run(x.0, out.l0);
                if let Some(l1) = out.l1 {
                    kernel.run(x.1, l1);
                }
            }
            Compute::Constant(word) => {
                out.l0.fill(*word);
                if let Some(l1) = out.l1 {
                    l1.fill(*word);
                }
            }
            Compute::Mau(op) => op.run(sources, rows, tmp, out),
            Compute::MatrixRead(access) => access.columns(rows.pe, c, out),
            Compute::Load(_) => {}
            _ => {
                match self {
                    Compute::Alu { kernel, params, .. } => kernel.run(params, x.0, y.0, out.l0),
                    Compute::Block { kernel, .. } => kernel.run(x.0, out.l0),
                    Compute::Rotate { distance, pes } => {
                        for (out, x) in out.l0.chunks_exact_mut(*pes).zip(x.0.chunks_exact(*pes)) {
                            for (pe, out) in out.iter_mut().enumerate() {
                                *out = x[(pe + distance) % pes];
                            }
                        }
                    }
                    _ => out.l0.copy_from_slice(x.0),
                }
                if let Some(l1) = out.l1 {
                    l1.copy_from_slice(x.1);
                }
            }
        }
    }
}

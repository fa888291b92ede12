//! What an instruction of a PE line computes: one call per cycle on whole rows.

use super::maps::{Meeting, PeRun};
use super::matrix::{MatrixAccess, Operands, Product};
use super::operand::Path;
use crate::error::{Code, Error};
use crate::machine::L1b;
use crate::num::alu::{AluKernel, AluParams};
use crate::num::lane::Lane;
use crate::num::mau::{self, MauNeg, MauOutput};
use crate::num::reduce::ReduceKernel;
use crate::num::{blockfloat, MAB_PES};
use crate::spec::{DataWidth, Half, MauPort, Spec};
use std::sync::Arc;

/// An operation with everything bound that does not change from cycle to cycle.
#[derive(Clone, Debug)]
pub(super) enum Compute {
    /// A lane function. `path`: on both long words; else L1 of the result is L1 of x.
    Alu { kernel: AluKernel, params: AluParams, path: bool },
    /// The same long word everywhere.
    Constant(u64),
    /// L0 of the PE `distance` further in the MAB of `pes`, L1 of its own.
    Rotate { distance: usize, pes: usize },
    /// Block float.
    Block { kernel: BlockKernel, path: bool },
    /// A MAU operation.
    Mau(MauOp),
    /// L1BM to PE.
    Load { slot: usize, address: u64, runs: Arc<[PeRun]> },
    /// PE to L1BM; the source path is the result.
    Store(Sent<Arc<[PeRun]>>),
    /// PE to L1BM through the reduction network; the source path is the result.
    Reduce { sent: Sent<()>, kernel: ReduceKernel, meeting: Arc<Meeting> },
    /// Rows of a matrix register; the source path is the result.
    MatrixWrite(MatrixAccess),
    /// Columns of a matrix register.
    MatrixRead(MatrixAccess),
}

/// A written place in a memory of the L1B.
#[derive(Clone, Copy, Debug)]
pub(super) struct OwnPlace {
    pub(super) slot: usize,
    pub(super) address: u64,
}

/// Where an instruction sends what it takes from the PEs, each place with how the words lie there.
#[derive(Clone, Debug)]
pub(super) struct Sent<T> {
    /// In L1BM; none where the turnaround register is the destination.
    pub(super) written: Option<(OwnPlace, T)>,
    /// In the turnaround register: unshifted.
    pub(super) kept: (OwnPlace, T),
}

impl<T> Sent<T> {
    /// The places that are written. `keep`: the turnaround register is one of them.
    pub(super) fn places(&self, keep: bool) -> impl Iterator<Item = &(OwnPlace, T)> {
        self.written.iter().chain(keep.then_some(&self.kept))
    }
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

/// A MAU operation, `x*y + z` or `A*x + z` with missing ports filled in.
#[derive(Clone, Debug)]
pub(super) struct MauOp {
    lane: Lane,
    reduced: bool,
    omitted: u32,
    negate: MauNeg,
    /// Index of the written source on each port.
    x: Option<usize>,
    y: Option<usize>,
    z: Option<usize>,
    /// PEs of a MAB that multiply.
    active: Option<Half>,
    pes: usize,
    /// 1 in every lane.
    one: u64,
    matrix: Option<Product>,
}

/// What of a MAU operation the mnemonic and operands say.
pub(super) struct MauForm<'a> {
    pub(super) op: usize,
    pub(super) precision: usize,
    pub(super) mau_precision: usize,
    pub(super) half: Option<Half>,
    pub(super) reduced: bool,
    /// Slot of the matrix register.
    pub(super) matrix: Option<usize>,
    pub(super) negated: &'a dyn Fn(MauPort) -> bool,
}

impl MauOp {
    pub(super) fn bind(spec: &Spec, form: &MauForm<'_>) -> Result<MauOp, Error> {
        let (entry, precision) = (&spec.mau[form.op], &spec.mau_precisions[form.mau_precision]);
        let letter = &spec.precisions[form.precision];
        let port = |port| entry.sources.iter().position(|p| *p == port);
        let no_kernel = || {
            let message =
                format!("the engine has no MAU kernel for `{}` of `{}` with these ports", entry.name, letter.name);
            Error::new(Code::NoKernel, message)
        };
        let lane = letter.lane().ok_or_else(no_kernel)?;
        // The kernels of the half precision take and give singles on the whole path, the others lanes of L0.
        let wide = lane == Lane::H;
        let path = |width| (width == DataWidth::Path) == wide;
        let format =
            lane.format().filter(|_| path(precision.addend) && path(precision.result)).ok_or_else(no_kernel)?;
        let one = u64::from(format.bias()) << format.frac_bits;
        let (omitted, ignored) = (precision.omitted_bits, precision.ignored_bits);
        let negated = form.negated;
        Ok(MauOp {
            lane,
            reduced: form.reduced,
            omitted,
            negate: MauNeg { x: negated(MauPort::X), y: negated(MauPort::Y), z: negated(MauPort::Z) },
            x: port(MauPort::X),
            y: port(MauPort::Y),
            z: port(MauPort::Z),
            active: form.half,
            pes: spec.counts.pe as usize,
            one: (0..lane.count() as u32).fold(0, |row, k| row | one << (k * lane.width())),
            matrix: form.matrix.map(|slot| Product { slot, lane, pseudo: letter.pseudo, omitted, ignored }),
        })
    }

    /// How the result lies on the path.
    pub(super) fn output(&self) -> MauOutput {
        match (self.lane, self.reduced) {
            (Lane::H, false) => MauOutput::H,
            (Lane::H, true) => MauOutput::HReduced,
            (Lane::F, false) => MauOutput::F,
            (Lane::F, true) => MauOutput::FReduced,
            (_, false) => MauOutput::D,
            (_, true) => MauOutput::DReduced,
        }
    }

    fn multiplies(&self, pe: usize) -> bool {
        match self.active {
            None => true,
            Some(Half::Upper) => pe < self.pes / 2,
            Some(Half::Lower) => pe >= self.pes / 2,
        }
    }

    fn run(&self, sources: &[Path<'_>], rows: Rows<'_>, tmp: &mut [u64], out: &mut [u64]) {
        let zeros = rows.zeros;
        let lanes = zeros.len();
        let (ones, masked) = tmp.split_at_mut(lanes);
        let row = |at: Option<usize>| at.map(|at| sources[at].0);
        let mut x = row(self.x).unwrap_or(zeros);
        let z0 = row(self.z).unwrap_or(zeros);
        let z1 = self.z.map_or(zeros, |at| sources[at].1);
        if let Some(product) = &self.matrix {
            let active: [bool; MAB_PES] = std::array::from_fn(|pe| self.multiplies(pe));
            let operands = Operands { x, z: (z0, z1), neg: self.negate, active };
            return product.run(rows.l1b, &operands, self.reduced, out);
        }
        if self.active.is_some() {
            // A PE that does not multiply has the product 0: its first factor is 0.
            for (lane, (to, from)) in masked.iter_mut().zip(x).enumerate() {
                *to = if self.multiplies(lane % self.pes) { *from } else { 0 };
            }
            x = &masked[..lanes];
        }
        let (o0, o1) = out.split_at_mut(lanes);
        // Sums of singles and doubles need no multiplier.
        match (self.y, self.lane, self.reduced) {
            (None, Lane::F, false) => {
                mau::f_add(x, z0, self.negate, o0);
                return o1.fill(0);
            }
            (None, Lane::D, false) => {
                mau::d_add(x, z0, self.negate, o0);
                return o1.fill(0);
            }
            _ => {}
        }
        let y = match row(self.y) {
            Some(y) => y,
            None => {
                ones.fill(self.one);
                &*ones
            }
        };
        let (neg, omit) = (self.negate, self.omitted);
        match (self.lane, self.reduced) {
            (Lane::H, false) => return mau::h_fma(x, y, z0, z1, neg, o0, o1),
            (Lane::H, true) => mau::h_fma_r(x, y, z0, z1, neg, o0),
            (Lane::F, false) => mau::f_fma(x, y, z0, neg, omit, o0),
            (Lane::F, true) => mau::f_fma_r(x, y, z0, neg, omit, o0),
            (_, false) => mau::d_fma(x, y, z0, neg, omit, o0),
            (_, true) => mau::d_fma_r(x, y, z0, neg, omit, o0),
        }
        // guess: the second long word of a one-long-word result is 0.
        o1.fill(0);
    }
}

/// The state before the step, and a row of zeros as long as its rows.
#[derive(Clone, Copy)]
pub(super) struct Rows<'a> {
    pub(super) l1b: &'a L1b,
    pub(super) zeros: &'a [u64],
}

impl Compute {
    /// Makes what is derived from the state and kept there.
    pub(super) fn prepare(&self, l1b: &mut L1b, lanes: usize) {
        if let Compute::Mau(MauOp { matrix: Some(product), .. }) = self {
            product.prepare(l1b, lanes);
        }
    }

    /// Result path of cycle `c` into `out` (two rows); `tmp` holds two rows.
    pub(super) fn run(&self, sources: &[Path<'_>], rows: Rows<'_>, c: usize, tmp: &mut [u64], out: &mut [u64]) {
        let zeros = rows.zeros;
        let lanes = zeros.len();
        let source = |at: usize| sources.get(at).copied().unwrap_or((zeros, zeros));
        match self {
            Compute::Alu { kernel, params, path } => {
                let (x, y) = (source(0), source(1));
                let (o0, o1) = out.split_at_mut(lanes);
                kernel.run(params, x.0, y.0, o0);
                if *path {
                    kernel.run(params, x.1, y.1, o1);
                } else {
                    o1.copy_from_slice(x.1);
                }
            }
            Compute::Constant(word) => out.fill(*word),
            Compute::Rotate { distance, pes } => {
                let (x0, x1) = source(0);
                let (o0, o1) = out.split_at_mut(lanes);
                for (out, x) in o0.chunks_exact_mut(*pes).zip(x0.chunks_exact(*pes)) {
                    for (pe, out) in out.iter_mut().enumerate() {
                        *out = x[(pe + distance) % pes];
                    }
                }
                o1.copy_from_slice(x1);
            }
            Compute::Block { kernel, path } => {
                let (x0, x1) = source(0);
                let (o0, o1) = out.split_at_mut(lanes);
                kernel.run(x0, o0);
                if *path {
                    kernel.run(x1, o1);
                } else {
                    o1.copy_from_slice(x1);
                }
            }
            Compute::Mau(op) => op.run(sources, rows, tmp, out),
            Compute::Store(_) | Compute::Reduce { .. } | Compute::MatrixWrite(_) => {
                let (l0, l1) = source(0);
                out[..lanes].copy_from_slice(l0);
                out[lanes..].copy_from_slice(l1);
            }
            Compute::MatrixRead(access) => access.columns(rows.l1b, c, lanes, out),
            Compute::Load { slot, address, runs } => load(&rows.l1b.own[*slot], *address, runs, c, out),
        }
    }
}

/// The words that an L1BM instruction brings to the PEs in cycle `c`.
fn load(memory: &[u64], address: u64, runs: &[PeRun], c: usize, out: &mut [u64]) {
    out.fill(0);
    let (first, last) = (c * out.len(), (c + 1) * out.len());
    // Runs go through the path of all cycles; the part of this one is cut out.
    for run in runs.iter().filter(|r| r.path < last && r.path + r.length > first) {
        let (from, to) = (run.path.max(first), (run.path + run.length).min(last));
        let target = &mut out[from - first..to - first];
        if run.broadcast {
            target.fill(memory[((address + run.offset) % memory.len() as u64) as usize]);
        } else {
            let start = address + run.offset + (from - run.path) as u64;
            super::maps::wrapped(start, to - from, memory.len(), |at, to, n| {
                target[to..to + n].copy_from_slice(&memory[at..at + n]);
            });
        }
    }
}

//! What an instruction of a PE line computes: one call on whole rows, of one cycle or of all of them.

use super::maps::{inside, part, repeat, write_wrapped, Meeting, PeRun, Reduce, RepeatedRows};
use super::matrix::{MatrixAccess, Product};
use super::operand::Path;
use crate::error::{Code, Error};
use crate::machine::{Decoded, L1b, Out, Words};
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
    Load(Load),
    /// PE to L1BM; the source path is the result.
    Store(Sent<Arc<[PeRun]>>),
    /// PE to L1BM through the reduction network; the source path is the result.
    Reduce { sent: Sent<()>, kernel: ReduceKernel, meeting: Arc<Meeting> },
    /// Rows of a matrix register; the source path is the result.
    MatrixWrite(MatrixAccess),
    /// Columns of a matrix register.
    MatrixRead(MatrixAccess),
}

/// Words that an L1BM instruction brings to the PEs.
#[derive(Clone, Debug)]
pub(super) struct Load {
    pub(super) place: OwnPlace,
    pub(super) runs: Arc<[PeRun]>,
    /// Long words of the path that they fill.
    pub(super) words: usize,
    /// The same as rows that begin with the path, if they are alike.
    pub(super) rows: Option<RepeatedRows>,
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
    multipliers: [bool; MAB_PES],
    /// The other PEs multiply after that, with the result as their addend.
    both: bool,
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
        let (negate, reduced) =
            (MauNeg { x: negated(MauPort::X), y: negated(MauPort::Y), z: negated(MauPort::Z) }, form.reduced);
        let (pes, lanes, pseudo) = (spec.counts.pe as usize, spec.lanes(), letter.pseudo);
        let multipliers = std::array::from_fn(|pe| match form.half {
            None => true,
            Some(Half::Upper) => pe < pes / 2,
            Some(Half::Lower) => pe >= pes / 2,
        });
        let product =
            |slot| Product { slot, lane, pseudo, omitted, ignored, reduced, negate, active: multipliers, lanes };
        Ok(MauOp {
            lane,
            reduced,
            omitted,
            negate,
            x: port(MauPort::X),
            y: port(MauPort::Y),
            z: port(MauPort::Z),
            active: form.half,
            multipliers,
            both: false,
            one: (0..lane.count() as u32).fold(0, |row, k| row | one << (k * lane.width())),
            matrix: form.matrix.map(product),
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

    /// Both halves of a MAB in one, if `next` is the other half on the same values; `same` says whether two ports have them. The
    /// result of `self` must be the addend of `next`.
    pub(super) fn with_other_half(&self, next: &MauOp, same: impl Fn(usize, usize) -> bool) -> Option<MauOp> {
        let halves = matches!((self.active, next.active), (Some(ours), Some(theirs)) if ours != theirs);
        let alike = self.lane == Lane::D && next.lane == Lane::D && self.omitted == next.omitted;
        let plain = |op: &MauOp| !op.reduced && op.matrix.is_none() && !op.both;
        // A sign of the product may stand at either factor.
        let sign = |op: &MauOp| op.negate.x ^ op.negate.y;
        let (Some(x), Some(y), Some(next_x), Some(next_y)) = (self.x, self.y, next.x, next.y) else { return None };
        let factors = same(x, next_x) && same(y, next_y) && sign(self) == sign(next);
        let fits = halves && alike && plain(self) && plain(next) && factors && !next.negate.z;
        fits.then(|| MauOp { both: true, ..self.clone() })
    }

    /// Index of the source that is added.
    pub(super) fn addend(&self) -> Option<usize> {
        self.z
    }

    /// Whether it reads and gives one long word of a path.
    pub(super) fn one_long_word(&self) -> bool {
        self.lane != Lane::H
    }

    /// Whether L1 of the result is always zero.
    ///
    /// guess: the second long word of a one-long-word result is 0.
    fn narrow(&self) -> bool {
        (self.lane, self.reduced) != (Lane::H, false)
    }

    /// Indices of the sources that are the first factor and the addend.
    pub(super) fn vector_and_addend(&self) -> [Option<usize>; 2] {
        [self.x, self.z]
    }

    fn run(&self, sources: &[Path<'_>], rows: Rows<'_>, tmp: &mut [u64], out: Out<'_>) {
        let zeros = rows.zeros;
        let length = zeros.len();
        let (first, spare) = tmp.split_at_mut(length);
        let mut x = self.x.map_or(zeros, |at| sources[at].0);
        let (z0, z1) = self.z.map_or((zeros, zeros), |at| sources[at]);
        let o0 = out.l0;
        if let Some(product) = &self.matrix {
            let o1 = out.l1.unwrap_or(&mut spare[..length]);
            return product.run(rows.decoded, &mut product.cycles(x, (z0, z1), [o0, o1]));
        }
        // Sums of singles and doubles need no multiplier.
        match (self.y, self.active, self.lane, self.reduced) {
            (None, None, Lane::F, false) => return mau::f_add(x, z0, self.negate, o0),
            (None, None, Lane::D, false) => return mau::d_add(x, z0, self.negate, o0),
            _ => {}
        }
        if self.active.is_some() && self.reduced {
            // A PE that does not multiply has the product 0: its first factor is 0.
            let kept = self.multipliers.map(|active| if active { u64::MAX } else { 0 });
            for (to, from) in first.chunks_exact_mut(MAB_PES).zip(x.chunks_exact(MAB_PES)) {
                for (pe, to) in to.iter_mut().enumerate() {
                    *to = from[pe] & kept[pe];
                }
            }
            x = first;
        }
        let (second, spare) = spare.split_at_mut(length);
        let y = match self.y {
            Some(at) => sources[at].0,
            None => {
                second.fill(self.one);
                &*second
            }
        };
        let (neg, omit) = (self.negate, self.omitted);
        match (self.lane, self.reduced) {
            (Lane::H, false) => mau::h_fma(x, y, z0, z1, neg, o0, out.l1.unwrap_or(&mut spare[..length])),
            (Lane::H, true) => mau::h_fma_r(x, y, z0, z1, neg, o0),
            (Lane::F, false) => mau::f_fma(x, y, z0, neg, omit, o0),
            (Lane::F, true) => mau::f_fma_r(x, y, z0, neg, omit, o0),
            (_, false) if self.both => mau::d_fma_both(x, y, z0, neg, self.multipliers, omit, o0),
            (_, false) => mau::d_fma(x, y, z0, neg, self.multipliers, omit, o0),
            (_, true) => mau::d_fma_r(x, y, z0, neg, omit, o0),
        }
    }
}

/// Planes of temporary rows that a call needs.
pub(super) const SPARE_PLANES: usize = 3;

/// The matrix registers before the step, as they lie in the PE memories and decoded, and a row of zeros as long as the rows of
/// a call.
#[derive(Clone, Copy)]
pub(super) struct Rows<'a> {
    pub(super) pe: &'a [Words],
    pub(super) decoded: &'a [Option<Decoded>],
    pub(super) zeros: &'a [u64],
}

impl<'a> Rows<'a> {
    pub(super) fn of(l1b: &'a L1b, zeros: &'a [u64]) -> Rows<'a> {
        Rows { pe: &l1b.pe, decoded: &l1b.decoded, zeros }
    }
}

/// What is known of the second long word of a result.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Second {
    Zero,
    Any,
    /// It is that of the first source.
    Source,
}

impl Compute {
    /// Makes what is derived from the state and kept there.
    pub(super) fn prepare(&self, l1b: &mut L1b, lanes: usize) {
        if let Some((_, product)) = self.product() {
            product.prepare(l1b, lanes);
        }
    }

    /// What is known of L1 of the result; `plane`: long words of L0.
    pub(super) fn second(&self, plane: usize) -> Second {
        let zero = |zero: bool| if zero { Second::Zero } else { Second::Any };
        match self {
            Compute::Alu { path: true, .. } | Compute::Block { path: true, .. } => Second::Any,
            Compute::Alu { .. } | Compute::Block { .. } | Compute::Rotate { .. } => Second::Source,
            Compute::Store(_) | Compute::Reduce { .. } | Compute::MatrixWrite(_) => Second::Source,
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

    /// The matrix product that it is: those take all cycles at once, wherever the rows lie.
    pub(super) fn product(&self) -> Option<(&MauOp, &Product)> {
        match self {
            Compute::Mau(op) => Some((op, op.matrix.as_ref()?)),
            _ => None,
        }
    }

    /// Whether nothing but L0 of its sources counts, and L1 of its result is zero.
    pub(super) fn reads_l0(&self) -> bool {
        matches!(self, Compute::Mau(op) if op.one_long_word())
    }

    /// Slots of the memories of the L1B that it reads and writes, as bits.
    pub(super) fn own_slots(&self) -> (u64, u64) {
        let place = |place: &OwnPlace| 1 << place.slot;
        match self {
            Compute::Load(load) => (place(&load.place), 0),
            Compute::Store(sent) => (0, sent.places(true).fold(0, |all, (to, _)| all | place(to))),
            Compute::Reduce { sent, .. } => (0, sent.places(true).fold(0, |all, (to, ())| all | place(to))),
            _ => (0, 0),
        }
    }

    /// Of the words that it leaves in the turnaround register: the end of the last one, and how many follow each other from
    /// the first word of the register on.
    pub(super) fn kept(&self) -> (usize, usize) {
        let (end, words) = match self {
            Compute::Store(Sent { kept: (place, runs), .. }) => {
                let ends = runs.iter().map(|run| (place.address + run.offset) as usize + run.length);
                (ends.max().unwrap_or(0), runs.iter().map(|run| run.length).sum())
            }
            Compute::Reduce { sent: Sent { kept: (place, ()), .. }, meeting, .. } => {
                let words = if meeting.narrow { meeting.results / 2 } else { meeting.results };
                (place.address as usize + words, words)
            }
            _ => (0, 0),
        };
        // No word is sent twice, so that they follow each other if there are as many.
        (end, if words == end { end } else { 0 })
    }

    /// Whether it sends what the PEs hold to L1BM.
    pub(super) fn sends(&self) -> bool {
        matches!(self, Compute::Store(_) | Compute::Reduce { .. })
    }

    /// Whether it reads or writes memories of the L1B.
    pub(super) fn in_l1bm(&self) -> bool {
        self.sends() || matches!(self, Compute::Load(_))
    }

    /// Sends a path to L1BM, and to the turnaround register if `keep`.
    pub(super) fn send(&self, path: Path<'_>, keep: bool, own: &mut [Words], reduce: &mut Reduce) {
        match self {
            Compute::Store(sent) => {
                for (place, runs) in sent.places(keep) {
                    for run in runs.iter() {
                        let words = part(path, run.path, run.length);
                        write_wrapped(&mut own[place.slot], place.address + run.offset, words);
                    }
                }
            }
            Compute::Reduce { sent, kernel, meeting } => {
                meeting.reduce(*kernel, path, reduce);
                for (place, ()) in sent.places(keep) {
                    write_wrapped(&mut own[place.slot], place.address, &reduce.out);
                }
            }
            _ => {}
        }
    }

    /// Result of the rows from cycle `c` on into `out`; `tmp` holds [`SPARE_PLANES`] times as many rows. Not for
    /// [`Compute::Load`], which has no rows to compute from.
    pub(super) fn run(&self, sources: &[Path<'_>], rows: Rows<'_>, c: usize, tmp: &mut [u64], out: Out<'_>) {
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

impl Load {
    /// The words of all cycles.
    pub(super) fn run(&self, own: &[Words], out: Out<'_>) {
        let memory = &own[self.place.slot];
        let Out { l0, l1 } = out;
        let plane = l0.len();
        let mut planes = [Some(l0), l1];
        if self.words < planes.iter().flatten().count() * plane {
            planes.iter_mut().flatten().for_each(|l| l.fill(0));
        }
        if let (Some(rows), Some(first), true) = (&self.rows, planes[0].as_deref_mut(), self.words <= plane) {
            let start = inside(self.place.address + rows.offset, memory.len());
            if let Some(words) = memory.get(start..start + rows.words) {
                return repeat(words, rows.period, rows.length, &mut first[..self.words]);
            }
        }
        for run in self.runs.iter() {
            // No run of words reaches from one plane into the other one, see `pe_runs`.
            let (half, first) = (run.path / plane, run.path % plane);
            if let Some(Some(rows)) = planes.get_mut(half) {
                run.bring(memory, self.place.address, &mut rows[first..first + run.length]);
            }
        }
    }
}

//! MAU operations: multiply-adds of rows, and matrix products.

pub(super) mod validity;

use super::matrix::{MatrixRegisters, Product};
use crate::error::{Code, Error};
use crate::machine::{Out, Path};
use crate::num::lane::Lane;
use crate::num::mau::{self, MauNeg, MauOutput};
use crate::num::MAB_PES;
use crate::spec::{DataWidth, Half, MauPort, Spec};

/// Planes of temporary rows that a call needs.
pub(super) const SPARE_PLANES: usize = 3;

/// A MAU operation, `x*y + z` or `A*x + z`. Ports without a source get their default.
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
    /// The other PEs multiply after that, with this result as their addend.
    both: bool,
    /// The number 1 in every lane.
    one: u64,
    pub(super) matrix: Option<Product>,
}

/// The parts of a MAU operation that the mnemonic and the operands state.
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
    /// Finds the kernel.
    ///
    /// # Errors
    /// [`Code::NoKernel`] if there is none.
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
        // Kernels of half precision take and give singles on the whole path. The others work on lanes of L0.
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

    /// How the result is arranged on the path.
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

    /// Joins the two halves of a MAB to one operation, if `next` is the other half on the same values. `same` says whether
    /// two sources hold the same value. The result of `self` must be the addend of `next`.
    pub(super) fn with_other_half(&self, next: &MauOp, same: impl Fn(usize, usize) -> bool) -> Option<MauOp> {
        let halves = matches!((self.active, next.active), (Some(ours), Some(theirs)) if ours != theirs);
        let alike = self.lane == Lane::D && next.lane == Lane::D && self.omitted == next.omitted;
        let plain = |op: &MauOp| !op.reduced && op.matrix.is_none() && !op.both;
        // A negated product is the same with the sign at either factor.
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

    /// Indices of the sources that are the factors and the addend.
    pub(super) fn ports(&self) -> [Option<usize>; 3] {
        [self.x, self.y, self.z]
    }

    /// Whether PE `pe` of a MAB multiplies.
    pub(super) fn multiplies(&self, pe: usize) -> bool {
        self.multipliers[pe] || self.both
    }

    /// Type of the lanes of the factors.
    pub(super) fn lane(&self) -> Lane {
        self.lane
    }

    /// Whether the operation reads and gives one long word of a path.
    pub(super) fn one_long_word(&self) -> bool {
        self.lane != Lane::H
    }

    /// Whether L1 of the result is always zero.
    ///
    /// guess: the second long word of a one-long-word result is 0.
    pub(super) fn narrow(&self) -> bool {
        (self.lane, self.reduced) != (Lane::H, false)
    }

    /// Indices of the sources that are the first factor and the addend.
    pub(super) fn vector_and_addend(&self) -> [Option<usize>; 2] {
        [self.x, self.z]
    }

    pub(super) fn run(&self, sources: &[Path<'_>], rows: MatrixRegisters<'_>, tmp: &mut [u64], out: Out<'_>) {
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
            // A PE that does not multiply must have the product 0, so its first factor is set to 0.
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

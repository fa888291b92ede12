//! Matrix registers: writing rows, reading columns, products with vectors.

use crate::machine::{Decoded, L1b, Out, Path, Words};
use crate::num::lane::Lane;
use crate::num::matvec::{self, Cycle, DMatrix, FMatrix, GMatrix, HMatrix};
use crate::num::mau::MauNeg;
use crate::num::MAB_PES;
use smallvec::SmallVec;

/// A lowered access to rows or columns of a matrix register.
#[derive(Clone, Copy, Debug)]
pub(super) struct MatrixAccess {
    /// Slot of the register among the PE memories.
    pub(super) slot: usize,
    /// First row or column, and how many the register has in this precision.
    pub(super) first: usize,
    pub(super) rows: usize,
    /// Two rows or columns in a cycle.
    pub(super) wide: bool,
    /// Lanes of a long word.
    pub(super) elements: usize,
    /// Flips the sign of every lane that is written.
    pub(super) signs: u64,
}

impl MatrixAccess {
    /// The row or column of cycle `c` and long word `half`.
    fn at(&self, c: usize, half: usize) -> usize {
        let step = if self.wide { 2 } else { 1 };
        (self.first + step * c + half) % self.rows
    }

    /// Long words in a cycle.
    pub(super) fn halves(&self) -> usize {
        if self.wide {
            2
        } else {
            1
        }
    }

    /// Stores a path as rows.
    pub(super) fn store(&self, l1b: &mut L1b, lanes: usize, path: Path<'_>) {
        l1b.drop_decoded(self.slot);
        let register = &mut l1b.pe[self.slot];
        let rows = path.0.chunks_exact(lanes).zip(path.1.chunks_exact(lanes));
        for (c, (l0, l1)) in rows.enumerate() {
            for (half, from) in [l0, l1].into_iter().enumerate().take(self.halves()) {
                let row = self.at(c, half) * lanes;
                for (to, from) in register[row..row + lanes].iter_mut().zip(from) {
                    *to = from ^ self.signs;
                }
            }
        }
    }

    /// Writes the columns of cycle `c` to a path: lane k of PE p is element (n*p + k, column), with n lanes in a long word.
    ///
    /// guess: the second long word of a narrow read is 0.
    pub(super) fn columns(&self, pe: &[Words], c: usize, out: Out<'_>) {
        let lanes = out.l0.len();
        let register = &pe[self.slot];
        let width = u64::BITS as usize / self.elements;
        let mask = u64::MAX >> (u64::BITS as usize - width);
        for (half, out) in std::iter::once(out.l0).chain(out.l1).enumerate() {
            let column = self.at(c, half);
            let (pe, element) = (column / self.elements, column % self.elements);
            let shift = |k: usize| (self.elements - 1 - k) * width;
            for (lane, out) in out.iter_mut().enumerate() {
                let (mab, p) = (lane - lane % MAB_PES, lane % MAB_PES);
                *out = 0;
                for k in 0..self.elements {
                    let row = self.elements * p + k;
                    let word = register[row * lanes + mab + pe];
                    *out |= ((word >> shift(element)) & mask) << shift(k);
                }
            }
        }
    }
}

/// The matrix registers before the step, both raw in the PE memories and decoded, and a row of zeros as long as the rows of
/// a call.
#[derive(Clone, Copy)]
pub(super) struct MatrixRegisters<'a> {
    pub(super) pe: &'a [Words],
    pub(super) decoded: &'a [Option<Decoded>],
    pub(super) zeros: &'a [u64],
}

impl<'a> MatrixRegisters<'a> {
    pub(super) fn of(l1b: &'a L1b, zeros: &'a [u64]) -> MatrixRegisters<'a> {
        MatrixRegisters { pe: &l1b.pe, decoded: &l1b.decoded, zeros }
    }
}

/// A lowered matrix-vector product.
#[derive(Clone, Copy, Debug)]
pub(super) struct Product {
    /// Slot of the matrix register among the PE memories.
    pub(super) slot: usize,
    pub(super) lane: Lane,
    pub(super) pseudo: bool,
    pub(super) omitted: u32,
    pub(super) ignored: u32,
    pub(super) reduced: bool,
    pub(super) negate: MauNeg,
    /// PEs of a MAB that multiply.
    pub(super) active: [bool; MAB_PES],
    /// Long words in a row.
    pub(super) lanes: usize,
}

/// The rows of the cycles of a step.
pub(super) type Cycles<'a> = SmallVec<[Cycle<'a>; 4]>;

impl Product {
    /// Decodes the matrix register for this precision, unless it is decoded already.
    pub(super) fn prepare(&self, l1b: &mut L1b, lanes: usize) {
        let fits = matches!(
            (&l1b.decoded[self.slot], self.lane, self.pseudo),
            (Some(Decoded::D(_)), Lane::D, _)
                | (Some(Decoded::F(_)), Lane::F, false)
                | (Some(Decoded::G(_)), Lane::F, true)
                | (Some(Decoded::H(_)), Lane::H, _)
        );
        if fits {
            return;
        }
        let dropped = l1b.dropped[self.slot].take();
        let register = &l1b.pe[self.slot];
        let word = |mab: usize, row: usize, pe: usize| register[row * lanes + mab * MAB_PES + pe];
        let mabs = 0..lanes / MAB_PES;
        let single = |mab: usize| -> [[u32; 2 * MAB_PES]; 2 * MAB_PES] {
            std::array::from_fn(|row| {
                std::array::from_fn(|col| (word(mab, row, col / 2) >> (32 - 32 * (col % 2))) as u32)
            })
        };
        l1b.decoded[self.slot] = Some(match (self.lane, self.pseudo) {
            (Lane::H, _) => {
                let mut matrices = if let Some(Decoded::H(used)) = dropped { used } else { Vec::new() };
                HMatrix::decode_into(register, mabs.len(), &mut matrices);
                Decoded::H(matrices)
            }
            (Lane::F, false) => Decoded::F(mabs.map(|mab| FMatrix::decode(&single(mab), self.omitted)).collect()),
            (Lane::F, true) => Decoded::G(mabs.map(|mab| GMatrix::decode(&single(mab), self.ignored)).collect()),
            _ => Decoded::D(
                mabs.map(|mab| {
                    let rows = std::array::from_fn(|row| std::array::from_fn(|pe| word(mab, row, pe)));
                    DMatrix::decode(&rows, self.omitted)
                })
                .collect(),
            ),
        });
    }

    /// Splits contiguous rows into the cycles of a step.
    pub(super) fn cycles<'a>(&self, x: &'a [u64], z: Path<'a>, out: [&'a mut [u64]; 2]) -> Cycles<'a> {
        let [o0, o1] = out.map(|out| out.chunks_exact_mut(self.lanes));
        let z = z.0.chunks_exact(self.lanes).zip(z.1.chunks_exact(self.lanes));
        let rows = x.chunks_exact(self.lanes).zip(z).zip(o0.zip(o1));
        rows.map(|((x, (z0, z1)), (o0, o1))| Cycle { x, z: [z0, z1], out: [o0, o1] }).collect()
    }

    /// Whether there is a kernel that adds to its destination.
    pub(super) fn adds_in_place(&self) -> bool {
        self.lane == Lane::H && !self.reduced
    }

    /// `A*x + z`, where z lies in the rows of the results. Call it only if [`Product::adds_in_place`].
    pub(super) fn run_onto(&self, decoded: &[Option<Decoded>], cycles: &mut [Cycle<'_>]) {
        if let Some(Decoded::H(a)) = &decoded[self.slot] {
            matvec::h_mfma_onto(a, cycles, self.negate);
        }
    }

    /// `A*x + z`.
    pub(super) fn run(&self, decoded: &[Option<Decoded>], cycles: &mut [Cycle<'_>]) {
        let (neg, active) = (self.negate, self.active);
        match (&decoded[self.slot], self.reduced) {
            (Some(Decoded::H(a)), false) => matvec::h_mfma(a, cycles, neg),
            (Some(Decoded::H(a)), true) => matvec::h_mfma_r(a, cycles, neg),
            (Some(Decoded::F(a)), false) => matvec::f_mfma(a, cycles, neg),
            (Some(Decoded::F(a)), true) => matvec::f_mfma_r(a, cycles, neg),
            (Some(Decoded::G(a)), false) => matvec::g_mfma(a, cycles, neg),
            (Some(Decoded::G(a)), true) => matvec::g_mfma_r(a, cycles, neg),
            (Some(Decoded::D(a)), false) => matvec::d_mfma(a, cycles, neg, active),
            (Some(Decoded::D(a)), true) => matvec::d_mfma_r(a, cycles, neg, active),
            // `prepare` has run for every product of the step.
            (None, _) => {}
        }
    }
}

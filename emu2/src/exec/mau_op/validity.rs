//! The validity of results of MAU operations.

use super::MauOp;
use crate::exec::access::UPPER;
use crate::exec::source::Conversion;
use crate::exec::validity::{converted, whole_lanes, VALID};
use crate::machine::{Path, Words};
use crate::num::lane::Lane;
use crate::num::MAB_PES;

impl MauOp {
    /// Rows of the matrix register that a product reads.
    pub(in crate::exec) fn register_rows(&self) -> usize {
        self.lane.count() * MAB_PES
    }

    /// The validity of the result of a cycle. `sources` are the validities of the sources, `pe` those of the PE memories.
    pub(in crate::exec) fn validity(&self, sources: &[Path<'_>], pe: &[Words], out: [&mut [u64]; 2]) {
        let [o0, o1] = out;
        let lanes = o0.len();
        let word =
            |at: Option<usize>, lane: usize| at.map_or((VALID, VALID), |at| (sources[at].0[lane], sources[at].1[lane]));
        for lane in 0..lanes {
            let product = match &self.matrix {
                Some(product) => {
                    let mab = lane - lane % MAB_PES;
                    let register = &pe[product.slot];
                    let row = |row: usize| register[row * lanes + mab..][..MAB_PES].iter().all(|word| *word == VALID);
                    let vector =
                        (0..MAB_PES).filter(|pe| self.multipliers[*pe]).all(|pe| word(self.x, mab + pe).0 == VALID);
                    // Element k of PE p is the product of the vector and row `count * p + k` alone.
                    let (count, pe) = (self.lane.count(), lane % MAB_PES);
                    let element = VALID >> (VALID.count_ones() - self.lane.width());
                    let rows = (0..count).filter(|k| row(count * pe + k));
                    if !vector {
                        0
                    } else {
                        rows.fold(0, |bits, k| bits | element << (self.lane.width() as usize * (count - 1 - k)))
                    }
                }
                // A PE that does not multiply has the product 0.
                None if !self.multipliers[lane % MAB_PES] && !self.both => VALID,
                None => whole_lanes(word(self.x, lane).0 & word(self.y, lane).0, self.lane),
            };
            (o0[lane], o1[lane]) = self.sum(product, word(self.z, lane));
        }
    }

    /// The validity of a sum, in the form of the result.
    fn sum(&self, product: u64, (z0, z1): (u64, u64)) -> (u64, u64) {
        match (self.lane, self.reduced) {
            (Lane::H, reduced) => {
                let (p0, p1) = converted(Some(Conversion::ExtendHalves), product, VALID);
                let (s0, s1) = (p0 & whole_lanes(z0, Lane::F), p1 & whole_lanes(z1, Lane::F));
                converted(reduced.then_some(Conversion::ReduceSingles), s0, s1)
            }
            (Lane::F, false) => (whole_lanes(product & z0, Lane::F), VALID),
            (Lane::F, true) => {
                let singles = whole_lanes(product & z0, Lane::F);
                // The two results are in the upper word.
                (converted(Some(Conversion::ReduceSingles), singles, VALID).0 | !UPPER, VALID)
            }
            (_, false) => (whole_lanes(product & z0, Lane::D), VALID),
            (_, true) => (whole_lanes(product & z0, Lane::D) | !UPPER, VALID),
        }
    }
}

//! Values that leave their format: finite values that give an infinity, and products of values other than zero that are
//! zero.

use super::finding::{Case, Findings, Key, What, Word};
use super::observed::PLAIN;
use crate::exec::compute::Compute;
use crate::exec::mau_op::MauOp;
use crate::exec::op::{Op, Outcome, Step, MAX_SOURCES};
use crate::exec::source::Fetch;
use crate::machine::{L1b, Path};
use crate::num::lane::Lane;
use crate::num::level::kernel;
use crate::num::mau::MauOutput;
use crate::num::MAB_PES;
use crate::spec::LevelName;

/// The bits that are all ones in an infinity, for each lane of the result: in L0, in L1. Empty lanes have none.
fn exponents(output: MauOutput) -> [&'static [u64]; 2] {
    const fn mask(lane: Lane, shift: u32) -> u64 {
        match lane.format() {
            Some(format) => format.exp_mask() << shift,
            None => 0,
        }
    }
    const D: &[u64] = &[mask(Lane::D, 0)];
    const F: &[u64] = &[mask(Lane::F, 32), mask(Lane::F, 0)];
    const H: &[u64] = &[mask(Lane::H, 48), mask(Lane::H, 32), mask(Lane::H, 16), mask(Lane::H, 0)];
    const DR: &[u64] = F.split_at(1).0;
    const FR: &[u64] = H.split_at(2).0;
    match output {
        MauOutput::D => [D, &[]],
        MauOutput::F => [F, &[]],
        MauOutput::H => [F, F],
        MauOutput::DReduced => [DR, &[]],
        MauOutput::FReduced => [FR, &[]],
        MauOutput::HReduced => [H, &[]],
    }
}

fn lanes_of(lane: Lane) -> &'static [u64] {
    exponents(match lane {
        Lane::H => MauOutput::HReduced,
        Lane::F => MauOutput::F,
        _ => MauOutput::D,
    })[0]
}

/// Whether a lane of the row has all bits of its mask equal to those of `wanted`.
#[inline(always)]
fn any_lane<T: Copy + Default + PartialEq + std::ops::BitAnd<Output = T>>(row: &[T], mask: T, wanted: T) -> bool {
    row.iter().fold(false, |any, lane| any | (*lane & mask == wanted))
}

kernel! {
    /// Says in `found` whether a lane of the row is infinite, or zero if `zero`. `masks`: the exponents of the lanes of a
    /// long word.
    fn look_at(row: &[u64], masks: &[u64], zero: bool, found: &mut bool) {
        let wanted = |mask: u64| if zero { 0 } else { mask };
        *found |= match masks {
            [one] => any_lane(row, *one, wanted(*one)),
            [upper, lower] if *upper == lower << 32 => {
                any_lane(bytemuck::cast_slice::<u64, u32>(row), *lower as u32, wanted(*lower) as u32)
            }
            [_, _, _, last] => any_lane(bytemuck::cast_slice::<u64, u16>(row), *last as u16, wanted(*last) as u16),
            others => others.iter().any(|mask| any_lane(row, *mask, wanted(*mask))),
        };
    }
}

/// Whether a lane of the result is zero although the same lanes of both factors are not.
#[inline(always)]
fn any_lost_lane<T: Copy + Default + PartialEq + std::ops::BitAnd<Output = T>>(rows: [&[T]; 3], mask: T) -> bool {
    let zero = |lane: T| lane & mask == T::default();
    let [x, y, result] = rows;
    let lanes = x.iter().zip(y).zip(result);
    lanes.fold(false, |any, ((x, y), result)| any | (!zero(*x) & !zero(*y) & zero(*result)))
}

kernel! {
    /// Says in `found` whether a product of values other than zero is zero. `rows`: both factors and the result.
    fn look_for_lost(rows: [&[u64]; 3], masks: &[u64], found: &mut bool) {
        *found |= match masks {
            [upper, lower] if *upper == lower << 32 => {
                any_lost_lane(rows.map(bytemuck::cast_slice::<u64, u32>), *lower as u32)
            }
            [_, _, _, last] => any_lost_lane(rows.map(bytemuck::cast_slice::<u64, u16>), *last as u16),
            others => others.iter().any(|mask| any_lost_lane(rows, *mask)),
        };
    }
}

fn any_infinite(row: &[u64], masks: &[u64]) -> bool {
    let mut found = false;
    look_at(row, masks, false, &mut found);
    found
}

fn any_zero(row: &[u64], masks: &[u64]) -> bool {
    let mut found = false;
    look_at(row, masks, true, &mut found);
    found
}

fn infinite(word: u64, masks: &[u64]) -> bool {
    masks.iter().any(|mask| word & mask == *mask)
}

/// Whether the result of a PE is wrong, from the sources, the result and the lane.
type Test<'t> = dyn Fn(&[Path<'_>], (u64, u64), usize) -> bool + 't;

/// Whether the result of some PE of a cycle may be wrong, from the sources and the result.
type Suspicion<'t> = dyn Fn(&[Path<'_>], Path<'_>) -> bool + 't;

/// Looks at the results of a step, before they are written.
pub(super) struct Ranges<'a> {
    pub(super) index: usize,
    pub(super) line: u32,
    pub(super) lanes: usize,
    pub(super) cycles: usize,
    pub(super) fetch: &'a mut [Fetch; MAX_SOURCES],
    pub(super) zeros: &'a [u64],
    pub(super) findings: &'a mut Findings,
}

impl<'a> Ranges<'a> {
    /// `l1b` is the state before the writes.
    pub(super) fn look(&mut self, step: &Step, l1b: &L1b, results: &[Outcome]) {
        for (op, outcome) in step.ops.iter().zip(results) {
            if let Compute::Mau(mau) = &op.compute {
                let result = if outcome.done { self.written(op, l1b) } else { Some(outcome.path.planes()) };
                let Some(result) = result else { continue };
                let [m0, m1] = exponents(mau.output());
                if any_infinite(result.0, m0) || any_infinite(result.1, m1) {
                    self.each(op, l1b, result, What::Overflow, &|_, _| true, &|sources, (l0, l1), lane| {
                        (infinite(l0, m0) || infinite(l1, m1)) && !has_infinity(mau, l1b, sources, lane)
                    });
                }
                if let ([Some(x), Some(y), None], None) = (mau.ports(), &mau.matrix) {
                    self.products(op, mau, (x, y), l1b, result);
                }
            }
        }
    }

    /// The result of an instruction that has already written its destination, in contiguous rows. None if never read.
    fn written<'m>(&self, op: &Op, l1b: &'m L1b) -> Option<Path<'m>>
    where
        'a: 'm,
    {
        let access = &op.writes.first()?.access;
        let plane = self.lanes * self.cycles;
        let first = access.contiguous().then(|| access.row(0) * self.lanes)?;
        Some((&l1b.pe[access.slot][first..first + plane], self.zeros))
    }

    /// Looks for products that are zero although no factor is.
    fn products(&mut self, op: &Op, mau: &MauOp, (x, y): (usize, usize), l1b: &L1b, result: Path<'_>) {
        let factors = lanes_of(mau.lane());
        let [m0, m1] = exponents(mau.output());
        let results = [m0, m1].concat();
        if results.len() != factors.len() || !(any_zero(result.0, m0) || any_zero(result.1, m1)) {
            return;
        }
        // Padding is zero in most programs, so the lanes of a cycle are looked at together first.
        let suspicion = |sources: &[Path<'_>], (l0, _): Path<'_>| {
            // Results in another format than the factors are rare.
            let mut found = m0 != factors;
            look_for_lost([sources[x].0, sources[y].0, l0], factors, &mut found);
            found
        };
        self.each(op, l1b, result, What::Underflow, &suspicion, &|sources, (l0, l1), lane| {
            let (x, y) = (sources[x].0[lane], sources[y].0[lane]);
            let zero = |k: usize| if k < m0.len() { l0 & m0[k] == 0 } else { l1 & m1[k - m0.len()] == 0 };
            let multiplies = mau.multiplies(lane % MAB_PES);
            multiplies && (0..results.len()).any(|k| x & factors[k] != 0 && y & factors[k] != 0 && zero(k))
        });
    }

    /// Adds a finding for the PEs of which `bad` is true. It gets the sources, the result and the lane, and is asked only
    /// in cycles for which there is a suspicion.
    fn each(&mut self, op: &Op, l1b: &L1b, result: Path<'_>, what: What, suspicion: &Suspicion<'_>, bad: &Test<'_>) {
        let lanes = self.lanes;
        let zeros = &self.zeros[..lanes];
        for c in 0..self.cycles {
            let mut sources: [Path<'_>; MAX_SOURCES] = [(zeros, zeros); MAX_SOURCES];
            for ((source, tmp), fetched) in op.sources.iter().zip(self.fetch.iter_mut()).zip(&mut sources) {
                *fetched = source.fetch(l1b, self.index, c, zeros, tmp);
            }
            if !suspicion(&sources, (&result.0[c * lanes..][..lanes], &result.1[c * lanes..][..lanes])) {
                continue;
            }
            let at = |lane: usize| (result.0[c * lanes + lane], result.1[c * lanes + lane]);
            let found = |lane: &usize| bad(&sources, at(*lane), *lane);
            let Some(lane) = (0..lanes).find(found) else { continue };
            let count = (lane..lanes).filter(found).count() as u64;
            let word = Word { level: LevelName::Pe, slot: 0, unit: self.index, lane, address: 0 };
            let key = Key { line: self.line, what, memory: None, other: 0 };
            self.findings.add(key, Case { word: Some(word), cycles: (c, c), count, ..PLAIN });
        }
    }
}

/// Whether an input of the result of a PE is infinite.
fn has_infinity(mau: &MauOp, l1b: &L1b, sources: &[Path<'_>], lane: usize) -> bool {
    let masks = lanes_of(mau.lane());
    let [x, y, z] = mau.ports();
    let mab = lane - lane % MAB_PES;
    let factor = |at: Option<usize>, lane: usize| at.is_some_and(|at| infinite(sources[at].0[lane], masks));
    let product = match &mau.matrix {
        None => factor(x, lane) || factor(y, lane),
        Some(product) => {
            let lanes = sources[0].0.len();
            let row =
                |row: usize| l1b.pe[product.slot][row * lanes + mab..][..MAB_PES].iter().any(|w| infinite(*w, masks));
            (mab..mab + MAB_PES).any(|lane| factor(x, lane)) || (0..mau.register_rows()).any(row)
        }
    };
    // The addend of halves is singles on the whole path.
    let addend = if mau.lane() == Lane::H { lanes_of(Lane::F) } else { masks };
    product || z.is_some_and(|at| infinite(sources[at].0[lane], addend) || infinite(sources[at].1[lane], addend))
}

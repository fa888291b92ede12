//! What an instruction of a PE line computes: one call per cycle on whole rows.

use super::maps::PeRun;
use super::operand::Path;
use crate::error::{Code, Error};
use crate::num::alu::{AluKernel, AluParams};
use crate::num::lane::Lane;
use crate::num::mau::{self, MauNeg};
use crate::spec::{DataWidth, Half, MauPort, Spec};
use std::sync::Arc;

/// An operation with everything bound that does not change from cycle to cycle.
#[derive(Clone, Debug)]
pub(super) enum Compute {
    /// A lane function. `path`: on both long words; else L1 of the result is L1 of x.
    Alu { kernel: AluKernel, params: AluParams, path: bool },
    /// The same long word everywhere.
    Constant(u64),
    /// A MAU vector operation.
    Mau(MauOp),
    /// L1BM to PE.
    Load { slot: usize, address: u64, runs: Arc<[PeRun]> },
    /// PE to L1BM; the source path is the result.
    Store { slot: usize, address: u64, runs: Arc<[PeRun]> },
}

/// A MAU vector operation, `x*y + z` with missing ports filled in.
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
    /// PEs of a MAB that multiply, of how many; None: all.
    active: Option<(std::ops::Range<u32>, u32)>,
    /// 1 in every lane.
    one: u64,
}

impl MauOp {
    pub(super) fn bind(
        spec: &Spec,
        op: usize,
        lane: Lane,
        mau_precision: usize,
        half: Option<Half>,
        reduced: bool,
        negated: &dyn Fn(MauPort) -> bool,
    ) -> Result<MauOp, Error> {
        let (entry, precision) = (&spec.mau[op], &spec.mau_precisions[mau_precision]);
        let port = |port| entry.sources.iter().position(|p| *p == port);
        // The kernels of the half precision take and give singles on the whole path, the others lanes of L0.
        let wide = lane == Lane::H;
        let path = |width| (width == DataWidth::Path) == wide;
        let format = lane.format().filter(|_| path(precision.addend) && path(precision.result));
        let format = format.ok_or_else(|| {
            Error::new(
                Code::NoKernel,
                format!("the engine has no MAU kernel for `{}` with these ports", precision.name),
            )
        })?;
        let one = u64::from(format.bias()) << format.frac_bits;
        let pe = spec.counts.pe;
        let active = half.map(|half| match half {
            Half::Upper => (0..pe / 2, pe),
            Half::Lower => (pe / 2..pe, pe),
        });
        Ok(MauOp {
            lane,
            reduced,
            omitted: precision.omitted_bits,
            negate: MauNeg { x: negated(MauPort::X), y: negated(MauPort::Y), z: negated(MauPort::Z) },
            x: port(MauPort::X),
            y: port(MauPort::Y),
            z: port(MauPort::Z),
            active,
            one: (0..lane.count() as u32).fold(0, |row, k| row | one << (k * lane.width())),
        })
    }

    fn run(&self, sources: &[Path<'_>], zeros: &[u64], tmp: &mut [u64], out: &mut [u64]) {
        let lanes = zeros.len();
        let (ones, masked) = tmp.split_at_mut(lanes);
        let row = |at: Option<usize>| at.map(|at| sources[at].0);
        let mut x = row(self.x).unwrap_or(zeros);
        if let Some((active, pes)) = &self.active {
            // A PE that does not multiply has the product 0: its first factor is 0.
            for (lane, (to, from)) in masked.iter_mut().zip(x).enumerate() {
                *to = if active.contains(&(lane as u32 % pes)) { *from } else { 0 };
            }
            x = &masked[..lanes];
        }
        let y = match row(self.y) {
            Some(y) => y,
            None => {
                ones.fill(self.one);
                &*ones
            }
        };
        let z0 = row(self.z).unwrap_or(zeros);
        let z1 = self.z.map_or(zeros, |at| sources[at].1);
        let (o0, o1) = out.split_at_mut(lanes);
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

impl Compute {
    /// Result path of cycle `c` into `out` (two rows). `own` are the memories of the L1B; `tmp` holds two rows.
    pub(super) fn run(
        &self,
        sources: &[Path<'_>],
        own: &[Vec<u64>],
        c: usize,
        zeros: &[u64],
        tmp: &mut [u64],
        out: &mut [u64],
    ) {
        let lanes = zeros.len();
        match self {
            Compute::Alu { kernel, params, path } => {
                let x = sources.first().copied().unwrap_or((zeros, zeros));
                let y = sources.get(1).copied().unwrap_or((zeros, zeros));
                let (o0, o1) = out.split_at_mut(lanes);
                kernel.run(params, x.0, y.0, o0);
                if *path {
                    kernel.run(params, x.1, y.1, o1);
                } else {
                    o1.copy_from_slice(x.1);
                }
            }
            Compute::Constant(word) => out.fill(*word),
            Compute::Mau(op) => op.run(sources, zeros, tmp, out),
            Compute::Store { .. } => {
                if let Some((l0, l1)) = sources.first() {
                    out[..lanes].copy_from_slice(l0);
                    out[lanes..].copy_from_slice(l1);
                }
            }
            Compute::Load { slot, address, runs } => {
                out.fill(0);
                let memory = &own[*slot];
                let (first, last) = (c * 2 * lanes, (c + 1) * 2 * lanes);
                // A run never crosses a cycle: the lanes of two cycles are never next to each other on both sides
                // unless they are in the memory too, and then the part of this cycle is cut out here.
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
        }
    }
}

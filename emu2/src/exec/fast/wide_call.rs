//! Calls of a plan with two long words in every cycle: products of halves, and writes of matrix registers.

use crate::exec::access::Access;
use crate::exec::compute::Compute;
use crate::exec::matrix::{Cycles, MatrixAccess, Product};
use crate::exec::op::{Op, Outcome, Scratch};
use crate::exec::source::Origin;
use crate::machine::{L1b, Path};
use crate::num::matvec::Cycle;
use crate::spec::WORDS_PER_LONG;

/// Such a call.
#[derive(Clone, Debug)]
pub(crate) enum WideCall {
    /// `A*x + z`, written to its destination. No op reads the forwarding path.
    Product { product: Product, x: Rows, z: Addend, out: Access },
    /// Rows of a matrix register.
    Matrix { access: MatrixAccess, x: Rows },
}

/// Rows of all cycles, one long word each in a memory.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Rows {
    Memory { slot: usize, first: usize },
    Forward(usize),
}

/// Where a product finds its addend.
#[derive(Clone, Debug)]
pub(crate) enum Addend {
    Zero,
    /// In the rows of the results.
    InPlace,
    Memory(Access),
    Forward(usize),
}

impl Rows {
    /// The rows of a source, unless they differ from cycle to cycle in more than their address.
    fn of(origin: &Origin) -> Option<Rows> {
        match origin {
            Origin::Memory(access) if access.contiguous() => {
                Some(Rows::Memory { slot: access.slot, first: access.row(0) })
            }
            Origin::Forward(path) => Some(Rows::Forward(*path)),
            _ => None,
        }
    }

    fn slot(self) -> Option<usize> {
        match self {
            Rows::Memory { slot, .. } => Some(slot),
            Rows::Forward(_) => None,
        }
    }
}

impl WideCall {
    /// The call of an op, if it has this form.
    pub(crate) fn of(op: &Op) -> Option<WideCall> {
        let plain = op.plain_rows.is_some() && op.base_writes.is_empty() && op.late_writes.is_empty();
        if !plain || op.sources.iter().any(|source| source.conversion.is_some()) {
            return None;
        }
        if let (Compute::MatrixWrite(access), [source], []) = (&op.compute, &op.sources[..], &op.writes[..]) {
            let x = Rows::of(&source.origin).filter(|x| x.slot() != Some(access.slot))?;
            return Some(WideCall::Matrix { access: *access, x });
        }
        let (mau, product) = op.compute.product().filter(|(_, product)| product.adds_in_place() && !op.live)?;
        let [write] = &op.writes[..] else { return None };
        let out = &write.access;
        if !write.plain() || out.words <= WORDS_PER_LONG || !out.ascending() {
            return None;
        }
        let [x, z] = mau.vector_and_addend().map(|port| port.and_then(|at| op.sources.get(at)));
        let x = Rows::of(&x?.origin).filter(|x| x.slot() != Some(out.slot))?;
        let z = match z.map(|z| &z.origin) {
            None => Addend::Zero,
            Some(Origin::Memory(access)) if access.same_rows(out) => Addend::InPlace,
            Some(Origin::Memory(access)) if access.slot != out.slot => Addend::Memory(access.clone()),
            Some(Origin::Forward(path)) => Addend::Forward(*path),
            _ => return None,
        };
        Some(WideCall::Product { product: *product, x, z, out: out.clone() })
    }

    pub(crate) fn run(&self, l1b: &mut L1b, scratch: &mut Scratch) {
        match self {
            WideCall::Product { product, x, z, out } => multiply(product, *x, z, out, l1b, scratch),
            WideCall::Matrix { access, x } => write_matrix(access, *x, l1b, scratch),
        }
    }
}

fn multiply(product: &Product, x: Rows, z: &Addend, out: &Access, l1b: &mut L1b, scratch: &mut Scratch) {
    let Scratch { lanes, zeros, .. } = scratch;
    let (lanes, zeros) = (*lanes, &zeros[..*lanes]);
    product.prepare(l1b, lanes);
    // No source is in this memory.
    let mut memory = std::mem::take(&mut l1b.pe[out.slot]);
    let L1b { pe, forward, decoded, .. } = &*l1b;
    let row = |plane: &'_ [u64], c: usize| -> std::ops::Range<usize> { c * lanes..((c + 1) * lanes).min(plane.len()) };
    let mut cycles = Cycles::new();
    for (c, out) in out.rows_mut(&mut memory, lanes).enumerate() {
        let x = match x {
            Rows::Memory { slot, first } => &pe[slot][(first + c) * lanes..][..lanes],
            Rows::Forward(path) => {
                let (l0, _) = forward[path].planes();
                &l0[row(l0, c)]
            }
        };
        let z = match z {
            Addend::Zero | Addend::InPlace => [zeros, zeros],
            Addend::Memory(access) => {
                let rows = &pe[access.slot][access.row(c) * lanes..];
                [&rows[..lanes], if access.words > WORDS_PER_LONG { &rows[lanes..2 * lanes] } else { zeros }]
            }
            Addend::Forward(path) => {
                let (l0, l1) = forward[*path].planes();
                [&l0[row(l0, c)], &l1[row(l1, c)]]
            }
        };
        cycles.push(Cycle { x, z, out });
    }
    match z {
        Addend::InPlace => product.run_onto(decoded, &mut cycles),
        _ => product.run(decoded, &mut cycles),
    }
    drop(cycles);
    l1b.pe[out.slot] = memory;
}

fn write_matrix(access: &MatrixAccess, x: Rows, l1b: &mut L1b, scratch: &mut Scratch) {
    let Scratch { lanes, zeros, results, .. } = scratch;
    match x {
        Rows::Memory { slot, first } => {
            let memory = std::mem::take(&mut l1b.pe[slot]);
            let path: Path<'_> = (&memory[first * *lanes..][..zeros.len()], zeros);
            access.store(l1b, *lanes, path);
            l1b.pe[slot] = memory;
        }
        Rows::Forward(path) => {
            if results.is_empty() {
                results.push(Outcome::new(zeros.len()));
            }
            // The register is a part of the same L1B, so the path is taken out of it for the while.
            std::mem::swap(&mut l1b.forward[path], &mut results[0].path);
            access.store(l1b, *lanes, results[0].path.planes());
            std::mem::swap(&mut l1b.forward[path], &mut results[0].path);
        }
    }
}

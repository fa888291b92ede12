//! Ops whose operands are plain rows: no address that differs between PEs, no mask, no conversion, no flags, no flush.
//!
//! Such an op reads memories and forwarding paths in place, without copying rows. If the rows of all cycles are contiguous,
//! it is one call of its kernel, else one call per cycle. It also writes its destination in place, if no op reads its
//! forwarding path before the next update and no other op of the step reads the destination.
//!
//! A matrix product may add to its destination in place. Its addend is copied then, because the kernel reads it again in rare
//! cases.
//!
//! All other ops take the general form in `fallback_step.rs`, which gives the same bits. So does every op while a base
//! address register that it depends on is not zero.

use crate::exec::access::Access;
use crate::exec::compute::Compute;
use crate::exec::destination::Write;
use crate::exec::l1bm_map::ReduceBuffers;
use crate::exec::matrix::{Cycles, MatrixRegisters};
use crate::exec::op::{Op, PlainRows, MAX_SOURCES};
use crate::exec::source::{Origin, Source};
use crate::machine::{L1b, Out, Path, PathRows, Words};
use crate::num::matvec::Cycle;
use crate::spec::WORDS_PER_LONG;

/// Buffers of one op.
pub(crate) struct Buffers<'a> {
    pub(crate) lanes: usize,
    /// Zeros as long as a plane.
    pub(crate) zeros: &'a [u64],
    /// [`crate::exec::mau_op::SPARE_PLANES`] planes.
    pub(crate) spare: &'a mut [u64],
    /// Takes the result of an op that does not write its destination in place.
    pub(crate) result: &'a mut PathRows,
    pub(crate) reduce: &'a mut ReduceBuffers,
    /// Two planes for each source.
    pub(crate) gathered: &'a mut [Words; MAX_SOURCES],
}

/// Finds the ops of a step that have the plain form.
pub(crate) fn plan_step(ops: &mut [Op], cycles: usize) {
    let l1bm = ops.iter().filter(|op| op.compute.in_l1bm()).count();
    let reads: Vec<u64> = ops.iter().map(Op::slots_read).collect();
    let by_others =
        |at: usize| reads.iter().enumerate().filter(|(n, _)| *n != at).fold(0, |bits, (_, read)| bits | read);
    let (mut once, mut twice) = (0u64, 0u64);
    for write in ops.iter().flat_map(Op::writes) {
        let slot = 1 << write.access.slot;
        twice |= once & slot;
        once |= slot;
    }
    for (at, op) in ops.iter_mut().enumerate() {
        op.plain_rows = PlainRows::of(op, cycles, l1bm, by_others(at) | twice);
    }
}

impl PlainRows {
    /// The plain form of `op`, if it has one. `l1bm`: instructions of the step that touch L1BM; `touched`: slots of PE
    /// memories that other ops of the step read, or that are written twice.
    fn of(op: &Op, cycles: usize, l1bm: usize, touched: u64) -> Option<PlainRows> {
        let rows = |source: &Source| source.plain() || source.converts();
        let plain = op.zero_flush.is_none() && op.flag_writes.is_empty() && op.sources.iter().all(rows);
        // A column of a matrix register is gathered anyway.
        if !plain || matches!(op.compute, Compute::MatrixRead(_)) {
            return None;
        }
        let target = match &op.writes[..] {
            [write] if op.base_writes.is_empty() && op.late_writes.is_empty() => {
                Some(write).filter(|w| w.plain() && touched >> w.access.slot & 1 == 0)
            }
            _ => None,
        };
        let addend = target.and_then(|write| addend_in(op, write));
        let target = target.filter(|w| addend.is_some() || op.slots_read() >> w.access.slot & 1 == 0);
        let accesses = op.memory_sources().chain(target.map(|w| &w.access));
        let fixed = op.sources.iter().any(|s| matches!(s.origin, Origin::Fixed(_)));
        let whole = !fixed && op.sources.iter().all(Source::whole) && accesses.clone().all(Access::contiguous);
        // If half of the path is zero, one call on copied rows costs less than a call for each cycle.
        let narrow = op.sources.iter().all(|s| s.access().is_none_or(|a| a.words <= WORDS_PER_LONG));
        let product = op.compute.product().is_some();
        let converts = op.sources.iter().any(Source::converts);
        let gather = !whole && !op.sources.is_empty() && (narrow || converts) && !op.compute.in_l1bm() && !product;
        if converts && !gather {
            return None;
        }
        let calls = if whole || gather { 1 } else { cycles };
        let bases = accesses.filter_map(|a| a.base).fold(0, |bits, slot| bits | 1 << slot);
        let in_place = match &op.compute {
            Compute::Store(_) | Compute::Reduce { .. } => calls == 1 && l1bm == 1,
            Compute::Load(_) => calls == 1 && target.is_some(),
            Compute::MatrixWrite(_) => false,
            _ if gather => target.is_some_and(|w| w.access.contiguous()),
            _ if product => target.is_some_and(|w| w.access.ascending()),
            _ => target.is_some(),
        };
        Some(PlainRows { calls, bases, in_place, gather, addend: addend.filter(|_| in_place) })
    }

    /// Runs `op` on the L1B with chip-wide number `index`. Returns true if the destination is written, false if the result
    /// is in the buffer.
    pub(crate) fn run(&self, op: &Op, l1b: &mut L1b, index: usize, buffers: Buffers<'_>) -> bool {
        let Buffers { lanes, zeros, spare, result, reduce, gathered } = buffers;
        let in_place = self.in_place && !op.live;
        if in_place && op.compute.sends() {
            send(op, l1b, zeros, reduce);
            return true;
        }
        let narrow = op.narrow(l1b);
        if op.compute.product().is_some() && (self.calls > 1 || in_place && self.addend.is_some()) {
            let Some(Write { access, .. }) = op.writes.first().filter(|_| in_place) else {
                let out = result.start(narrow).rows(lanes);
                multiply(op, l1b, index, (&zeros[..lanes], Addend::Read), spare, out);
                return false;
            };
            let wide = access.words > WORDS_PER_LONG;
            let onto = wide && op.compute.product().is_some_and(|(_, product)| product.adds_in_place());
            let addend = self.addend.filter(|_| !onto).map(|at| {
                op.sources[at].gather(l1b, index, lanes, true, &mut gathered[at]);
                let (first, second) = gathered[at].split_at(zeros.len());
                Addend::Copied((first, if wide { second } else { zeros }))
            });
            let addend = addend.unwrap_or(if onto && self.addend.is_some() { Addend::InPlace } else { Addend::Read });
            let mut memory = std::mem::take(&mut l1b.pe[access.slot]);
            multiply(op, l1b, index, (&zeros[..lanes], addend), spare, access.rows_mut(&mut memory, lanes));
            l1b.pe[access.slot] = memory;
            return true;
        }
        let length = zeros.len() / self.calls;
        if self.gather {
            for (source, planes) in op.sources.iter().zip(gathered.iter_mut()).filter(|(source, _)| !source.whole()) {
                if source.converts() {
                    source.gather_converted(l1b, index, lanes, spare, planes);
                } else {
                    source.gather(l1b, index, lanes, true, planes);
                }
            }
        }
        let gathered = &*gathered;
        let call = |l1b: &L1b, c: usize, spare: &mut [u64], out: Out<'_>| match &op.compute {
            Compute::Load(load) => load.run(&l1b.own, out),
            compute => {
                let zeros = &zeros[..length];
                let mut sources: [Path<'_>; MAX_SOURCES] = [(zeros, zeros); MAX_SOURCES];
                for ((source, rows), planes) in op.sources.iter().zip(&mut sources).zip(gathered) {
                    *rows = if !self.gather || source.whole() {
                        source.rows(l1b, index, c, lanes, zeros)
                    } else if source.gathers_wide() {
                        planes.split_at(length)
                    } else {
                        (&planes[..length], zeros)
                    };
                }
                let sources = &sources[..op.sources.len().min(MAX_SOURCES)];
                compute.run(sources, MatrixRegisters::of(l1b, zeros), c, spare, out);
            }
        };
        let Some(write) = op.writes.first().filter(|_| in_place) else {
            let mut out = result.start(narrow);
            // A load copies the words of all cycles at once, wherever they go then.
            if let Compute::Load(_) = &op.compute {
                call(l1b, 0, spare, out);
            } else {
                (0..self.calls).for_each(|c| call(l1b, c, spare, out.part(c * length, length)));
            }
            return false;
        };
        let access = &write.access;
        let mut memory = std::mem::take(&mut l1b.pe[access.slot]);
        for c in 0..self.calls {
            let rows = &mut memory[access.row(c) * lanes..];
            let out = if access.words == WORDS_PER_LONG {
                Out { l0: &mut rows[..length], l1: None }
            } else {
                let (l0, l1) = rows[..2 * lanes].split_at_mut(lanes);
                if narrow {
                    l1.fill(0);
                }
                Out { l0, l1: (!narrow).then_some(l1) }
            };
            call(l1b, c, spare, out);
        }
        l1b.pe[access.slot] = memory;
        true
    }
}

/// The number of the source of a matrix product that is its addend, if it lies where the product is written, and if no
/// other source reads there.
fn addend_in(op: &Op, write: &Write) -> Option<usize> {
    let (mau, _) = op.compute.product()?;
    let [x, addend] = mau.vector_and_addend();
    let slot = write.access.slot;
    let reads = |access: &&Access| access.slot == slot || access.indirect_slot() == Some(slot);
    let at = addend.filter(|_| x != addend && op.memory_sources().filter(reads).count() == 1)?;
    op.sources.get(at)?.access()?.same_rows(&write.access).then_some(at)
}

/// Where a matrix product finds its addend.
#[derive(Clone, Copy)]
enum Addend<'a> {
    /// In its source.
    Read,
    /// In planes to which the source has been copied.
    Copied(Path<'a>),
    /// In the rows of the results.
    InPlace,
}

/// Runs a matrix product, all cycles in one call. `out`: the rows of the results.
fn multiply<'a>(
    op: &Op,
    l1b: &L1b,
    index: usize,
    (zeros, addend): (&[u64], Addend<'_>),
    spare: &mut [u64],
    out: impl Iterator<Item = [&'a mut [u64]; 2]>,
) {
    let Some((mau, product)) = op.compute.product() else { return };
    let (lanes, narrow) = (zeros.len(), op.narrow(l1b));
    let [x, z] = mau.vector_and_addend().map(|port| port.and_then(|at| op.sources.get(at)));
    let mut cycles = Cycles::new();
    for ((c, [o0, mut o1]), spare) in out.enumerate().zip(spare.chunks_exact_mut(lanes)) {
        if narrow {
            o1.fill(0);
        }
        if o1.is_empty() {
            o1 = spare;
        }
        let rows = |source| Source::rows(source, l1b, index, c, lanes, zeros);
        let x = x.map_or(zeros, |x| rows(x).0);
        let (z0, z1) = match addend {
            Addend::Copied((first, second)) => (&first[c * lanes..][..lanes], &second[c * lanes..][..lanes]),
            Addend::Read => z.map_or((zeros, zeros), rows),
            Addend::InPlace => (zeros, zeros),
        };
        cycles.push(Cycle { x, z: [z0, z1], out: [o0, o1] });
    }
    match addend {
        Addend::InPlace => product.run_onto(&l1b.decoded, &mut cycles),
        _ => product.run(&l1b.decoded, &mut cycles),
    }
}

/// Sends rows of a memory or of a path to L1BM and to the turnaround register.
fn send(op: &Op, l1b: &mut L1b, zeros: &[u64], reduce: &mut ReduceBuffers) {
    let L1b { pe, forward, own, .. } = l1b;
    let path = match op.sources.first().map(|s| &s.origin) {
        Some(Origin::Memory(access)) => {
            (&pe[access.slot][access.row(0) * zeros.len() / access.at.len()..][..zeros.len()], zeros)
        }
        Some(Origin::Forward(at)) => forward[*at].planes(),
        _ => (zeros, zeros),
    };
    op.compute.send(path, op.keep, own, reduce);
}

//! Ops whose operands are plain rows: no address that differs between PEs, no mask, no conversion, no flags, no flush.
//!
//! Such an op is one call of its kernel on the rows of all cycles where those follow each other, else one call per cycle.
//! It reads memories and forwarding paths where they lie. Where nobody reads its forwarding path before the next update,
//! and no other op of the step can see its destination, it also writes there at once.
//!
//! Everything else, and every op as soon as a base address register that it depends on is not zero, takes the general
//! path of `step.rs`, which gives the same bits.

use super::compute::{Compute, Rows};
use super::maps::Reduce;
use super::mask::Masked;
use super::matrix::Cycles;
use super::operand::{Access, Origin, Path, Source, Write};
use super::step::{Op, Step, MAX_SOURCES};
use crate::machine::{L1b, Out, PathRows};
use crate::num::matvec::Cycle;
use crate::spec::WORDS_PER_LONG;

/// How an op runs on plain rows.
#[derive(Clone, Copy, Debug)]
pub(super) struct Direct {
    /// Calls of the kernel: 1 or one per cycle.
    pieces: usize,
    /// Slots of base address registers that must be zero, as bits.
    bases: u64,
    /// The one destination may be written at once, unless the forwarding path is needed.
    straight: bool,
    /// Rows that do not follow each other are brought together first.
    gather: bool,
}

/// What a step has besides an op, for the question whether anyone sees its destination too early.
#[derive(Clone, Copy, Debug, Default)]
struct Seen {
    /// PE memory slots that are read, as bits: operands, addresses, masks.
    read: u64,
    /// L1BM instructions.
    l1bm: usize,
}

impl Seen {
    fn note(&mut self, op: &Op) {
        let writes = op.writes.iter().chain(&op.late_writes);
        let operands = op.sources.iter().filter_map(Source::access);
        let addresses = operands.clone().chain(writes.clone().map(|w| &w.access));
        let masks = writes.map(|w| &w.mask).chain(op.base_writes.iter().map(|w| &w.mask));
        let masks = masks.chain(op.flag_writes.iter().map(|w| &w.mask)).chain(&op.zero_flush);
        let slots = operands.map(|a| a.slot).chain(addresses.flat_map(|a| a.base.into_iter().chain(a.indirect_slot())));
        let slots = slots.chain(masks.filter_map(Masked::slot)).chain(op.compute.matrix_slot());
        self.read |= slots.fold(0, |bits, slot| bits | 1 << slot);
        self.l1bm += usize::from(op.compute.in_l1bm());
    }
}

/// What a direct op works with.
pub(super) struct Buffers<'a> {
    pub(super) lanes: usize,
    /// Zeros as long as a plane.
    pub(super) zeros: &'a [u64],
    /// [`super::compute::SPARE_PLANES`] planes.
    pub(super) spare: &'a mut [u64],
    /// The result of an op that does not write its destination at once.
    pub(super) result: &'a mut PathRows,
    pub(super) reduce: &'a mut Reduce,
    /// Two planes for each source.
    pub(super) gathered: &'a mut [crate::machine::Words; MAX_SOURCES],
}

impl Direct {
    /// Finds the direct ops of a step.
    pub(super) fn plan(ops: &mut [Op], cycles: usize) {
        let mut seen = Seen::default();
        ops.iter().for_each(|op| seen.note(op));
        let (mut once, mut again) = (0u64, 0u64);
        for write in ops.iter().flat_map(|op| op.writes.iter().chain(&op.late_writes)) {
            let slot = 1 << write.access.slot;
            again |= once & slot;
            once |= slot;
        }
        for op in ops {
            op.direct = Direct::of(op, cycles, seen.l1bm, seen.read | again);
        }
    }

    /// The direct form of `op`, if it has one. `l1bm`: instructions of the step that touch L1BM; `touched`: slots of PE
    /// memories that are read in the step or written twice.
    fn of(op: &Op, cycles: usize, l1bm: usize, touched: u64) -> Option<Direct> {
        let plain = op.zero_flush.is_none() && op.flag_writes.is_empty() && op.sources.iter().all(Source::plain);
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
        let accesses = op.sources.iter().filter_map(Source::access).chain(target.map(|w| &w.access));
        let fixed = op.sources.iter().any(|s| matches!(s.origin, Origin::Fixed(_)));
        let whole = !fixed && accesses.clone().all(Access::contiguous);
        // One call on rows that have been copied costs less than a call for each cycle, if half of the path is zero.
        let narrow = op.sources.iter().all(|s| s.access().is_none_or(|a| a.words <= WORDS_PER_LONG));
        let product = op.compute.product().is_some();
        let gather = !whole && !op.sources.is_empty() && narrow && !op.compute.in_l1bm() && !product;
        let pieces = if whole || gather { 1 } else { cycles };
        let bases = accesses.filter_map(|a| a.base).fold(0, |bits, slot| bits | 1 << slot);
        let straight = match &op.compute {
            Compute::Store(_) | Compute::Reduce { .. } => pieces == 1 && l1bm == 1,
            Compute::Load(_) => pieces == 1 && target.is_some(),
            Compute::MatrixWrite(_) => false,
            _ if gather => target.is_some_and(|w| w.access.contiguous()),
            _ if product => target.is_some_and(|w| w.access.ascending()),
            _ => target.is_some(),
        };
        Some(Direct { pieces, bases, straight, gather })
    }

    /// Whether PEs do not differ in the addresses of the op.
    pub(super) fn fits(&self, l1b: &L1b) -> bool {
        l1b.live_bases & self.bases == 0
    }

    /// Runs `op` on the L1B with chip-wide number `index`. True: its destination is written, false: its result is in the
    /// buffer.
    pub(super) fn run(&self, op: &Op, l1b: &mut L1b, index: usize, buffers: Buffers<'_>) -> bool {
        let Buffers { lanes, zeros, spare, result, reduce, gathered } = buffers;
        let straight = self.straight && !op.live;
        if straight && op.compute.sends() {
            send(op, l1b, zeros, reduce);
            return true;
        }
        let narrow = op.narrow(l1b);
        if op.compute.product().is_some() && self.pieces > 1 {
            let Some(Write { access, .. }) = op.writes.first().filter(|_| straight) else {
                multiply(op, l1b, index, &zeros[..lanes], spare, result.start(narrow).rows(lanes));
                return false;
            };
            let mut memory = std::mem::take(&mut l1b.pe[access.slot]);
            multiply(op, l1b, index, &zeros[..lanes], spare, access.rows_mut(&mut memory, lanes));
            l1b.pe[access.slot] = memory;
            return true;
        }
        let length = zeros.len() / self.pieces;
        if self.gather {
            for (source, planes) in op.sources.iter().zip(gathered.iter_mut()).filter(|(source, _)| !source.whole()) {
                source.gather(l1b, index, lanes, true, planes);
            }
        }
        let gathered = &*gathered;
        let piece = |l1b: &L1b, c: usize, spare: &mut [u64], out: Out<'_>| match &op.compute {
            Compute::Load(load) => load.run(&l1b.own, out),
            compute => {
                let zeros = &zeros[..length];
                let mut sources: [Path<'_>; MAX_SOURCES] = [(zeros, zeros); MAX_SOURCES];
                for ((source, rows), planes) in op.sources.iter().zip(&mut sources).zip(gathered) {
                    *rows = if !self.gather || source.whole() {
                        source.rows(l1b, index, c, lanes, zeros)
                    } else if source.access().is_some_and(|access| access.words <= WORDS_PER_LONG) {
                        (&planes[..length], zeros)
                    } else {
                        planes.split_at(length)
                    };
                }
                let sources = &sources[..op.sources.len().min(MAX_SOURCES)];
                compute.run(sources, Rows::of(l1b, zeros), c, spare, out);
            }
        };
        let Some(write) = op.writes.first().filter(|_| straight) else {
            let mut out = result.start(narrow);
            // What L1BM brings is brought for all cycles at once, wherever it goes then.
            if let Compute::Load(_) = &op.compute {
                piece(l1b, 0, spare, out);
            } else {
                (0..self.pieces).for_each(|c| piece(l1b, c, spare, out.part(c * length, length)));
            }
            return false;
        };
        let access = &write.access;
        let mut memory = std::mem::take(&mut l1b.pe[access.slot]);
        for c in 0..self.pieces {
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
            piece(l1b, c, spare, out);
        }
        l1b.pe[access.slot] = memory;
        true
    }
}

/// Runs a matrix product, all cycles in one call; `out` are their rows.
fn multiply<'a>(
    op: &Op,
    l1b: &L1b,
    index: usize,
    zeros: &[u64],
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
        let (x, (z0, z1)) = (x.map_or(zeros, |x| rows(x).0), z.map_or((zeros, zeros), rows));
        cycles.push(Cycle { x, z: [z0, z1], out: [o0, o1] });
    }
    product.run(&l1b.decoded, &mut cycles);
}

/// Sends rows of a memory or a path to L1BM and the turnaround register.
fn send(op: &Op, l1b: &mut L1b, zeros: &[u64], reduce: &mut Reduce) {
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

/// Marks the ops whose forwarding path is read before it is written again, or outlives the region, and those whose words in the
/// turnaround register are.
pub(super) fn mark_live(region: &mut [Step], paths: usize, turnaround: usize) {
    let mut live = vec![true; paths];
    // So many words of the turnaround register are written again before they are read.
    let mut written_again = 0;
    for step in region.iter_mut().rev() {
        for op in &mut step.ops {
            let (end, first) = op.compute.kept();
            op.keep = step.forward && end > written_again;
            if op.keep {
                written_again = first;
            }
        }
        if step.ops.iter().any(|op| matches!(&op.compute, Compute::Load(load) if load.place.slot == turnaround)) {
            written_again = 0;
        }
        // Of two ops with the same path the last one wins.
        for op in step.ops.iter_mut().rev() {
            op.live = step.forward && op.forward.is_some_and(|path| std::mem::replace(&mut live[path], false));
        }
        for source in step.ops.iter().flat_map(|op| &op.sources) {
            if let Origin::Forward(path) = source.origin {
                live[path] = true;
            }
        }
    }
}

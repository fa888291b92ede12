//! Steps of one direct op that writes its destination at once, with everything but its kernel resolved.
//!
//! All steps of a region pass through the nearest cache once for every L1B. What such a step needs is therefore small and
//! lies side by side.

use super::compute::{Compute, Rows};
use super::maps::Reduce;
use super::operand::{Access, Origin, Path, Source};
use super::step::{Op, MAX_SOURCES};
use crate::machine::{L1b, Out};

/// Rows of all cycles.
#[derive(Clone, Copy, Debug)]
enum Place {
    Zeros,
    /// Long words of a PE memory from `first` on.
    Memory {
        slot: u32,
        first: u32,
    },
    Forward(u32),
}

/// A step that is nothing but one op on whole rows.
#[derive(Clone, Copy, Debug)]
pub(super) struct Quick {
    sources: [Place; MAX_SOURCES],
    target: Place,
    /// Slots of base address registers that must be zero, as bits.
    bases: u64,
}

impl Place {
    fn of(access: &Access, lanes: usize) -> Place {
        Place::Memory { slot: access.slot as u32, first: (access.row(0) * lanes) as u32 }
    }

    #[inline(always)]
    fn rows<'a>(
        self,
        pe: &'a [crate::machine::Words],
        forward: &'a [crate::machine::PathRows],
        zeros: &'a [u64],
    ) -> Path<'a> {
        match self {
            Place::Zeros => (zeros, zeros),
            Place::Memory { slot, first } => (&pe[slot as usize][first as usize..][..zeros.len()], zeros),
            Place::Forward(path) => forward[path as usize].planes(),
        }
    }
}

impl Quick {
    /// The form of a step that is `op` alone, if it has one.
    pub(super) fn of(op: &Op, lanes: usize) -> Option<Quick> {
        let bases = op.direct.as_ref()?.whole()?;
        let target = match op.writes.first() {
            Some(write) => Place::of(&write.access, lanes),
            None => Place::Zeros,
        };
        if op.live || (op.writes.is_empty() && !op.compute.sends()) {
            return None;
        }
        let mut sources = [Place::Zeros; MAX_SOURCES];
        for (place, Source { origin, .. }) in sources.iter_mut().zip(&op.sources) {
            *place = match origin {
                Origin::Memory(access) => Place::of(access, lanes),
                Origin::Forward(path) => Place::Forward(*path as u32),
                Origin::Fixed(_) => return None,
            };
        }
        Some(Quick { sources, target, bases })
    }

    /// Whether PEs do not differ in the addresses of the op.
    #[inline]
    pub(super) fn fits(&self, l1b: &L1b) -> bool {
        l1b.live_bases & self.bases == 0
    }

    /// Runs the step.
    #[inline]
    pub(super) fn run(&self, op: &Op, l1b: &mut L1b, zeros: &[u64], spare: &mut [u64], reduce: &mut Reduce) {
        let Place::Memory { slot, first } = self.target else {
            let path = self.sources[0].rows(&l1b.pe, &l1b.forward, zeros);
            return op.compute.send(path, op.keep, &mut l1b.own, reduce);
        };
        let mut memory = std::mem::take(&mut l1b.pe[slot as usize]);
        let out = Out { l0: &mut memory[first as usize..][..zeros.len()], l1: None };
        if let Compute::Load(load) = &op.compute {
            load.run(l1b, out);
        } else {
            let [x, y, z] = &self.sources;
            let rows = |place: &Place| place.rows(&l1b.pe, &l1b.forward, zeros);
            op.compute.run(&[rows(x), rows(y), rows(z)], Rows { l1b, zeros }, 0, spare, out);
        }
        l1b.pe[slot as usize] = memory;
    }
}

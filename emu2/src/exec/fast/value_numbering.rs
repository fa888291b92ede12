//! Value numbering: which paths and rows of memory hold the same value.

use super::wide_call::WideCall;
use crate::exec::access::Access;
use crate::exec::compute::{Compute, SecondLongWord};
use crate::exec::op::{Op, Step, MAX_SOURCES};
use crate::exec::source::{Origin, Source};
use smallvec::SmallVec;

/// Where an op reads a source: where the program says, or in another memory or path with the same words.
#[derive(Clone, Copy, Debug)]
pub(crate) enum ReadFrom<'a> {
    Given(&'a Source),
    Memory(&'a Access),
    Forward(usize),
}

impl<'a> ReadFrom<'a> {
    /// The access, if it is a memory.
    pub(crate) fn access(self) -> Option<&'a Access> {
        match self {
            ReadFrom::Given(source) => source.access(),
            ReadFrom::Memory(access) => Some(access),
            ReadFrom::Forward(_) => None,
        }
    }

    /// The number of the forwarding path, if it is one.
    pub(crate) fn path(self) -> Option<usize> {
        match self {
            ReadFrom::Given(source) => source.path(),
            ReadFrom::Memory(_) => None,
            ReadFrom::Forward(path) => Some(path),
        }
    }
}

/// A number for the value of each place. Two places with the same number hold the same first long words.
pub(crate) struct ValueNumbers<'a> {
    next: u32,
    /// The number of each path, and whether its second long word is zero.
    paths: Vec<(u32, bool)>,
    memories: Vec<KnownRows<'a>>,
    /// The ops of the last step, with the values of their sources.
    before: SmallVec<[(&'a Op, Numbers); 2]>,
}

/// The value numbers of the sources of an op.
type Numbers = SmallVec<[Option<u32>; MAX_SOURCES]>;

/// Rows of a memory whose value has a number.
struct KnownRows<'a> {
    access: &'a Access,
    reach: (u32, u32),
    value: u32,
}

impl<'a> ValueNumbers<'a> {
    pub(crate) fn new(paths: usize) -> ValueNumbers<'a> {
        let next = paths as u32;
        ValueNumbers {
            next,
            paths: (0..next).map(|path| (path, false)).collect(),
            memories: Vec::new(),
            before: SmallVec::new(),
        }
    }

    /// The value number of a source, if it has one.
    pub(crate) fn number(&self, source: &Source) -> Option<u32> {
        match &source.origin {
            _ if source.conversion.is_some() => None,
            Origin::Forward(path) => Some(self.paths[*path].0),
            Origin::Memory(access) if access.offset.is_none() => self.held(access).map(|held| held.value),
            _ => None,
        }
    }

    /// The value number that a source of an op of the last step had when that step began.
    pub(crate) fn before(&self, op: &Op, source: usize) -> Option<u32> {
        let (_, numbers) = self.before.iter().find(|(other, _)| std::ptr::eq(*other, op))?;
        numbers.get(source).copied().flatten()
    }

    fn held(&self, access: &Access) -> Option<&KnownRows<'a>> {
        self.memories.iter().find(|held| held.access.slot == access.slot && held.access.at == access.at)
    }

    /// The cheapest place at which to read a source.
    pub(crate) fn best(&self, source: &'a Source, compute: &Compute) -> ReadFrom<'a> {
        let given = ReadFrom::Given(source);
        if !source.plain() {
            return given;
        }
        match &source.origin {
            Origin::Forward(path) => {
                let (value, narrow) = self.paths[*path];
                let same = |held: &&KnownRows<'_>| held.value == value && held.access.contiguous();
                let held = self.memories.iter().find(same).filter(|_| narrow || compute.reads_l0());
                held.map_or(given, |held| ReadFrom::Memory(held.access))
            }
            Origin::Memory(access) if !access.contiguous() && compute.reads_l0() => {
                let value = self.held(access).map(|held| held.value);
                let path = self.paths.iter().position(|(path, _)| Some(*path) == value);
                path.map_or(given, ReadFrom::Forward)
            }
            _ => given,
        }
    }

    fn fresh(&mut self) -> u32 {
        self.next += 1;
        self.next - 1
    }

    /// Notes the writes of the step. `as_it_is`: the step runs unchanged, not as nodes.
    pub(crate) fn write(&mut self, step: &'a Step, as_it_is: bool) {
        for source in step.ops.iter().flat_map(|op| &op.sources) {
            if let (Origin::Memory(access), true) = (&source.origin, source.plain()) {
                if self.held(access).is_none() {
                    let value = self.fresh();
                    self.memories.push(KnownRows { access, reach: access.reach(), value });
                }
            }
        }
        self.before.clear();
        for op in &step.ops {
            let numbers = op.sources.iter().map(|source| self.number(source)).collect();
            self.before.push((op, numbers));
        }
        let narrow: SmallVec<[bool; 2]> = step.ops.iter().map(|op| self.narrow(op)).collect();
        for (op, narrow) in step.ops.iter().zip(narrow) {
            let value = self.fresh();
            for write in op.writes() {
                let access = &write.access;
                self.forget(access);
                if write.plain() && access.apart() && !matches!(op.compute, Compute::MatrixWrite(_)) {
                    self.memories.push(KnownRows { access, reach: access.reach(), value });
                }
            }
            for slot in op.register_slots() {
                self.memories.retain(|held| held.access.slot != slot);
            }
            if let (Some(path), true) = (op.forward, step.forward) {
                // When a step runs unchanged, a path that is never read is not updated. Nor is it by a wide call.
                let there = op.live || !as_it_is && WideCall::of(op).is_none();
                self.paths[path] = if there { (value, narrow) } else { (self.fresh(), false) };
            }
        }
    }

    /// Whether the second long word of a result is zero.
    fn narrow(&self, op: &Op) -> bool {
        match op.second {
            SecondLongWord::Zero => true,
            SecondLongWord::Any => false,
            SecondLongWord::Source => op.sources.first().is_none_or(|source| match &source.origin {
                Origin::Forward(path) => self.paths[*path].1 && source.conversion.is_none(),
                Origin::Memory(access) => access.words <= crate::spec::WORDS_PER_LONG && source.conversion.is_none(),
                Origin::Fixed(_) => false,
            }),
        }
    }

    /// Forgets the values of all rows that `access` may touch.
    fn forget(&mut self, access: &Access) {
        let (first, end) = access.reach();
        let anywhere = access.offset.is_some();
        self.memories.retain(|held| {
            held.access.slot != access.slot || (!anywhere && (held.reach.1 <= first || end <= held.reach.0))
        });
    }
}

//! Which places hold the same, by numbers: what a plan knows of values.

use super::compute::{Compute, Second};
use super::operand::{Access, Origin, Source};
use super::plan::writes;
use super::step::{Op, Step, MAX_SOURCES};
use smallvec::SmallVec;

/// Where an op reads a source: as it says, or where the same words lie too.
#[derive(Clone, Copy, Debug)]
pub(super) enum Read<'a> {
    Given(&'a Source),
    Memory(&'a Access),
    Forward(usize),
}

impl<'a> Read<'a> {
    /// The access, if it is a memory.
    pub(super) fn access(self) -> Option<&'a Access> {
        match self {
            Read::Given(source) => source.access(),
            Read::Memory(access) => Some(access),
            Read::Forward(_) => None,
        }
    }

    /// The number of the forwarding path, if it is one.
    pub(super) fn path(self) -> Option<usize> {
        match self {
            Read::Given(source) => path_of(source),
            Read::Memory(_) => None,
            Read::Forward(path) => Some(path),
        }
    }
}

/// The number of the forwarding path, if a source is one.
pub(super) fn path_of(source: &Source) -> Option<usize> {
    match source.origin {
        Origin::Forward(path) => Some(path),
        _ => None,
    }
}

/// Where values are, by numbers: two places with the same number hold the same first long words.
pub(super) struct Values<'a> {
    next: u32,
    /// Of each path, and whether its second long word is zero.
    paths: Vec<(u32, bool)>,
    memories: Vec<Held<'a>>,
    /// What the ops of the last step read.
    before: SmallVec<[(&'a Op, Numbers); 2]>,
}

/// Of the sources of an op.
type Numbers = SmallVec<[Option<u32>; MAX_SOURCES]>;

/// A place in a memory whose value is known by number.
struct Held<'a> {
    access: &'a Access,
    reach: (u32, u32),
    value: u32,
}

impl<'a> Values<'a> {
    pub(super) fn new(paths: usize) -> Values<'a> {
        let next = paths as u32;
        Values {
            next,
            paths: (0..next).map(|path| (path, false)).collect(),
            memories: Vec::new(),
            before: SmallVec::new(),
        }
    }

    /// The number of what a source holds, where it has one.
    pub(super) fn number(&self, source: &Source) -> Option<u32> {
        match &source.origin {
            _ if source.conversion.is_some() => None,
            Origin::Forward(path) => Some(self.paths[*path].0),
            Origin::Memory(access) if access.offset.is_none() => self.held(access).map(|held| held.value),
            _ => None,
        }
    }

    /// What a source of an op of the last step held when that step began.
    pub(super) fn before(&self, op: &Op, source: usize) -> Option<u32> {
        let (_, numbers) = self.before.iter().find(|(other, _)| std::ptr::eq(*other, op))?;
        numbers.get(source).copied().flatten()
    }

    fn held(&self, access: &Access) -> Option<&Held<'a>> {
        self.memories.iter().find(|held| held.access.slot == access.slot && held.access.at == access.at)
    }

    /// Where a source is read at the least cost.
    pub(super) fn best(&self, source: &'a Source, compute: &Compute) -> Read<'a> {
        let given = Read::Given(source);
        if !source.plain() {
            return given;
        }
        match &source.origin {
            Origin::Forward(path) => {
                let (value, narrow) = self.paths[*path];
                let same = |held: &&Held<'_>| held.value == value && held.access.contiguous();
                let held = self.memories.iter().find(same).filter(|_| narrow || compute.reads_l0());
                held.map_or(given, |held| Read::Memory(held.access))
            }
            Origin::Memory(access) if !access.contiguous() && compute.reads_l0() => {
                let value = self.held(access).map(|held| held.value);
                let path = self.paths.iter().position(|(path, _)| Some(*path) == value);
                path.map_or(given, Read::Forward)
            }
            _ => given,
        }
    }

    fn fresh(&mut self) -> u32 {
        self.next += 1;
        self.next - 1
    }

    /// What the step leaves, which runs `as_it_is` or as nodes.
    pub(super) fn write(&mut self, step: &'a Step, as_it_is: bool) {
        for source in step.ops.iter().flat_map(|op| &op.sources) {
            if let (Origin::Memory(access), true) = (&source.origin, source.plain()) {
                if self.held(access).is_none() {
                    let value = self.fresh();
                    self.memories.push(Held { access, reach: access.reach(), value });
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
            for write in writes(op) {
                let access = &write.access;
                self.forget(access);
                if write.plain() && !matches!(op.compute, Compute::MatrixWrite(_)) {
                    self.memories.push(Held { access, reach: access.reach(), value });
                }
            }
            for slot in op.flag_writes.iter().map(|write| write.slot).chain(op.compute.matrix_slot()) {
                self.memories.retain(|held| held.access.slot != slot);
            }
            if let (Some(path), true) = (op.forward, step.forward) {
                // A path that nobody reads keeps what it had.
                let there = op.live || !as_it_is;
                self.paths[path] = if there { (value, narrow) } else { (self.fresh(), false) };
            }
        }
    }

    /// Whether the second long word of a result is zero.
    fn narrow(&self, op: &Op) -> bool {
        match op.second {
            Second::Zero => true,
            Second::Any => false,
            Second::Source => op.sources.first().is_none_or(|source| match &source.origin {
                Origin::Forward(path) => self.paths[*path].1 && source.conversion.is_none(),
                Origin::Memory(access) => access.words <= crate::spec::WORDS_PER_LONG && source.conversion.is_none(),
                Origin::Fixed(_) => false,
            }),
        }
    }

    /// Nothing is known of what lies there any more.
    fn forget(&mut self, access: &Access) {
        let (first, end) = access.reach();
        let anywhere = access.offset.is_some();
        self.memories.retain(|held| {
            held.access.slot != access.slot || (!anywhere && (held.reach.1 <= first || end <= held.reach.0))
        });
    }
}

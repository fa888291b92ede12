//! What an instruction touches and needs, whoever shares its line.

use crate::rules::{Name, Rules};

/// A memory and a long word of it, or a granule of a memory above the PEs.
pub(crate) type Place = (Name, i64);

/// An operand at its address.
pub enum Operand {
    /// Long words of a PE memory: the first one of each cycle, and their number. Accesses of one length to the same parts of
    /// them have one form.
    Pe(Name, Vec<i64>, i64, Vec<i64>),
    /// Long words of a memory above the PEs: the first one, and their number.
    Block(Name, i64, i64),
    /// A memory that has no addresses here.
    Whole(Name),
}

/// One access. Two reads may share a port if their `words` are equal.
#[derive(Clone)]
pub(crate) struct Touch {
    pub(crate) memory: Name,
    pub(crate) words: Vec<i64>,
    /// All places, with the cycle that accesses each.
    pub(crate) places: Vec<(i64, i64)>,
}

impl Touch {
    fn of(operand: Operand, granule: i64) -> Self {
        match operand {
            Operand::Pe(memory, at, wide, form) => {
                let each = |(cycle, &word): (i64, &i64)| (0..wide).map(move |more| (word + more, cycle));
                let places = (0..).zip(&at).flat_map(each).collect();
                Self { memory, words: [form, at].concat(), places }
            }
            Operand::Block(memory, start, words) => Self::above(memory, start, words, granule),
            Operand::Whole(memory) => Self { memory, words: Vec::new(), places: vec![(0, 0)] },
        }
    }

    fn above(memory: Name, start: i64, words: i64, granule: i64) -> Self {
        let last = (start + words - 1).div_euclid(granule);
        let places = (start.div_euclid(granule)..=last).map(|at| (at, 0)).collect();
        Self { memory, words: vec![start, words], places }
    }
}

/// The facts of an instruction besides its operands.
#[derive(Clone)]
pub struct Facts {
    /// The issue slot.
    pub slot: Name,
    /// The precision that a shared unit works in.
    pub precision: Option<Name>,
    /// Inputs of the MAU that its sources come through.
    pub inputs: Vec<Name>,
    /// Memories that no other instruction of the line may access.
    pub excludes: Vec<Name>,
    /// Slots whose results it reads by forwarding.
    pub takes: Vec<Name>,
    /// Whether zeros of a mask clear its result.
    pub flushes: bool,
    /// Source memory of a transfer from L1BM or L2BM.
    pub source: Option<Name>,
    /// Memories of which it reads words that only a register knows, and of which it writes such words.
    pub anywhere: [Vec<Name>; 2],
}

/// All facts that decide about ports, except the words.
pub(crate) type Kind = (Name, Option<Name>, Vec<Name>, Vec<Name>, bool, Option<Name>, Vec<(Name, bool)>);

/// An instruction with its accesses and the other facts that decide where it fits.
#[derive(Clone)]
pub struct Op {
    pub(crate) facts: Facts,
    pub(crate) kind: usize,
    pub(crate) reads: Vec<Touch>,
    pub(crate) writes: Vec<Touch>,
    /// The memory of each access, and whether the access is a write.
    pub(crate) memories: Vec<(Name, bool)>,
    /// The port rules that it can break, and whether as the writer.
    pub(crate) ports: Vec<(usize, bool)>,
}

impl Op {
    /// Returns an instruction with operands that it reads and writes.
    pub fn new(rules: &Rules, facts: Facts, reads: Vec<Operand>, writes: Vec<Operand>) -> Self {
        let touches =
            |operands: Vec<Operand>| operands.into_iter().map(|one| Touch::of(one, rules.granule)).collect::<Vec<_>>();
        let (reads, writes) = (touches(reads), touches(writes));
        let memories: Vec<_> =
            reads.iter().map(|t| (t.memory, false)).chain(writes.iter().map(|t| (t.memory, true))).collect();
        let writer = (facts.slot, facts.source);
        let concerned = |&(memory, written): &(Name, bool)| {
            rules.concerned(memory, written, writer).into_iter().map(move |rule| (rule, written))
        };
        let ports = memories.iter().flat_map(concerned).collect();
        let Facts { slot, precision, flushes, source, .. } = facts;
        let key = (slot, precision, facts.inputs.clone(), facts.excludes.clone(), flushes, source, memories.clone());
        let mut kinds = rules.kinds.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        let next = kinds.len();
        let kind = *kinds.entry(key).or_insert(next);
        Self { facts, kind, reads, writes, memories, ports }
    }

    /// Returns the same instruction with the words of some memories above the PEs moved up.
    pub fn moved(&self, rules: &Rules, by: &[(Name, i64)]) -> Self {
        let mut out = self.clone();
        for touch in out.reads.iter_mut().chain(&mut out.writes) {
            if let (Some(&(_, more)), &[start, words]) =
                (by.iter().find(|(memory, _)| *memory == touch.memory), touch.words.as_slice())
            {
                *touch = Touch::above(touch.memory, start + more, words, rules.granule);
            }
        }
        out
    }

    pub(crate) fn touches(&self, written: bool) -> &[Touch] {
        if written {
            &self.writes
        } else {
            &self.reads
        }
    }

    /// Whether this leaves the inputs and memories of `other` free.
    pub(crate) fn leaves(&self, other: &Self) -> bool {
        let excludes = &self.facts.excludes;
        !self.facts.inputs.iter().any(|one| other.facts.inputs.contains(one))
            && (excludes.is_empty() || !other.memories.iter().any(|(memory, _)| excludes.contains(memory)))
    }
}

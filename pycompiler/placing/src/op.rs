//! What an instruction touches and needs, whoever shares its line.

use crate::rules::{Name, Rules};
use crate::touches::{Access, Site};
use std::sync::Arc;

/// A memory and a long word of it, or a granule of a memory above the PEs.
pub(crate) type Place = (Name, i64);

/// An operand at its address.
pub enum Operand {
    /// Long words of a PE memory: the first one of each cycle, and their number. Accesses of one length to the same parts of
    /// them have one form. The register that is added to the addresses, if there is one.
    Pe(Name, Vec<i64>, i64, Vec<i64>, Option<Name>),
    /// Long words of a memory above the PEs.
    Block(Block),
    /// A memory that has no addresses here.
    Whole(Name),
}

impl Operand {
    fn memory(&self) -> Name {
        match self {
            Self::Pe(memory, ..) | Self::Whole(memory) => *memory,
            Self::Block(block) => block.memory,
        }
    }
}

/// Long words of a memory above the PEs in a group and an L2B: the first one, and their number.
pub struct Block {
    /// The memory.
    pub memory: Name,
    /// Where the words lie.
    pub unit: Site,
    /// The first word.
    pub start: i64,
    /// Their number.
    pub words: i64,
    /// Whether they belong to a value.
    pub named: bool,
    /// If only address registers know the words: their memory, the first entry, and the number of entries.
    pub entries: Option<(Name, i64, i64)>,
}

impl Block {
    /// The accesses of an operand of slot `slot`: what it reads to know its words, and its own.
    pub fn accesses(&self, slot: Name, source: Option<Name>) -> (Option<Access>, Access) {
        let Self { memory, unit, start, words, named, entries } = *self;
        let own = |memory, unit, range, source| Access { memory, unit, range, cycles: Vec::new(), slot, source, named };
        let range = entries.is_none().then_some((start, start + words));
        let entries = entries.map(|(dar, first, count)| own(dar, (None, None), Some((first, first + count)), None));
        (entries, own(memory, unit, range, source))
    }
}

/// One access. Two reads may share a port if their `words` are equal.
#[derive(Clone)]
pub(crate) struct Touch {
    pub(crate) memory: Name,
    pub(crate) words: Vec<i64>,
    /// All places, with the cycle that accesses each.
    pub(crate) places: Vec<(i64, i64)>,
}

/// The facts of an instruction besides its operands.
#[derive(Clone, Debug, Default)]
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
    /// The part of a memory that a transfer fills, if it names one.
    pub part: Option<Name>,
}

/// All facts that decide about ports, except the words.
pub(crate) type Kind = (Name, Option<Name>, Vec<Name>, Vec<Name>, bool, Option<Name>, Vec<(Name, bool)>);

/// What decides where an instruction fits, whatever its addresses are.
#[derive(Clone, Debug, Default)]
pub struct Form {
    /// The facts besides its operands.
    pub facts: Facts,
    pub(crate) kind: usize,
    /// The memory of each access, and whether the access is a write.
    pub(crate) memories: Vec<(Name, bool)>,
    /// The port rules that it can break, and whether as the writer.
    pub(crate) ports: Vec<(usize, bool)>,
}

impl Form {
    /// Returns the form of an instruction with its operands in their order, and whether it writes each.
    pub fn new(rules: &Rules, facts: Facts, operands: &[(Operand, bool)]) -> Self {
        let of =
            |written: bool| operands.iter().filter(move |(_, is)| *is == written).map(|(one, is)| (one.memory(), *is));
        let memories: Vec<_> = of(false).chain(of(true)).collect();
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
        Self { facts, kind, memories, ports }
    }
}

/// An instruction with its accesses and the other facts that decide where it fits.
#[derive(Clone)]
pub struct Op {
    pub(crate) form: Arc<Form>,
    pub(crate) reads: Vec<Touch>,
    pub(crate) writes: Vec<Touch>,
    /// Memories of which it reads words that only a register knows, and of which it writes such words.
    pub(crate) anywhere: [Vec<Name>; 2],
    /// What it reads and writes, word by word, in the order of its operands.
    pub(crate) accesses: [Vec<Access>; 2],
}

impl Op {
    /// Returns an instruction of a form with its operands in their order, and whether it writes each.
    pub fn new(rules: &Rules, form: Arc<Form>, operands: &[(Operand, bool)]) -> Self {
        let (anywhere, accesses) = Default::default();
        let mut op = Self { form, reads: Vec::new(), writes: Vec::new(), anywhere, accesses };
        for (operand, written) in operands {
            let touch = op.touch(operand, usize::from(*written), rules.granule);
            if *written { &mut op.writes } else { &mut op.reads }.push(touch);
        }
        op
    }

    /// Notes the accesses of an operand that is read (0) or written (1), and returns what it touches.
    fn touch(&mut self, operand: &Operand, side: usize, granule: i64) -> Touch {
        let (slot, source) = (self.form.facts.slot, self.form.facts.source.filter(|_| side == 1));
        match operand {
            Operand::Pe(memory, at, wide, form, register) => {
                let own = |memory, range, cycles, source| Access {
                    memory,
                    unit: (None, None),
                    range,
                    cycles,
                    slot,
                    source,
                    named: false,
                };
                for more in 0..*wide {
                    let cycles: Vec<i64> = at.iter().map(|word| word + more).collect();
                    let ends = cycles.iter().min().zip(cycles.iter().max()).map(|(&low, &high)| (low, high + 1));
                    self.accesses[side].push(own(*memory, ends.filter(|_| register.is_none()), cycles, source));
                }
                if let Some(register) = *register {
                    self.accesses[0].push(own(register, None, Vec::new(), None));
                    self.anywhere[0].push(register);
                    self.anywhere[side].push(*memory);
                }
                let each = |(cycle, &word): (i64, &i64)| (0..*wide).map(move |more| (word + more, cycle));
                let places = (0..).zip(at).flat_map(each).collect();
                Touch { memory: *memory, words: [form.as_slice(), at].concat(), places }
            }
            Operand::Block(block) => {
                let (entries, own) = block.accesses(slot, source);
                self.accesses[0].extend(entries);
                self.accesses[side].push(own);
                let granules = block.start.div_euclid(granule)..=(block.start + block.words - 1).div_euclid(granule);
                let places = granules.map(|at| (at, 0)).collect();
                Touch { memory: block.memory, words: vec![block.start, block.words], places }
            }
            Operand::Whole(memory) => Touch { memory: *memory, words: Vec::new(), places: vec![(0, 0)] },
        }
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
        let (own, theirs) = (&self.form.facts, &other.form.facts);
        let excludes = &own.excludes;
        !own.inputs.iter().any(|one| theirs.inputs.contains(one))
            && (excludes.is_empty() || !other.form.memories.iter().any(|(memory, _)| excludes.contains(memory)))
    }
}

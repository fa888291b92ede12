//! Lines whose addresses are relative to values, as the layers write them. All addresses and sizes are long words.

use crate::machine::Machine;
use crate::op::{self, Form};
use crate::rules::Name;
use crate::timeline::Transfer;
use crate::touches::Access;
use std::sync::Arc;

/// The number of a value among those that the lines of a node name.
pub type Value = usize;

/// How far words move in some memories, of what belongs to no value. A memory may stand there more than once.
pub type Shift = Vec<(Name, i64)>;

/// How far words of a memory move.
pub(crate) fn moved(shift: &[(Name, i64)], memory: Name) -> i64 {
    shift.iter().filter(|(own, _)| *own == memory).map(|(_, more)| more).sum()
}

/// Long words of a PE memory, one per cycle, at `offsets` from the address of `value`; None stands for address 0.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Pe {
    /// The memory.
    pub memory: Name,
    /// The word of each cycle.
    pub offsets: Vec<i64>,
    /// Whose words they are.
    pub value: Option<Value>,
    /// Whether the sign is flipped.
    pub negate: bool,
    /// The only word of each long word that is accessed: one for all cycles, or one per cycle.
    pub word: Vec<i64>,
    /// Whether it is read as the next lower format.
    pub extend: bool,
    /// Whether it is read as the next higher format.
    pub reduce: bool,
    /// The 32-bit words of one access.
    pub words: i64,
    /// The first word of the mask register of a destination.
    pub mask: Option<i64>,
    /// Whether a register is added to every address.
    pub indirect: bool,
}

/// Long words of a memory above the PEs.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Block {
    /// The memory.
    pub memory: Name,
    /// The first word, from the address of `value` on.
    pub offset: i64,
    /// Their number.
    pub words: i64,
    /// Whose words they are.
    pub value: Option<Value>,
    /// The group and the L2B of it; None stands for all.
    pub unit: (Option<i64>, Option<i64>),
    /// Whether two long words per PE and cycle move.
    pub wide: bool,
    /// The first address register and their number, if these name the words.
    pub entries: Option<(i64, i64)>,
    /// Whether it does not stand in the text.
    pub implied: bool,
}

/// An operand of an instruction.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Operand {
    /// Words in the PEs.
    Pe(Pe),
    /// Words above them.
    Block(Block),
    /// The last result of a slot, and whether its sign is flipped.
    Forward(Name, bool),
    /// A bank of matrix registers, the first row (None is the whole register), the 32-bit words of one access.
    Matrix(Name, Option<i64>, i64),
    /// Bits, plus the address of a value in blocks of a unit.
    Literal(i64, Option<Value>, i64),
    /// A name without an address.
    Special(Name),
}

/// What a line knows of an instruction.
#[derive(Clone, Debug)]
pub struct Instruction {
    /// The name that stands in the text.
    pub mnemonic: Name,
    /// What it reads.
    pub sources: Vec<Operand>,
    /// What it writes.
    pub destinations: Vec<Operand>,
    /// The first word of the mask register whose zeros clear the result.
    pub flush: Option<i64>,
    /// What decides about its place, whatever its addresses are.
    pub form: Arc<Form>,
}

/// An MV.
#[derive(Clone, Debug)]
pub struct Move {
    /// The name that stands in the text.
    pub mnemonic: Name,
    /// Its size, in each group if the operands name no group.
    pub words: i64,
    /// What it reads.
    pub source: Block,
    /// What it writes.
    pub destination: Block,
    /// What it holds, and for how long.
    pub transfer: Transfer,
}

/// A line.
#[derive(Clone, Debug)]
pub enum Line {
    /// Instructions that are issued together.
    Step(Vec<Arc<Instruction>>),
    /// An MV.
    Move(Arc<Move>),
}

/// The values of a node: the address of each that has one, and the name in the program.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Values {
    /// The address of each.
    pub at: Vec<Option<i64>>,
    /// The name of each.
    pub names: Vec<Arc<str>>,
}

impl Values {
    /// The address of a value; 0 for none.
    pub fn base(&self, value: Option<Value>) -> i64 {
        value.and_then(|one| self.at.get(one).copied().flatten()).unwrap_or(0)
    }
}

/// What an instruction demands of its line: precision, inputs of the MAU, memories that no other one may access.
#[derive(Clone, Debug, Default)]
pub struct Issue {
    /// The precision that a shared unit works in.
    pub precision: Option<Name>,
    /// Inputs of the MAU that its sources come through.
    pub inputs: Vec<Name>,
    /// Memories that no other instruction of the line may access.
    pub excludes: Vec<Name>,
}

impl Instruction {
    /// Returns an instruction of a slot; `part` is what the name of a transfer selects of a memory.
    pub fn new(
        machine: &Machine,
        (slot, mnemonic, part): (Name, Name, Option<Name>),
        sources: Vec<Operand>,
        destinations: Vec<Operand>,
        flush: Option<i64>,
        issue: Issue,
    ) -> Self {
        let block = |operand: &Operand| if let Operand::Block(one) = operand { Some(one.memory) } else { None };
        let takes =
            sources.iter().filter_map(|one| if let Operand::Forward(slot, _) = one { Some(*slot) } else { None });
        let down = destinations.iter().any(|one| block(one) == Some(machine.blocks));
        let facts = op::Facts {
            slot,
            precision: issue.precision,
            inputs: issue.inputs,
            excludes: issue.excludes,
            takes: takes.collect(),
            flushes: flush.is_some(),
            source: sources.iter().find_map(block),
            part: part.filter(|_| down),
        };
        let mut made = Self { mnemonic, sources, destinations, flush, form: Arc::default() };
        let operands = made.placed(machine, &Values::default(), &[]);
        made.form = Arc::new(Form::new(&machine.rules, facts, &operands));
        made
    }

    /// Its operands, each with whether it is written.
    pub fn operands(&self) -> impl Iterator<Item = (&Operand, bool)> {
        self.sources.iter().map(|one| (one, false)).chain(self.destinations.iter().map(|one| (one, true)))
    }

    /// Returns the instruction with what `change` makes of its operands.
    pub(crate) fn with_operands(&self, mut change: impl FnMut(&Operand) -> Operand) -> Self {
        let sources = self.sources.iter().map(&mut change).collect();
        let destinations = self.destinations.iter().map(change).collect();
        Self { sources, destinations, ..self.clone() }
    }

    /// The operands at their addresses, some of whose words moved.
    pub(crate) fn placed(&self, machine: &Machine, node: &Values, shift: &[(Name, i64)]) -> Vec<(op::Operand, bool)> {
        let mut out = Vec::new();
        for (operand, written) in self.operands() {
            match operand {
                Operand::Pe(one) => {
                    out.extend(one.mask.map(|first| (mask(machine, first, one.words.max(machine.long), shift), false)));
                    out.push((one.placed(machine, node, shift), written));
                }
                Operand::Block(one) => out.push((op::Operand::Block(one.placed(machine, node, shift)), written)),
                Operand::Matrix(bank, ..) => {
                    let memory = machine.banks.get(bank).copied().unwrap_or(*bank);
                    out.push((op::Operand::Whole(memory), written));
                }
                Operand::Forward(..) | Operand::Literal(..) | Operand::Special(_) => {}
            }
        }
        out.extend(self.flush.map(|first| (mask(machine, first, machine.long, shift), false)));
        out
    }
}

fn mask(machine: &Machine, first: i64, words: i64, shift: &[(Name, i64)]) -> op::Operand {
    let (cycles, first) = (machine.rules.cycles, first + moved(shift, machine.masks));
    op::Operand::Pe(machine.masks, (first..first + cycles).collect(), 1, vec![cycles, words, -1], None)
}

impl Pe {
    fn placed(&self, machine: &Machine, node: &Values, shift: &[(Name, i64)]) -> op::Operand {
        let mut form = vec![i64::try_from(self.offsets.len()).unwrap_or(0), self.words];
        form.extend(if self.word.is_empty() { &[-1] } else { self.word.as_slice() });
        let start = node.base(self.value) + self.more(shift);
        let at = self.offsets.iter().map(|offset| start + offset).collect();
        let wide = (self.words / machine.long).max(1);
        op::Operand::Pe(self.memory, at, wide, form, self.indirect.then_some(machine.added))
    }

    /// Whether a write of it may leave parts of its long words as they were.
    pub(crate) fn partly(&self, machine: &Machine) -> bool {
        self.mask.is_some() || self.indirect || self.words < machine.long || !self.word.is_empty()
    }

    /// How far its words move.
    pub(crate) fn more(&self, shift: &[(Name, i64)]) -> i64 {
        if self.value.is_some() {
            return 0;
        }
        moved(shift, self.memory)
    }
}

impl Block {
    /// The first long word.
    pub(crate) fn start(&self, node: &Values, shift: &[(Name, i64)]) -> i64 {
        let more = if self.value.is_some() { 0 } else { moved(shift, self.memory) };
        node.base(self.value) + self.offset + more
    }

    pub(crate) fn placed(&self, machine: &Machine, node: &Values, shift: &[(Name, i64)]) -> op::Block {
        op::Block {
            memory: self.memory,
            unit: self.unit,
            start: self.start(node, shift),
            words: self.words,
            named: self.value.is_some(),
            entries: self.entries.map(|(first, count)| (machine.entries, first, count)),
        }
    }
}

impl Move {
    /// What it reads, and what it writes.
    pub(crate) fn accesses(&self, machine: &Machine, node: &Values, shift: &[(Name, i64)]) -> [Vec<Access>; 2] {
        let own = |block: &Block| block.placed(machine, node, shift).accesses(machine.mv, None);
        let ((entries, read), (others, written)) = (own(&self.source), own(&self.destination));
        [entries.into_iter().chain([read]).chain(others).collect(), vec![written]]
    }

    /// The operand in DRAM, if it has one.
    pub(crate) fn in_dram(&self, machine: &Machine) -> Option<&Block> {
        [&self.source, &self.destination].into_iter().find(|one| one.memory == machine.dram)
    }
}

impl Line {
    /// Whether it is an MV.
    pub fn is_move(&self) -> bool {
        matches!(self, Self::Move(_))
    }

    /// The instructions; an MV has none.
    pub fn instructions(&self) -> &[Arc<Instruction>] {
        match self {
            Self::Step(all) => all,
            Self::Move(_) => &[],
        }
    }

    /// The values whose addresses stand in literals.
    pub(crate) fn literals(&self) -> impl Iterator<Item = Value> + '_ {
        let sources = self.instructions().iter().flat_map(|one| &one.sources);
        sources.filter_map(|one| if let Operand::Literal(_, value, _) = one { *value } else { None })
    }
}

//! A loaded spec and its queries.

use super::encoding::Encoding;
use super::expr::Expr;
use super::map::{End, ResolvedForm};
use super::mnemonic::Mnemonic;
use super::model::*;
use super::set::UnitSet;
use crate::num::lane::Lane;
use indexmap::IndexMap;
use std::collections::HashMap;

/// Bits of a long word, which is the word of the engine.
pub const LONG_BITS: u32 = 64;
/// Bits of a word, the unit of PE addresses.
pub const WORD_BITS: u32 = 32;
/// Words in a long word.
pub const WORDS_PER_LONG: u32 = LONG_BITS / WORD_BITS;

/// The slot of ALU operations.
pub const ALU_SLOT: &str = "alu";
/// The slot of MAU operations.
pub const MAU_SLOT: &str = "mau";

/// Long words at the end of a buffer that hold its state: the entry that the first word goes to, and how many words
/// have gone.
pub const BUFFER_STATE: u64 = 2;

/// ALU kernel: puts the word of the literal into all words of the path.
pub const IMM: &str = "imm";
/// ALU kernel: puts the word of the literal into the upper word of both long words.
pub const IMMU: &str = "immu";

/// ALU kernel: clears all bits.
pub const ZERO: &str = "zero";
/// ALU kernel: takes the long word of the PE that is `amount` PEs further in the MAB.
pub const ROTATE: &str = "rotate";
/// ALU kernel: converts to block float.
pub const BLOCK: &str = "block";
/// ALU kernel: converts to block float with extended elements.
pub const BLOCK_EXTENDED: &str = "block_extended";
/// ALU kernel: the approximate reciprocal square root, from a table.
pub const RSQRT: &str = "rsqrt";

/// A loaded spec. Entries keep their order, so indices into the lists are stable.
#[derive(Clone, Debug)]
pub struct Spec {
    /// Name, documentation, clock.
    pub machine: Machine,
    /// Units per level.
    pub counts: Counts,
    /// Levels, outermost first.
    pub levels: Vec<Level>,
    /// Widths of links in long words per cycle.
    pub ports: IndexMap<String, i64>,
    /// Access widths.
    pub widths: Vec<Width>,
    /// Float formats.
    pub formats: Vec<Format>,
    /// Precision letters.
    pub precisions: Vec<Precision>,
    /// Memories.
    pub memories: Vec<Memory>,
    /// Operand classes.
    pub operands: Vec<Operand>,
    /// Forwarding paths.
    pub forwards: Vec<Forward>,
    /// Fixed inputs.
    pub fixed: Vec<Fixed>,
    /// Base address registers.
    pub bases: Vec<Base>,
    /// Matrix registers.
    pub banks: Vec<Bank>,
    /// The register that returns the words that the PEs send.
    pub turnaround: Turnaround,
    /// Letters that belong to no entry.
    pub syntax: Syntax,
    /// Write masks and mask registers.
    pub mask: MaskRegisters,
    /// Immediate literals.
    pub literals: Vec<Literal>,
    /// Issue slots.
    pub slots: Vec<Slot>,
    /// Groups of slots that drive one unit.
    pub shares: Vec<Share>,
    /// ALU operations.
    pub alu: Vec<Alu>,
    /// How precisions use the MAU.
    pub mau_precisions: Vec<MauPrecision>,
    /// MAU operations.
    pub mau: Vec<Mau>,
    /// Access to matrix registers.
    pub matrix_ops: Vec<MatrixOp>,
    /// Transfers.
    pub transfers: Vec<Transfer>,
    /// The operations of reducing transfers.
    pub reductions: Vec<Reduction>,
    /// Control statements.
    pub controls: Vec<Control>,
    /// Rules for the gap between a write and a read.
    pub hazards: Vec<Hazard>,
    /// The cycle model.
    pub timing: Timing,
    /// Resolved forms of each transfer, in the order of `transfers`.
    pub forms: Vec<Vec<ResolvedForm>>,
    /// Resolved parameter of each transfer.
    pub parameters: Vec<Option<ResolvedParameter>>,
    /// Legal mnemonics, without parameters.
    pub mnemonics: HashMap<String, Mnemonic>,
    /// Machine words, if any are known.
    pub encoding: Option<Encoding>,
    /// The SHA-256 of its entries. Specs with any difference have different ones.
    pub digest: [u8; 32],
}

/// The parameter of a transfer, with its range evaluated.
#[derive(Clone, Debug)]
pub struct ResolvedParameter {
    /// Name in the index map.
    pub name: String,
    /// Spelling.
    pub style: ParameterStyle,
    /// Smallest value.
    pub minimum: i64,
    /// Largest value.
    pub maximum: i64,
    /// Value if it is left out. `None` if it must be written.
    pub default: Option<i64>,
    /// For a set: the set of all numbers is refused.
    pub partial: bool,
    /// Forms that have the parameter. Empty is all forms.
    pub forms: Vec<String>,
}

impl ResolvedParameter {
    /// The set of all numbers.
    pub fn all(&self) -> UnitSet {
        UnitSet::all((self.maximum + 1).max(1) as u32)
    }

    /// The value `code` under the names that index maps use.
    pub fn named(&self, code: i64) -> Vec<(String, i64)> {
        match self.style {
            ParameterStyle::At | ParameterStyle::Signed => vec![(self.name.clone(), code)],
            ParameterStyle::Set => {
                let UnitSet { first, free } = UnitSet::from_code(code);
                vec![(format!("{}_first", self.name), first.into()), (format!("{}_free", self.name), free.into())]
            }
        }
    }

    /// Values at the ends of the range. There an index map reaches the farthest places.
    pub fn extremes(&self) -> Vec<i64> {
        match self.style {
            ParameterStyle::At | ParameterStyle::Signed => vec![self.minimum, self.maximum],
            ParameterStyle::Set => {
                let UnitSet { free, .. } = self.all();
                let last = UnitSet { first: self.maximum.max(0) as u32, free: 0 };
                let half = UnitSet { first: 0, free: free >> 1 };
                let whole = (!self.partial).then(|| self.all().code());
                [UnitSet::default().code(), half.code(), last.code()].into_iter().chain(whole).collect()
            }
        }
    }
}

/// The parts that instruction entries of all families have.
#[derive(Clone, Copy, Debug)]
pub struct Entry<'a> {
    /// The section, such as `alu`.
    pub family: &'static str,
    /// The name of the entry.
    pub name: &'a str,
    /// One paragraph.
    pub doc: &'a str,
    /// How well the entry is known.
    pub evidence: Evidence,
    /// Programs with the bits of their results.
    pub examples: &'a [Example],
}

impl Precision {
    /// The lane type of the engine for this precision.
    pub fn lane(&self) -> Option<Lane> {
        let float = self.kind == LaneKind::Float;
        Lane::ALL.into_iter().find(|l| l.format().is_some() == float && l.count() == self.lanes as usize)
    }
}

impl Spec {
    /// Index of the memory called `name`.
    pub fn memory(&self, name: &str) -> Option<usize> {
        self.memories.iter().position(|m| m.name == name)
    }

    /// The float format called `name`.
    pub fn format(&self, name: &str) -> Option<&Format> {
        self.formats.iter().find(|f| f.name == name)
    }

    /// The value of every count and port, under the name that expressions use.
    pub fn constants(&self) -> HashMap<String, i64> {
        constants(&self.counts, &self.ports)
    }

    /// The number of units of `level` in the whole chip.
    pub fn units(&self, level: LevelName) -> u64 {
        let c = &self.counts;
        let below = [
            (LevelName::Group, c.group),
            (LevelName::L2b, c.l2b),
            (LevelName::L1b, c.l1b),
            (LevelName::Mab, c.mab),
            (LevelName::Pe, c.pe),
        ];
        below.iter().filter(|(l, _)| *l <= level).map(|(_, n)| u64::from(*n)).product()
    }

    /// The number of units of `level` inside one unit of the level above. 1 for the chip.
    pub fn count(&self, level: LevelName) -> u32 {
        let c = &self.counts;
        match level {
            LevelName::Chip => 1,
            LevelName::Group => c.group,
            LevelName::L2b => c.l2b,
            LevelName::L1b => c.l1b,
            LevelName::Mab => c.mab,
            LevelName::Pe => c.pe,
        }
    }

    /// The number of PEs of one L1B, which is the length of a row of PE state.
    pub fn lanes(&self) -> usize {
        (self.counts.mab * self.counts.pe) as usize
    }

    /// The values of the parameter of a form, under the names that its index map uses.
    pub fn form_values(&self, transfer: usize, parameter: i64) -> Vec<(String, i64)> {
        self.parameters[transfer].iter().flat_map(|p| p.named(parameter)).collect()
    }

    /// The memory at an end of a form. `None` for the PEs.
    pub fn end_memory(&self, end: &End) -> Option<usize> {
        match end {
            End::Pe => None,
            End::Memory { operand, .. } => self.memory(&self.operands[*operand].memory),
        }
    }

    /// The number of long words of a block that an operand finds through a table.
    pub fn table_block(&self, table: &Table) -> u64 {
        let constants = self.constants();
        let block = Expr::parse(&table.block).and_then(|e| e.eval(&|n| constants.get(n).copied()));
        block.map_or(1, |b| b.max(1) as u64)
    }

    /// The name of the entry that a transfer was made from, without the name of the reduction.
    pub fn entry_name<'s>(&'s self, transfer: &'s Transfer) -> &'s str {
        &transfer.entry
    }

    /// The forms of a transfer entry over all its reductions, each once.
    pub fn entry_forms(&self, entry: &str) -> Vec<&Form> {
        let mut forms: Vec<&Form> = Vec::new();
        for form in self.transfers.iter().filter(|t| t.entry == entry).flat_map(|t| &t.form) {
            if !forms.iter().any(|f| f.name == form.name) {
                forms.push(form);
            }
        }
        forms
    }

    /// All instruction entries: ALU, MAU, matrix register access, transfers, control.
    pub fn entries(&self) -> Vec<Entry<'_>> {
        let mut all = Vec::new();
        macro_rules! family {
            ($list:expr, $family:literal) => {
                for e in &$list {
                    let (name, doc, evidence) = (e.name.as_str(), e.doc.as_str(), e.evidence);
                    all.push(Entry { family: $family, name, doc, evidence, examples: &e.example });
                }
            };
        }
        family!(self.alu, "alu");
        family!(self.mau, "mau");
        family!(self.matrix_ops, "matrix_op");
        // The reducing transfers of one entry differ in their names only, so one stands for all.
        let mut family = String::new();
        for t in &self.transfers {
            let name = self.entry_name(t);
            if t.reduction.is_none() || family != name {
                let (doc, evidence) = (t.doc.as_str(), t.evidence);
                all.push(Entry { family: "transfer", name, doc, evidence, examples: &t.example });
            }
            family = name.to_string();
        }
        family!(self.controls, "control");
        all
    }
}

/// The value of every count and port, under the name that expressions use.
pub(super) fn constants(counts: &Counts, ports: &IndexMap<String, i64>) -> HashMap<String, i64> {
    let named = [
        ("group", counts.group),
        ("l2b", counts.l2b),
        ("l1b", counts.l1b),
        ("mab", counts.mab),
        ("pe", counts.pe),
        ("cycle", counts.cycle),
    ];
    let counts = named.iter().map(|(n, v)| (n.to_string(), i64::from(*v)));
    counts.chain(ports.iter().map(|(n, v)| (n.clone(), *v))).collect()
}

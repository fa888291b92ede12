//! The tables that the parser often looks up, made once per spec.

use super::location::{self, Named};
use super::statement::{PeKind, Target};
use super::token::{tokens, Token};
use crate::spec::{selector_name, DataWidth, HALVES};
use crate::spec::{
    ControlKernel, End, LaneKind, LevelName, MauPort, Mnemonic, Operand, ResolvedForm, Spec, Unit, ALU_SLOT, LONG_BITS,
    MAU_SLOT, WORDS_PER_LONG,
};
use std::sync::OnceLock;

/// The destination that writes nothing.
pub(super) const NOWRITE: &str = "nowrite";

/// What a name after `$` stands for if it is not a memory with an address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Name {
    Nowrite,
    /// Entry of `forwards`.
    Forward(usize),
    /// Entry of `fixed`.
    Fixed(usize),
    /// Entry of `bases`, and the number of 32-bit words that are accessed.
    Base {
        base: usize,
        words: u32,
    },
    /// Entry of `banks`. `wide` says two rows or columns a cycle. A row may follow.
    Bank {
        bank: usize,
        wide: bool,
    },
    /// The turnaround register, and the number of 32-bit words of its width prefix.
    Turnaround {
        words: u32,
    },
    /// The mask registers as a destination. An entry follows.
    Flags,
}

/// How many long words one block of a form covers from each written address, and the strides to the next block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Reach {
    pub(super) source: u64,
    pub(super) destination: u64,
    pub(super) source_stride: u64,
    pub(super) destination_stride: u64,
}

#[derive(Debug)]
pub(super) struct Lexicon {
    pub(super) tokens: Vec<Token>,
    pub(super) names: Vec<(String, Name)>,
    /// The memories, as debug statements name them.
    pub(super) places: Vec<Named>,
    /// The width prefixes of masks, longest first. True if the mask bits control the words of the path.
    pub(super) mask_lengths: Vec<(String, bool)>,
    /// The memories that each letter of a mask statement stands for.
    pub(super) mask_letters: Vec<(char, Vec<usize>)>,
    pub(super) alu_slot: usize,
    pub(super) mau_slot: usize,
    /// The slot by entry of `transfers`.
    pub(super) transfer_slots: Vec<usize>,
    /// The slot of instructions that read the turnaround register, and the operand that the register stands in for.
    pub(super) turnaround_slot: usize,
    pub(super) turnaround_operand: Option<usize>,
    /// Whether the PEs are the destination, by entry of `transfers` and form.
    to_pe: Vec<Vec<bool>>,
    /// The slot by entry of `controls`.
    pub(super) control_slots: Vec<usize>,
    /// The slot by entry of `matrix_ops`.
    pub(super) matrix_slots: Vec<usize>,
    /// The memories that an ALU op excludes from its line, by entry of `alu`.
    pub(super) excludes: Vec<Vec<usize>>,
    /// The slots that may share a line with a slot: bit s is slot s.
    pub(super) company: Vec<u32>,
    /// The size of every memory in 32-bit words.
    pub(super) sizes: Vec<u64>,
    /// Entry of `memories`, by entry of `operands`.
    pub(super) operand_memories: Vec<Option<usize>>,
    /// The base address register that is added to the addresses of a memory, by entry of `memories`.
    pub(super) added_bases: Vec<Option<usize>>,
    /// Entry of `memories`, by entry of `bases`.
    pub(super) base_memories: Vec<Option<usize>>,
    /// Entry of `memories`, by entry of `banks`.
    pub(super) bank_memories: Vec<Option<usize>>,
    /// The memories of the mask registers and of the T register.
    pub(super) mask_memory: Option<usize>,
    pub(super) entry_memory: Option<usize>,
    reaches: Vec<Vec<OnceLock<Reach>>>,
}

impl Lexicon {
    pub(super) fn new(spec: &Spec) -> Self {
        let slot = |name: &str| spec.slots.iter().position(|s| s.name == name).unwrap_or(usize::MAX);
        let bit = |name: &String| 1u32.checked_shl(slot(name) as u32).unwrap_or(0);
        let company = |s: &crate::spec::Slot| match (s.alone, s.with.is_empty()) {
            (true, _) => 0,
            (false, true) => u32::MAX,
            (false, false) => s.with.iter().map(bit).fold(0, |a, b| a | b),
        };
        let added_base = |m: &crate::spec::Memory| {
            let operand = spec.operands.iter().find(|o| o.memory == m.name)?;
            spec.memory(operand.base.as_ref()?)
        };
        Lexicon {
            tokens: tokens(spec).collect(),
            names: names(spec),
            places: location::memories(spec),
            mask_lengths: mask_lengths(spec),
            mask_letters: mask_letters(spec),
            alu_slot: slot(ALU_SLOT),
            mau_slot: slot(MAU_SLOT),
            transfer_slots: spec.transfers.iter().map(|t| slot(&t.slot)).collect(),
            turnaround_slot: slot(&spec.turnaround.slot),
            turnaround_operand: spec.operands.iter().position(|o| o.name == spec.turnaround.operand),
            to_pe: spec.forms.iter().map(|f| f.iter().map(|f| matches!(f.destination, End::Pe)).collect()).collect(),
            control_slots: spec.controls.iter().map(|c| slot(&c.slot)).collect(),
            matrix_slots: spec.matrix_ops.iter().map(|m| slot(&m.slot)).collect(),
            excludes: spec.alu.iter().map(|a| a.excludes.iter().filter_map(|n| spec.memory(n)).collect()).collect(),
            company: spec.slots.iter().map(company).collect(),
            sizes: spec.memories.iter().map(|m| m.words * u64::from(WORDS_PER_LONG)).collect(),
            operand_memories: spec.operands.iter().map(|o| spec.memory(&o.memory)).collect(),
            added_bases: spec.memories.iter().map(added_base).collect(),
            base_memories: spec.bases.iter().map(|b| spec.memory(&b.memory)).collect(),
            bank_memories: spec.banks.iter().map(|b| spec.memory(&b.memory)).collect(),
            mask_memory: spec.memory(&spec.mask.memory),
            entry_memory: spec.memories.iter().position(|m| m.unit == Unit::Cycle),
            reaches: spec.forms.iter().map(|f| f.iter().map(|_| OnceLock::new()).collect()).collect(),
        }
    }

    /// The operand class with the name `text`, which is prefix and letter.
    #[inline]
    pub(super) fn token(&self, text: &str) -> Option<&Token> {
        self.tokens.iter().find(|t| t.text == text)
    }

    /// What the name `text` stands for. It has no number after it.
    #[inline]
    pub(super) fn name(&self, text: &str) -> Option<Name> {
        self.names.iter().find(|(name, _)| name == text).map(|(_, name)| *name)
    }

    /// The issue slot of a PE instruction.
    pub(super) fn kind_slot(&self, kind: &PeKind) -> usize {
        match kind {
            PeKind::Alu { .. } => self.alu_slot,
            PeKind::Mau { .. } => self.mau_slot,
            PeKind::Matrix { op, .. } => self.matrix_slots[*op],
            PeKind::L1bm { form, address: None } if self.to_pe[form.transfer][form.form] => self.turnaround_slot,
            PeKind::L1bm { form, .. } => self.transfer_slots[form.transfer],
        }
    }

    /// Recognises the mask statement, whose letters directly follow its name.
    pub(super) fn mask_statement(&self, spec: &Spec, text: &str) -> Option<Mnemonic> {
        let control = spec.controls.iter().position(|c| c.kernel == ControlKernel::Mask)?;
        text.starts_with(spec.controls[control].name.as_str()).then_some(Mnemonic::Control(control))
    }

    /// The memory that a target lies in.
    pub(super) fn target_memory(&self, target: &Target) -> Option<usize> {
        match target {
            Target::Memory(access) => Some(access.memory),
            Target::Base { base, .. } => self.base_memories.get(*base).copied().flatten(),
            Target::Flags { .. } => self.mask_memory,
        }
    }

    /// The reach of a form. It is computed at the first use.
    pub(super) fn reach(&self, spec: &Spec, transfer: usize, form: usize) -> Reach {
        let none = Reach { source: 1, destination: 1, source_stride: 1, destination_stride: 1 };
        let cell = self.reaches.get(transfer).and_then(|f| f.get(form));
        let resolved = spec.forms.get(transfer).and_then(|f| f.get(form));
        match (cell, resolved) {
            (Some(cell), Some(resolved)) => *cell.get_or_init(|| measure(spec, transfer, resolved).unwrap_or(none)),
            _ => none,
        }
    }
}

fn names(spec: &Spec) -> Vec<(String, Name)> {
    let words = |prefix: &String| spec.widths.iter().find(|w| w.prefix == *prefix).map_or(0, |w| w.words);
    let mut all = vec![(NOWRITE.to_string(), Name::Nowrite)];
    all.extend(spec.forwards.iter().enumerate().map(|(at, f)| (f.name.clone(), Name::Forward(at))));
    all.extend(spec.fixed.iter().enumerate().map(|(at, f)| (f.name.clone(), Name::Fixed(at))));
    for (base, b) in spec.bases.iter().enumerate() {
        all.extend(b.widths.iter().map(|p| (format!("{p}{}", b.name), Name::Base { base, words: words(p) })));
    }
    for (bank, b) in spec.banks.iter().enumerate() {
        let name = |p: &String| (format!("{p}{}", b.name), Name::Bank { bank, wide: words(p) > WORDS_PER_LONG });
        all.extend(b.widths.iter().map(name));
    }
    let t = &spec.turnaround;
    for operand in spec.operands.iter().filter(|o| o.name == t.operand) {
        all.extend(operand.widths.iter().map(|p| (format!("{p}{}", t.name), Name::Turnaround { words: words(p) })));
    }
    all.push((spec.mask.destination.clone(), Name::Flags));
    all
}

/// The width prefixes of masks: a mask is as wide as a long word or as the path.
fn mask_lengths(spec: &Spec) -> Vec<(String, bool)> {
    let lengths = spec.widths.iter().filter(|w| w.words >= WORDS_PER_LONG && !w.prefix.is_empty());
    let mut all: Vec<_> = lengths.map(|w| (w.prefix.clone(), w.words > WORDS_PER_LONG)).collect();
    sorting::sort_by_key(&mut all, |(prefix, _)| std::cmp::Reverse(prefix.len()));
    all
}

fn mask_letters(spec: &Spec) -> Vec<(char, Vec<usize>)> {
    let pe = |o: &&Operand| spec.memory(&o.memory).is_some_and(|m| spec.memories[m].level == LevelName::Pe);
    let memories =
        |o: &Operand| [Some(&o.memory), o.base.as_ref()].into_iter().flatten().filter_map(|n| spec.memory(n)).collect();
    let mut all: Vec<(char, Vec<usize>)> = spec.operands.iter().filter(pe).map(|o| (o.letter, memories(o))).collect();
    all.push((spec.mask.letter, spec.memory(&spec.mask.memory).into_iter().collect()));
    all
}

/// Measures the reach of one block. The parameter is tried at both ends of its range, because offsets are largest
/// there.
fn measure(spec: &Spec, transfer: usize, form: &ResolvedForm) -> Option<Reach> {
    let names: Vec<String> = [("src", &form.source), ("dst", &form.destination)]
        .into_iter()
        .flat_map(|(side, end)| match end {
            End::Memory { selectors, .. } => selectors.iter().map(|l| selector_name(side, *l)).collect(),
            End::Pe => Vec::new(),
        })
        .collect();
    let mut values: Vec<(&str, i64)> = names.iter().map(|n| (n.as_str(), 0)).collect();
    let parameter = spec.parameters.get(transfer)?.as_ref();
    let mut reach = Reach { source: 0, destination: 0, source_stride: 1, destination_stride: 1 };
    if form.unit.is_some() {
        (reach.source_stride, reach.destination_stride) = form.block_strides(&values).ok()?;
        values.push(("i", 0));
    }
    let ends = parameter.map_or(vec![0], crate::spec::ResolvedParameter::extremes);
    for value in ends {
        let named = spec.form_values(transfer, value);
        let mut all = values.clone();
        all.extend(named.iter().map(|(n, v)| (n.as_str(), *v)));
        for (from, to) in form.evaluate(&all).ok()? {
            reach.source = reach.source.max(from.addr + 1);
            reach.destination = reach.destination.max(to.addr + 1);
        }
    }
    Some(reach)
}

/// Whether a MAU port of a precision takes `e` and `r`. It takes `e` if the format it reads has a next lower one, and
/// `r` if it reads the lowest one. The factors of a matrix product are block float and take neither.
pub(super) fn mau_conversions(
    spec: &Spec,
    precision: usize,
    mau_precision: usize,
    matrix: bool,
    port: MauPort,
) -> (bool, bool) {
    if matrix && port != MauPort::Z {
        return (false, false);
    }
    let lanes = spec.precisions[precision].lanes;
    let path = port == MauPort::Z && spec.mau_precisions[mau_precision].addend == DataWidth::Path;
    conversions(spec, LONG_BITS * if path { HALVES } else { 1 } / lanes.max(1))
}

/// Whether an ALU input of a precision takes `r`.
pub(super) fn alu_reduces(spec: &Spec, precision: Option<usize>) -> bool {
    let float = precision.map(|p| &spec.precisions[p]).filter(|p| p.kind == LaneKind::Float);
    float.is_some_and(|p| conversions(spec, LONG_BITS / p.lanes.max(1)).1)
}

fn conversions(spec: &Spec, bits: u32) -> (bool, bool) {
    let format = |bits: u32| spec.formats.iter().any(|f| 1 + f.exponent + f.fraction == bits);
    let lower = format(bits / 2);
    (lower, !lower && format(bits * 2))
}

/// The issue slot of an instruction.
pub(super) fn slot_of(lexicon: &Lexicon, mnemonic: Mnemonic) -> usize {
    match mnemonic {
        Mnemonic::Alu { .. } => lexicon.alu_slot,
        Mnemonic::Mau { .. } => lexicon.mau_slot,
        Mnemonic::Matrix { op, .. } => lexicon.matrix_slots[op],
        Mnemonic::Transfer(index) => lexicon.transfer_slots[index],
        Mnemonic::Control(index) => lexicon.control_slots[index],
    }
}

//! What the parser looks up often, laid out once per spec.

use crate::spec::{selector_name, DataWidth, HALVES};
use crate::spec::{
    End, LaneKind, LevelName, MauPort, Mnemonic, ResolvedForm, Spec, Unit, ALU_SLOT, LONG_BITS, MAU_SLOT,
    WORDS_PER_LONG,
};
use std::sync::OnceLock;

/// The first letter of every operand.
pub(super) const SIGIL: u8 = b'$';
/// The destination that writes nothing.
pub(super) const NOWRITE: &str = "nowrite";

/// Width prefix and letter of an operand class.
#[derive(Clone, Debug)]
pub(super) struct Token {
    pub(super) text: String,
    /// Entry of `operands`.
    pub(super) operand: usize,
    /// Entry of `memories`.
    pub(super) memory: usize,
    /// Words of 32 bits per access.
    pub(super) words: u32,
    /// Words of 32 bits for a PE memory, long words for the others.
    pub(super) size: u64,
    pub(super) unit: Unit,
    /// The memory of a PE.
    pub(super) pe: bool,
}

/// Runs of long words that one block of a form covers from the written addresses, and how far the next block lies.
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
    pub(super) alu_slot: usize,
    pub(super) mau_slot: usize,
    /// By entry of `transfers`.
    pub(super) transfer_slots: Vec<usize>,
    /// By entry of `controls`.
    pub(super) control_slots: Vec<usize>,
    /// Memories that an ALU op keeps off its line, by entry of `alu`.
    pub(super) excludes: Vec<Vec<usize>>,
    /// Slots that a slot shares a line with, bit by bit.
    pub(super) company: Vec<u32>,
    /// Words of 32 bits of every memory.
    pub(super) sizes: Vec<u64>,
    /// Entry of `memories`, by entry of `operands`.
    pub(super) operand_memories: Vec<Option<usize>>,
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
        Lexicon {
            tokens: tokens(spec).collect(),
            alu_slot: slot(ALU_SLOT),
            mau_slot: slot(MAU_SLOT),
            transfer_slots: spec.transfers.iter().map(|t| slot(&t.slot)).collect(),
            control_slots: spec.controls.iter().map(|c| slot(&c.slot)).collect(),
            excludes: spec.alu.iter().map(|a| a.excludes.iter().filter_map(|n| spec.memory(n)).collect()).collect(),
            company: spec.slots.iter().map(company).collect(),
            sizes: spec.memories.iter().map(|m| m.words * u64::from(WORDS_PER_LONG)).collect(),
            operand_memories: spec.operands.iter().map(|o| spec.memory(&o.memory)).collect(),
            reaches: spec.forms.iter().map(|f| f.iter().map(|_| OnceLock::new()).collect()).collect(),
        }
    }

    /// The operand class called `text`: prefix and letter.
    #[inline]
    pub(super) fn token(&self, text: &str) -> Option<&Token> {
        self.tokens.iter().find(|t| t.text == text)
    }

    /// What a form covers; evaluated when it is first used.
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

/// Every operand class with each of its widths, in spec order.
pub(super) fn tokens(spec: &Spec) -> impl Iterator<Item = Token> + '_ {
    spec.operands.iter().enumerate().flat_map(move |(operand, o)| {
        o.widths.iter().filter_map(move |prefix| {
            let memory = spec.memory(&o.memory)?;
            let m = &spec.memories[memory];
            let words = spec.widths.iter().find(|w| w.prefix == *prefix)?.words;
            let pe = m.level == LevelName::Pe;
            let size = if pe { m.words * u64::from(WORDS_PER_LONG) } else { m.words };
            Some(Token { text: format!("{prefix}{}", o.letter), operand, memory, words, size, unit: m.unit, pe })
        })
    })
}

/// The extent of one block with every parameter at an end of its range, which is where offsets are largest.
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
    let ends = parameter.map_or(vec![0], |p| vec![p.minimum, p.maximum]);
    for value in ends {
        let mut all = values.clone();
        all.extend(parameter.map(|p| (p.name.as_str(), value)));
        for (from, to) in form.evaluate(&all).ok()? {
            reach.source = reach.source.max(from.addr + 1);
            reach.destination = reach.destination.max(to.addr + 1);
        }
    }
    Some(reach)
}

/// Whether a MAU port of a precision takes `e` or `r`: `e` where the format it reads has a next lower one, `r` where
/// it reads the lowest.
pub(super) fn mau_conversions(spec: &Spec, precision: usize, mau_precision: usize, port: MauPort) -> (bool, bool) {
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
        Mnemonic::Matrix { .. } => lexicon.mau_slot,
        Mnemonic::Transfer(index) => lexicon.transfer_slots[index],
        Mnemonic::Control(index) => lexicon.control_slots[index],
    }
}

//! Operand classes with their width prefixes, as they are written after `$`.

use crate::spec::{LevelName, Spec, Unit, WORDS_PER_LONG};

/// The first letter of every operand.
pub(super) const SIGIL: u8 = b'$';

/// An operand class with one of its widths. `text` is its width prefix and its letters.
#[derive(Clone, Debug)]
pub(super) struct Token {
    pub(super) text: String,
    /// Entry of `operands`.
    pub(super) operand: usize,
    /// Entry of `memories`.
    pub(super) memory: usize,
    /// 32-bit words per access.
    pub(super) words: u32,
    /// Size of the memory: 32-bit words for a PE memory, long words for the others, entries for a table.
    pub(super) size: u64,
    pub(super) unit: Unit,
    /// The memory belongs to a PE.
    pub(super) pe: bool,
    /// Addresses are entries of a table. `operand` is then the operand that this one stands for.
    pub(super) table: bool,
}

/// Every operand class with each of its widths, in the order of the spec.
pub(super) fn tokens(spec: &Spec) -> impl Iterator<Item = Token> + '_ {
    spec.operands.iter().enumerate().flat_map(move |(operand, o)| {
        o.widths.iter().filter_map(move |prefix| {
            let memory = spec.memory(&o.memory)?;
            let m = &spec.memories[memory];
            let words = spec.widths.iter().find(|w| w.prefix == *prefix)?.words;
            let pe = m.level == LevelName::Pe;
            let text = format!("{prefix}{}{}", o.letter, o.suffix);
            let token =
                Token { text, operand, memory, words, size: m.words, unit: m.unit, pe, table: o.table.is_some() };
            if let Some(table) = &o.table {
                let operand = spec.operands.iter().position(|of| of.name == table.operand)?;
                let size = spec.memory(&table.memory).map(|t| spec.memories[t].words)?;
                return Some(Token { operand, size, ..token });
            }
            Some(Token { size: if pe { m.words * u64::from(WORDS_PER_LONG) } else { m.words }, ..token })
        })
    })
}

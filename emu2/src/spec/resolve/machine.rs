//! Checks the parts of a machine: counts, formats, memories and operands.

use crate::error::{Code, Error};
use crate::num::format::FloatFormat;
use crate::spec::expr::Expr;
use crate::spec::fault::{bad, unknown};
use crate::spec::loaded::constants;
use crate::spec::model::*;
use crate::spec::{Spec, BUFFER_STATE, HALVES, LONG_BITS, WORDS_PER_LONG, WORD_BITS};
use indexmap::IndexMap;
use std::collections::HashSet;

/// A larger count is taken as a typing error.
const MAX_COUNT: u32 = 1024;
/// A mask is a `u32` with a bit per cycle.
const MAX_CYCLES: u32 = u32::BITS;
/// A tag is a 32-bit number.
const MAX_TAG_DIGITS: usize = 8;

pub(super) fn check_counts(spec: &Spec) -> Result<(), Error> {
    let c = &spec.counts;
    for (name, n) in
        [("group", c.group), ("l2b", c.l2b), ("l1b", c.l1b), ("mab", c.mab), ("pe", c.pe), ("cycle", c.cycle)]
    {
        if !(1..=MAX_COUNT).contains(&n) {
            return Err(bad(format!("[counts] {name} = {n}; it must be 1 to {MAX_COUNT}")));
        }
    }
    if c.cycle > MAX_CYCLES {
        return Err(bad(format!("[counts] cycle = {}; masks are for {MAX_CYCLES} cycles at most", c.cycle)));
    }
    for (name, width) in &spec.ports {
        if constants(c, &IndexMap::new()).contains_key(name) {
            return Err(Error::new(Code::SpecDuplicate, format!("[ports] `{name}` is a count too")));
        }
        if !(1..=i64::from(MAX_COUNT)).contains(width) {
            return Err(bad(format!("[ports] {name} = {width}; it must be 1 to {MAX_COUNT}")));
        }
    }
    let tree = [LevelName::Group, LevelName::L2b, LevelName::L1b, LevelName::Mab, LevelName::Pe];
    if spec.levels.iter().map(|l| l.name).collect::<Vec<_>>() != tree {
        return Err(bad("[[level]] must be group, l2b, l1b, mab, pe in this order".into()));
    }
    let mut letters = HashSet::new();
    match spec.levels.iter().find(|l| !letters.insert(l.selector)) {
        Some(level) => {
            Err(Error::new(Code::SpecDuplicate, format!("two levels have the selector `{}`", level.selector)))
        }
        None => Ok(()),
    }
}

pub(super) fn check_formats(spec: &Spec) -> Result<(), Error> {
    for f in &spec.formats {
        let bits = 1 + f.exponent + f.fraction;
        if FloatFormat::supported(f.exponent, f.fraction).is_none() || bits > LONG_BITS {
            let (e, m) = (f.exponent, f.fraction);
            return Err(bad(format!("[[format]] `{}`: the engine has no kernels for 1+{e}+{m} bits", f.name)));
        }
    }
    for p in &spec.precisions {
        if p.lanes == 0 || !LONG_BITS.is_multiple_of(p.lanes) {
            return Err(bad(format!("[[precision]] `{}`: {} lanes do not fill a long word", p.name, p.lanes)));
        }
        let format = p.format.as_deref().map(|name| {
            spec.format(name).ok_or_else(|| unknown(format!("[[precision]] `{}`: no format `{name}`", p.name)))
        });
        if p.lane().is_none() {
            return Err(unknown(format!("[[precision]] `{}`: the engine has no lanes of this letter", p.name)));
        }
        match (p.kind, format.transpose()?) {
            (LaneKind::Int, None) => {}
            (LaneKind::Float, Some(f)) if (1 + f.exponent + f.fraction) * p.lanes == LONG_BITS => {}
            _ => return Err(bad(format!("[[precision]] `{}`: kind, format and lanes do not fit", p.name))),
        }
    }
    for l in &spec.literals {
        let bits = match (l.kind, l.format.as_deref(), l.bits) {
            (LiteralKind::Float, Some(name), None) => {
                let f = spec
                    .format(name)
                    .ok_or_else(|| unknown(format!("[[literal]] `{}`: no format `{name}`", l.name)))?;
                1 + f.exponent + f.fraction
            }
            (LiteralKind::Signed | LiteralKind::Unsigned, None, Some(bits)) => bits,
            _ => return Err(bad(format!("[[literal]] `{}`: a float has a format, an integer has bits", l.name))),
        };
        if bits * l.repeat != WORD_BITS {
            return Err(bad(format!("[[literal]] `{}`: {bits} bits x {} do not fill a word", l.name, l.repeat)));
        }
    }
    Ok(())
}

/// The rows of a matrix register in the precision that has the most rows.
fn matrix_rows(spec: &Spec) -> u64 {
    spec.mau_precisions.iter().map(|p| u64::from(p.rows)).max().unwrap_or(0)
}

pub(super) fn check_memories(spec: &Spec) -> Result<(), Error> {
    let mut names = HashSet::new();
    for m in &spec.memories {
        if !names.insert(&m.dump) {
            return Err(Error::new(Code::SpecDuplicate, format!("two memories dump as `{}`", m.dump)));
        }
        let dense_limit = 1 << 24;
        if m.words == 0 || (!m.sparse && m.words > dense_limit) {
            return Err(bad(format!("[[memory]] `{}`: {} long words", m.name, m.words)));
        }
        let fits = match (m.level, m.unit) {
            (LevelName::Pe, Unit::Word) => !m.sparse,
            (LevelName::Pe, Unit::Mask) => m.words == u64::from(spec.mask.entries * spec.counts.cycle),
            (LevelName::Pe, Unit::Base) => m.words == 1,
            (LevelName::Pe, Unit::Matrix) => m.words == matrix_rows(spec),
            (LevelName::Pe, Unit::Cycle) => m.words == u64::from(spec.counts.cycle * HALVES),
            (LevelName::L1b | LevelName::L2b, Unit::Long) => !m.sparse,
            (LevelName::Group, Unit::Long) => m.sparse,
            _ => false,
        };
        if !fits {
            return Err(bad(format!("[[memory]] `{}`: level, unit, words and sparse do not fit together", m.name)));
        }
        if m.host.is_some_and(|group| m.level != LevelName::Group || group >= spec.counts.group) {
            return Err(bad(format!("[[memory]] `{}`: `host` is no group of its instances", m.name)));
        }
    }
    if spec.memories.iter().filter(|m| m.host.is_some()).count() > 1 {
        return Err(Error::new(Code::SpecDuplicate, "two memories have the key `host`".to_string()));
    }
    Ok(())
}

pub(super) fn check_operands(spec: &Spec) -> Result<(), Error> {
    let mut tokens = HashSet::new();
    for o in &spec.operands {
        if spec.memory(&o.memory).is_none() {
            return Err(unknown(format!("[[operand]] `{}`: no memory `{}`", o.name, o.memory)));
        }
        for prefix in &o.widths {
            if !spec.widths.iter().any(|w| w.prefix == *prefix) {
                return Err(unknown(format!("[[operand]] `{}`: no width has the prefix `{prefix}`", o.name)));
            }
            if !tokens.insert(format!("{prefix}{}{}", o.letter, o.suffix)) {
                let message = format!("[[operand]] `{}`: `${prefix}{}{}` is taken", o.name, o.letter, o.suffix);
                return Err(Error::new(Code::SpecDuplicate, message));
            }
        }
    }
    check_registers(spec)?;
    check_tables(spec)?;
    for w in &spec.widths {
        if !w.words.is_power_of_two() || w.words > WORDS_PER_LONG * HALVES {
            return Err(bad(format!("[[width]] `{}`: {} words", w.name, w.words)));
        }
    }
    let constants = spec.constants();
    for f in spec.fixed.iter().filter(|f| f.value != "msb") {
        let known = |n: &str| ["g", "q", "b", "m", "p"].contains(&n).then_some(0).or_else(|| constants.get(n).copied());
        Expr::parse(&f.value)
            .and_then(|e| e.eval(&known))
            .map_err(|e| Error::new(Code::SpecExpression, format!("[[fixed]] `{}`: {e}", f.name)))?;
    }
    Ok(())
}

/// Checks that letters are lower case, and that letters that may stand at one place differ.
pub(super) fn check_syntax(spec: &Spec) -> Result<(), Error> {
    let s = &spec.syntax;
    let places: [(&str, Vec<char>); 4] = [
        ("stride, modify, extend, reduce", vec![s.stride, s.modify, s.extend, s.reduce]),
        ("mv_size, mv_tag, mv_priority", vec![s.mv_size, s.mv_tag, s.mv_priority]),
        ("mask_assertions", s.mask_assertions.clone()),
        ("indirect, block_float", s.mv_table.chars().chain([s.indirect, s.block_float]).collect()),
    ];
    for (at, (keys, letters)) in places.into_iter().enumerate() {
        if let Some(letter) = letters.iter().find(|letter| !letter.is_ascii_lowercase()) {
            return Err(bad(format!("[syntax] {keys}: `{letter}` is no lower-case letter")));
        }
        let mut known = HashSet::new();
        if let Some(letter) = letters.iter().find(|letter| at < 3 && !known.insert(**letter)) {
            return Err(Error::new(Code::SpecDuplicate, format!("[syntax] {keys}: `{letter}` stands there twice")));
        }
    }
    let second = s.mv_table.chars().nth(1);
    if s.mv_table.len() != 2 || second.is_some_and(|letter| s.mv_size == letter) {
        return Err(bad(format!("[syntax] mv_table: `{}` must be two letters", s.mv_table)));
    }
    if !(1..=MAX_TAG_DIGITS).contains(&s.tag_digits) {
        return Err(bad(format!("[syntax] tag_digits = {}; it must be 1 to {MAX_TAG_DIGITS}", s.tag_digits)));
    }
    let largest = 16u64.pow(s.tag_digits as u32) - 1;
    if u64::from(spec.timing.tag_maximum) > largest {
        let (maximum, digits) = (spec.timing.tag_maximum, s.tag_digits);
        return Err(bad(format!("[timing] tag_maximum = {maximum} has more than {digits} hex digits")));
    }
    Ok(())
}

/// Checks that tables and buffers lie in memories of the same level as the operands that they serve.
fn check_tables(spec: &Spec) -> Result<(), Error> {
    let level = |name: &str, place: &str| match spec.memory(name) {
        Some(m) => Ok(spec.memories[m].level),
        None => Err(unknown(format!("{place}: no memory `{name}`"))),
    };
    for o in &spec.operands {
        let place = format!("[[operand]] `{}`", o.name);
        if let Some(buffer) = &o.buffer {
            let words = spec.memory(buffer).map_or(0, |m| spec.memories[m].words);
            if level(buffer, &place)? != level(&o.memory, &place)? || words <= BUFFER_STATE {
                return Err(bad(format!("{place}: `{buffer}` cannot be its buffer")));
            }
        }
        let Some(table) = &o.table else { continue };
        let of = spec.operands.iter().find(|other| other.name == table.operand);
        let of = of.ok_or_else(|| unknown(format!("{place}: no operand `{}`", table.operand)))?;
        if of.table.is_some() || of.memory != o.memory || of.selectors != o.selectors {
            return Err(bad(format!("{place}: it cannot stand for `{}`", of.name)));
        }
        if level(&table.memory, &place)? != LevelName::Group || level(&o.memory, &place)? != LevelName::Group {
            return Err(bad(format!("{place}: a table and what it leads to belong to the groups")));
        }
        let constants = spec.constants();
        let block = Expr::parse(&table.block).and_then(|e| e.eval(&|n| constants.get(n).copied()));
        let block = block.map_err(|e| Error::new(Code::SpecExpression, format!("{place}: {e}")))?;
        if block < 1 {
            return Err(bad(format!("{place}: blocks of {block} long words")));
        }
    }
    Ok(())
}

/// Checks that base address, matrix and mask registers lie in memories of their kind.
fn check_registers(spec: &Spec) -> Result<(), Error> {
    let made_for = |name: &str, unit: Unit, place: String| match spec.memory(name) {
        Some(m) if spec.memories[m].unit == unit => Ok(()),
        Some(_) => Err(bad(format!("{place}: the memory `{name}` is of another kind"))),
        None => Err(unknown(format!("{place}: no memory `{name}`"))),
    };
    for base in &spec.bases {
        made_for(&base.memory, Unit::Base, format!("[[base]] `{}`", base.name))?;
        if !(1..WORD_BITS).contains(&base.bits) {
            return Err(bad(format!("[[base]] `{}`: {} bits", base.name, base.bits)));
        }
    }
    for bank in &spec.banks {
        made_for(&bank.memory, Unit::Matrix, format!("[[bank]] `{}`", bank.name))?;
    }
    for o in spec.operands.iter().filter(|o| o.base.is_some()) {
        made_for(o.base.as_deref().unwrap_or_default(), Unit::Base, format!("[[operand]] `{}`", o.name))?;
    }
    made_for(&spec.mask.memory, Unit::Mask, "[mask]".into())?;
    check_turnaround(spec)?;
    // Four bits hold the flags of the lanes of a long word. As a mask they enable its halves or the words of the path.
    if spec.mask.bits != 4 || spec.mask.entries < 2 {
        return Err(bad(format!("[mask]: the engine has masks of 4 bits, not {}", spec.mask.bits)));
    }
    Ok(())
}

/// Checks that the turnaround register stands in for an operand of the L1Bs.
fn check_turnaround(spec: &Spec) -> Result<(), Error> {
    let t = &spec.turnaround;
    let Some(memory) = spec.memory(&t.memory) else {
        return Err(unknown(format!("[turnaround]: no memory `{}`", t.memory)));
    };
    let operand = spec.operands.iter().find(|o| o.name == t.operand);
    let same = operand.and_then(|o| spec.memory(&o.memory)).is_some_and(|m| spec.memories[m].level == LevelName::L1b);
    if !same || !spec.slots.iter().any(|s| s.name == t.slot) {
        return Err(unknown(format!("[turnaround]: no operand `{}` of the L1Bs or no slot `{}`", t.operand, t.slot)));
    }
    if spec.memories[memory].level != LevelName::L1b {
        return Err(bad(format!("[turnaround]: the memory `{}` is not one of the L1Bs", t.memory)));
    }
    Ok(())
}

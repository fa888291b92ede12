//! Reads locations of debug statements, such as `$lm0n0c0b0m0p0`.

use super::cursor::{fault, fault_help, Cursor, Parse};
use super::statement::Location;
use super::token::{tokens, Token, SIGIL};
use crate::error::{Code, Diagnostic, Span};
use crate::spec::{Spec, Unit, WORDS_PER_LONG};

/// A location, with the values that its checks and its echo need.
#[derive(Clone, Debug)]
pub(super) struct Located {
    pub(super) location: Location,
    pub(super) span: Span,
    /// How many accesses fit between the address and the end of the memory.
    pub(super) room: u64,
    /// The prefix that the echo adds if the statement has none. Only the T register has one.
    pub(super) echo_prefix: Option<String>,
}

/// A memory as debug statements name it.
#[derive(Clone, Debug)]
pub(super) struct Named {
    text: String,
    /// Entry of `memories`.
    memory: usize,
    /// 32-bit words per access.
    words: u32,
    /// The number of addresses of the memory in one unit.
    size: u64,
    unit: Unit,
}

/// All memories that debug statements name: operand classes, mask registers by entry, matrix registers by row. Longer
/// names come first.
pub(super) fn memories(spec: &Spec) -> Vec<Named> {
    let operand = |Token { text, memory, words, size, unit, .. }| Named { text, memory, words, size, unit };
    let mut all: Vec<Named> = tokens(spec).filter(|t| !t.table).map(operand).collect();
    let register = |text: String, memory: usize, size: u64| {
        let unit = spec.memories[memory].unit;
        Named { text, memory, words: WORDS_PER_LONG, size, unit }
    };
    let mask = &spec.mask;
    all.extend(spec.memory(&mask.memory).map(|m| register(mask.destination.clone(), m, mask.entries.into())));
    for bank in &spec.banks {
        let long = spec.widths.iter().find(|w| w.words == WORDS_PER_LONG && bank.widths.contains(&w.prefix));
        if let (Some(long), Some(memory)) = (long, spec.memory(&bank.memory)) {
            all.push(register(format!("{}{}", long.prefix, bank.name), memory, spec.memories[memory].words));
        }
    }
    sorting::sort_by_key(&mut all, |named| std::cmp::Reverse(named.text.len()));
    all
}

/// Reads a location such as `$lm0n0c0b0m0p0` or `$lb16n0`: memory, address in the memory's unit, one unit per level.
///
/// # Errors
/// One diagnostic for an unknown memory, a bad address or a unit that the machine does not have. Its span counts from
/// the start of `text`.
pub fn parse_location(text: &str, spec: &Spec) -> Result<Location, Diagnostic> {
    let mut cursor = Cursor::new(text, 0, text.len());
    let located = location(&mut cursor, spec, &memories(spec)).map_err(|fault| *fault)?;
    cursor.expect_end("the location").map_err(|fault| *fault)?;
    Ok(located.location)
}

/// Reads a location at the cursor.
pub(super) fn location(cursor: &mut Cursor<'_>, spec: &Spec, known: &[Named]) -> Parse<Located> {
    let start = cursor.at();
    let whole = cursor.word_span();
    if !cursor.eat(SIGIL) {
        let message = format!("`{}` is not a location", cursor.word());
        return Err(fault(Code::BadLocation, whole, message));
    }
    let rest = cursor.rest();
    let Some(token) = known.iter().find(|t| rest.starts_with(t.text.as_str())) else {
        let names: Vec<String> = known.iter().map(|t| format!("${}", t.text)).collect();
        let message = format!("`{}` names no memory of `{}`", cursor.quote(whole), spec.machine.name);
        let help = format!("memories are {}", names.join(", "));
        return Err(fault_help(Code::UnknownOperand, whole, message, help));
    };
    cursor.eat_str(&token.text);
    if token.words > WORDS_PER_LONG {
        let message = format!("debug statements access words and long words, not `${}`", token.text);
        return Err(fault(Code::BadLocation, cursor.span_from(start), message));
    }
    let (address, words, room) = address(cursor, spec, token, start)?;
    let units = units(cursor, spec, token)?;
    if !cursor.at_break() {
        let message = format!("`{}` is not a part of a location", cursor.word());
        return Err(fault(Code::BadLocation, cursor.word_span(), message));
    }
    let narrow = token.unit == Unit::Cycle && token.words < WORDS_PER_LONG;
    let long = spec.widths.iter().find(|w| narrow && w.words == WORDS_PER_LONG);
    let echo_prefix = long.map(|w| w.prefix.clone());
    let location = Location { memory: token.memory, words, address, units };
    Ok(Located { location, span: cursor.span_from(start), room, echo_prefix })
}

/// Reads the address. Returns it with the 32-bit words per access and the number of accesses that fit from there on.
fn address(cursor: &mut Cursor<'_>, spec: &Spec, token: &Named, start: usize) -> Parse<(u64, u32, u64)> {
    if token.unit == Unit::Cycle {
        return Ok((0, WORDS_PER_LONG, u64::from(spec.counts.cycle)));
    }
    let address = cursor.number("the address")?;
    let (words, step, unit) = match token.unit {
        Unit::Word => (token.words, u64::from(token.words), "words"),
        Unit::Mask => (WORDS_PER_LONG, 1, "entries"),
        Unit::Matrix => (WORDS_PER_LONG, 1, "rows"),
        Unit::Long | Unit::Cycle | Unit::Base => (WORDS_PER_LONG, 1, "long words"),
    };
    let name = &spec.memories[token.memory].name;
    if address >= token.size {
        let message = format!("address {address} is past the {} {unit} of {name}", token.size);
        return Err(fault(Code::DebugRange, cursor.span_from(start), message));
    }
    if address % step != 0 {
        let message = format!("address {address} is no multiple of {step}, the words of `${}`", token.text);
        return Err(fault(Code::Misaligned, cursor.span_from(start), message));
    }
    Ok((address, words, (token.size - address) / step))
}

/// Reads one unit per level, each after the letter of its level. A level that is not named stays `None`.
fn units(cursor: &mut Cursor<'_>, spec: &Spec, token: &Named) -> Parse<[Option<u32>; 5]> {
    let mut units = [None; 5];
    let memory = &spec.memories[token.memory];
    while !cursor.at_break() {
        let from = cursor.at();
        let rest = cursor.rest();
        let found = spec.levels.iter().position(|l| rest.starts_with(l.selector));
        let Some((at, level)) = found.map(|at| (at, &spec.levels[at])) else { break };
        cursor.move_to(from + level.selector.len_utf8());
        let letter = level.selector;
        if level.name > memory.level {
            let message = format!("{} has no selector `{letter}`", memory.name);
            let legal: String = spec.levels.iter().filter(|l| l.name <= memory.level).map(|l| l.selector).collect();
            let help = format!("its selectors are the letters {legal}");
            return Err(fault_help(Code::BadLocation, cursor.span_from(from), message, help));
        }
        let number = cursor.number32("the number of the unit")?;
        let (count, span) = (spec.count(level.name), cursor.span_from(from));
        if number >= count {
            let message =
                format!("`{letter}{number}` does not exist: the machine has {letter}0 to {letter}{}", count - 1);
            return Err(fault(Code::BadUnit, span, message));
        }
        if units[at].replace(number).is_some() {
            return Err(fault(Code::BadLocation, span, format!("the selector `{letter}` stands there twice")));
        }
    }
    Ok(units)
}

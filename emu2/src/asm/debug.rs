//! Debug statements: `d set` and `d get`.

use super::cursor::{fault, fault_help, shorten, Parse};
use super::location::{location, Located};
use super::parser::Parser;
use super::statement::{DebugGet, DebugSet, ItemKind};
use crate::error::{Code, Span};
use crate::spec::{LaneKind, Unit};

/// The letter that a debug statement begins with.
pub(super) const DEBUG: char = 'd';
const SET: &str = "set";
const GET: &str = "get";

impl Parser<'_> {
    /// Reads the statement after its `d`.
    pub(super) fn debug(&mut self) -> Parse<ItemKind> {
        self.cursor.skip_blanks();
        let at = self.cursor.at();
        let verb = self.cursor.letters();
        let span = Span::new(at, self.cursor.word_span().end as usize);
        let broken = !self.cursor.at_break();
        match verb {
            SET if !broken => self.debug_set(),
            _ if verb.starts_with(GET) && !broken => self.debug_get(&verb[GET.len()..], span),
            _ => {
                let message = format!("`d {}` is not a debug statement", self.cursor.quote(span));
                Err(fault(Code::UnknownDebug, span, message))
            }
        }
    }

    /// Reads a location and a count. With `endless` the count may exceed a memory with one entry per cycle, whose
    /// entries then repeat.
    fn place(&mut self, endless: bool) -> Parse<(Located, u64)> {
        self.cursor.skip_blanks();
        if self.cursor.peek().is_none() {
            return Err(fault(Code::BadLocation, self.cursor.word_span(), "a location is missing"));
        }
        let located = location(&mut self.cursor, self.spec, &self.lexicon.places)?;
        self.cursor.skip_blanks();
        let at = self.cursor.at();
        let count = self.cursor.number("the count")?;
        self.expect_break("the count")?;
        let repeats = endless && self.spec.memories[located.location.memory].unit == Unit::Cycle;
        if count == 0 || count > if repeats { u64::from(u32::MAX) } else { located.room } {
            let name = &self.spec.memories[located.location.memory].name;
            let message = match count {
                0 => "the count is 0".to_string(),
                _ => format!("{count} accesses from here reach past the end of {name}"),
            };
            let help = format!("use 1 to {}", located.room);
            return Err(fault_help(Code::DebugRange, self.cursor.span_from(at), message, help));
        }
        Ok((located, count))
    }

    fn debug_get(&mut self, letters: &str, verb: Span) -> Parse<ItemKind> {
        let floats = || self.spec.precisions.iter().enumerate().filter(|(_, p)| p.kind == LaneKind::Float);
        let plain = || floats().filter(|(_, p)| !p.pseudo);
        let named = |letter: &str| floats().find(|(_, p)| p.name == letter);
        let block = letters.strip_prefix(self.spec.syntax.block_float).and_then(named);
        let precision = block.or_else(|| plain().find(|(_, p)| p.name == letters)).map(|(at, _)| at);
        if precision.is_none() && !letters.is_empty() {
            let names = plain().map(|(_, p)| p.name.clone());
            let names: Vec<String> =
                names.chain(floats().map(|(_, p)| format!("{}{}", self.spec.syntax.block_float, p.name))).collect();
            let message = format!("`{}` is not a type of `d get`", shorten(letters));
            let help = format!("types are {}, or none", names.join(", "));
            return Err(fault_help(Code::UnknownDebug, verb, message, help));
        }
        let block = block.is_some();
        let (located, count) = self.place(true)?;
        self.cursor.expect_end("the count")?;
        let Located { location, span, echo_prefix, .. } = located;
        if precision.is_none() && self.spec.memories[location.memory].unit == Unit::Matrix {
            let letter = plain().next().map_or("", |(_, p)| p.name.as_str());
            let help = format!("write `d get{letter}` or another type");
            return Err(fault_help(Code::UnknownDebug, verb, "a matrix register is printed with a type only", help));
        }
        let written = self.cursor.slice(span.start as usize + 1, span.end as usize);
        let prefix = echo_prefix.unwrap_or_default();
        let verb = self.cursor.slice(verb.start as usize, verb.end as usize);
        let statement = format!("d {verb} ${prefix}{written} {count}");
        Ok(ItemKind::Get(Box::new(DebugGet { location, precision, block, count, statement })))
    }

    fn debug_set(&mut self) -> Parse<ItemKind> {
        let (located, count) = self.place(false)?;
        if matches!(self.spec.memories[located.location.memory].unit, Unit::Mask | Unit::Base | Unit::Matrix) {
            let message = format!("`{}` cannot be set", self.cursor.quote(located.span));
            let help = "set a memory and write the register with an instruction";
            return Err(fault_help(Code::BadLocation, located.span, message, help));
        }
        let payload = self.payload(count)?;
        Ok(ItemKind::Set(Box::new(DebugSet { location: located.location, payload })))
    }
}

//! Findings as diagnostics: what was found, where, which earlier line is involved, what helps.

use super::finding::{Case, Findings, Key, Origin, Via, What, Word};
use crate::asm::{code_length, Program};
use crate::error::{Diagnostic, Span};
use crate::machine::{unit_name, Layout};
use crate::spec::{LevelName, Spec, Unit, WORDS_PER_LONG};

/// A finding of a sanitized run.
#[derive(Clone, Debug)]
pub struct Finding {
    /// Line of the source, from 1; 0 for a read of the host.
    pub line: u32,
    /// Code, place, message and remedy.
    pub diagnostic: Diagnostic,
    /// Name of the memory, if the finding is about one.
    pub memory: Option<String>,
    /// The unit, as dump lines name it.
    pub unit: Option<String>,
    /// The address in the unit of the memory, as assembly writes it.
    pub address: Option<u64>,
    /// The earlier line involved.
    pub earlier: Option<u32>,
    /// How many words, cycles or transfers have the same finding.
    pub count: u64,
}

/// The findings in the order of their lines. `program` is the one that ran.
pub(super) fn findings(spec: &Spec, all: &Findings, program: &Program) -> Vec<Finding> {
    let starts: Vec<usize> = std::iter::once(0).chain(program.text.match_indices('\n').map(|(at, _)| at + 1)).collect();
    let place = Places { spec, layout: Layout::new(spec) };
    let span = |line: u32| {
        let start = *starts.get(line.checked_sub(1)? as usize)?;
        let text = program.text.get(start..)?.lines().next()?;
        let code = &text[..code_length(text.as_bytes())];
        let first = start + (code.len() - code.trim_start().len());
        Some(Span::new(first, first + code.trim().len()))
    };
    let finding = |(key, case): (&Key, &Case)| {
        let (message, help) = place.text(key, case);
        let mut diagnostic = Diagnostic::warning(key.what.code(), span(key.line), message);
        if let Some(help) = help {
            diagnostic = diagnostic.help(help);
        }
        let value = matches!(key.what, What::Overflow | What::Underflow);
        let word = case.word.filter(|_| !value);
        Finding {
            line: key.line,
            diagnostic,
            memory: word.map(|word| place.memory(word).to_string()),
            unit: case.word.map(|word| place.unit(word)),
            address: word.map(|word| place.address(word)),
            earlier: case
                .earlier
                .or(case.origin.map(|origin| origin.line).filter(|line| *line != key.line && *line != 0)),
            count: case.count,
        }
    };
    all.all.iter().map(finding).collect()
}

struct Places<'s> {
    spec: &'s Spec,
    layout: Layout,
}

impl Places<'_> {
    fn entry(&self, word: Word) -> Option<&crate::spec::Memory> {
        let holds = |at: &usize| {
            let slot = self.layout.slot(*at);
            (slot.level, slot.index) == (word.level, word.slot)
        };
        (0..self.spec.memories.len()).find(holds).map(|at| &self.spec.memories[at])
    }

    fn memory(&self, word: Word) -> &str {
        self.entry(word).map_or("", |memory| &memory.name)
    }

    /// The address as assembly counts it.
    fn address(&self, word: Word) -> u64 {
        match self.entry(word).map(|memory| memory.unit) {
            Some(Unit::Word) => word.address * u64::from(WORDS_PER_LONG),
            Some(Unit::Mask) => word.address / u64::from(self.spec.counts.cycle),
            Some(Unit::Cycle) => word.address / 2,
            _ => word.address,
        }
    }

    fn unit(&self, word: Word) -> String {
        let c = &self.spec.counts;
        let (unit, lane) = (word.unit as u32, word.lane as u32);
        let numbers = match word.level {
            LevelName::Chip | LevelName::Group => [unit, 0, 0, 0, 0],
            LevelName::L2b => [unit / c.l2b, unit % c.l2b, 0, 0, 0],
            _ => {
                let l2b = unit / c.l1b;
                [l2b / c.l2b, l2b % c.l2b, unit % c.l1b, lane / c.pe, lane % c.pe]
            }
        };
        unit_name(self.spec, word.level, numbers)
    }

    /// Such as `lm0[24] of n0c0b0m0p0`.
    fn word(&self, word: Word) -> String {
        let (memory, unit) = (self.memory(word), self.unit(word));
        match self.entry(word).map(|memory| memory.unit) {
            Some(Unit::Base) => format!("{memory} of {unit}"),
            _ => format!("{memory}[{}] of {unit}", self.address(word)),
        }
    }

    fn from(&self, key: &Key, origin: Option<Origin>) -> String {
        let Some(Origin { via, used, line, word }) = origin else { return "nothing has written it".into() };
        let source = match word {
            Some(word) => format!("{}, which nothing has written", self.word(word)),
            None => "a forwarding path that no instruction has set".into(),
        };
        let read =
            if line == key.line { format!("this line reads {source}") } else { format!("line {line} reads {source}") };
        match via {
            Via::Operand => read,
            Via::Mask => format!("line {used} masks with undefined bits, because {read}"),
            Via::Address => format!("line {used} forms an address of undefined bits, because {read}"),
        }
    }

    fn text(&self, key: &Key, case: &Case) -> (String, Option<String>) {
        let place = case.word.map_or(String::new(), |word| self.word(word));
        let unit = case.word.map_or(String::new(), |word| self.unit(word));
        let more = match case.count {
            0 | 1 => String::new(),
            n => format!("; {n} such cases in this run"),
        };
        let (earlier, tag) = (case.earlier.unwrap_or(0), self.spec.syntax.tag(key.other));
        let from = self.from(key, case.origin);
        let (one, other) = case.cycles;
        let (message, help) = match key.what {
            What::Shown => (format!("{place} is shown and has no defined value: {from}"), None),
            What::Mask => (format!("{place} is shown and depends on an undefined mask: {from}"), None),
            What::Address if case.origin.is_none() => {
                (format!("{place} forms an address and has no defined value: nothing has written it"), None)
            }
            What::Address => (format!("{place} is shown and depends on an undefined address: {from}"), None),
            What::Wrap if case.word.is_some_and(|word| word.level == LevelName::Pe) => {
                (format!("the address on {unit} in cycle {one} leaves {} and wraps", self.memory_of(key)), None)
            }
            What::Wrap => (format!("the DAR sends the MV past the end of {place}"), None),
            What::WrittenTwice if case.word.is_some_and(|word| word.level == LevelName::Pe) => {
                (format!("{place} is written in cycle {one} and in cycle {other}: only the last value stays"), None)
            }
            What::WrittenTwice => (format!("{place} is written twice by this MV"), None),
            What::ReadInFlight => {
                let help = format!("put `nop; wait` with the tag of the MV of line {earlier} before this line");
                (format!("{place} is read while the MV of line {earlier} may still write it"), Some(help))
            }
            What::WrittenInFlight => {
                let help = format!("put `nop; wait` with the tag of the MV of line {earlier} before this line");
                (format!("{place} is written while the MV of line {earlier} may still use it"), Some(help))
            }
            What::Unsignalled => (format!("nothing has signalled tag {tag} when this `wait` is reached"), None),
            What::SignalledTwice => {
                let help = format!("put `nop; wait {tag}` between the two MVs, or use another tag");
                (format!("tag {tag} is signalled again; nothing has waited for the MV of line {earlier}"), Some(help))
            }
            What::Overflow => (format!("finite values give an infinity on {unit} in cycle {one}"), None),
            What::Underflow => (format!("a product of values other than zero is zero on {unit} in cycle {one}"), None),
        };
        (message + &more, help)
    }

    fn memory_of(&self, key: &Key) -> &str {
        let word = key.memory.map(|(level, slot)| Word { level, slot, unit: 0, lane: 0, address: 0 });
        word.map_or("", |word| self.memory(word))
    }
}

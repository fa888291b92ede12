//! L2BM instructions, MVs and debug statements.

use super::line::Line;
use super::Generator;
use crate::naive::data::long_word;
use crate::naive::print;
use emu2::asm::{DebugGet, DebugSet, FormRef, ItemKind, L2bmTransfer, Location, Mv, Selected};
use emu2::error::Span;
use emu2::spec::{End, LaneKind, LevelName, ParameterStyle, Unit, UnitSet, WORDS_PER_LONG};

/// Blocks of the longest MV.
const MOST_BLOCKS: u64 = 3;
/// Long words of the longest debug statement.
const MOST_WORDS: u64 = 6;

impl Generator<'_> {
    /// The parameter of a form; 0 if it has none.
    pub fn parameter(&mut self, transfer: usize, form: &str) -> i64 {
        match &self.table.spec.parameters[transfer] {
            Some(p) if (p.forms.is_empty() || p.forms.iter().any(|f| f == form)) && p.style == ParameterStyle::Set => {
                let count = p.maximum as u32 + 1;
                loop {
                    let free = self.choices.below(u64::from(p.all().free) + 1) as u32;
                    let set = UnitSet { first: self.choices.below(u64::from(count)) as u32 & !free, free };
                    if !p.partial || set.members(count).count() < count as usize {
                        return set.code();
                    }
                }
            }
            Some(p) if p.forms.is_empty() || p.forms.iter().any(|f| f == form) => {
                p.minimum + self.choices.below((p.maximum - p.minimum + 1) as u64) as i64
            }
            _ => 0,
        }
    }

    /// An address that an end of a form may have: near the start, sometimes near the end.
    pub fn upper_address(&mut self, end: &End) -> u64 {
        let End::Memory { align, implied: false, .. } = end else { return 0 };
        let size = self.table.end(end).map_or(1, |m| self.table.spec.memories[m].words);
        let places = (size / align).max(1);
        let at = match self.choices.below(10) {
            0 => places - 1 - self.choices.below(places.min(2)),
            1 => self.choices.below(places),
            _ => self.choices.below(places.min((64 / align).max(2))),
        };
        at * align
    }

    /// Adds an L2BM instruction. A step must not write L1BM from both sides.
    pub fn upper_transfer(&mut self, line: &mut Line) {
        if self.table.l2bm.is_empty() {
            return;
        }
        let families = &self.table.l2bm_families;
        let family = self.choices.pick(families);
        let (transfer, form) = self.choices.pick(&family);
        let resolved = self.table.spec.forms[transfer][form].clone();
        let lower = |end: &End| self.table.end(end).map(|m| self.table.spec.memories[m].level) == Some(LevelName::L1b);
        if line.stores && lower(&resolved.destination) {
            return;
        }
        let parameter = self.parameter(transfer, &resolved.name);
        let source = self.upper_address(&resolved.source);
        let destination = self.upper_address(&resolved.destination);
        let form = FormRef { transfer, form, parameter };
        let source_unit = self.selected(&resolved.source);
        let slot = &self.table.spec.transfers[form.transfer].slot;
        if line.l2bm.iter().any(|t| self.table.spec.transfers[t.form.transfer].slot == *slot) {
            return;
        }
        line.l2bm.push(L2bmTransfer { span: Span::default(), form, source, destination, source_unit });
    }

    /// An MV.
    pub fn mv(&mut self) {
        if self.table.mv.is_empty() {
            return;
        }
        let spec = self.table.spec.clone();
        let family = self.choices.pick(&self.table.mv_families);
        let (transfer, form) = self.choices.pick(&family);
        let resolved = &spec.forms[transfer][form];
        let priorities =
            spec.slots.iter().find(|s| s.name == spec.transfers[transfer].slot).map_or(1, |s| s.priorities);
        let tags = u64::from(spec.timing.tag_maximum - spec.timing.tag_minimum + 1);
        let tag = self.choices.chance(50).then(|| spec.timing.tag_minimum + self.choices.below(tags) as u32);
        let blocks = self.choices.chance(30).then(|| 1 + self.choices.below(3));
        let is_dram = |end: &End| self.table.end(end).is_some_and(|m| spec.memories[m].name == "dram");
        let source_dar = blocks.filter(|_| is_dram(&resolved.source));
        let destination_dar = blocks.filter(|_| is_dram(&resolved.destination));
        let mut mv = Mv {
            form: FormRef { transfer, form, parameter: 0 },
            size: resolved.unit.unwrap_or(1) * (1 + self.choices.below(MOST_BLOCKS)),
            tag,
            priority: self.choices.below(u64::from(priorities.max(1))) as u32,
            source: self.upper_address(&resolved.source),
            source_dar,
            source_unit: self.selected(&resolved.source),
            destination: self.upper_address(&resolved.destination),
            destination_dar,
            destination_unit: self.selected(&resolved.destination),
        };
        let entries = spec.memories[spec.memory("dar").expect("a table")].words;
        for (address, table) in [(&mut mv.source, source_dar), (&mut mv.destination, destination_dar)] {
            if table.is_some() {
                *address = match self.choices.below(4) {
                    0 => entries - 1 - self.choices.below(4),
                    _ => self.choices.below(40),
                };
            }
        }
        self.kinds.push(ItemKind::Mv(Box::new(mv)));
    }

    fn selected(&mut self, end: &End) -> Selected {
        let mut selected = Selected::default();
        let End::Memory { selectors, .. } = end else { return selected };
        for level in selectors {
            let unit = self.choices.below(u64::from(self.table.spec.count(*level))) as u32;
            match level {
                LevelName::Group => selected.group = Some(unit),
                _ => selected.l2b = Some(unit),
            }
        }
        selected
    }

    /// A place of a debug statement, and the number of accesses it may have. `registers`: mask and matrix registers too.
    fn location(&mut self, registers: bool) -> (Location, u64) {
        let spec = self.table.spec.clone();
        let operand = self.choices.pick(&self.table.operands);
        let bank = self.choices.pick(&spec.banks).memory;
        let memory = match self.choices.below(100) {
            0..12 if registers => self.table.masks,
            12..24 if registers => spec.memory(&bank).expect("a memory"),
            _ => self.table.memory(operand),
        };
        let entry = &spec.memories[memory];
        let word = self.choices.chance(30) && spec.operands[operand].widths.iter().any(String::is_empty);
        let words = if entry.unit == Unit::Word && word { 1 } else { WORDS_PER_LONG };
        let step = if entry.unit == Unit::Word { u64::from(words) } else { 1 };
        let accesses = match entry.unit {
            Unit::Word => entry.words * u64::from(WORDS_PER_LONG) / step,
            Unit::Mask => u64::from(spec.mask.entries),
            Unit::Cycle => u64::from(spec.counts.cycle),
            _ => entry.words,
        };
        let first = match entry.unit {
            Unit::Cycle => 0,
            Unit::Mask => 1 + self.choices.below(accesses - 1),
            _ if self.choices.chance(20) => accesses - 1 - self.choices.below(accesses.min(8)),
            _ => self.choices.below(accesses.min(40)),
        };
        let tree = [LevelName::Group, LevelName::L2b, LevelName::L1b, LevelName::Mab, LevelName::Pe];
        let units = tree.map(|level| {
            let below = level <= entry.level && self.choices.chance(60);
            below.then(|| self.choices.below(u64::from(spec.count(level))) as u32)
        });
        (Location { memory, words, address: first * step, units }, accesses - first)
    }

    /// `d set`
    pub fn debug_set(&mut self) {
        let (location, room) = self.location(false);
        let count = 1 + self.choices.below(room.min(MOST_WORDS));
        let payload = (0..count).map(|_| long_word(self.choices)).collect();
        self.kinds.push(ItemKind::Set(Box::new(DebugSet { location, payload })));
    }

    /// `d get`
    pub fn debug_get(&mut self) {
        let (location, room) = self.location(true);
        let count = 1 + self.choices.below(room.min(MOST_WORDS));
        let floats =
            self.table.spec.precisions.iter().enumerate().filter(|(_, p)| p.kind == LaneKind::Float && !p.pseudo);
        let types: Vec<Option<usize>> = floats.map(|(at, _)| Some(at)).chain([None]).collect();
        let precision = match self.table.spec.memories[location.memory].unit {
            Unit::Mask => None,
            Unit::Matrix => self.choices.pick(&types[..types.len() - 1]),
            _ => self.choices.pick(&types),
        };
        let mut get = DebugGet { location, precision, block: false, count, statement: String::new() };
        get.statement = print::get(&self.table.spec, &get);
        self.kinds.push(ItemKind::Get(Box::new(get)));
    }
}

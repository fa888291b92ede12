//! Operands of PE instructions.

use super::line::Line;
use super::Generator;
use emu2::asm::{Access, Address, Convert, Destination, Source, SourceKind, Target};
use emu2::error::Span;
use emu2::spec::{Addressing, Unit, HALVES, WORDS_PER_LONG};

/// The sources that are allowed besides plain memory operands and forwarding paths.
#[derive(Clone, Copy, Debug, Default)]
pub struct Port {
    /// The first input of an ALU operation.
    pub first_alu: bool,
    /// Fixed inputs, which need lanes to fill.
    pub fixed: bool,
    pub negate: bool,
    pub extend: bool,
    pub reduce: bool,
}

impl Generator<'_> {
    /// An access of an operand class, at any address.
    pub fn access(&mut self, operand: usize) -> Access {
        let spec = self.table.spec.clone();
        let (entry, memory) = (&spec.operands[operand], self.table.memory(operand));
        if self.table.is_cycle(operand) {
            let words = WORDS_PER_LONG * HALVES;
            return Access { memory, words, address: Address::Cycle, indirect: false, modify: None };
        }
        let prefix = self.choices.pick(&entry.widths);
        let words = spec.widths.iter().find(|w| w.prefix == prefix).expect("a width").words;
        let size = spec.memories[memory].words as u32 * WORDS_PER_LONG;
        let has = |addressing| entry.addressing.contains(&addressing);
        let address = if has(Addressing::Flat) && self.choices.chance(15) {
            Address::Flat((0..spec.counts.cycle).map(|_| self.base(size, words)).collect())
        } else {
            let base = self.base(size, words);
            let stride = match self.choices.below(8) {
                0 | 1 => 0,
                2 => words * self.choices.below(8) as u32,
                3 => words * self.choices.below(u64::from(size / words)) as u32,
                _ => words,
            };
            let stride = if has(Addressing::Stride) { stride } else { 0 };
            Address::Stride { base, stride }
        };
        let indirect = has(Addressing::Indirect) && self.choices.chance(20);
        let modify = (has(Addressing::Modify) && !indirect && self.choices.chance(20))
            .then(|| self.choices.below(u64::from(spec.counts.pe)) as u32);
        Access { memory, words, address, indirect, modify }
    }

    /// An aligned address near the start, near the end, or anywhere.
    fn base(&mut self, size: u32, words: u32) -> u32 {
        let near = 48.min(size / words);
        let at = match self.choices.below(10) {
            0 => size / words - 1 - self.choices.below(u64::from(near.min(6))) as u32,
            1 => self.choices.below(u64::from(size / words)) as u32,
            _ => self.choices.below(u64::from((near / words).max(1))) as u32,
        };
        at * words
    }

    /// A PE memory to read that the line allows.
    fn read(&mut self, line: &mut Line) -> Access {
        loop {
            let operand = self.choices.pick(&self.table.pe_operands);
            let memory = self.table.memory(operand);
            if line.off_limits.contains(&memory) {
                continue;
            }
            if let Some(access) = line.bound_read(self.table, memory) {
                note_read(line, &access);
                return access;
            }
            let access = self.access(operand);
            note_read(line, &access);
            return access;
        }
    }

    /// A source for a port.
    pub fn source(&mut self, line: &mut Line, port: Port) -> Source {
        let spec = &self.table.spec;
        let kind = match self.choices.below(20) {
            0 | 1 if port.fixed => SourceKind::Fixed(self.choices.below(spec.fixed.len() as u64) as usize),
            2..8 => {
                let path = self.choices.below(spec.forwards.len() as u64) as usize;
                if spec.forwards[path].first_alu_input_only && !port.first_alu {
                    SourceKind::Forward(self.table.alu_forward)
                } else {
                    SourceKind::Forward(path)
                }
            }
            _ => SourceKind::Memory(self.read(line)),
        };
        let plain = matches!(kind, SourceKind::Fixed(_));
        let convert = match (port.extend, port.reduce) {
            (true, _) if !plain && self.choices.chance(25) => Some(Convert::Extend),
            (_, true) if !plain && self.choices.chance(25) => Some(Convert::Reduce),
            _ => None,
        };
        let negate = port.negate && self.choices.chance(25);
        Source { span: Span::default(), kind, negate, convert }
    }

    /// Destinations; none stands for `$nowrite`. `flags`: the instruction makes flags for a mask register.
    pub fn destinations(&mut self, line: &mut Line, flags: bool) -> Vec<Destination> {
        let count = self.choices.pick(&[0, 1, 1, 1, 1, 1, 2, 2, 3]);
        let mut all = Vec::new();
        for _ in 0..count {
            let Some(target) = self.target(line, flags) else { continue };
            let mask = line.maybe_mask(self.table, self.choices);
            all.push(Destination { span: Span::default(), target, mask });
        }
        all
    }

    fn target(&mut self, line: &mut Line, flags: bool) -> Option<Target> {
        let spec = self.table.spec.clone();
        match self.choices.below(20) {
            0 if !spec.bases.is_empty() => {
                let base = self.choices.below(spec.bases.len() as u64) as usize;
                let entry = &spec.bases[base];
                let prefix = self.choices.pick(&entry.widths);
                let words = spec.widths.iter().find(|w| w.prefix == prefix)?.words;
                let memory = spec.memory(&entry.memory)?;
                let free = line.may_write(memory);
                free.then(|| line.writes.push((memory, None)));
                free.then_some(Target::Base { base, words })
            }
            1..=3 if flags => {
                let free = line.may_write(self.table.masks);
                free.then(|| line.writes.push((self.table.masks, None)));
                let entry = 1 + self.choices.below(u64::from(spec.mask.entries - 1)) as u32;
                free.then_some(Target::Flags { entry })
            }
            _ => {
                let operand = self.choices.pick(&self.table.pe_operands);
                let memory = self.table.memory(operand);
                if !line.may_write(memory) {
                    return None;
                }
                let access = match line.bound_write(self.table, memory) {
                    Some(access) => access,
                    None => self.access(operand),
                };
                line.writes.push((memory, Some(access.clone())));
                Some(Target::Memory(access))
            }
        }
    }

    /// A range of a PE memory with an access of at least `words` words in each cycle. The cycles access different words.
    pub fn stretch(&mut self, line: &Line, words: u32) -> Option<Access> {
        let operand = self.choices.pick(&self.table.pe_operands);
        let memory = self.table.memory(operand);
        if !line.may_write(memory)
            || line.off_limits.contains(&memory)
            || line.bound_write(self.table, memory).is_some()
        {
            return None;
        }
        let mut access = self.access(operand);
        if self.table.spec.memories[memory].unit != Unit::Cycle {
            let size = self.table.spec.memories[memory].words as u32 * WORDS_PER_LONG;
            let base = self.base(size, words);
            access = Access {
                memory,
                words,
                address: Address::Stride { base, stride: words },
                indirect: false,
                modify: None,
            };
        }
        Some(access)
    }
}

/// Notes the reads of a line.
pub fn note_read(line: &mut Line, access: &Access) {
    if !line.reads.contains(access) {
        line.reads.push(access.clone());
    }
}

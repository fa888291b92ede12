//! Lines as assembly text, at their addresses.

use crate::code::{moved, Block, Instruction, Line, Move, Operand, Pe, Shift, Values};
use crate::machine::Machine;
use crate::ready::Ready;
use crate::rules::Name;
use std::fmt::Write;
use std::sync::Arc;

/// Writes lines.
pub(crate) struct Text {
    machine: Arc<Machine>,
    names: Vec<Arc<str>>,
}

impl Text {
    /// Returns a writer of lines whose names the machine knows now.
    pub(crate) fn new(machine: Arc<Machine>) -> Self {
        Self { names: machine.names.all(), machine }
    }

    pub(crate) fn name(&self, name: Name) -> &str {
        self.names.get(usize::from(name)).map_or("", AsRef::as_ref)
    }

    /// A tag as an MV and a `wait` name it.
    pub(crate) fn tag(&self, tag: i64) -> String {
        let syntax = &self.machine.syntax;
        format!("{}{tag:0digits$x}", syntax.mv_tag, digits = syntax.tag_digits)
    }

    /// One line of all instructions.
    pub(crate) fn step(&self, parts: &[Arc<Ready>]) -> String {
        let mut out = String::new();
        for ready in parts {
            for (one, shift) in ready.line.instructions().iter().zip(&ready.shifts) {
                if !out.is_empty() {
                    out.push_str("; ");
                }
                self.instruction(one, &ready.node, shift, &mut out);
            }
        }
        out
    }

    /// An MV with its tag.
    pub(crate) fn transfer(&self, one: &Move, ready: &Ready, tag: i64) -> String {
        let (size, shift) = (&self.machine.syntax.mv_size, &ready.shifts[0]);
        let mut out = format!("{}/{size}{}{}", self.name(one.mnemonic), one.words, self.tag(tag));
        for block in [&one.source, &one.destination] {
            out.push(' ');
            self.block(block, block.start(&ready.node, shift), &mut out);
        }
        out
    }

    fn instruction(&self, one: &Instruction, node: &Values, shift: &Shift, out: &mut String) {
        out.push_str(self.name(one.mnemonic));
        self.mask(one.flush, self.machine.long, shift, out);
        for (operand, _) in one.operands() {
            if matches!(operand, Operand::Block(Block { implied: true, .. })) {
                continue;
            }
            out.push(' ');
            self.operand(operand, node, shift, out);
        }
    }

    fn operand(&self, operand: &Operand, node: &Values, shift: &Shift, out: &mut String) {
        let sign = |negate: &bool| if *negate { "-" } else { "" };
        let _ = match operand {
            Operand::Literal(bits, value, unit) => {
                write!(out, "ui\"0x{:08X}\"", bits + node.base(*value).div_euclid(*unit))
            }
            Operand::Special(name) => write!(out, "${}", self.name(*name)),
            Operand::Matrix(bank, row, words) => {
                let _ = write!(out, "${}{}", self.width(*words), self.name(*bank));
                row.map_or(Ok(()), |row| write!(out, "{row}"))
            }
            Operand::Forward(slot, negate) => {
                let path = self.machine.syntax.forwards.get(slot).map_or("", String::as_str);
                write!(out, "{}${path}", sign(negate))
            }
            Operand::Block(one) => {
                self.block(one, one.start(node, shift), out);
                Ok(())
            }
            Operand::Pe(one) => {
                out.push_str(sign(&one.negate));
                self.pe(one, node.base(one.value) + one.more(shift), out);
                self.mask(one.mask, one.words, shift, out);
                Ok(())
            }
        };
    }

    fn pe(&self, one: &Pe, start: i64, out: &mut String) {
        let machine = &*self.machine;
        let first = one.offsets.first().copied().unwrap_or(0);
        if one.memory == machine.masks {
            let _ = write!(out, "${}{}", machine.syntax.masks[0], (start + first) / machine.rules.cycles);
            return;
        }
        if one.memory == machine.added {
            let _ = write!(out, "${}{}", self.width(machine.long), self.letter(one.memory));
            return;
        }
        let width = if one.word.is_empty() { one.words } else { 1 };
        let part = |cycle: usize| match one.word.as_slice() {
            [] => 0,
            [all] => *all,
            each => each.get(cycle).copied().unwrap_or(0),
        };
        let each = one.offsets.iter().enumerate();
        let words: Vec<i64> = each.map(|(cycle, offset)| (start + offset) * machine.long + part(cycle)).collect();
        let _ = write!(out, "${}{}", self.width(width), self.letter(one.memory));
        if one.indirect {
            out.push_str(&machine.syntax.indirect);
        }
        self.address(&words, width, out);
        if one.extend {
            out.push_str(&machine.syntax.extend);
        } else if one.reduce {
            out.push_str(&machine.syntax.reduce);
        }
    }

    /// The shortest form of one word address per cycle; `width` words are accessed.
    fn address(&self, words: &[i64], width: i64, out: &mut String) {
        let stride = &self.machine.syntax.stride;
        let mut steps = words.windows(2).map(|pair| pair[1] - pair[0]);
        let step = steps.next().unwrap_or(0);
        let (alike, first) = (steps.all(|one| one == step), words.first().copied().unwrap_or(0));
        let _ = match step {
            0 if alike => write!(out, "{first}"),
            step if alike && step == width => write!(out, "{first}{stride}"),
            step if alike && step > 0 => write!(out, "{first}{stride}{step}"),
            _ => {
                let all: Vec<String> = words.iter().map(ToString::to_string).collect();
                write!(out, "[{}]", all.join(","))
            }
        };
    }

    /// A mask behind a mnemonic, or behind a destination of some words.
    fn mask(&self, register: Option<i64>, words: i64, shift: &Shift, out: &mut String) {
        let Some(first) = register else { return };
        let machine = &*self.machine;
        // A plain mask leaves the second long word of an access unmasked.
        let width = if words > machine.long { self.width(words) } else { "" };
        let entry = (first + moved(shift, machine.masks)) / machine.rules.cycles;
        let _ = write!(out, "/${width}{}{entry}", machine.syntax.masks[1]);
    }

    fn block(&self, one: &Block, start: i64, out: &mut String) {
        let Some(memory) = self.machine.memories.get(&one.memory) else { return };
        if let Some((first, _)) = one.entries {
            let _ = write!(out, "${}{first}", memory.by_table);
            return;
        }
        let _ = write!(out, "${}{}{start}", memory.prefixes[usize::from(one.wide)], memory.letter);
        let _ = match one.unit {
            (None, None) => Ok(()),
            (Some(group), None) => write!(out, "@{group}"),
            (group, Some(l2b)) => write!(out, "@{}.{l2b}", group.map_or(String::new(), |one| one.to_string())),
        };
    }

    fn letter(&self, memory: Name) -> &str {
        self.machine.memories.get(&memory).map_or("", |one| one.letter.as_str())
    }

    /// The letters before an operand of some words.
    fn width(&self, words: i64) -> &'static str {
        match words / self.machine.long {
            0 => "",
            1 => "l",
            _ => "ll",
        }
    }
}

/// The kind of an MV: its memories.
pub(crate) fn ends(line: &Line) -> Option<(Name, Name)> {
    match line {
        Line::Move(one) => Some((one.source.memory, one.destination.memory)),
        Line::Step(_) => None,
    }
}

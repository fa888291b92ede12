//! Random legal programs. All names come from the lists of the spec; no mnemonic is written here.

mod line;
mod operand;
mod pe;
mod product;
mod table;
mod transfers;

pub use table::Table;

use super::choices::Choices;
use emu2::asm::{FormRef, Item, ItemKind, Program, Step};
use emu2::error::Span;
use emu2::spec::Spec;
use line::Line;
use std::sync::{Arc, LazyLock};

/// Items of the longest program, without those that prepare matrix registers.
const MOST_ITEMS: u64 = 14;

/// `mini`, a tree with two units at every upper level, and the full chip.
pub static TABLES: LazyLock<Vec<Table>> = LazyLock::new(|| {
    let tree = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/naive/tree.toml");
    ["mini", tree, "mncore2"].iter().map(|name| Table::new(&Arc::new(Spec::load(name).unwrap()))).collect()
});

/// A program that is being made.
pub struct Generator<'a> {
    table: &'a Table,
    choices: &'a mut Choices,
    kinds: Vec<ItemKind>,
    /// The contents of the turnaround register.
    sent: Option<FormRef>,
}

/// A random program for the machine of `table`.
pub fn program(table: &Table, choices: &mut Choices) -> Program {
    let count = 2 + choices.below(MOST_ITEMS);
    let mut generator = Generator { table, choices, kinds: Vec::new(), sent: None };
    for _ in 0..count {
        generator.item();
    }
    finish(table, generator.kinds)
}

/// A program of `steps` lines that stay inside the L1Bs: one region.
pub fn region(table: &Table, choices: &mut Choices, steps: usize) -> Program {
    let mut generator = Generator { table, choices, kinds: Vec::new(), sent: None };
    while generator.kinds.len() < steps {
        if generator.choices.chance(10) {
            generator.product();
        } else {
            generator.line(false);
        }
    }
    finish(table, generator.kinds)
}

fn finish(table: &Table, kinds: Vec<ItemKind>) -> Program {
    let item = |(at, kind)| Item { line: at as u32 + 1, span: Span::default(), kind };
    let items = kinds.into_iter().enumerate().map(item).collect();
    Program::of(table.spec.clone(), "random", items)
}

impl Generator<'_> {
    /// Adds one statement, or the few that make a matrix-vector product.
    fn item(&mut self) {
        match self.choices.below(100) {
            0..62 => self.line(true),
            62..74 => self.product(),
            74..78 => self.nop(),
            78..87 => self.mv(),
            87..95 => self.debug_set(),
            _ => self.debug_get(),
        }
    }

    /// Idle steps: `nop`, or `noforward` alone.
    fn nop(&mut self) {
        let count = 1 + self.choices.below(3);
        let wait = self.wait();
        self.kinds.push(if self.choices.chance(25) {
            ItemKind::Step(Box::new(Step { pe: Vec::new(), l2bm: Vec::new(), wait, forward: false }))
        } else {
            ItemKind::Nop { count, wait }
        });
    }

    /// Sometimes a tag to wait for.
    fn wait(&mut self) -> Option<u32> {
        let timing = &self.table.spec.timing;
        let tags = u64::from(timing.tag_maximum - timing.tag_minimum + 1);
        self.choices.chance(8).then(|| timing.tag_minimum + self.choices.below(tags) as u32)
    }

    /// Adds a PE line of some instructions.
    fn line(&mut self, l2bm: bool) {
        let mut line = Line::new(self.table, self.choices);
        loop {
            self.fill(&mut line, [60, 45, 12, 12, 25]);
            for percent in [14, 3] {
                if l2bm && self.choices.chance(percent) {
                    self.upper_transfer(&mut line);
                }
            }
            if !line.pe.is_empty() || !line.l2bm.is_empty() {
                break;
            }
        }
        self.push(line);
    }

    /// Ends a line. Its instructions stand in random order.
    fn push(&mut self, line: Line) {
        let mut pe = line.pe;
        for at in (1..pe.len()).rev() {
            pe.swap(at, self.choices.below(at as u64 + 1) as usize);
        }
        let forward = line.forward.unwrap_or_else(|| !self.choices.chance(12));
        if forward {
            self.sent = line.sends.or(self.sent);
        }
        let wait = self.wait();
        self.kinds.push(ItemKind::Step(Box::new(Step { pe, l2bm: line.l2bm, wait, forward })));
    }
}

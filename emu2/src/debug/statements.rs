//! The statements of a program by number and by line.

use crate::asm::{Item, Program};
use std::ops::Range;
use std::sync::Arc;

/// Statements that lie side by side.
#[derive(Clone, Debug)]
pub(super) enum Stretch {
    /// Those that the program keeps.
    Kept(Arc<Program>),
    /// Those of a block that was read again.
    Reread { first: usize, items: Arc<Vec<Item>> },
}

impl Stretch {
    fn first(&self) -> usize {
        match self {
            Stretch::Kept(_) => 0,
            Stretch::Reread { first, .. } => *first,
        }
    }

    fn items(&self) -> &[Item] {
        match self {
            Stretch::Kept(program) => &program.items,
            Stretch::Reread { items, .. } => items,
        }
    }

    fn end(&self) -> usize {
        self.first() + self.items().len()
    }

    /// The statements of `range` that lie here.
    pub(super) fn part(&self, range: Range<usize>) -> &[Item] {
        let (first, end) = (self.first(), self.end());
        let (from, to) = (range.start.clamp(first, end), range.end.clamp(first, end));
        &self.items()[from - first..to.max(from) - first]
    }
}

/// The statements of a program. Remembers the last block that was read again.
#[derive(Debug)]
pub(super) struct Statements {
    program: Arc<Program>,
    last: Stretch,
}

impl Statements {
    pub(super) fn new(program: Arc<Program>) -> Statements {
        Statements { last: Stretch::Kept(program.clone()), program }
    }

    /// Number of statements.
    pub(super) fn len(&self) -> usize {
        self.program.statements()
    }

    /// The stretch that holds statement `at`, and the number behind its last statement. Behind the end it is empty.
    pub(super) fn stretch(&mut self, at: usize) -> (Stretch, usize) {
        if !(self.last.first()..self.last.end()).contains(&at) {
            self.last = match self.program.reread(at) {
                Some((first, items)) => Stretch::Reread { first, items: Arc::new(items) },
                None => Stretch::Kept(self.program.clone()),
            };
        }
        (self.last.clone(), self.last.end())
    }

    /// Line of statement `at`. At the end of the program it is the last statement's, and 0 if there is none.
    pub(super) fn line(&mut self, at: usize) -> u32 {
        let at = at.min(self.len().saturating_sub(1));
        let (stretch, _) = self.stretch(at);
        stretch.part(at..at + 1).first().map_or(0, |item| item.line)
    }

    /// The first statement at or after `line`. None if there is none.
    pub(super) fn at_line(&mut self, line: u32) -> Option<usize> {
        let mut at = self.program.near_line(line);
        while at < self.len() {
            let (stretch, end) = self.stretch(at);
            let part = stretch.part(at..end);
            let before = part.partition_point(|item| item.line < line);
            if before < part.len() {
                return Some(at + before);
            }
            at = end;
        }
        None
    }
}

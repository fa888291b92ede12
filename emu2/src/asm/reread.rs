//! Visits the statements of a program. Statements that are not kept are read again from the source.

use super::lexicon::Lexicon;
use super::program::Program;
use super::reader::Reader;
use super::statement::Item;

impl Program {
    /// Calls `visit` on every statement in source order, up to the first call that fails.
    ///
    /// # Errors
    /// The error that `visit` returns.
    pub fn for_each<E>(&self, mut visit: impl FnMut(&Item) -> Result<(), E>) -> Result<(), E> {
        self.for_each_block(|items| items.iter().try_for_each(&mut visit))
    }

    /// As [`Program::for_each`], but `visit` gets many statements at a time.
    ///
    /// # Errors
    /// The error that `visit` returns.
    pub fn for_each_block<E>(&self, mut visit: impl FnMut(&[Item]) -> Result<(), E>) -> Result<(), E> {
        visit(&self.items)?;
        if self.blocks.is_empty() {
            return Ok(());
        }
        let lexicon = Lexicon::new(&self.spec);
        let mut items = Vec::new();
        for block in self.blocks.iter() {
            items.clear();
            let mut reader = Reader::again(&self.spec, &lexicon, &self.text, items);
            reader.block(block);
            items = reader.items();
            visit(&items)?;
        }
        Ok(())
    }

    /// The statements around number `at`, which are not kept, with the number of the first of them. None if the statement is
    /// kept or does not exist.
    pub fn reread(&self, at: usize) -> Option<(usize, Vec<Item>)> {
        let kept = self.items.len();
        let block = self.blocks.last(|block| kept + block.first <= at).filter(|_| at < self.statements())?;
        let lexicon = Lexicon::new(&self.spec);
        let mut reader = Reader::again(&self.spec, &lexicon, &self.text, Vec::new());
        reader.block(block);
        Some((kept + block.first, reader.items()))
    }

    /// The number of a statement that is not behind the first one at or after `line`, and at most a block before it.
    pub fn near_line(&self, line: u32) -> usize {
        match self.blocks.last(|block| block.line < line) {
            Some(block) => self.items.len() + block.first,
            None => self.items.partition_point(|item| item.line < line),
        }
    }
}

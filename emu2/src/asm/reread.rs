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
}

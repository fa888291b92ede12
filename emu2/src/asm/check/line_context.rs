//! The context of the checks of a line.

use crate::asm::lexicon::Lexicon;
use crate::spec::Spec;

/// The tables of the machine and the current line.
#[derive(Clone, Copy)]
pub(in crate::asm) struct LineContext<'p> {
    pub(in crate::asm) spec: &'p Spec,
    pub(in crate::asm) lexicon: &'p Lexicon,
    /// The line number in the source.
    pub(in crate::asm) line: u32,
}

//! The result of the assembler: a checked program, or the list of faults of the source.

use super::blocks::SourceBlocks;
use super::statement::Item;
use crate::error::Diagnostic;
use crate::spec::Spec;
use std::sync::Arc;

/// A checked program.
#[derive(Clone, Debug)]
pub struct Program {
    /// The machine that the program is for.
    pub spec: Arc<Spec>,
    /// Name of the source in messages.
    pub name: String,
    /// The source.
    pub text: Arc<str>,
    /// Statements in source order. Of a long program these are only the first ones; [`Program::for_each`] visits all.
    pub items: Vec<Item>,
    /// The warnings.
    pub warnings: Vec<Diagnostic>,
    /// The blocks of the source that hold the other statements.
    pub blocks: SourceBlocks,
}

impl Program {
    /// Makes a program of these statements, without a source.
    pub fn of(spec: Arc<Spec>, name: &str, items: Vec<Item>) -> Program {
        Program {
            spec,
            name: name.into(),
            text: "".into(),
            items,
            warnings: Vec::new(),
            blocks: SourceBlocks::default(),
        }
    }

    /// The number of statements, kept or not.
    pub fn statements(&self) -> usize {
        self.items.len() + self.blocks.statements()
    }
}

/// The source with all its findings.
#[derive(Clone, Debug)]
pub struct AssembleError {
    /// Name of the source in messages.
    pub name: String,
    /// The source.
    pub text: Arc<str>,
    /// The findings: at least one error, and the warnings.
    pub diagnostics: Vec<Diagnostic>,
}

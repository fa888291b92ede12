//! The assembler: turns text into a checked [`Program`].
//!
//! The tables of the [`Spec`] say how a line is read: mnemonics, operand classes, transfer forms, literals. The code
//! here holds no fact of a machine. It knows only the shape of the language: `;` between instructions, `#` before
//! comments, `$` before operands, `d` before debug statements.

mod address;
mod assembler;
mod blocks;
mod check;
mod cursor;
mod debug;
mod decimal;
pub(crate) mod host_command;
mod instruction;
mod lexicon;
mod line;
mod literal;
mod location;
mod mask;
mod matrix;
mod mv;
mod operand;
mod operand_reader;
mod origin;
mod parameter;
mod parser;
mod payload;
mod policy;
mod program;
mod reader;
pub(crate) mod record;
mod render;
mod reread;
mod sink;
mod source_destination;
mod statement;
mod suggest;
mod text;
mod token;
mod transfer;

pub use assembler::{assemble, assemble_bytes, Assembler};
pub use blocks::SourceBlocks;
pub use location::parse_location;
pub use origin::{Origins, Place};
pub use policy::Policy;
pub use program::{AssembleError, Program};
pub use render::{records, render, Positions, Record};
pub use statement::*;
pub(crate) use text::{code_length, decoded};

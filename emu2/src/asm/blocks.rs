//! Blocks of the source of a long program. Their statements are not kept but read again when they are needed: a statement
//! takes ten times the memory of its line.

use super::statement::Mask;
use std::ops::Range;
use std::sync::Arc;

/// How many statements are kept, and of how many the blocks are in which the others are read again.
#[derive(Clone, Copy, Debug)]
pub(super) struct Room {
    pub(super) kept: usize,
    pub(super) block: usize,
}

impl Room {
    pub(super) const ALL: Room = Room { kept: usize::MAX, block: 1 };
}

/// Long enough that reading again does not show, and some ten megabytes of statements.
pub(super) const KEPT: Room = Room { kept: 1 << 16, block: 1 << 12 };

/// A part of the source that has been found to be without fault, and what lies before it.
#[derive(Clone, Debug)]
pub(super) struct Block {
    pub(super) text: Range<usize>,
    /// Line before it.
    pub(super) line: u32,
    /// What the last mask statement has set.
    pub(super) masks: Vec<Option<Mask>>,
}

/// The blocks of a source that hold the statements behind those that are kept.
#[derive(Clone, Debug, Default)]
pub struct SourceBlocks {
    blocks: Arc<[Block]>,
    statements: usize,
}

/// Notes where blocks begin while a source is read.
pub(super) struct BlockWriter {
    room: Room,
    blocks: Vec<Block>,
    /// Statements of all blocks, and of the last one.
    statements: usize,
    last: usize,
}

impl BlockWriter {
    pub(super) fn new(room: Room) -> Self {
        BlockWriter { room, blocks: Vec::new(), statements: 0, last: 0 }
    }

    /// A line begins at `at`, after `line` others and `kept` statements that are kept.
    pub(super) fn line(&mut self, at: usize, line: u32, kept: usize, masks: &[Option<Mask>]) {
        if kept < self.room.kept || (!self.blocks.is_empty() && self.last < self.room.block) {
            return;
        }
        self.end(at);
        self.blocks.push(Block { text: at..at, line, masks: masks.to_vec() });
        self.last = 0;
    }

    /// Whether a statement belongs to a block; else it is kept.
    pub(super) fn takes(&mut self) -> bool {
        let takes = !self.blocks.is_empty();
        self.statements += usize::from(takes);
        self.last += usize::from(takes);
        takes
    }

    /// The last block ends at `at`.
    pub(super) fn end(&mut self, at: usize) {
        if let Some(block) = self.blocks.last_mut() {
            block.text.end = at;
        }
    }

    pub(super) fn finish(self) -> SourceBlocks {
        SourceBlocks { blocks: self.blocks.into(), statements: self.statements }
    }
}

impl SourceBlocks {
    /// Statements in all blocks.
    pub(super) fn statements(&self) -> usize {
        self.statements
    }

    pub(super) fn is_empty(&self) -> bool {
        self.blocks.is_empty()
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &Block> {
        self.blocks.iter()
    }
}

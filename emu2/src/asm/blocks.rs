//! Blocks of the source of a long program. Their statements are read again when they are needed. They are not kept,
//! because a statement takes ten times the memory of its line.

use super::statement::Mask;
use std::ops::Range;
use std::sync::Arc;

/// How many statements are kept, and how many statements a block has.
#[derive(Clone, Copy, Debug)]
pub(super) struct BlockLimits {
    pub(super) kept: usize,
    pub(super) block: usize,
}

impl BlockLimits {
    pub(super) const ALL: BlockLimits = BlockLimits { kept: usize::MAX, block: 1 };
}

/// The default. It keeps some ten megabytes of statements, and the time of reading the others again does not show.
pub(super) const KEPT: BlockLimits = BlockLimits { kept: 1 << 16, block: 1 << 12 };

/// A part of the source that was checked and has no fault, with the state that the lines before it leave.
#[derive(Clone, Debug)]
pub(super) struct Block {
    pub(super) text: Range<usize>,
    /// The number of lines before the block.
    pub(super) line: u32,
    /// The number of statements in the blocks before it.
    pub(super) first: usize,
    /// The masks that the last mask statement has set, by entry of `memories`.
    pub(super) masks: Vec<Option<Mask>>,
}

/// The blocks of a source. They hold the statements after the kept ones.
#[derive(Clone, Debug, Default)]
pub struct SourceBlocks {
    blocks: Arc<[Block]>,
    statements: usize,
}

/// Records where blocks begin while a source is read.
pub(super) struct BlockWriter {
    room: BlockLimits,
    blocks: Vec<Block>,
    /// The number of statements in all blocks; `last` is the number in the last block.
    statements: usize,
    last: usize,
}

impl BlockWriter {
    pub(super) fn new(room: BlockLimits) -> Self {
        BlockWriter { room, blocks: Vec::new(), statements: 0, last: 0 }
    }

    /// Records that a line begins at `at`, after `line` other lines and `kept` kept statements.
    pub(super) fn line(&mut self, at: usize, line: u32, kept: usize, masks: &[Option<Mask>]) {
        if kept < self.room.kept || (!self.blocks.is_empty() && self.last < self.room.block) {
            return;
        }
        self.end(at);
        self.blocks.push(Block { text: at..at, line, first: self.statements, masks: masks.to_vec() });
        self.last = 0;
    }

    /// Counts a statement and returns whether it belongs to a block. Otherwise it is kept.
    pub(super) fn takes(&mut self) -> bool {
        let takes = !self.blocks.is_empty();
        self.statements += usize::from(takes);
        self.last += usize::from(takes);
        takes
    }

    /// Ends the last block at `at`.
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
    /// The number of statements in all blocks.
    pub(super) fn statements(&self) -> usize {
        self.statements
    }

    pub(super) fn is_empty(&self) -> bool {
        self.blocks.is_empty()
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &Block> {
        self.blocks.iter()
    }

    /// The last block for which `before` holds. It must hold for the first blocks only.
    pub(super) fn last(&self, before: impl Fn(&Block) -> bool) -> Option<&Block> {
        self.blocks[..self.blocks.partition_point(before)].last()
    }
}

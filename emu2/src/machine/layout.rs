//! The array of the state that holds each memory of the spec.

use crate::spec::{LevelName, Spec};

/// The array of a memory: the level whose units own the memory, and its number among the memories of that level.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Slot {
    /// Level of the owner.
    pub level: LevelName,
    /// Number among the owner's memories.
    pub index: usize,
    /// Long words of one instance.
    pub words: u64,
}

/// A slot for every memory, in the order of `spec.memories`.
#[derive(Clone, Debug)]
pub struct Layout {
    slots: Vec<Slot>,
}

impl Layout {
    /// Numbers the memories of each level.
    pub fn new(spec: &Spec) -> Layout {
        let mut slots: Vec<Slot> = Vec::with_capacity(spec.memories.len());
        for memory in &spec.memories {
            let index = slots.iter().filter(|s| s.level == memory.level).count();
            slots.push(Slot { level: memory.level, index, words: memory.words });
        }
        Layout { slots }
    }

    /// The slot of entry `memory` of the spec.
    pub fn slot(&self, memory: usize) -> Slot {
        self.slots[memory]
    }

    /// Sizes in long words of the memories of `level`, in slot order.
    pub fn sizes(&self, level: LevelName) -> Vec<u64> {
        self.slots.iter().filter(|s| s.level == level).map(|s| s.words).collect()
    }
}

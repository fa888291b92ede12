//! The state of the whole chip: words per PE, and a sparse table of long words for everything above.

use super::letters::Path;
use emu2::asm::FormRef;
use emu2::spec::{LevelName, Move, Spec, Unit};
use std::collections::HashMap;
use std::rc::Rc;
use std::sync::Arc;

/// Cycles of a step.
pub const CYCLES: usize = 4;

/// The state of one PE.
#[derive(Clone, Debug, PartialEq)]
pub struct Pe {
    /// Words of 32 bits of every memory of the spec, in its order; empty for memories that belong to no PE. A mask register
    /// has one word per entry and cycle, a base address register is one word.
    pub words: Vec<Vec<u32>>,
    /// Forwarding paths in the order of the spec, one path per cycle.
    pub forward: Vec<[Path; CYCLES]>,
}

/// The chip.
#[derive(Clone, Debug)]
pub struct Chip {
    pub spec: Arc<Spec>,
    /// All PEs: `(((group * L2Bs + l2b) * L1Bs + l1b) * MABs + mab) * PEs + pe`.
    pub pes: Vec<Pe>,
    /// Long words of the memories above the PEs, by memory, unit and address. Missing words are 0.
    pub upper: HashMap<(usize, usize, u64), u64>,
    /// Evaluated index maps of L1BM and L2BM instructions.
    pub maps: HashMap<FormRef, Rc<Vec<Move>>>,
}

impl Chip {
    /// A chip whose memories are all zero.
    pub fn new(spec: &Arc<Spec>) -> Chip {
        assert_eq!(spec.counts.cycle as usize, CYCLES);
        let words = |m: &emu2::spec::Memory| match (m.level, m.unit) {
            (LevelName::Pe, Unit::Mask | Unit::Base) => vec![0; m.words as usize],
            (LevelName::Pe, _) => vec![0; 2 * m.words as usize],
            _ => Vec::new(),
        };
        let forward = vec![[[0; 4]; CYCLES]; spec.forwards.len()];
        let pe = Pe { words: spec.memories.iter().map(words).collect(), forward };
        let pes = vec![pe; spec.units(LevelName::Pe) as usize];
        Chip { spec: spec.clone(), pes, upper: HashMap::new(), maps: HashMap::new() }
    }

    /// Entry of the memory called `name`.
    pub fn memory(&self, name: &str) -> usize {
        self.spec.memory(name).unwrap_or_else(|| panic!("no memory {name}"))
    }

    /// Group, L2B, L1B, MAB and PE number of a PE.
    pub fn place(&self, pe: usize) -> [usize; 5] {
        let c = &self.spec.counts;
        let mut rest = pe;
        let mut digit = |count: u32| {
            let value = rest % count as usize;
            rest /= count as usize;
            value
        };
        let (p, m, b, l, g) = (digit(c.pe), digit(c.mab), digit(c.l1b), digit(c.l2b), digit(c.group));
        [g, l, b, m, p]
    }

    /// Number in the chip of the unit of `level` to which a place belongs.
    pub fn unit(&self, level: LevelName, [g, l, b, m, p]: [usize; 5]) -> usize {
        let c = &self.spec.counts;
        let l2b = g * c.l2b as usize + l;
        let l1b = l2b * c.l1b as usize + b;
        match level {
            LevelName::Chip => 0,
            LevelName::Group => g,
            LevelName::L2b => l2b,
            LevelName::L1b => l1b,
            LevelName::Mab => l1b * c.mab as usize + m,
            LevelName::Pe => (l1b * c.mab as usize + m) * c.pe as usize + p,
        }
    }

    /// The PEs of the MAB of `pe`, and its number among them.
    pub fn mab(&self, pe: usize) -> (std::ops::Range<usize>, usize) {
        let pes = self.spec.counts.pe as usize;
        let first = pe - pe % pes;
        (first..first + pes, pe % pes)
    }

    /// A long word above the PEs. Addresses wrap.
    pub fn read_upper(&self, memory: usize, unit: usize, addr: u64) -> u64 {
        let addr = addr % self.spec.memories[memory].words;
        self.upper.get(&(memory, unit, addr)).copied().unwrap_or(0)
    }

    /// Stores a long word above the PEs. Addresses wrap.
    pub fn write_upper(&mut self, memory: usize, unit: usize, addr: u64, value: u64) {
        let addr = addr % self.spec.memories[memory].words;
        self.upper.insert((memory, unit, addr), value);
    }

    /// Long word `addr` of any memory of a unit, counted as the machine's accessors count.
    pub fn long(&self, memory: usize, unit: usize, addr: u64) -> u64 {
        let (entry, at) = (&self.spec.memories[memory], addr as usize);
        match (entry.level, entry.unit) {
            (LevelName::Pe, Unit::Mask | Unit::Base) => u64::from(self.pes[unit].words[memory][at]),
            (LevelName::Pe, _) => {
                let words = &self.pes[unit].words[memory];
                u64::from(words[2 * at]) << 32 | u64::from(words[2 * at + 1])
            }
            _ => self.read_upper(memory, unit, addr),
        }
    }

    /// Stores the long word that [`Chip::long`] reads.
    pub fn set_long(&mut self, memory: usize, unit: usize, addr: u64, value: u64) {
        let (entry, at) = (&self.spec.memories[memory], addr as usize);
        match (entry.level, entry.unit) {
            (LevelName::Pe, Unit::Mask | Unit::Base) => self.pes[unit].words[memory][at] = value as u32,
            (LevelName::Pe, _) => {
                let words = &mut self.pes[unit].words[memory];
                words[2 * at] = (value >> 32) as u32;
                words[2 * at + 1] = value as u32;
            }
            _ => self.write_upper(memory, unit, addr, value),
        }
    }
}

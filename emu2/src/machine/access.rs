//! Reading and writing memories by unit and address, for debug statements, memory files and the host.

use super::image::Owner;
use super::outside_writes::Part;
use super::Machine;
use crate::error::{Code, Error};
use crate::spec::{LevelName, Spec};

/// One unit per level of the tree, outermost first; None selects all of them.
pub type Units = [Option<u32>; 5];

/// A range of one memory in one or many units.
#[derive(Clone, Copy, Debug)]
pub struct Region {
    /// Entry of the spec's memories.
    pub memory: usize,
    /// Selected units. Levels below the memory's own must be None.
    pub units: Units,
    /// First long word.
    pub addr: u64,
    /// Long words.
    pub count: u64,
}

/// The levels in tree order.
const TREE: [LevelName; 5] = [LevelName::Group, LevelName::L2b, LevelName::L1b, LevelName::Mab, LevelName::Pe];

impl Region {
    /// Checks that the units and addresses exist.
    ///
    /// # Errors
    /// [`Code::MemoryRange`] if one does not.
    pub fn check(&self, spec: &Spec) -> Result<(), Error> {
        let memory = &spec.memories[self.memory];
        for (level, unit) in TREE.iter().zip(self.units) {
            let Some(unit) = unit else { continue };
            let count = spec.count(*level);
            if *level > memory.level {
                let message =
                    format!("`{}` belongs to a {:?}; it has no {level:?} to select", memory.name, memory.level);
                return Err(Error::new(Code::BadSelector, message));
            }
            if unit >= count {
                let message = format!("{level:?} {unit} does not exist; there are {count}");
                return Err(Error::new(Code::BadSelector, message));
            }
        }
        match self.addr.checked_add(self.count) {
            Some(end) if end <= memory.words => Ok(()),
            _ => {
                let message = format!(
                    "`{}` has {} long words; {} from {} on reach past its end",
                    memory.name, memory.words, self.count, self.addr
                );
                Err(Error::new(Code::AddressRange, message))
            }
        }
    }

    /// Units per level, only for levels that the memory has: the number of units of a level that is not selected, 1 for a
    /// selected one.
    pub fn extents(&self, spec: &Spec) -> Vec<u32> {
        let level = spec.memories[self.memory].level;
        let levels = TREE.iter().zip(self.units).filter(|(l, _)| **l <= level);
        levels.map(|(l, unit)| if unit.is_some() { 1 } else { spec.count(*l) }).collect()
    }

    /// Calls `visit` for every selected unit, with its number per level. The outermost level changes slowest.
    pub fn each(&self, spec: &Spec, mut visit: impl FnMut([u32; 5])) {
        let extents = self.extents(spec);
        let mut at = [0u32; 5];
        for (level, unit) in self.units.iter().enumerate() {
            at[level] = unit.unwrap_or(0);
        }
        let total: u64 = extents.iter().map(|n| u64::from(*n)).product();
        for _ in 0..total {
            visit(at);
            for level in (0..extents.len()).rev().filter(|l| self.units[*l].is_none()) {
                at[level] += 1;
                if at[level] < extents[level] {
                    break;
                }
                at[level] = 0;
            }
        }
    }
}

/// The name of a unit in dump lines: a letter and a number for each level down to `level`.
pub(crate) fn unit_name(spec: &Spec, level: LevelName, unit: [u32; 5]) -> String {
    let mut name = String::new();
    for (at, number) in spec.levels.iter().zip(unit).filter(|(l, _)| l.name <= level) {
        name.push(at.selector);
        name.push_str(&number.to_string());
    }
    name
}

impl Machine {
    /// Chip-wide numbers of the unit's L1B and L2B, and the unit's lane inside the L1B.
    fn indices(&self, unit: [u32; 5]) -> (usize, usize, usize) {
        let c = &self.spec.counts;
        let l2b = unit[0] * c.l2b + unit[1];
        ((l2b * c.l1b + unit[2]) as usize, l2b as usize, (unit[3] * c.pe + unit[4]) as usize)
    }

    /// One long word of one unit. It must exist.
    pub(crate) fn word(&self, owner: Owner, unit: [u32; 5], addr: u64) -> u64 {
        match owner {
            Owner::Memory(memory) => {
                let mut out = [0];
                self.read_unit(memory, unit, addr, &mut out);
                out[0]
            }
            Owner::Path(path) => {
                let (l1b, _, lane) = self.indices(unit);
                self.state.l1b[l1b].forward[path].words()[addr as usize * self.spec.lanes() + lane]
            }
        }
    }

    /// Reads `out.len()` long words of one unit's memory. The range must exist.
    pub(crate) fn read_unit(&self, memory: usize, unit: [u32; 5], addr: u64, out: &mut [u64]) {
        let slot = self.layout.slot(memory);
        let (l1b, l2b, lane) = self.indices(unit);
        let at = addr as usize;
        match slot.level {
            LevelName::Group => self.state.group[unit[0] as usize][slot.index].read(addr, out),
            LevelName::L2b => out.copy_from_slice(&self.state.l2b[l2b][slot.index][at..at + out.len()]),
            LevelName::L1b => out.copy_from_slice(&self.state.l1b[l1b].own[slot.index][at..at + out.len()]),
            _ => {
                let lanes = self.spec.lanes();
                let rows = &self.state.l1b[l1b].pe[slot.index];
                for (k, word) in out.iter_mut().enumerate() {
                    *word = rows[(at + k) * lanes + lane];
                }
            }
        }
    }

    /// Writes `words` to one unit's memory. The range must exist.
    pub(crate) fn write_unit(&mut self, memory: usize, unit: [u32; 5], addr: u64, words: &[u64]) {
        let slot = self.layout.slot(memory);
        let (l1b, l2b, lane) = self.indices(unit);
        let at = addr as usize;
        match slot.level {
            LevelName::Group => self.state.group[unit[0] as usize][slot.index].write(addr, words),
            LevelName::L2b => self.state.l2b[l2b][slot.index][at..at + words.len()].copy_from_slice(words),
            LevelName::L1b => self.state.l1b[l1b].own[slot.index][at..at + words.len()].copy_from_slice(words),
            _ => {
                let lanes = self.spec.lanes();
                let l1b = &mut self.state.l1b[l1b];
                l1b.settled = false;
                let rows = &mut l1b.pe[slot.index];
                for (k, word) in words.iter().enumerate() {
                    rows[(at + k) * lanes + lane] = *word;
                }
            }
        }
    }

    /// Writes `words` to every PE of the L1B of `unit`. The range must exist.
    fn fill(&mut self, memory: usize, unit: [u32; 5], addr: u64, words: &[u64]) {
        let slot = self.layout.slot(memory);
        let lanes = self.spec.lanes();
        let (l1b, ..) = self.indices(unit);
        let l1b = &mut self.state.l1b[l1b];
        l1b.settled = false;
        let rows = l1b.pe[slot.index][addr as usize * lanes..].chunks_exact_mut(lanes);
        rows.zip(words).for_each(|(row, word)| row.fill(*word));
    }

    /// The long words of `region`: units in tree order with the outermost level slowest, addresses innermost.
    ///
    /// # Errors
    /// [`Code::MemoryRange`], see [`Region::check`].
    pub fn read(&self, region: &Region) -> Result<Vec<u64>, Error> {
        region.check(&self.spec)?;
        let count = region.count as usize;
        let units: u64 = region.extents(&self.spec).iter().map(|n| u64::from(*n)).product();
        let mut out = vec![0; units as usize * count];
        if count > 0 {
            let mut pieces = out.chunks_exact_mut(count);
            region.each(&self.spec, |unit| {
                if let Some(piece) = pieces.next() {
                    self.read_unit(region.memory, unit, region.addr, piece);
                }
            });
        }
        Ok(out)
    }

    /// Writes `words` to `region`: either one list of words per selected unit in tree order, or one list for all of them.
    ///
    /// # Errors
    /// [`Code::MemoryRange`] as in [`Region::check`], or if the number of words does not fit.
    pub fn write(&mut self, region: &Region, words: &[u64]) -> Result<(), Error> {
        region.check(&self.spec)?;
        let spec = self.spec.clone();
        let count = region.count as usize;
        let units: u64 = region.extents(&spec).iter().map(|n| u64::from(*n)).product();
        let each = words.len() == units as usize * count;
        if !each && words.len() != count {
            let message = format!("{} long words for {units} units of {count}", words.len());
            return Err(Error::new(Code::BadShape, message));
        }
        if count == 0 {
            return Ok(());
        }
        let Region { memory, units, addr, count: long_words } = *region;
        self.written.add(&Part { memory, units, addr, count: long_words });
        // The words of all PEs of an L1B are adjacent.
        if !each && spec.memories[region.memory].level == LevelName::Pe && region.units[3..] == [None, None] {
            let l1bs = [region.units[0], region.units[1], region.units[2], Some(0), Some(0)];
            Region { units: l1bs, ..*region }.each(&spec, |unit| self.fill(region.memory, unit, region.addr, words));
            return Ok(());
        }
        let mut at = 0;
        region.each(&spec, |unit| {
            self.write_unit(region.memory, unit, region.addr, &words[at..at + count]);
            if each {
                at += count;
            }
        });
        Ok(())
    }
}

//! Images: the whole state at one moment, as blocks of long words. Images share the blocks that do not differ, so many
//! moments of a run take little more than the words that the run has changed.

use super::{Layout, Machine, Pages, State};
use crate::spec::{LevelName, Spec};
use crate::threads;
use rayon::prelude::*;
use std::ops::Range;
use std::sync::Arc;

/// Long words of a block: 32 KiB, as a page of the sparse memories has.
pub(super) const BLOCK: usize = 4096;

/// The memory that an array of the state belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Owner {
    /// Entry of `memories`.
    Memory(usize),
    /// Entry of `forwards`. Cycles of L0 come first, then those of L1.
    Path(usize),
}

/// One array of the state outside the groups.
#[derive(Clone, Copy, Debug)]
struct Array {
    owner: Owner,
    /// Chip-wide number of the L1B or L2B.
    unit: usize,
    /// Words of one address, one for each PE of an L1B.
    lanes: usize,
    /// Number of its first block.
    first: usize,
}

/// How the state of a machine is cut into blocks.
#[derive(Clone, Debug)]
pub struct Blocks {
    arrays: Vec<Array>,
    lanes: usize,
    memories: Vec<(LevelName, u64)>,
    /// Memories of a group in the order of the state.
    group: Vec<usize>,
    l1bs_of_group: usize,
    l2bs_of_group: usize,
    l1bs_of_l2b: usize,
    pes: usize,
}

/// The blocks of each memory that may have been written since an image.
#[derive(Clone, Debug)]
pub struct Written {
    memories: Vec<Vec<bool>>,
    lanes: Vec<usize>,
}

/// The state at one moment.
#[derive(Clone, Debug)]
pub struct Image {
    blocks: Vec<Arc<[u64]>>,
    group: Vec<Vec<Pages>>,
}

/// A word that differs between two images.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Difference {
    /// The memory or path of the word.
    pub owner: Owner,
    /// The unit, outermost level first. Levels below the owner's are 0.
    pub unit: [u32; 5],
    /// Long word.
    pub addr: u64,
    /// The word in the first image.
    pub before: u64,
    /// The word in the second image.
    pub after: u64,
}

/// The arrays outside the groups.
pub(super) fn arrays(state: &State) -> Vec<&[u64]> {
    let l1bs = state.l1b.iter().flat_map(|l1b| {
        let memories = l1b.pe.iter().chain(&l1b.own).map(|words| &words[..]);
        memories.chain(l1b.forward.iter().map(|path| path.words()))
    });
    l1bs.chain(state.l2b.iter().flatten().map(|words| &words[..])).collect()
}

/// The same to write.
pub(super) fn arrays_mut(state: &mut State) -> Vec<&mut [u64]> {
    let l1bs = state.l1b.iter_mut().flat_map(|l1b| {
        let memories = l1b.pe.iter_mut().chain(&mut l1b.own).map(|words| &mut words[..]);
        memories.chain(l1b.forward.iter_mut().map(|path| path.words_mut()))
    });
    l1bs.chain(state.l2b.iter_mut().flatten().map(|words| &mut words[..])).collect()
}

impl Blocks {
    /// The blocks of machines of `spec`.
    pub fn new(spec: &Spec) -> Blocks {
        let layout = Layout::new(spec);
        let of = |level: LevelName| -> Vec<usize> {
            (0..spec.memories.len()).filter(|m| layout.slot(*m).level == level).collect()
        };
        let (pe, own, l2b) = (of(LevelName::Pe), of(LevelName::L1b), of(LevelName::L2b));
        let lanes = spec.lanes();
        let plane = 2 * spec.counts.cycle as usize * lanes;
        let mut arrays = Vec::new();
        let mut first = 0;
        let mut add = |owner, unit, lanes, length: usize| {
            arrays.push(Array { owner, unit, lanes, first });
            first += length.div_ceil(BLOCK);
        };
        let words = |memory: usize| spec.memories[memory].words as usize;
        for unit in 0..spec.units(LevelName::L1b) as usize {
            pe.iter().for_each(|m| add(Owner::Memory(*m), unit, lanes, words(*m) * lanes));
            own.iter().for_each(|m| add(Owner::Memory(*m), unit, 1, words(*m)));
            (0..spec.forwards.len()).for_each(|path| add(Owner::Path(path), unit, lanes, plane));
        }
        for unit in 0..spec.units(LevelName::L2b) as usize {
            l2b.iter().for_each(|m| add(Owner::Memory(*m), unit, 1, words(*m)));
        }
        let counts = &spec.counts;
        Blocks {
            arrays,
            lanes,
            memories: spec.memories.iter().map(|m| (m.level, m.words)).collect(),
            group: of(LevelName::Group),
            l1bs_of_group: (counts.l2b * counts.l1b) as usize,
            l2bs_of_group: counts.l2b as usize,
            l1bs_of_l2b: counts.l1b as usize,
            pes: counts.pe as usize,
        }
    }

    /// Nothing is written.
    pub fn unwritten(&self) -> Written {
        let lanes = |level| if level == LevelName::Pe { self.lanes } else { 1 };
        let blocks = |(level, words): &(LevelName, u64)| match level {
            // Pages say themselves whether they were written.
            LevelName::Group => Vec::new(),
            _ => vec![false; (*words as usize * lanes(*level)).div_ceil(BLOCK)],
        };
        Written {
            memories: self.memories.iter().map(blocks).collect(),
            lanes: self.memories.iter().map(|(level, _)| lanes(*level)).collect(),
        }
    }

    /// The unit of a word of an array, outermost level first.
    fn unit(&self, array: &Array, lane: usize) -> [u32; 5] {
        let level = match array.owner {
            Owner::Memory(memory) => self.memories[memory].0,
            Owner::Path(_) => LevelName::Pe,
        };
        let unit = array.unit;
        if level == LevelName::L2b {
            return [(unit / self.l2bs_of_group) as u32, (unit % self.l2bs_of_group) as u32, 0, 0, 0];
        }
        let in_group = unit % self.l1bs_of_group;
        [
            (unit / self.l1bs_of_group) as u32,
            (in_group / self.l1bs_of_l2b) as u32,
            (in_group % self.l1bs_of_l2b) as u32,
            (lane / self.pes) as u32,
            (lane % self.pes) as u32,
        ]
    }
}

impl Written {
    /// Long words `rows` of `memory` may have been written in any unit.
    pub fn add(&mut self, memory: usize, rows: Range<u64>) {
        let blocks = &mut self.memories[memory];
        let lanes = self.lanes[memory];
        let (first, end) = (rows.start as usize * lanes / BLOCK, (rows.end as usize * lanes).div_ceil(BLOCK));
        let end = end.min(blocks.len());
        blocks[first.min(end)..end].fill(true);
    }

    /// Everything may have been written.
    pub fn add_all(&mut self) {
        self.memories.iter_mut().for_each(|blocks| blocks.fill(true));
    }

    /// Nothing has been written since now.
    pub fn clear(&mut self) {
        self.memories.iter_mut().for_each(|blocks| blocks.fill(false));
    }

    fn has(&self, owner: Owner, block: usize) -> bool {
        match owner {
            Owner::Memory(memory) => self.memories[memory][block],
            // Almost every step writes one.
            Owner::Path(_) => true,
        }
    }
}

impl Image {
    /// The image of a machine whose memories are all zero.
    pub fn zeros(blocks: &Blocks, machine: &Machine) -> Image {
        let zeros: Arc<[u64]> = vec![0; BLOCK].into();
        let short = |length: usize| vec![0; length].into();
        let all = arrays(&machine.state).into_iter().zip(&blocks.arrays).flat_map(|(words, _)| {
            words.chunks(BLOCK).map(|block| if block.len() == BLOCK { zeros.clone() } else { short(block.len()) })
        });
        let new = |memory: &usize| Pages::new(blocks.memories[*memory].1);
        let group = machine.state.group.iter().map(|_| blocks.group.iter().map(new).collect()).collect();
        Image { blocks: all.collect(), group }
    }

    /// Bytes of the blocks and pages that `other` does not share.
    pub fn unshared(&self, other: &Image) -> usize {
        let blocks = self.blocks.iter().zip(&other.blocks).filter(|(ours, theirs)| !Arc::ptr_eq(ours, theirs));
        let blocks: usize = blocks.map(|(ours, _)| size_of_val(&ours[..])).sum();
        let pages = self.group.iter().flatten().zip(other.group.iter().flatten());
        blocks + pages.map(|(ours, theirs)| ours.unshared(theirs)).sum::<usize>()
    }

    /// Calls `visit` on each word that differs from the later image `other`.
    pub fn each_difference(&self, other: &Image, blocks: &Blocks, visit: &mut dyn FnMut(Difference)) {
        for (at, array) in blocks.arrays.iter().enumerate() {
            let end = blocks.arrays.get(at + 1).map_or(self.blocks.len(), |next| next.first);
            for number in array.first..end {
                let (ours, theirs) = (&self.blocks[number], &other.blocks[number]);
                if Arc::ptr_eq(ours, theirs) || ours[..] == theirs[..] {
                    continue;
                }
                for (k, (before, after)) in ours.iter().zip(&theirs[..]).enumerate().filter(|(_, (a, b))| a != b) {
                    let word = (number - array.first) * BLOCK + k;
                    let (addr, lane) = ((word / array.lanes) as u64, word % array.lanes);
                    let unit = blocks.unit(array, lane);
                    visit(Difference { owner: array.owner, unit, addr, before: *before, after: *after });
                }
            }
        }
        for (group, (ours, theirs)) in self.group.iter().zip(&other.group).enumerate() {
            for ((ours, theirs), memory) in ours.iter().zip(theirs).zip(&blocks.group) {
                let (owner, unit) = (Owner::Memory(*memory), [group as u32, 0, 0, 0, 0]);
                ours.each_difference(theirs, &mut |addr, before, after| {
                    visit(Difference { owner, unit, addr, before, after });
                });
            }
        }
    }
}

impl Machine {
    /// The state as it is. `last` is an earlier image, and `written` covers all that was written since.
    #[must_use]
    pub fn image(&self, blocks: &Blocks, last: &Image, written: &Written) -> Image {
        let one = |(words, array): (&[u64], &Array)| -> Vec<Arc<[u64]>> {
            let blocks = words.chunks(BLOCK).enumerate().map(|(at, block)| {
                let old = &last.blocks[array.first + at];
                if written.has(array.owner, at) && old[..] != *block {
                    block.into()
                } else {
                    old.clone()
                }
            });
            blocks.collect()
        };
        let arrays: Vec<(&[u64], &Array)> = arrays(&self.state).into_iter().zip(&blocks.arrays).collect();
        let taken: Vec<Vec<Arc<[u64]>>> = match threads::count() {
            1 => arrays.into_iter().map(one).collect(),
            _ => threads::share(|| arrays.into_par_iter().map(one).collect()),
        };
        Image { blocks: taken.into_iter().flatten().collect(), group: self.state.group.clone() }
    }

    /// Makes the state that of `image`. `last` is the image that the state was before, and `written` covers all that was
    /// written since then.
    pub fn restore(&mut self, blocks: &Blocks, image: &Image, last: &Image, written: &Written) {
        let one = |(words, array): (&mut [u64], &Array)| {
            for (at, block) in words.chunks_mut(BLOCK).enumerate() {
                let (new, old) = (&image.blocks[array.first + at], &last.blocks[array.first + at]);
                if written.has(array.owner, at) || !Arc::ptr_eq(new, old) {
                    block.copy_from_slice(new);
                }
            }
        };
        let arrays: Vec<(&mut [u64], &Array)> = arrays_mut(&mut self.state).into_iter().zip(&blocks.arrays).collect();
        match threads::count() {
            1 => arrays.into_iter().for_each(one),
            _ => threads::share(|| arrays.into_par_iter().for_each(one)),
        }
        self.state.group.clone_from(&image.group);
        self.state.l1b.iter_mut().for_each(|l1b| l1b.settled = false);
        self.unpoison();
    }
}

//! Layouts, and what the search must know of the machine.

/// Sizes and strides are smaller: no chip has so many words.
const LARGEST: i64 = 1 << 34;

/// The kind of place that a digit selects. The order is the one in which passes are tried.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Level {
    /// Words of a long word.
    W,
    /// PEs of a MAB.
    Pe,
    /// MABs of an L1B.
    Mab,
    /// L1Bs of an L2B.
    L1b,
    /// L2Bs of the chip.
    L2b,
    /// Long words of a PE.
    Addr,
    /// Time slices.
    Time,
}

impl Level {
    /// The levels that passes settle, in the order in which they are tried.
    pub const SETTLED: [Level; 5] = [Level::W, Level::Pe, Level::Mab, Level::L1b, Level::L2b];
    /// All levels.
    pub const ALL: [Level; 7] = [Level::W, Level::Pe, Level::Mab, Level::L1b, Level::L2b, Level::Addr, Level::Time];
}

/// What the search must know of the machine and of the tensor's dtype.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Machine {
    /// Coordinates of each level of [`Level::SETTLED`]: words of a long word, PEs, MABs, L1Bs and L2Bs.
    pub counts: [i64; 5],
    /// Bits of an element.
    pub bits: i64,
    /// Bits of the words that have an address of their own.
    pub addressed_bits: i64,
    /// Long words of LM0.
    pub lm0: i64,
    /// Long words that one step moves in a PE.
    pub cycles: i64,
    /// Steps from the start of an MV of few words to its end.
    pub mv_latency: i64,
    /// Long words a cycle between an L2BM and the PDM of its group.
    pub mv_near: i64,
    /// Long words a cycle from an L2BM to the PDM of another group.
    pub mv_far: i64,
    /// Long words a cycle from a PDM to all L2BMs.
    pub mv_all: i64,
    /// Long words a cycle between an L2BM and a DRAM.
    pub mv_dram: i64,
    /// L2Bs of a group.
    pub l2bs_per_group: i64,
    /// Long words of a row: one for every PE of an L1B.
    pub row: i64,
    /// Rows that one instruction between L1BM and L2BM moves.
    pub block: i64,
    /// Long words that one instruction between L1BM and L2BM moves.
    pub l2bm_words: i64,
    /// Long words of each L1BM and of L2BM that one instruction moves between all L1BMs and L2BM.
    pub spread: (i64, i64),
    /// Vectors of all PEs for which L1BM has room.
    pub vectors: i64,
    /// Long words of L2BM.
    pub l2bm: i64,
    /// Long words of PDM.
    pub pdm: i64,
    /// Masks that a program can keep.
    pub masks: i64,
    /// Long words that the widest access of a PE has.
    pub wide: i64,
}

impl Machine {
    /// Whether all numbers are positive and no level has more units than a mask has bits.
    pub fn is_valid(&self) -> bool {
        let sizes = [
            self.bits,
            self.addressed_bits,
            self.lm0,
            self.cycles,
            // An MV may take no time to begin.
            self.mv_latency + 1,
            self.mv_near,
            self.mv_far,
            self.mv_all,
            self.mv_dram,
            self.l2bs_per_group,
            self.row,
            self.block,
            self.l2bm_words,
            self.spread.0,
            self.spread.1,
            self.vectors,
            self.l2bm,
            self.pdm,
            self.masks,
            self.wide,
        ];
        let masks = self.counts.iter().all(|&count| 0 < count && count <= 64);
        masks && sizes.iter().all(|&size| 0 < size && size < LARGEST) && self.counts[0] * self.bits <= 64
    }

    pub(crate) fn count(&self, level: Level) -> i64 {
        self.counts[level as usize]
    }

    /// The vectors for which half of L1BM has room: those that come down begin behind so many.
    pub(crate) fn half(&self) -> i64 {
        (self.vectors + 1) / 2
    }

    /// The vectors of rows that cross between L2Bs at once, at least one: they lie in half of L1BM, and in half of L2BM.
    pub(crate) fn crossing(&self) -> i64 {
        let words = self.row * self.count(Level::L1b) * self.cycles;
        self.half().min(self.l2bm / 2 / words).max(1)
    }

    /// The words of so many that an instruction between L1BM and L2BM moves.
    pub(crate) fn piece(&self, words: i64) -> i64 {
        words.min(self.l2bm_words)
    }

    /// Where the pieces of so many words begin.
    pub(crate) fn pieces(&self, words: i64) -> impl Iterator<Item = i64> {
        (0..words).step_by(self.l2bm_words as usize)
    }

    /// How long MVs of a word take, in parts of a cycle.
    pub(crate) fn mv_parts(&self) -> MvParts {
        let each = |rate: i64| self.parts() / rate;
        MvParts { near: each(self.mv_near), far: each(self.mv_far), all: each(self.mv_all), dram: each(self.mv_dram) }
    }

    /// How long an MV of a word takes between the L2BM of `unit` and the PDM `home`, or the DRAM behind the PDMs.
    pub(crate) fn mv_time(&self, unit: i64, home: i64) -> i64 {
        let parts = self.mv_parts();
        match home {
            _ if home >= self.groups() => parts.dram,
            _ if unit / self.l2bs_per_group == home => parts.near,
            _ => parts.far,
        }
    }

    /// How long a word takes to a PDM of another group and back, and to a DRAM and back.
    pub(crate) fn crossing_parts(&self) -> (i64, i64) {
        let parts = self.mv_parts();
        (parts.near + parts.far, 2 * parts.dram)
    }

    /// Whether DRAMs help the PDMs: several L2BMs share each of these.
    pub(crate) fn has_drams(&self) -> bool {
        self.l2bs_per_group > 1
    }

    /// The parts of a cycle in which these times count.
    pub(crate) fn parts(&self) -> i64 {
        self.mv_near * self.mv_far * self.mv_all * self.mv_dram
    }

    pub(crate) fn groups(&self) -> i64 {
        self.count(Level::L2b) / self.l2bs_per_group
    }
}

/// How long MVs of a word take, in parts of a cycle.
pub(crate) struct MvParts {
    /// Between an L2BM and the PDM of its group.
    pub near: i64,
    /// From an L2BM to the PDM of another group.
    pub far: i64,
    /// From a PDM to all L2BMs.
    pub all: i64,
    /// Between an L2BM and a DRAM.
    pub dram: i64,
}

/// A digit of `size` values on `level`, which lie `stride` coordinates apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct SubAxis {
    /// Number of values.
    pub size: i64,
    /// The level whose coordinate it changes.
    pub level: Level,
    /// Coordinates from one value to the next.
    pub stride: i64,
}

/// The places of the elements of a tensor.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Layout {
    /// The digits of each axis; the last one runs fastest.
    pub axes: Vec<Vec<SubAxis>>,
    /// The digits over which there are copies.
    pub copies: Vec<SubAxis>,
}

/// A tensor of `shape` goes from layout `source` to layout `result`.
#[derive(Clone, Debug)]
pub struct Change {
    /// The layout before.
    pub source: Layout,
    /// The layout after.
    pub result: Layout,
    /// Elements of each axis.
    pub shape: Vec<i64>,
}

impl Change {
    /// Whether both layouts are [valid](Layout::is_valid) for the shape.
    pub fn is_valid(&self) -> bool {
        self.source.is_valid(&self.shape) && self.result.is_valid(&self.shape)
    }
}

impl Layout {
    /// Whether it has the axes of `shape`, and sizes and strides are numbers that a machine can have.
    pub fn is_valid(&self, shape: &[i64]) -> bool {
        let mut digits = self.axes.iter().flatten().chain(&self.copies);
        let inside = digits.all(|sub| (1..LARGEST).contains(&sub.size) && (0..LARGEST).contains(&sub.stride));
        let covered = |axis: &Vec<SubAxis>| axis.iter().try_fold(1i64, |all, sub| all.checked_mul(sub.size)).is_some();
        let whole = self.axes.len() == shape.len() && self.axes.iter().all(covered);
        inside && whole && shape.iter().all(|size| (1..LARGEST).contains(size))
    }

    pub(crate) fn on(&self, level: Level) -> impl Iterator<Item = &SubAxis> {
        self.axes.iter().flatten().filter(move |sub| sub.level == level)
    }

    /// The long words of a PE that the digits in Addr count.
    pub(crate) fn address_words(&self) -> i64 {
        self.on(Level::Addr).fold(1, |words, sub| words.saturating_mul(sub.size))
    }

    /// The long words that the value takes in a PE, rounded up to whole vectors.
    pub(crate) fn long_words(&self, machine: &Machine) -> i64 {
        let words = self.address_words();
        let extent = 1 + reach(self.on(Level::Addr));
        up(words.max(extent), machine.cycles).saturating_mul(machine.cycles)
    }

    /// Whether all digits stay within their levels and no two of them reach the same place.
    pub(crate) fn is_legal(&self, shape: &[i64], machine: &Machine) -> bool {
        let covered = |(size, axis): (&i64, &Vec<SubAxis>)| *size <= axis.iter().map(|sub| sub.size).product::<i64>();
        if shape.len() != self.axes.len() || !shape.iter().zip(&self.axes).all(covered) {
            return false;
        }
        for level in Level::ALL {
            let limit = match level {
                Level::Addr | Level::Time => machine.lm0,
                _ => machine.count(level),
            };
            let copies = self.copies.iter().filter(|sub| sub.level == level);
            let mut digits: Vec<&SubAxis> = self.on(level).chain(copies).collect();
            if reach(digits.iter().copied()) >= limit {
                return false;
            }
            digits.retain(|sub| sub.size > 1);
            sorting::sort_by_key(&mut digits, |sub| sub.stride);
            let mut below = 1;
            for sub in digits {
                if sub.stride < below {
                    return false;
                }
                below = sub.stride.saturating_mul(sub.size);
            }
        }
        let packed: i64 = self.on(Level::W).map(|sub| sub.size).product();
        packed == 1 || packed == machine.count(Level::W)
    }
}

/// Returns the largest coordinate that the digits reach.
fn reach<'a>(digits: impl Iterator<Item = &'a SubAxis>) -> i64 {
    digits.fold(0i64, |all, sub| all.saturating_add((sub.size - 1).saturating_mul(sub.stride))).min(i64::MAX - 1)
}

/// Returns `number / by`, rounded up.
pub(crate) fn up(number: i64, by: i64) -> i64 {
    number / by + i64::from(number % by != 0)
}

//! The kernel call of an op in a plan. It works on the rows of all cycles, with all addresses resolved.
//!
//! The calls of a region pass through the host's near caches once for every L1B. So a call is small and contiguous.

use super::value_numbering::ReadFrom;
use crate::exec::access::Access;
use crate::exec::compute::{Compute, SecondLongWord};
use crate::exec::destination::Write;
use crate::exec::matrix::MatrixRegisters;
use crate::exec::op::{Outcome, Scratch, MAX_SOURCES};
use crate::exec::source::Source;
use crate::machine::{L1b, Out, Path, PathRows, Words};
use crate::spec::WORDS_PER_LONG;

/// The rows of a source, for all cycles.
#[derive(Clone, Debug)]
enum SourceRows {
    Zeros,
    /// Long words of a PE memory, beginning at `first`.
    Memory {
        slot: u32,
        first: u32,
    },
    Forward(u32),
    /// Rows that do not follow each other are copied together first. `wide`: the rows of both long words.
    Gathered {
        source: Box<Source>,
        wide: bool,
    },
}

/// Where the result is written.
#[derive(Clone, Debug)]
enum ResultPlace {
    /// L1BM. With `keep`, the turnaround register too.
    Sent { keep: bool },
    /// Long words of a PE memory, beginning at `first`. No source shares them, so they are written in place.
    Memory { slot: u32, first: u32 },
    /// A buffer. From there the result goes to memories and to a forwarding path.
    Buffer { writes: Box<[Write]>, path: Option<ForwardUpdate> },
}

/// A forwarding path that takes a result.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ForwardUpdate {
    pub(crate) path: u32,
    /// The number of the buffer in which the result waits until all ops of the step have run, if others still read the old
    /// value.
    pub(crate) later: Option<u32>,
}

/// One call of a kernel.
#[derive(Clone, Debug)]
pub(crate) struct KernelCall {
    compute: Compute,
    second: SecondLongWord,
    sources: [SourceRows; MAX_SOURCES],
    gathers: bool,
    target: ResultPlace,
}

/// The parts from which a call is made.
pub(crate) struct CallParts<'a> {
    pub(crate) compute: Compute,
    /// Where L1 of the result comes from.
    pub(crate) second: SecondLongWord,
    pub(crate) reads: &'a [ReadFrom<'a>],
    pub(crate) writes: &'a [&'a Write],
    pub(crate) path: Option<ForwardUpdate>,
    pub(crate) keep: bool,
    pub(crate) lanes: usize,
}

/// Whether one call can read a source, either in place or copied together.
pub(crate) fn readable(compute: &Compute, read: ReadFrom<'_>) -> bool {
    let ReadFrom::Given(source) = read else { return true };
    if source.converts() {
        return !compute.in_l1bm();
    }
    let wide = source.access().is_some_and(|access| access.words > WORDS_PER_LONG);
    // Block floats take all cycles in one call per long word.
    let together = !wide || compute.reads_l0() || matches!(compute, Compute::Block { path: true, .. });
    source.plain() && (source.whole() || (!compute.in_l1bm() && together))
}

impl SourceRows {
    fn of(read: ReadFrom<'_>, compute: &Compute, lanes: usize) -> SourceRows {
        match (read.access(), read.path(), read) {
            (.., ReadFrom::Given(source)) if source.conversion.is_some() => {
                SourceRows::Gathered { source: Box::new(source.clone()), wide: source.gathers_wide() }
            }
            (Some(access), ..) if access.contiguous() => SourceRows::memory(access, lanes),
            (_, Some(path), _) => SourceRows::Forward(path as u32),
            (access, _, ReadFrom::Given(source)) => {
                let narrow = access.is_some_and(|access| access.words <= WORDS_PER_LONG);
                SourceRows::Gathered { source: Box::new(source.clone()), wide: !narrow && !compute.reads_l0() }
            }
            // Only given sources are copied together. All other reads are handled above.
            _ => SourceRows::Zeros,
        }
    }

    fn memory(access: &Access, lanes: usize) -> SourceRows {
        SourceRows::Memory { slot: access.slot as u32, first: (access.row(0) * lanes) as u32 }
    }
}

/// The PE memories. One of them may be split where a result is written.
struct SplitMemories<'a> {
    slot: usize,
    first: usize,
    left: &'a [Words],
    right: &'a [Words],
    before: &'a [u64],
    after: &'a [u64],
}

impl SplitMemories<'_> {
    /// `length` long words, beginning at `first`. The result must not share them.
    #[inline(always)]
    fn rows(&self, slot: usize, first: usize, length: usize) -> &[u64] {
        match slot.checked_sub(self.slot) {
            None => &self.left[slot][first..][..length],
            Some(0) if first < self.first => &self.before[first..][..length],
            Some(0) => &self.after[first - self.first - length..][..length],
            Some(k) => &self.right[k - 1][first..][..length],
        }
    }
}

impl KernelCall {
    pub(crate) fn new(parts: CallParts<'_>) -> KernelCall {
        let CallParts { compute, second, reads, writes, path, keep, lanes } = parts;
        let mut sources = [const { SourceRows::Zeros }; MAX_SOURCES];
        for (place, read) in sources.iter_mut().zip(reads) {
            *place = SourceRows::of(*read, &compute, lanes);
        }
        let apart = |target: &Access| {
            reads.iter().filter_map(|read| read.access()).all(|read| !read.contiguous() || !read.meets(target))
        };
        let target = match writes {
            _ if compute.sends() => ResultPlace::Sent { keep },
            [write] if path.is_none() && write.block() && apart(&write.access) => {
                ResultPlace::Memory { slot: write.access.slot as u32, first: (write.access.row(0) * lanes) as u32 }
            }
            _ => ResultPlace::Buffer { writes: writes.iter().map(|write| (*write).clone()).collect(), path },
        };
        let gathers = sources.iter().any(|place| matches!(place, SourceRows::Gathered { .. }));
        KernelCall { second, compute, sources, gathers, target }
    }

    /// Runs the op on the L1B with chip-wide number `index`.
    #[inline]
    pub(crate) fn run(&self, l1b: &mut L1b, index: usize, scratch: &mut Scratch) {
        if self.gathers {
            self.gather(l1b, index, scratch);
        }
        if self.compute.product().is_some() {
            self.compute.prepare(l1b, scratch.lanes);
        }
        match &self.target {
            ResultPlace::Memory { slot, first } => self.to_memory(l1b, (*slot as usize, *first as usize), scratch),
            ResultPlace::Sent { keep } => {
                let L1b { pe, forward, own, .. } = l1b;
                let Scratch { zeros, reduce, .. } = scratch;
                let path: Path<'_> = match &self.sources[0] {
                    SourceRows::Memory { slot, first } => {
                        (&pe[*slot as usize][*first as usize..][..zeros.len()], zeros)
                    }
                    SourceRows::Forward(path) => forward[*path as usize].planes(),
                    _ => (zeros, zeros),
                };
                self.compute.send(path, *keep, own, reduce);
            }
            ResultPlace::Buffer { writes, path } => self.to_buffer(l1b, writes, *path, scratch),
        }
    }

    #[inline(always)]
    fn to_memory(&self, l1b: &mut L1b, (slot, first): (usize, usize), scratch: &mut Scratch) {
        let Scratch { zeros, spare, gathered, .. } = scratch;
        let length = zeros.len();
        let (left, rest) = l1b.pe.split_at_mut(slot);
        let Some((memory, right)) = rest.split_first_mut() else { return };
        let (before, rest) = memory.split_at_mut(first);
        let (l0, after) = rest.split_at_mut(length);
        let memories = SplitMemories { slot, first, left, right, before, after };
        let out = Out { l0, l1: None };
        if let Compute::Load(load) = &self.compute {
            return load.run(&l1b.own, out);
        }
        let rows = |k: usize| -> Path<'_> {
            match &self.sources[k] {
                SourceRows::Zeros => (zeros, zeros),
                SourceRows::Memory { slot, first } => (memories.rows(*slot as usize, *first as usize, length), zeros),
                SourceRows::Forward(path) => l1b.forward[*path as usize].planes(),
                SourceRows::Gathered { wide: false, .. } => (&gathered[k][..length], zeros),
                SourceRows::Gathered { wide: true, .. } => gathered[k].split_at(length),
            }
        };
        let state = MatrixRegisters { pe: &[], decoded: &l1b.decoded, zeros };
        self.compute.run(&[rows(0), rows(1), rows(2)], state, 0, spare, out);
    }

    fn to_buffer(&self, l1b: &mut L1b, writes: &[Write], path: Option<ForwardUpdate>, scratch: &mut Scratch) {
        let narrow = self.narrow(l1b);
        let Scratch { zeros, spare, gathered, lanes, mask, fetch, results, .. } = scratch;
        let length = zeros.len();
        let at = path.and_then(|published| published.later).map_or(0, |later| later as usize + 1);
        while results.len() <= at {
            results.push(Outcome::new(length));
        }
        let result = &mut results[at].path;
        let mut out = result.start(narrow);
        if let Compute::Load(load) = &self.compute {
            load.run(&l1b.own, out);
        } else {
            let rows = |k: usize| -> Path<'_> {
                match &self.sources[k] {
                    SourceRows::Zeros => (zeros, zeros),
                    SourceRows::Memory { slot, first } => (&l1b.pe[*slot as usize][*first as usize..][..length], zeros),
                    SourceRows::Forward(path) => l1b.forward[*path as usize].planes(),
                    SourceRows::Gathered { wide: false, .. } => (&gathered[k][..length], zeros),
                    SourceRows::Gathered { wide: true, .. } => gathered[k].split_at(length),
                }
            };
            let out = out.part(0, length);
            self.compute.run(&[rows(0), rows(1), rows(2)], MatrixRegisters::of(l1b, zeros), 0, spare, out);
        }
        let [tmp, ..] = fetch;
        for write in writes {
            write.store(l1b, *lanes, (result.planes(), result.narrow()), tmp, mask);
        }
        if let Some(ForwardUpdate { path, later: None }) = path {
            // The old content of the path is not needed any more, so its buffer takes the next result.
            std::mem::swap(&mut l1b.forward[path as usize], result);
        }
    }

    /// Copies together the rows of sources that do not follow each other.
    fn gather(&self, l1b: &L1b, index: usize, scratch: &mut Scratch) {
        let Scratch { lanes, spare, gathered, .. } = scratch;
        for (place, planes) in self.sources.iter().zip(gathered) {
            match place {
                SourceRows::Gathered { source, .. } if source.converts() => {
                    source.gather_converted(l1b, index, *lanes, spare, planes);
                }
                SourceRows::Gathered { source, wide } => source.gather(l1b, index, *lanes, *wide, planes),
                _ => {}
            }
        }
    }

    /// Whether L1 of the result is zero.
    fn narrow(&self, l1b: &L1b) -> bool {
        match (self.second, &self.sources[0]) {
            (SecondLongWord::Zero, _) => true,
            (SecondLongWord::Any, _) => false,
            (SecondLongWord::Source, SourceRows::Zeros | SourceRows::Memory { .. }) => true,
            (SecondLongWord::Source, SourceRows::Forward(path)) => l1b.forward[*path as usize].narrow(),
            (SecondLongWord::Source, SourceRows::Gathered { wide, .. }) => !wide,
        }
    }
}

/// Gives a forwarding path the result that has waited in a buffer.
pub(crate) fn update_forward(path: u32, later: u32, l1b: &mut L1b, scratch: &mut Scratch) {
    let waiting: Option<&mut PathRows> = scratch.results.get_mut(later as usize + 1).map(|outcome| &mut outcome.path);
    if let Some(result) = waiting {
        std::mem::swap(&mut l1b.forward[path as usize], result);
    }
}

//! Buffers over stretches of time, and the data that all searches share.

/// `size` units that live from `start` to before `end`; the offset is a multiple of `align`.
#[derive(Clone, Copy, Debug)]
pub struct Buffer {
    /// first moment of its life
    pub start: i64,
    /// the moment after its last one
    pub end: i64,
    /// number of units that it takes
    pub size: i64,
    /// its offset is a multiple of this number, at least 1
    pub align: i64,
}

/// The result of a search.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// an offset for every buffer
    Placed(Vec<i64>),
    /// no placement exists
    Impossible,
    /// the search was stopped before it knew
    OutOfTime,
    /// the arguments have no meaning
    Invalid,
}

/// Why an attempt ended before it had a result.
pub(crate) enum Stop {
    Nodes,
    Time,
}

/// The nodes after which a search asks whether to go on.
pub const NODES: u64 = 512;

/// Counts nodes.
pub(crate) struct Stopwatch<'a> {
    left: u64,
    go_on: &'a mut dyn FnMut() -> bool,
}

impl<'a> Stopwatch<'a> {
    pub(crate) fn new(nodes: u64, go_on: &'a mut dyn FnMut() -> bool) -> Self {
        Self { left: nodes, go_on }
    }

    pub(crate) fn count(&mut self) -> Result<(), Stop> {
        if self.left == 0 {
            return Err(Stop::Nodes);
        }
        if self.left.is_multiple_of(NODES) && !(self.go_on)() {
            return Err(Stop::Time);
        }
        self.left -= 1;
        Ok(())
    }
}

/// A buffer: it lives in the sections from `low` to before `high`.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Item {
    pub(crate) low: usize,
    pub(crate) high: usize,
    pub(crate) size: i64,
    pub(crate) align: i64,
}

impl Item {
    pub(crate) fn meets(&self, other: &Item) -> bool {
        self.low < other.high && other.low < self.high
    }

    pub(crate) fn aligned(&self, offset: i64) -> i64 {
        if self.align <= 1 {
            return offset;
        }
        (offset + self.align - 1) / self.align * self.align
    }
}

/// The problem. Time is cut into sections in which the same buffers live.
pub(crate) struct Problem {
    pub(crate) items: Vec<Item>,
    pub(crate) load: Vec<i64>,
    pub(crate) capacity: i64,
}

impl Problem {
    /// Cuts time into sections. None if a buffer never lives, or has no size or no alignment.
    pub(crate) fn new(buffers: &[Buffer], capacity: i64) -> Option<Self> {
        if buffers.iter().any(|b| b.start >= b.end || b.size < 1 || b.align < 1) {
            return None;
        }
        let mut times: Vec<i64> = buffers.iter().flat_map(|b| [b.start, b.end]).collect();
        sorting::sort(&mut times);
        times.dedup();
        let at = |time: i64| times.partition_point(|&t| t < time);
        let items: Vec<Item> =
            buffers.iter().map(|b| Item { low: at(b.start), high: at(b.end), size: b.size, align: b.align }).collect();
        let mut load = vec![0; times.len()];
        for item in &items {
            for section in &mut load[item.low..item.high] {
                *section += item.size;
            }
        }
        Some(Self { items, load, capacity })
    }

    /// Splits `members` at moments that no lifetime crosses. Smaller parts come first.
    pub(crate) fn parts(&self, mut members: Vec<usize>) -> Vec<Vec<usize>> {
        sorting::sort_by_key(&mut members, |&m| (self.items[m].low, m));
        let mut parts: Vec<Vec<usize>> = Vec::new();
        let mut reach = 0;
        for member in members {
            let item = &self.items[member];
            match parts.last_mut() {
                Some(part) if item.low < reach => part.push(member),
                _ => parts.push(vec![member]),
            }
            reach = reach.max(item.high);
        }
        sorting::sort_by_key(&mut parts, Vec::len);
        parts
    }
}

/// Where each buffer stands in an order of preference.
pub(crate) fn ranks(order: &[usize]) -> Vec<usize> {
    let mut rank = vec![0; order.len()];
    for (place, &item) in order.iter().enumerate() {
        rank[item] = place;
    }
    rank
}

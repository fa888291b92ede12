//! Two layouts of one tensor, compared digit by digit.
//!
//! The *parts* of a layout are its digits, each with its weight in the index (`lo`). A *segment* is a range of an axis
//! between two weights at which both layouts cut the index. If the cuts inside such a range divide each other, the range
//! splits into digits: segments with one part on each side. If they do not (3 x 2 against 2 x 3), the range is cut where
//! parts of both layouts can be cut, and what is left is one segment with several parts.

use crate::layout::{up, Layout, Level, Machine, SubAxis};
use std::collections::BTreeSet;

/// `size` values of the index digit with weight `lo` lie `stride` apart on `level`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Part {
    pub(crate) lo: i64,
    pub(crate) size: i64,
    pub(crate) level: Level,
    pub(crate) stride: i64,
}

impl Part {
    /// The part in Addr. Strides in Addr do not count.
    pub(crate) fn in_addr(self) -> Part {
        Part { level: Level::Addr, stride: 0, ..self }
    }
}

/// The digit `index / lo % size` of `axis` as two layouts place it, minor parts first.
#[derive(Clone, Debug)]
pub(crate) struct Segment {
    pub(crate) axis: usize,
    pub(crate) lo: i64,
    pub(crate) size: i64,
    pub(crate) source: Vec<Part>,
    pub(crate) result: Vec<Part>,
}

impl Segment {
    /// Whether both layouts cut the segment at the same weights.
    pub(crate) fn alike(&self) -> bool {
        let cut = |parts: &[Part]| -> Vec<(i64, i64)> { parts.iter().map(|p| (p.lo, p.size)).collect() };
        cut(&self.source) == cut(&self.result)
    }
}

/// `size` coordinates of a level that lie `stride` apart; `size` is a prime number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct PrimeDigit {
    pub(crate) stride: i64,
    pub(crate) size: i64,
}

/// Returns the parts of an axis of `size` elements, minor first. Parts of size 1 are left out.
pub(crate) fn parts(axis: &[SubAxis], size: i64) -> Vec<Part> {
    let (mut out, mut lo) = (Vec::new(), 1);
    for sub in axis.iter().rev() {
        let used = sub.size.min(up(size, lo));
        if used > 1 {
            out.push(Part { lo, size: used, level: sub.level, stride: sub.stride });
        }
        lo *= sub.size;
    }
    out
}

/// Returns the segments of all axes; within an axis the minor segments come first.
pub(crate) fn segments(source: &Layout, result: &Layout, shape: &[i64]) -> Vec<Segment> {
    let mut out = Vec::new();
    for (axis, &size) in shape.iter().enumerate() {
        if size > 1 {
            axis_segments(axis, &parts(&source.axes[axis], size), &parts(&result.axes[axis], size), size, &mut out);
        }
    }
    out
}

/// Adds the segments of an axis that is not of size 1 to `out`.
pub(crate) fn axis_segments(axis: usize, ours: &[Part], theirs: &[Part], size: i64, out: &mut Vec<Segment>) {
    let has = |parts: &[Part], lo: i64| parts.iter().any(|p| p.lo == lo);
    let mut common: Vec<i64> = ours.iter().map(|p| p.lo).filter(|&lo| lo != 1 && has(theirs, lo)).collect();
    sorting::sort(&mut common);
    common.insert(0, 1);
    common.push(size);
    let mut cut_at = |ends: &[i64]| out.extend(ends.windows(2).map(|w| segment(axis, w[0], w[1], ours, theirs)));
    for pair in common.windows(2) {
        let (low, high) = (pair[0], pair[1]);
        if let Some(found) = ends(ours, theirs, low, high, size) {
            cut_at(&found);
            continue;
        }
        let mut cuts = shared_cuts(ours, theirs, low, high, size);
        cuts.push(high);
        for range in cuts.windows(2) {
            cut_at(&ends(ours, theirs, range[0], range[1], size).unwrap_or_else(|| range.to_vec()));
        }
    }
}

/// Returns all weights of a range at which a part begins; None if they do not divide each other.
fn ends(ours: &[Part], theirs: &[Part], low: i64, high: i64, size: i64) -> Option<Vec<i64>> {
    let mut out: Vec<i64> = ours.iter().chain(theirs).map(|p| p.lo).filter(|&lo| low < lo && lo < high).collect();
    sorting::sort(&mut out);
    out.dedup();
    out.insert(0, low);
    out.push(high);
    // The last range may end at the size of the axis, which need not be a multiple of a weight.
    let begins = ours.iter().chain(theirs).any(|p| p.lo == high);
    let inner = if high == size && !begins { &out[..out.len() - 1] } else { &out[..] };
    inner.windows(2).all(|w| w[1] % w[0] == 0).then_some(out)
}

/// Returns `low` and weights above it at which the parts of both layouts can be cut. The weights divide each other.
fn shared_cuts(ours: &[Part], theirs: &[Part], low: i64, high: i64, size: i64) -> Vec<i64> {
    let (mut cuts, mut last) = (vec![low], low);
    let theirs = cuts_of(theirs);
    for weight in cuts_of(ours).into_iter().filter(|weight| theirs.contains(weight)) {
        let divides = high % weight == 0 || high == size;
        if low < weight && weight < high && weight % last == 0 && divides {
            cuts.push(weight);
            last = weight;
        }
    }
    cuts
}

/// Returns the weights at which a part begins or can be cut, the smallest first.
fn cuts_of(found: &[Part]) -> BTreeSet<i64> {
    let all = found.iter().flat_map(|p| (1..p.size).filter(|&d| p.size % d == 0).map(|d| p.lo * d));
    all.collect()
}

fn segment(axis: usize, low: i64, high: i64, ours: &[Part], theirs: &[Part]) -> Segment {
    Segment { axis, lo: low, size: up(high, low), source: within(ours, low, high), result: within(theirs, low, high) }
}

/// Returns the pieces of `found` between two weights; a part that sticks out is cut.
fn within(found: &[Part], low: i64, high: i64) -> Vec<Part> {
    let mut out = Vec::new();
    for part in found {
        let (start, stop) = (low.max(part.lo), high.min(part.lo * part.size));
        if start < stop {
            out.push(Part {
                lo: start,
                size: up(stop, start),
                level: part.level,
                stride: part.stride * (start / part.lo),
            });
        }
    }
    out
}

/// Returns the prime factors of `count`; a stride is the product of the factors before it.
pub(crate) fn primes(mut count: i64) -> Vec<PrimeDigit> {
    let (mut out, mut stride, mut factor) = (Vec::new(), 1, 2);
    while count > 1 {
        while count % factor != 0 {
            factor += 1;
        }
        out.push(PrimeDigit { stride, size: factor });
        stride *= factor;
        count /= factor;
    }
    out
}

/// Returns the digits of `level` over which `layout` holds copies, sorted.
///
/// If no digit of the layout uses level W, all words of a long word hold copies, even if the layout does not say so.
pub(crate) fn copied_digits(layout: &Layout, level: Level, machine: &Machine) -> Vec<PrimeDigit> {
    if level == Level::W {
        let packed = layout.on(Level::W).next().is_some();
        return if packed { Vec::new() } else { primes(machine.count(Level::W)) };
    }
    let mut out = Vec::new();
    for entry in layout.copies.iter().filter(|entry| entry.level == level) {
        out.extend(primes(entry.size).iter().map(|d| PrimeDigit { stride: entry.stride * d.stride, size: d.size }));
    }
    sorting::sort(&mut out);
    out.dedup();
    out
}

/// Whether all digits of `some` are in `all`.
pub(crate) fn is_subset(some: &[PrimeDigit], all: &[PrimeDigit]) -> bool {
    some.iter().all(|digit| all.contains(digit))
}

/// Returns the layout with these parts per axis (in any order) and these copies per level of [`Level::SETTLED`]. None if
/// the parts of an axis leave a weight out.
pub(crate) fn make_layout(mut placed: Vec<Vec<Part>>, copies: &[&[PrimeDigit]], machine: &Machine) -> Option<Layout> {
    let mut axes = Vec::with_capacity(placed.len());
    for found in &mut placed {
        sorting::sort_by_key(found, |p| (p.lo, p.size, p.stride));
        let mut weight = 1;
        for part in found.iter() {
            if part.lo != weight {
                return None;
            }
            weight *= part.size;
        }
        axes.push(
            found.iter().rev().map(|p| SubAxis { size: p.size, level: p.level, stride: p.stride }).collect::<Vec<_>>(),
        );
    }
    let mut entries: Vec<SubAxis> = Vec::new();
    for (&level, &digits) in Level::SETTLED.iter().zip(copies) {
        if !digits.is_empty() && digits.len() == primes(machine.count(level)).len() {
            entries.push(SubAxis { size: machine.count(level), level, stride: 1 });
            continue;
        }
        for digit in digits {
            match entries.last_mut() {
                Some(last) if last.level == level && last.stride * last.size == digit.stride => last.size *= digit.size,
                _ => entries.push(SubAxis { size: digit.size, level, stride: digit.stride }),
            }
        }
    }
    Some(Layout { axes, copies: entries })
}

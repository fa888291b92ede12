//! Best fit: buffers take their offsets one after the other, among those that have theirs.

use crate::problem::Buffer;

/// Which of the gaps that are wide enough a buffer takes. Above all others there is always one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Gap {
    /// the lowest
    Lowest,
    /// the narrowest, and of equal ones the lowest
    Narrowest,
}

/// A buffer with its offset: its first unit, the one after its last, its first moment, the one after its last.
type Placed = (i64, i64, i64, i64);

/// Places `buffers` one after the other, as `order` has them, in a memory without an end. Those with a `fixed` offset keep
/// it and come first. Returns None if `order` is no permutation, or a buffer has no life time, no alignment or a size below 0.
///
/// In an order by first moments a buffer looks at those alone that live when it begins.
pub fn fit(buffers: &[Buffer], fixed: &[Option<i64>], order: &[usize], gap: Gap) -> Option<Vec<i64>> {
    let legal = |b: &Buffer| b.start < b.end && b.size >= 0 && b.align >= 1;
    if fixed.len() != buffers.len() || !crate::is_permutation(order, buffers.len()) || !buffers.iter().all(legal) {
        return None;
    }
    let mut at = vec![0; buffers.len()];
    let mut placed: Vec<Placed> = Vec::new();
    for (index, offset) in fixed.iter().enumerate() {
        if let Some(offset) = *offset {
            at[index] = offset;
            put(&mut placed, &buffers[index], offset);
        }
    }
    // What ends before all that are left begin meets none of them.
    let mut least: Vec<i64> = order.iter().map(|&index| buffers[index].start).collect();
    for n in (1..least.len()).rev() {
        least[n - 1] = least[n - 1].min(least[n]);
    }
    for (&index, &begin) in order.iter().zip(&least) {
        placed.retain(|one| one.3 > begin);
        if fixed[index].is_none() {
            at[index] = lowest(&placed, &buffers[index], gap);
            put(&mut placed, &buffers[index], at[index]);
        }
    }
    Some(at)
}

fn put(placed: &mut Vec<Placed>, buffer: &Buffer, offset: i64) {
    let place = placed.partition_point(|one| one.0 <= offset);
    placed.insert(place, (offset, offset + buffer.size, buffer.start, buffer.end));
}

fn lowest(placed: &[Placed], buffer: &Buffer, gap: Gap) -> i64 {
    let up = |floor: i64| (floor + buffer.align - 1) / buffer.align * buffer.align;
    let (mut floor, mut best) = (0, None);
    for &(low, high, start, end) in placed {
        if start >= buffer.end || end <= buffer.start {
            continue;
        }
        let room = low - up(floor);
        if room >= buffer.size && best.is_none_or(|(least, _)| room < least) {
            best = Some((room, up(floor)));
            if gap == Gap::Lowest {
                break;
            }
        }
        floor = floor.max(high);
    }
    best.map_or(up(floor), |(_, at)| at)
}

//! Moves placed buffers apart, so that units are written again long after they were read last.
//!
//! Where buffers share units, the second one must wait until the first one is dead. A program in which lines may change
//! places is shorter if few of them have to wait. Buffers are moved one after the other, each to the offset where its
//! neighbours in time are furthest away. No move lets two buffers meet, so the result is a placement.

use crate::problem::Buffer;

/// A round without a move ends the search, and so does this many rounds.
const ROUNDS: usize = 4;
/// A move must gain this much: below that, sums of the same distances may differ by rounding.
const GAIN: f64 = 1e-9;

/// Moves buffers apart. `offsets` are where they lie in a memory of `capacity`. Returns None if `offsets` are no
/// placement. `fixed` buffers stay. Distances of more than `window` moments are all alike.
///
/// A buffer costs `1 / distance` for the nearest buffer before it with common units, and as much for the nearest behind it.
pub fn spread(buffers: &[Buffer], offsets: &[i64], fixed: &[bool], capacity: i64, window: i64) -> Option<Vec<i64>> {
    let count = buffers.len();
    if [offsets.len(), fixed.len()] != [count; 2] || !is_placement(buffers, offsets, capacity) || window < 1 {
        return None;
    }
    let mut order: Vec<usize> = (0..count).collect();
    sorting::sort_by_key(&mut order, |&index| (buffers[index].start, index));
    // Buffers that live at a moment or near it are found among those that begin before the window ends.
    let longest = buffers.iter().map(|buffer| buffer.end - buffer.start).max().unwrap_or(0);
    let starts: Vec<i64> = order.iter().map(|&index| buffers[index].start).collect();
    let mut at = offsets.to_vec();
    for _ in 0..ROUNDS {
        let mut moved = false;
        for &index in &order {
            if fixed[index] {
                continue;
            }
            let buffer = &buffers[index];
            let low = starts.partition_point(|&start| start + longest + window < buffer.start);
            let high = starts.partition_point(|&start| start <= buffer.end + window);
            let near = order[low..high].iter().copied().filter(|&other| other != index);
            let found = best(buffers, &at, index, near, capacity, window);
            if found != at[index] {
                at[index] = found;
                moved = true;
            }
        }
        if !moved {
            break;
        }
    }
    Some(at)
}

/// Returns the offset of a buffer at which it costs least: its own one, if no other is better.
fn best(
    buffers: &[Buffer],
    at: &[i64],
    index: usize,
    near: impl Iterator<Item = usize>,
    capacity: i64,
    window: i64,
) -> i64 {
    let buffer = &buffers[index];
    let units = usize::try_from(capacity).unwrap_or(0);
    // The distances before and behind; 0 where another buffer lives at the same time.
    let (mut before, mut behind) = (vec![window + 1; units], vec![window + 1; units]);
    for other in near {
        let (one, low) = (&buffers[other], at[other]);
        let words = usize::try_from(low).unwrap_or(0)..usize::try_from(low + one.size).unwrap_or(0).min(units);
        if one.end <= buffer.start {
            let distance = (buffer.start - one.end + 1).min(window + 1);
            before[words].iter_mut().for_each(|found| *found = distance.min(*found));
        } else if buffer.end <= one.start {
            let distance = (one.start - buffer.end + 1).min(window + 1);
            behind[words].iter_mut().for_each(|found| *found = distance.min(*found));
        } else {
            before[words].fill(0);
        }
    }
    let size = usize::try_from(buffer.size).unwrap_or(0);
    let (before, behind) = (least(&before, size), least(&behind, size));
    let cost = |offset: usize| 1.0 / before[offset] as f64 + 1.0 / behind[offset] as f64;
    let own = at[index];
    let mut chosen = own;
    let mut lowest = cost(usize::try_from(own).unwrap_or(0)) - GAIN;
    for offset in (0..before.len()).step_by(usize::try_from(buffer.align).unwrap_or(1).max(1)) {
        if before[offset] > 0 && cost(offset) < lowest {
            chosen = i64::try_from(offset).unwrap_or(own);
            lowest = cost(offset);
        }
    }
    chosen
}

/// Returns the least of every `size` neighbours.
fn least(values: &[i64], size: usize) -> Vec<i64> {
    let mut out = Vec::with_capacity(values.len());
    // Places of values that no later value of the window undercuts.
    let mut waiting = std::collections::VecDeque::<usize>::new();
    for (place, &value) in values.iter().enumerate() {
        while waiting.back().is_some_and(|&last| values[last] >= value) {
            waiting.pop_back();
        }
        waiting.push_back(place);
        if waiting.front().is_some_and(|&first| first + size <= place) {
            waiting.pop_front();
        }
        if place + 1 >= size {
            out.extend(waiting.front().map(|&first| values[first]));
        }
    }
    out
}

/// Whether all buffers lie inside of the memory, and none meets another.
fn is_placement(buffers: &[Buffer], offsets: &[i64], capacity: i64) -> bool {
    let sound = |(one, &at): (&Buffer, &i64)| {
        one.start < one.end
            && one.size > 0
            && one.align > 0
            && at >= 0
            && at % one.align == 0
            && at + one.size <= capacity
    };
    if !buffers.iter().zip(offsets).all(sound) {
        return false;
    }
    let mut order: Vec<usize> = (0..buffers.len()).collect();
    sorting::sort_by_key(&mut order, |&index| buffers[index].start);
    let mut alive: Vec<usize> = Vec::new();
    for index in order {
        let (one, low) = (&buffers[index], offsets[index]);
        alive.retain(|&other| buffers[other].end > one.start);
        if alive.iter().any(|&other| offsets[other] < low + one.size && low < offsets[other] + buffers[other].size) {
            return false;
        }
        alive.push(index);
    }
    true
}

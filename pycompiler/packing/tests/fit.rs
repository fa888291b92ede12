//! Best fit, against a walk over all offsets.

use packing::{fit, Buffer, Gap};

struct Random(u64);

impl Random {
    fn below(&mut self, limit: i64) -> i64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) as i64 % limit
    }
}

/// The offset of a buffer among those placed: the lowest that is free, or the lowest in the narrowest gap.
fn reference(placed: &[(Buffer, i64)], buffer: &Buffer, gap: Gap) -> i64 {
    let others: Vec<(i64, i64)> = placed
        .iter()
        .filter(|(other, _)| other.start < buffer.end && buffer.start < other.end)
        .map(|&(other, at)| (at, at + other.size))
        .collect();
    let top = others.iter().map(|one| one.1).max().unwrap_or(0) + buffer.align;
    let free = |at: i64| others.iter().all(|&(low, high)| at + buffer.size <= low || high <= at);
    let ceiling = |at: i64| others.iter().map(|one| one.0).filter(|&low| low >= at + buffer.size).min();
    let starts: Vec<i64> = (0..=top).filter(|at| at % buffer.align == 0 && free(*at)).collect();
    let inside = starts.iter().copied().filter_map(|at| Some((ceiling(at)?, at)));
    let floor = |at: i64| others.iter().map(|one| one.1).filter(|&high| high <= at).max().unwrap_or(0);
    // Of the offsets in a gap the first counts.
    let gaps = inside.filter(|&(_, at)| !starts.iter().any(|&lower| lower < at && floor(lower) == floor(at)));
    let narrowest = gaps.min_by_key(|&(high, at)| (high - at, at)).map(|one| one.1);
    if gap == Gap::Narrowest {
        if let Some(at) = narrowest {
            return at;
        }
    }
    starts[0]
}

#[test]
fn each_buffer_lies_where_the_reference_puts_it() {
    let mut gaps = 0;
    for seed in 0..2_000 {
        let mut random = Random(seed);
        let buffers: Vec<Buffer> = (0..random.below(12))
            .map(|_| {
                let start = random.below(10);
                let (end, size, align) = (start + 1 + random.below(6), 1 + random.below(7), 1 + random.below(3));
                Buffer { start, end, size, align }
            })
            .collect();
        let mut order: Vec<usize> = (0..buffers.len()).collect();
        if random.below(2) == 0 {
            order.sort_by_key(|&n| buffers[n].start);
        } else {
            order.sort_by_key(|&n| -buffers[n].size);
        }
        for gap in [Gap::Lowest, Gap::Narrowest] {
            let found = fit(&buffers, &vec![None; buffers.len()], &order, gap).unwrap();
            let mut placed = Vec::new();
            for &index in &order {
                let wanted = reference(&placed, &buffers[index], gap);
                assert_eq!(
                    found[index], wanted,
                    "seed {seed}, buffer {index} of {buffers:?} in order {order:?}, {gap:?}"
                );
                gaps += usize::from(placed.iter().any(|&(_, at)| at > wanted));
                placed.push((buffers[index], wanted));
            }
        }
    }
    assert!(gaps > 1_000, "{gaps} buffers lie below others");
}

#[test]
fn what_has_an_offset_keeps_it() {
    let buffer = |start, end| Buffer { start, end, size: 4, align: 1 };
    let buffers = [buffer(0, 2), buffer(1, 9), buffer(5, 6)];
    assert_eq!(fit(&buffers, &[None, None, Some(2)], &[0, 1, 2], Gap::Lowest), Some(vec![0, 6, 2]));
}

#[test]
fn what_has_no_meaning_is_refused() {
    let good = Buffer { start: 0, end: 1, size: 1, align: 1 };
    for bad in [Buffer { end: 0, ..good }, Buffer { size: -1, ..good }, Buffer { align: 0, ..good }] {
        assert_eq!(fit(&[bad], &[None], &[0], Gap::Lowest), None);
    }
    assert_eq!(fit(&[good], &[None], &[1], Gap::Lowest), None);
    assert_eq!(fit(&[good], &[], &[0], Gap::Lowest), None);
}

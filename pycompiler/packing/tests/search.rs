//! Searches against all orders, and memories that are filled completely.

use packing::{search, Buffer, Outcome};

struct Random(u64);

impl Random {
    fn below(&mut self, limit: i64) -> i64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) as i64 % limit
    }
}

fn run(buffers: &[Buffer], capacity: i64) -> Outcome {
    let forward: Vec<usize> = (0..buffers.len()).collect();
    let backward: Vec<usize> = forward.iter().rev().copied().collect();
    let mut asked = 0;
    search(buffers, capacity, &[forward, backward], &mut || {
        asked += 1;
        asked < 2_000
    })
}

fn check(buffers: &[Buffer], capacity: i64, offsets: &[i64]) {
    for (n, (a, &at)) in buffers.iter().zip(offsets).enumerate() {
        assert!(at >= 0 && at % a.align == 0 && at + a.size <= capacity);
        for (b, &other) in buffers.iter().zip(offsets).skip(n + 1) {
            let apart = a.end <= b.start || b.end <= a.start;
            assert!(apart || at + a.size <= other || other + b.size <= at, "{a:?} at {at}, {b:?} at {other}");
        }
    }
}

/// Whether some order in which every buffer lies as low as it can fits.
fn brute_force(buffers: &[Buffer], capacity: i64, placed: &mut Vec<(Buffer, i64)>, left: &mut Vec<usize>) -> bool {
    if left.is_empty() {
        return true;
    }
    for n in 0..left.len() {
        let index = left.remove(n);
        let b = buffers[index];
        let meets = placed.iter().filter(|(o, _)| o.start < b.end && b.start < o.end);
        let floor = meets.map(|(o, at)| at + o.size).max().unwrap_or(0);
        let at = (floor + b.align - 1) / b.align * b.align;
        placed.push((b, at));
        let fits = at + b.size <= capacity && brute_force(buffers, capacity, placed, left);
        placed.pop();
        left.insert(n, index);
        if fits {
            return true;
        }
    }
    false
}

#[test]
fn the_answer_is_that_of_all_orders() {
    let (mut possible, mut impossible) = (0, 0);
    for seed in 0..3_000 {
        let mut random = Random(seed);
        let buffers: Vec<Buffer> = (0..1 + random.below(7))
            .map(|_| {
                let start = random.below(8);
                Buffer {
                    start,
                    end: start + 1 + random.below(5),
                    size: 1 + random.below(9),
                    align: [1, 1, 1, 2, 4][random.below(5) as usize],
                }
            })
            .collect();
        let load = (0..13).map(|t| buffers.iter().filter(|b| b.start <= t && t < b.end).map(|b| b.size).sum::<i64>());
        let capacity = load.max().unwrap() + random.below(3);
        let wanted = brute_force(&buffers, capacity, &mut Vec::new(), &mut (0..buffers.len()).collect());
        match run(&buffers, capacity) {
            Outcome::Placed(offsets) => {
                assert!(wanted, "seed {seed}");
                check(&buffers, capacity, &offsets);
                possible += 1;
            }
            other => {
                assert_eq!((wanted, other), (false, Outcome::Impossible), "seed {seed}");
                impossible += 1;
            }
        }
    }
    assert!(possible > 300 && impossible > 100, "{possible} {impossible}");
}

/// Buffers that fill `capacity` at all times: a rectangle, cut in two again and again.
fn packed(seed: u64, count: usize, capacity: i64) -> Vec<Buffer> {
    let mut random = Random(seed);
    let mut pieces = vec![(0, capacity, 0, capacity)];
    while pieces.len() < count {
        let at = random.below(pieces.len() as i64) as usize;
        let (start, end, low, high) = pieces[at];
        if random.below(2) == 0 && end - start > 1 {
            let cut = start + 1 + random.below(end - start - 1);
            pieces[at].1 = cut;
            pieces.push((cut, end, low, high));
        } else if high - low > 1 {
            let cut = low + 1 + random.below(high - low - 1);
            pieces[at].3 = cut;
            pieces.push((start, end, cut, high));
        }
    }
    pieces.sort_unstable_by_key(|p| (p.0 ^ p.2 ^ seed as i64, p.1));
    pieces.into_iter().map(|p| Buffer { start: p.0, end: p.1, size: p.3 - p.2, align: 1 }).collect()
}

#[test]
fn a_full_memory_is_filled() {
    for seed in 0..20 {
        let buffers = packed(seed, 20, 1 << 20);
        match run(&buffers, 1 << 20) {
            Outcome::Placed(offsets) => check(&buffers, 1 << 20, &offsets),
            other => panic!("seed {seed}: {other:?}"),
        }
        assert_eq!(run(&buffers, (1 << 20) - 1), Outcome::Impossible, "seed {seed}");
    }
}

#[test]
fn what_has_no_meaning_is_said() {
    let good = Buffer { start: 0, end: 1, size: 1, align: 1 };
    let never = &mut || true;
    for bad in [Buffer { end: 0, ..good }, Buffer { size: 0, ..good }, Buffer { align: 0, ..good }] {
        assert_eq!(search(&[bad], 4, &[vec![0]], never), Outcome::Invalid);
    }
    assert_eq!(search(&[good], 4, &[], never), Outcome::Invalid);
    assert_eq!(search(&[good], 4, &[vec![1]], never), Outcome::Invalid);
    assert_eq!(search(&[good], 4, &[vec![0]], never), Outcome::Placed(vec![0]));
    let many = packed(1, 300, 1 << 20);
    assert_eq!(search(&many, 1 << 20, &[(0..300).collect()], &mut || false), Outcome::OutOfTime);
}

//! The search in the order of offsets: no buffer is placed below the previous one.

use crate::problem::{ranks, Problem, Stop, Stopwatch};

struct Search<'p, 'w, 'g> {
    p: &'p Problem,
    watch: &'w mut Stopwatch<'g>,
    rank: Vec<usize>,
    offsets: Vec<i64>,
    /// the least offset of each unplaced buffer, given the placed ones it meets
    least: Vec<i64>,
    rest: Vec<i64>,
}

/// Places all buffers; `None` if that is impossible.
pub(crate) fn search(p: &Problem, order: &[usize], watch: &mut Stopwatch<'_>) -> Result<Option<Vec<i64>>, Stop> {
    let count = p.items.len();
    let mut search =
        Search { p, watch, rank: ranks(order), offsets: vec![0; count], least: vec![0; count], rest: p.load.clone() };
    for part in p.parts((0..count).collect()) {
        if !search.solve(&part, 0, 0)? {
            return Ok(None);
        }
    }
    Ok(Some(search.offsets))
}

impl Search<'_, '_, '_> {
    /// Places `members`, none below `last`; at `last` only those from `last_rank` on.
    fn solve(&mut self, members: &[usize], last: i64, last_rank: usize) -> Result<bool, Stop> {
        self.watch.count()?;
        let p = self.p;
        let mut limit = i64::MAX;
        let mut tallest = 0;
        let mut candidates: Vec<(i64, usize, usize)> = Vec::with_capacity(members.len());
        for &member in members {
            let item = &p.items[member];
            let at = item.aligned(self.least[member].max(last));
            // A buffer above the end of another one leaves room for that one below, which must be placed first.
            limit = limit.min(at + item.size);
            candidates.push((at, self.rank[member], member));
            for &rest in &self.rest[item.low..item.high] {
                tallest = tallest.max(rest);
            }
        }
        // If this buffer begins too high, the others have no room.
        limit = limit.min(p.capacity - tallest + 1);
        candidates.retain(|c| c.0 < limit);
        candidates.sort_unstable();
        for (offset, rank, member) in candidates {
            if offset == last && rank < last_rank {
                continue;
            }
            let item = p.items[member];
            let others: Vec<usize> = members.iter().copied().filter(|&m| m != member).collect();
            let mut undo: Vec<(usize, i64)> = Vec::new();
            let mut met = false;
            let (mut low, mut high) = (usize::MAX, 0);
            for &other in &others {
                let o = &p.items[other];
                if o.meets(&item) {
                    met = true;
                    low = low.min(o.low);
                    high = high.max(o.high);
                    let least = o.aligned(self.least[other].max(offset + item.size));
                    if least != self.least[other] {
                        undo.push((other, self.least[other]));
                        self.least[other] = least;
                    }
                }
            }
            self.offsets[member] = offset;
            for rest in &mut self.rest[item.low..item.high] {
                *rest -= item.size;
            }
            let fits = !met || self.fits(&others, low, high, offset);
            let mut solved = fits;
            if fits {
                for part in p.parts(others) {
                    if !self.solve(&part, offset, rank)? {
                        solved = false;
                        break;
                    }
                }
            }
            // The next part or the next try begins from this state.
            for rest in &mut self.rest[item.low..item.high] {
                *rest += item.size;
            }
            for (other, least) in undo {
                self.least[other] = least;
            }
            if solved {
                return Ok(true);
            }
            if fits && !met {
                return Ok(false); // no other buffer meets this one, so it is not why the others do not fit
            }
        }
        Ok(false)
    }

    /// Whether the other buffers fit above their least offsets, in the sections from `low` to before `high`.
    fn fits(&self, members: &[usize], low: usize, high: usize, last: i64) -> bool {
        let mut floor = vec![i64::MAX; high - low];
        for &member in members {
            let item = &self.p.items[member];
            let least = self.least[member].max(last);
            for section in item.low.max(low)..item.high.min(high) {
                floor[section - low] = floor[section - low].min(least);
            }
        }
        floor.iter().zip(&self.rest[low..high]).all(|(&floor, &rest)| rest == 0 || floor + rest <= self.p.capacity)
    }
}

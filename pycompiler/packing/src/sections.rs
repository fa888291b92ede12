//! The search that decides the section with the fewest choices first, and those before where attempts have failed.

use crate::problem::{ranks, Problem, Stop, Stopwatch};

/// The next step of a search.
enum Step {
    /// none: the remaining buffers do not fit
    Never,
    /// these buffers cannot lie at their least offset
    Raise(Vec<usize>),
    /// one of these buffers lies on the floor of a section, or none does
    Branch(Vec<usize>),
}

struct Search<'p, 'w, 'g> {
    p: &'p Problem,
    watch: &'w mut Stopwatch<'g>,
    /// of each section, how often something did not fit because of it; kept for the next attempt
    weight: &'w mut Vec<f64>,
    rank: Vec<usize>,
    offsets: Vec<i64>,
    /// the least offset of each unplaced buffer, given the placed ones it meets
    least: Vec<i64>,
    rest: Vec<i64>,
}

/// Places all buffers; `None` if that is impossible.
pub(crate) fn search<'w>(
    p: &Problem,
    order: &[usize],
    weight: &'w mut Vec<f64>,
    watch: &'w mut Stopwatch<'_>,
) -> Result<Option<Vec<i64>>, Stop> {
    let count = p.items.len();
    let mut search = Search {
        p,
        watch,
        weight,
        rank: ranks(order),
        offsets: vec![0; count],
        least: vec![0; count],
        rest: p.load.clone(),
    };
    for part in p.parts((0..count).collect()) {
        if !search.solve(&part)? {
            return Ok(None);
        }
    }
    Ok(Some(search.offsets))
}

impl Search<'_, '_, '_> {
    /// Places `members`, which are all remaining buffers between their first start and last end.
    fn solve(&mut self, members: &[usize]) -> Result<bool, Stop> {
        let mut raised: Vec<(usize, i64)> = Vec::new();
        let solved = self.raise_and_solve(members, &mut raised);
        for (member, least) in raised.into_iter().rev() {
            self.least[member] = least;
        }
        solved
    }

    fn raise_and_solve(&mut self, members: &[usize], raised: &mut Vec<(usize, i64)>) -> Result<bool, Stop> {
        let p = self.p;
        loop {
            self.watch.count()?;
            let mut chosen = match self.choose(members) {
                Step::Never => return Ok(false),
                Step::Raise(chosen) => {
                    if !self.raise(&chosen, members, raised) {
                        return Ok(false);
                    }
                    continue;
                }
                Step::Branch(chosen) => chosen,
            };
            sorting::sort_by_key(&mut chosen, |&m| self.rank[m]);
            for &member in &chosen {
                let item = p.items[member];
                let others: Vec<usize> = members.iter().copied().filter(|&m| m != member).collect();
                let alone = !others.iter().any(|&o| p.items[o].meets(&item));
                if self.issue(member, others)? {
                    return Ok(true);
                }
                if alone {
                    return Ok(false); // nothing meets this buffer, so it is not why the others do not fit
                }
            }
            // None of them lies on the floor, so each rests on a buffer that is not placed yet.
            if !self.raise(&chosen, members, raised) {
                return Ok(false);
            }
        }
    }

    /// Lets each of `chosen` rest on the lowest unplaced buffer that it meets. Returns false if there is none.
    fn raise(&mut self, chosen: &[usize], members: &[usize], raised: &mut Vec<(usize, i64)>) -> bool {
        let p = self.p;
        let first = raised.len();
        for &member in chosen {
            let item = &p.items[member];
            let top = members
                .iter()
                .filter(|&&o| o != member && p.items[o].meets(item))
                .map(|&o| self.least[o] + p.items[o].size)
                .min();
            let Some(top) = top else {
                raised.truncate(first);
                return false;
            };
            raised.push((member, item.aligned(top)));
        }
        for entry in &mut raised[first..] {
            std::mem::swap(&mut self.least[entry.0], &mut entry.1);
        }
        true
    }

    /// Decides the next step: which section comes next, unless the state allows a conclusion at once.
    ///
    /// Sections are left for later if another buffer still fits below one of theirs.
    fn choose(&mut self, members: &[usize]) -> Step {
        let p = self.p;
        let low = members.iter().map(|&m| p.items[m].low).min().unwrap_or(0);
        let high = members.iter().map(|&m| p.items[m].high).max().unwrap_or(0);
        let mut floor = vec![i64::MAX; high - low];
        let mut top = vec![i64::MAX; high - low];
        for &member in members {
            let (item, least) = (&p.items[member], self.least[member]);
            for s in item.low - low..item.high - low {
                floor[s] = floor[s].min(least);
                top[s] = top[s].min(least + item.size);
            }
        }
        let rest = self.rest[low..high].to_vec();
        if let Some(at) = floor.iter().zip(&rest).position(|(&f, &r)| r > 0 && f + r > p.capacity) {
            self.weight[low + at] += 1.0;
            return Step::Never;
        }
        let mut count = vec![0u32; high - low];
        let mut early = vec![false; high - low];
        let mut too_low = Vec::new();
        for &member in members {
            let (item, least) = (&p.items[member], self.least[member]);
            let range = item.low - low..item.high - low;
            let below = top[range.clone()].iter().any(|&t| t <= least);
            // No other buffer fits below this one any more, so the room below it is lost.
            if !below {
                if let Some(at) = rest[range.clone()].iter().position(|&r| least + r > p.capacity) {
                    self.weight[item.low + at] += 1.0;
                    too_low.push(member);
                }
            }
            for s in range {
                if floor[s] == least {
                    count[s] += 1;
                    early[s] |= below;
                }
            }
        }
        if !too_low.is_empty() {
            return Step::Raise(too_low);
        }
        let spare = |s: usize| p.capacity - floor[s] - rest[s];
        let choices = |s: usize| count[s] + u32::from(spare(s) > 0);
        let open = (0..high - low).filter(|&s| rest[s] > 0 && !early[s]);
        let key = |s: usize| if choices(s) <= 1 { 0.0 } else { f64::from(choices(s)) / self.weight[low + s] };
        let section = open.min_by(|&a, &b| key(a).total_cmp(&key(b)));
        let Some(section) = section else { return Step::Never };
        let at = section + low;
        let here = |m: &&usize| {
            let item = &p.items[**m];
            item.low <= at && at < item.high && self.least[**m] == floor[section]
        };
        Step::Branch(members.iter().filter(here).copied().collect())
    }

    /// Places `member` at its least offset, and all `others` after it.
    fn issue(&mut self, member: usize, others: Vec<usize>) -> Result<bool, Stop> {
        let p = self.p;
        let item = p.items[member];
        let offset = self.least[member];
        self.offsets[member] = offset;
        let mut undo: Vec<(usize, i64)> = Vec::new();
        for &other in &others {
            let o = &p.items[other];
            if o.meets(&item) {
                let least = o.aligned(self.least[other].max(offset + item.size));
                if least != self.least[other] {
                    undo.push((other, self.least[other]));
                    self.least[other] = least;
                }
            }
        }
        for rest in &mut self.rest[item.low..item.high] {
            *rest -= item.size;
        }
        let mut solved = true;
        for part in p.parts(others) {
            if !self.solve(&part)? {
                solved = false;
                break;
            }
        }
        // The next part or the next try begins from this state.
        for rest in &mut self.rest[item.low..item.high] {
            *rest += item.size;
        }
        for (other, least) in undo {
            self.least[other] = least;
        }
        Ok(solved)
    }
}

//! The search for the cheapest passes: A* over the places of the digits.

use crate::costs::{least_steps, pass_steps};
use crate::digits::{copied_digits, is_subset, make_layout, parts, primes, segments, Part, PrimeDigit, Segment};
use crate::layout::{Change, Layout, Level, Machine};
use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap};

/// States looked at between two questions whether to go on.
const LOOKS: u64 = 64;

/// One pass over `level`, after which the value has `layout`; None stands for the wanted layout.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pass {
    /// The level that the pass settles.
    pub level: Level,
    /// The layout after the pass.
    pub layout: Option<Layout>,
    /// Its steps, estimated.
    pub steps: i64,
}

/// The end of a search.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// The cheapest passes, in order.
    Found(Vec<Pass>),
    /// LM is too small for all ways, or the passes take more steps than allowed.
    None,
    /// `go_on` ended the search.
    Stopped,
}

/// The places of all digits. Strides in Addr do not count.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct State {
    /// The parts of each segment.
    parts: Vec<Vec<Part>>,
    /// Whether a segment is cut as the wanted layout cuts it.
    wanted_form: Vec<bool>,
    /// For each level of `SETTLED`, the digits over which there are copies.
    copies: [Vec<PrimeDigit>; 5],
}

/// A state that was reached, the pass that led to it, and the state before.
struct Reached {
    state: State,
    pass: Option<Pass>,
    before: usize,
}

/// Returns the cheapest passes that change a layout, at most `most` steps together.
///
/// `go_on` is asked now and then, and the search ends if it says no.
pub fn plan(change: &Change, machine: &Machine, most: Option<i64>, go_on: &mut dyn FnMut() -> bool) -> Outcome {
    Search::new(change, machine).run(most, go_on)
}

struct Search<'a> {
    change: &'a Change,
    machine: &'a Machine,
    segments: Vec<Segment>,
    /// The parts of each segment in the wanted layout, with stride 0 in Addr.
    wanted: Vec<Vec<Part>>,
    goal: [Vec<PrimeDigit>; 5],
    least: [i64; 5],
}

impl<'a> Search<'a> {
    fn new(change: &'a Change, machine: &'a Machine) -> Search<'a> {
        let segments = segments(&change.source, &change.result, &change.shape);
        Search {
            change,
            machine,
            wanted: segments.iter().map(|s| placed(&s.result)).collect(),
            segments,
            goal: Level::SETTLED.map(|level| copied_digits(&change.result, level, machine)),
            least: Level::SETTLED.map(|level| least_steps(level, machine)),
        }
    }

    fn run(&self, most: Option<i64>, go_on: &mut dyn FnMut() -> bool) -> Outcome {
        let start = State {
            parts: self.segments.iter().map(|s| placed(&s.source)).collect(),
            wanted_form: self.segments.iter().map(Segment::alike).collect(),
            copies: Level::SETTLED.map(|level| copied_digits(&self.change.source, level, self.machine)),
        };
        if self.is_done(&start) {
            return self.only_addresses();
        }
        // Entries are ordered by their steps so far plus the least steps that are left; then the older comes first.
        let mut queue = BinaryHeap::from([Reverse((self.left(&start), 0, 0))]);
        let mut reached = vec![Reached { state: start, pass: None, before: 0 }];
        let mut best: HashMap<State, i64> = HashMap::new();
        let mut looks = 0;
        while let Some(Reverse((_, number, cost))) = queue.pop() {
            looks += 1;
            if looks % LOOKS == 0 && !go_on() {
                return Outcome::Stopped;
            }
            let state = reached[number].state.clone();
            if self.is_done(&state) {
                return Outcome::Found(path(&reached, number));
            }
            if best.get(&state).is_some_and(|&known| known <= cost) {
                continue;
            }
            best.insert(state.clone(), cost);
            let source = match &reached[number].pass {
                Some(Pass { layout: Some(layout), .. }) => layout.clone(),
                _ => self.change.source.clone(),
            };
            for (level, after) in self.next(&state) {
                if best.contains_key(&after) {
                    continue; // the state was reached in fewer steps
                }
                let done = self.is_done(&after);
                let result = if done { Some(self.change.result.clone()) } else { self.layout(&after) };
                let Some(result) = result else { continue };
                if result.long_words(self.machine) > self.machine.lm0
                    || !result.is_legal(&self.change.shape, self.machine)
                {
                    continue;
                }
                let shape = self.change.shape.clone();
                let one = Change { source: source.clone(), result, shape };
                // There may be no such pass, as words are packed wholly or not at all.
                let Some(steps) = pass_steps(&one, level, self.machine) else { continue };
                let least = cost + steps + self.left(&after);
                if most.is_none_or(|most| least <= most) {
                    queue.push(Reverse((least, reached.len(), cost + steps)));
                    let pass = Pass { level, layout: (!done).then_some(one.result), steps };
                    reached.push(Reached { state: after, pass: Some(pass), before: number });
                }
            }
        }
        Outcome::None
    }

    /// Returns the passes if every digit is on its level, so that only addresses may differ.
    fn only_addresses(&self) -> Outcome {
        let Change { source, result, shape } = self.change;
        let all = |layout: &Layout| -> Vec<Vec<Part>> {
            layout.axes.iter().zip(shape).map(|(axis, &size)| parts(axis, size)).collect()
        };
        if all(source) == all(result) {
            return Outcome::Found(Vec::new());
        }
        match pass_steps(self.change, Level::Pe, self.machine) {
            Some(steps) => Outcome::Found(vec![Pass { level: Level::Pe, layout: None, steps }]),
            None => Outcome::None,
        }
    }

    fn is_done(&self, state: &State) -> bool {
        state.wanted_form.iter().all(|&form| form)
            && self.goal.iter().zip(&state.copies).all(|(goal, have)| is_subset(goal, have))
            && state.parts == self.wanted
    }

    /// Returns a lower bound of the steps of the passes over levels that are not settled.
    fn left(&self, state: &State) -> i64 {
        let mut open = [false; 7];
        for level in Level::SETTLED {
            open[level as usize] = !is_subset(&self.goal[level as usize], &state.copies[level as usize]);
        }
        for (now, wanted) in state.parts.iter().zip(&self.wanted) {
            if now != wanted {
                let alone =
                    now.iter().filter(|p| !wanted.contains(p)).chain(wanted.iter().filter(|p| !now.contains(p)));
                alone.for_each(|p| open[p.level as usize] = true);
            }
        }
        Level::SETTLED.iter().filter(|&&level| open[level as usize]).map(|&level| self.least[level as usize]).sum()
    }

    /// Returns the level of each possible next pass, and the state after it.
    ///
    /// A pass settles a level, or moves all digits of W to Addr. If LM has no room for all digits that leave a level at
    /// once, they leave one by one.
    fn next(&self, state: &State) -> Vec<(Level, State)> {
        let mut out = Vec::new();
        for level in Level::SETTLED {
            let settled = self.settle(state, level);
            let fits = self.fits(&settled);
            out.push((level, settled));
            if level != Level::W && !fits {
                self.one_by_one(state, level, &mut out);
            }
        }
        let mut apart = state.clone();
        apart.parts.iter_mut().flatten().filter(|p| p.level == Level::W).for_each(|p| *p = p.in_addr());
        apart.copies[Level::W as usize] = primes(self.machine.count(Level::W));
        out.push((Level::W, apart));
        out
    }

    fn fits(&self, state: &State) -> bool {
        let mut words = 1i64;
        for part in state.parts.iter().flatten().filter(|p| p.level == Level::Addr) {
            words = words.saturating_mul(part.size);
        }
        words <= self.machine.lm0
    }

    /// Adds the states in which one digit of `level` has moved to Addr.
    fn one_by_one(&self, state: &State, level: Level, out: &mut Vec<(Level, State)>) {
        for (index, segment) in self.segments.iter().enumerate() {
            for (which, part) in state.parts[index].iter().enumerate() {
                if part.level == level && !segment.result.contains(part) {
                    let mut moved = state.clone();
                    moved.parts[index][which] = part.in_addr();
                    out.push((level, moved));
                }
            }
        }
    }

    /// Returns the state after a pass over `level`.
    fn settle(&self, state: &State, level: Level) -> State {
        let mut after = state.clone();
        for (index, segment) in self.segments.iter().enumerate() {
            let now = &mut after.parts[index];
            if !after.wanted_form[index] && now.iter().all(|p| p.level == Level::Addr || p.level == level) {
                *now = segment.result.iter().map(|p| p.in_addr()).collect();
                after.wanted_form[index] = true;
            }
            if after.wanted_form[index] {
                for (part, wanted) in now.iter_mut().zip(&self.wanted[index]) {
                    *part = moved(*part, *wanted, level);
                }
            } else {
                now.iter_mut().filter(|p| p.level == level).for_each(|p| *p = p.in_addr());
            }
        }
        after.copies[level as usize] = self.goal[level as usize].clone();
        if level == Level::W {
            self.settle_words(&mut after);
        }
        after
    }

    /// Packs words wholly or not at all.
    fn settle_words(&self, after: &mut State) {
        let in_words = |parts: &[Part]| parts.iter().filter(|p| p.level == Level::W).count();
        let mut inside: usize = after.parts.iter().map(|parts| in_words(parts)).sum();
        let wanted: usize = self.segments.iter().map(|s| in_words(&s.result)).sum();
        if inside != wanted {
            after.parts.iter_mut().flatten().filter(|p| p.level == Level::W).for_each(|p| *p = p.in_addr());
            inside = 0;
        }
        // The result may pack digits that no index uses.
        let packed = inside > 0 || (wanted == 0 && self.change.result.on(Level::W).next().is_some());
        let copies = if packed { Vec::new() } else { primes(self.machine.count(Level::W)) };
        after.copies[Level::W as usize] = copies;
    }

    /// Returns a layout for `state` without gaps in Addr.
    fn layout(&self, state: &State) -> Option<Layout> {
        let mut placed: Vec<Vec<Part>> = vec![Vec::new(); self.change.shape.len()];
        let mut stride = 1;
        for (segment, now) in self.segments.iter().zip(&state.parts) {
            for part in now {
                let mut part = *part;
                if part.level == Level::Addr {
                    part.stride = stride;
                    stride = stride.saturating_mul(part.size);
                }
                placed[segment.axis].push(part);
            }
        }
        let copies: Vec<&[PrimeDigit]> = state.copies.iter().map(Vec::as_slice).collect();
        make_layout(placed, &copies, self.machine)
    }
}

fn moved(mut part: Part, wanted: Part, level: Level) -> Part {
    if part.level == level && part != wanted {
        part = part.in_addr();
    }
    if part.level == Level::Addr && wanted.level == level {
        return wanted;
    }
    part
}

/// Returns the parts with stride 0 in Addr.
fn placed(parts: &[Part]) -> Vec<Part> {
    parts.iter().map(|p| if p.level == Level::Addr { p.in_addr() } else { *p }).collect()
}

fn path(reached: &[Reached], mut number: usize) -> Vec<Pass> {
    let mut out = Vec::new();
    while let Some(pass) = &reached[number].pass {
        out.push(pass.clone());
        number = reached[number].before;
    }
    out.reverse();
    out
}

//! The search for the cheapest passes: A* over the places of the digits.

use crate::detours::{in_primes, meets, park};
use crate::digits::{copied_digits, is_subset, make_layout, parts, primes, segments, Part, PrimeDigit, Segment};
use crate::layout::{Change, Layout, Level, Machine};
use crate::passes::{least_steps, pass_steps};
use crate::state::{joined, moved, placed, State};
use rustc_hash::FxHashMap;
use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// States looked at between two questions whether to go on.
const LOOKS: u64 = 64;

/// States looked at until a search with detours gives up.
const MOST_LOOKS: u64 = 2048;

/// Steps that a search with detours expects for a segment or a part that is not as wanted.
const FORM: i64 = 10 * PART;
const PART: i64 = 10_000;

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

/// A state that was reached, the pass that led to it, the steps so far, and the state before.
struct Reached {
    state: State,
    pass: Option<Pass>,
    cost: i64,
    before: usize,
}

/// Returns the cheapest passes that change a layout, at most `most` steps together.
///
/// If there are none, a second search lets digits make detours, unless the steps are limited. `go_on` is asked now and then,
/// and the search ends if it says no.
pub fn plan(change: &Change, machine: &Machine, most: Option<i64>, go_on: &mut dyn FnMut() -> bool) -> Outcome {
    let found = Search::new(change, machine, false).run(most, go_on);
    let fit = [&change.source, &change.result].iter().all(|layout| layout.long_words(machine) <= machine.lm0);
    match found {
        Outcome::None if most.is_none() && fit => Search::new(change, machine, true).run(most, go_on),
        found => found,
    }
}

struct Search<'a> {
    change: &'a Change,
    machine: &'a Machine,
    segments: Vec<Segment>,
    /// The parts of each segment in the wanted layout, with stride 0 in Addr.
    wanted: Vec<Vec<Part>>,
    goal: [Vec<PrimeDigit>; 5],
    /// The least steps of a pass over each level, without copies there and with copies.
    least: [[i64; 2]; 5],
    /// Whether digits may make detours.
    wide: bool,
}

impl<'a> Search<'a> {
    fn new(change: &'a Change, machine: &'a Machine, wide: bool) -> Search<'a> {
        let segments = segments(&change.source, &change.result, &change.shape);
        let segments = if wide { in_primes(segments) } else { segments };
        Search {
            change,
            machine,
            wide,
            wanted: segments.iter().map(|s| placed(&s.result)).collect(),
            segments,
            goal: Level::SETTLED.map(|level| copied_digits(&change.result, level, machine)),
            least: Level::SETTLED.map(|level| [false, true].map(|copies| least_steps(level, copies, machine))),
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
        let mut queue = BinaryHeap::from([Reverse((self.left(&start) + self.far(&start), 0))]);
        let mut reached = vec![Reached { state: start, pass: None, cost: 0, before: 0 }];
        let mut best: FxHashMap<State, i64> = FxHashMap::default();
        let mut looks = 0;
        while let Some(Reverse((_, number))) = queue.pop() {
            looks += 1;
            if looks % LOOKS == 0 && !go_on() {
                return Outcome::Stopped;
            }
            if self.wide && looks > MOST_LOOKS {
                return Outcome::None;
            }
            let state = reached[number].state.clone();
            if self.wide && !self.count(&mut reached, number) {
                continue;
            }
            if self.is_done(&state) {
                return Outcome::Found(path(&reached, number));
            }
            let cost = reached[number].cost;
            if best.get(&state).is_some_and(|&known| known <= cost) {
                continue;
            }
            best.insert(state.clone(), cost);
            let source = self.layout_at(&reached[number]).clone();
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
                let counted = if self.wide { Some(0) } else { pass_steps(&one, level, self.machine) };
                let Some(steps) = counted else { continue };
                let least = cost + steps + self.left(&after);
                if most.is_none_or(|most| least <= most) {
                    queue.push(Reverse((least + self.far(&after), reached.len())));
                    let pass = Pass { level, layout: (!done).then_some(one.result), steps };
                    reached.push(Reached { state: after, pass: Some(pass), cost: cost + steps, before: number });
                }
            }
        }
        Outcome::None
    }

    /// Counts the steps of the pass that led to a state; whether there is such a pass.
    ///
    /// A search with detours looks at few of the states that it reaches, so it counts only for these.
    fn count(&self, reached: &mut [Reached], number: usize) -> bool {
        let Some(Pass { level, .. }) = reached[number].pass else { return true };
        let before = &reached[reached[number].before];
        let (source, result) = (self.layout_at(before).clone(), self.layout_at(&reached[number]).clone());
        let change = Change { source, result, shape: self.change.shape.clone() };
        let (found, cost) = (pass_steps(&change, level, self.machine), before.cost);
        if let (Some(steps), Some(pass)) = (found, reached[number].pass.as_mut()) {
            pass.steps = steps;
            reached[number].cost = cost + steps;
        }
        found.is_some()
    }

    fn layout_at<'b>(&'b self, reached: &'b Reached) -> &'b Layout {
        match &reached.pass {
            None => &self.change.source,
            Some(pass) => pass.layout.as_ref().unwrap_or(&self.change.result),
        }
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
        let least = |level: usize| self.least[level][usize::from(!state.copies[level].is_empty())];
        Level::SETTLED.iter().map(|&level| level as usize).filter(|&level| open[level]).map(least).sum()
    }

    /// Returns how much later a search with detours looks at a state: the fewer segments and parts are as wanted, the later.
    fn far(&self, state: &State) -> i64 {
        if !self.wide {
            return 0;
        }
        let forms = state.wanted_form.iter().filter(|&&form| !form).count() as i64;
        let pairs = state.parts.iter().zip(&self.wanted);
        let parts: usize = pairs.map(|(now, wanted)| now.iter().filter(|p| !wanted.contains(p)).count()).sum();
        FORM * forms + PART * parts as i64
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
            if level != Level::W && self.wide {
                self.detours(state, level, &mut out);
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

    /// Adds states in which digits from Addr wait on `level`.
    ///
    /// Before that, all digits leave the level that are not wanted there, or those of one segment, or one digit,
    /// whose place another digit takes, or none.
    fn detours(&self, state: &State, level: Level, out: &mut Vec<(Level, State)>) {
        let mut begun = vec![(self.settle(state, level), None, self.machine.lm0), (state.clone(), None, 1)];
        for index in (0..self.segments.len()).filter(|&index| !state.wanted_form[index]) {
            let mut after = self.settle(state, level);
            self.put_back(state, level, index, &mut after);
            begun.push((after, Some(index), self.machine.lm0));
        }
        let mut single = Vec::new();
        self.one_by_one(state, level, &mut single);
        for (_, mut after) in single {
            after.bring(level, &self.wanted);
            begun.push((after, None, self.machine.lm0));
        }
        for (mut after, kept, most) in begun {
            let forms = &after.wanted_form;
            let waits = |index: usize, which: usize| {
                let same = forms[index] == state.wanted_form[index] && Some(index) != kept;
                same && state.parts[index][which].level == Level::Addr
            };
            park(&mut after.parts, level, self.machine.count(level), &waits, most);
            let on: Vec<Part> = after.parts.iter().flatten().filter(|p| p.level == level).copied().collect();
            after.copies[level as usize].retain(|d| !on.iter().any(|p| meets(p, d.stride, d.stride * d.size)));
            if self.fits(&after) && after != *state && !out.iter().any(|(_, other)| *other == after) {
                out.push((level, after));
            }
        }
    }

    /// Puts the parts of all segments but `index` back to where they were on `level`, if nothing took their places.
    fn put_back(&self, state: &State, level: Level, index: usize, after: &mut State) {
        for (other, parts) in state.parts.iter().enumerate() {
            if other == index || after.wanted_form[other] != state.wanted_form[other] {
                continue;
            }
            for (which, part) in parts.iter().enumerate().filter(|(_, part)| part.level == level) {
                let taken = |p: &Part| p.level == level && meets(p, part.stride, part.stride * part.size);
                if !after.parts.iter().flatten().any(taken) {
                    after.parts[other][which] = *part;
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
        if self.wide {
            placed.iter_mut().for_each(joined);
        }
        let copies: Vec<&[PrimeDigit]> = state.copies.iter().map(Vec::as_slice).collect();
        make_layout(placed, &copies, self.machine)
    }
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

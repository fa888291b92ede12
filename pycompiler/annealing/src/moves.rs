//! Changes of a plan. Most begin at an event: a value that was stored or brought back for want of room.

use crate::problem::{Plan, Problem};

/// A generator of random numbers; the same on every machine.
pub(crate) struct Random(pub(crate) u64);

impl Random {
    fn next(&mut self) -> u64 {
        // SplitMix64
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut bits = self.0;
        bits = (bits ^ (bits >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        bits = (bits ^ (bits >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        bits ^ (bits >> 31)
    }

    fn below(&mut self, limit: usize) -> usize {
        (self.next() % limit.max(1) as u64) as usize
    }

    /// A number from 0 to below 1.
    pub(crate) fn share(&mut self) -> f64 {
        (self.next() >> 11) as f64 / (1u64 << 53) as f64
    }
}

pub(crate) struct Moves<'p> {
    problem: &'p Problem,
    pub(crate) random: Random,
    place: Vec<usize>,
    marked: Vec<bool>,
}

impl<'p> Moves<'p> {
    pub(crate) fn new(problem: &'p Problem, random: Random) -> Self {
        let count = problem.nodes.len();
        Self { problem, random, place: vec![0; count], marked: vec![false; count] }
    }

    /// Returns a changed plan; None if the change that was drawn is impossible.
    pub(crate) fn changed(&mut self, plan: &Plan, events: &[(usize, usize)]) -> Option<Plan> {
        if plan.order.is_empty() {
            return None;
        }
        for (at, &node) in plan.order.iter().enumerate() {
            self.place[node] = at;
        }
        let event = (!events.is_empty()).then(|| events[self.random.below(events.len())]);
        match (self.random.below(100), event) {
            (0..=49, Some((value, at))) => self.closer(plan, value, at),
            (50..=64, Some((value, at))) => self.kept(plan, value, at),
            (65..=74, Some((value, _))) => self.remade(plan, value),
            (75..=84, event) => self.picked(plan, event),
            _ => self.moved(plan),
        }
    }

    /// Brings two nodes closer that touch `value`, one before and one behind the place `at`.
    fn closer(&mut self, plan: &Plan, value: usize, at: usize) -> Option<Plan> {
        let mut places: Vec<usize> = self.problem.readers[value].iter().map(|&node| self.place[node]).collect();
        places.extend(self.problem.values[value].maker.map(|node| self.place[node]));
        sorting::sort(&mut places);
        let behind = places.partition_point(|&place| place < at.max(1));
        if behind == 0 || behind == places.len() {
            return None;
        }
        let (low, high) = (places[behind - 1], places[behind]);
        if self.random.below(2) == 0 {
            self.pulled(plan, low, high)
        } else {
            self.pushed(plan, low, high)
        }
    }

    /// Moves the node at `high`, with those between that must run before it, right behind the node at `low`.
    fn pulled(&mut self, plan: &Plan, low: usize, high: usize) -> Option<Plan> {
        self.marked.fill(false);
        self.marked[plan.order[high]] = true;
        for at in (low + 1..high).rev() {
            let node = plan.order[at];
            self.marked[node] = self.problem.behind[node].iter().any(|&other| self.marked[other]);
        }
        let part = &plan.order[low + 1..=high];
        let ours = part.iter().filter(|&&node| self.marked[node]);
        let others = part.iter().filter(|&&node| !self.marked[node]);
        let between: Vec<usize> = ours.chain(others).copied().collect();
        self.with(plan, low + 1, between)
    }

    /// Moves the node at `low`, with those between that must run behind it, right before the node at `high`.
    fn pushed(&mut self, plan: &Plan, low: usize, high: usize) -> Option<Plan> {
        self.marked.fill(false);
        self.marked[plan.order[low]] = true;
        for at in low + 1..high {
            let node = plan.order[at];
            self.marked[node] = self.problem.nodes[node].before.iter().any(|&other| self.marked[other]);
        }
        let part = &plan.order[low..high];
        let ours = part.iter().filter(|&&node| self.marked[node]);
        let others = part.iter().filter(|&&node| !self.marked[node]);
        let between: Vec<usize> = others.chain(ours).copied().collect();
        self.with(plan, low, between)
    }

    /// Moves a node to another place between those before and behind it: often to one of the two ends.
    fn moved(&mut self, plan: &Plan) -> Option<Plan> {
        let node = plan.order[self.random.below(plan.order.len())];
        let own = &self.problem.nodes[node];
        let low = own.before.iter().map(|&other| self.place[other] + 1).max().unwrap_or(0);
        let high = self.problem.behind[node].iter().map(|&other| self.place[other]).min().unwrap_or(plan.order.len());
        let at = self.place[node];
        let to = match self.random.below(3) {
            0 => low,
            1 => high - 1,
            _ => low + self.random.below(high - low),
        };
        if to == at {
            return None;
        }
        let (first, last) = (at.min(to), at.max(to));
        let mut between = plan.order[first..=last].to_vec();
        if to > at {
            between.rotate_left(1);
        } else {
            between.rotate_right(1);
        }
        self.with(plan, first, between)
    }

    /// Returns the plan with `between` from the place `first` on; None if nodes would leave their segment.
    fn with(&self, plan: &Plan, first: usize, between: Vec<usize>) -> Option<Plan> {
        let segment = |node: usize| self.problem.nodes[node].segment;
        if between.iter().zip(&plan.order[first..]).any(|(&ours, &theirs)| segment(ours) != segment(theirs)) {
            return None;
        }
        let mut out = plan.clone();
        out.order[first..first + between.len()].copy_from_slice(&between);
        Some(out)
    }

    /// Lets a value lose its place sooner or later than others.
    fn kept(&mut self, plan: &Plan, value: usize, at: usize) -> Option<Plan> {
        let mut out = plan.clone();
        let far = 2 * plan.order.len() as i64;
        let near = (plan.order.len() - at.min(plan.order.len() - 1)) as i64;
        out.bias[value] = match self.random.below(5) {
            0 => 0,
            1 => -far,
            2 => far,
            3 => -(self.random.below(near as usize) as i64),
            _ => self.random.below(near as usize) as i64,
        };
        (out.bias[value] != plan.bias[value]).then_some(out)
    }

    fn remade(&mut self, plan: &Plan, value: usize) -> Option<Plan> {
        if !self.problem.values[value].remakable {
            return None;
        }
        let mut out = plan.clone();
        out.remade[value] = !out.remade[value];
        Some(out)
    }

    /// Lets a node run in other banks.
    fn picked(&mut self, plan: &Plan, event: Option<(usize, usize)>) -> Option<Plan> {
        let count = plan.order.len();
        let at = match event {
            // Banks matter where room is short.
            Some((_, at)) => (at + self.random.below(9)).saturating_sub(4).min(count - 1),
            None => self.random.below(count),
        };
        let node = plan.order[at];
        let choices = self.problem.nodes[node].choices.len();
        if choices < 2 {
            return None;
        }
        let mut out = plan.clone();
        let drawn = self.random.below(choices + 1);
        out.picked[node] = (drawn < choices).then_some(drawn);
        (out.picked[node] != plan.picked[node]).then_some(out)
    }
}

//! What a plan does and costs: goes through the nodes in an order and tracks the copies in LM.
//!
//! The rules are those of the scheduler `spill_opt`: when LM is full, the value that is read furthest in the future leaves
//! first. `bias` is added to the position of that read, and `remade` values are discarded, not stored.

use crate::problem::{Choice, Plan, Problem, DRAM};

const NEVER: i64 = 1 << 60;
/// Chains of more nodes are not computed again.
const DEEPEST: usize = 6;

/// Cycles of nodes and moves one after the other, and long words of DRAM.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Cost {
    /// Cycles.
    pub cycles: i64,
    /// Long words of DRAM over all groups.
    pub words: i64,
}

/// What an action does: it runs a node, moves a copy from DRAM, to DRAM or to the other LM, or discards one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Deed {
    /// Runs the node with one of its choices; `again` if it has run before.
    Run {
        /// The number of the choice.
        choice: usize,
        /// Whether it has run before.
        again: bool,
    },
    /// Runs a node without code.
    Plain,
    /// Loads a value into a bank.
    Down(usize, u8),
    /// Stores a value from a bank.
    Up(usize, u8),
    /// Copies a value into a bank.
    Copy(usize, u8),
    /// Discards a value in a bank, to compute it again.
    Forget(usize, u8),
}

/// A step of a plan, on behalf of a node.
pub type Action = (usize, Deed);

struct Impossible;

/// The state of a walk; its memory is used again for every plan.
pub(crate) struct Walk<'p> {
    problem: &'p Problem,
    /// Where the uses of each value begin in `uses`.
    first: Vec<usize>,
    filled: Vec<usize>,
    uses: Vec<i64>,
    read: Vec<usize>,
    mask: Vec<u8>,
    dram: Vec<bool>,
    used: [i64; 2],
    live: [Vec<usize>; 2],
    parked: Vec<bool>,
    operands: Vec<usize>,
    cost: Cost,
    /// Values that were stored or brought back for want of room, with the place in the order at which that was.
    pub(crate) events: Vec<(usize, usize)>,
    at: usize,
    /// The node on whose behalf copies move.
    running: usize,
    /// What the plan does, if that was asked for.
    pub(crate) actions: Option<Vec<Action>>,
}

impl<'p> Walk<'p> {
    pub(crate) fn new(problem: &'p Problem) -> Self {
        let count = problem.values.len();
        let mut first = vec![0; count + 1];
        for (value, readers) in problem.readers.iter().enumerate() {
            first[value + 1] = first[value] + readers.len();
        }
        let total = first[count];
        Self {
            problem,
            first,
            filled: vec![0; count],
            uses: vec![0; total],
            read: vec![0; count],
            mask: vec![0; count],
            dram: vec![false; count],
            used: [0; 2],
            live: [Vec::new(), Vec::new()],
            parked: vec![false; count],
            operands: Vec::new(),
            cost: Cost::default(),
            events: Vec::new(),
            at: 0,
            running: 0,
            actions: None,
        }
    }

    fn act(&mut self, deed: Deed) {
        if let Some(actions) = &mut self.actions {
            actions.push((self.running, deed));
        }
    }

    /// Returns the cost of a plan; None if it computes something again that it cannot.
    pub(crate) fn cost(&mut self, plan: &Plan) -> Option<Cost> {
        self.reset(plan);
        let mut segment = None;
        for (at, &node) in plan.order.iter().enumerate() {
            self.at = at;
            let own = &self.problem.nodes[node];
            if segment != Some(own.segment) {
                segment = Some(own.segment);
                for bank in 0..2 {
                    for &value in &self.live[bank] {
                        self.mask[value] = 0;
                    }
                    self.live[bank].clear();
                    self.used[bank] = 0;
                }
            }
            if own.choices.is_empty() {
                for &value in &own.outputs {
                    self.dram[value] = true;
                }
                self.running = node;
                self.act(Deed::Plain);
            } else if self.node(node, 0, plan).is_err() {
                return None;
            }
        }
        Some(self.cost)
    }

    fn reset(&mut self, plan: &Plan) {
        let problem = self.problem;
        self.filled.fill(0);
        for (at, &node) in plan.order.iter().enumerate() {
            let own = &problem.nodes[node];
            if !own.choices.is_empty() {
                for &value in &own.inputs {
                    self.uses[self.first[value] + self.filled[value]] = at as i64;
                    self.filled[value] += 1;
                }
            }
        }
        self.read.fill(0);
        self.mask.fill(0);
        for (own, value) in self.dram.iter_mut().zip(&problem.values) {
            *own = value.given;
        }
        self.used = [0; 2];
        self.live[0].clear();
        self.live[1].clear();
        self.parked.fill(false);
        self.operands.clear();
        self.events.clear();
        self.cost = Cost::default();
    }

    fn node(&mut self, node: usize, depth: usize, plan: &Plan) -> Result<(), Impossible> {
        let problem = self.problem;
        let own = &problem.nodes[node];
        let outside = self.operands.len();
        self.operands.extend_from_slice(&own.inputs);
        for &value in &own.inputs {
            if self.mask[value] == 0 && !self.dram[value] {
                let maker = problem.values[value].maker;
                match maker {
                    Some(maker) if depth < DEEPEST && problem.values[value].remakable => {
                        self.node(maker, depth + 1, plan)?;
                    }
                    _ => return Err(Impossible),
                }
                self.events.push((value, self.at));
            }
        }
        self.running = node;
        let number = self.choice(node, plan);
        let choice = &own.choices[number];
        self.make_room(node, choice, plan);
        for (&value, &bank) in own.inputs.iter().zip(&choice.inputs) {
            if bank != DRAM {
                self.bring(value, bank)?;
                self.parked[value] = false;
            }
        }
        if depth == 0 {
            for &value in &own.inputs {
                self.read[value] += 1;
            }
        }
        if let Some(taken) = choice.taken {
            let (value, bank) = (own.inputs[taken], choice.inputs[taken]);
            if self.next(value) < NEVER {
                self.save(value, bank);
            }
            self.drop_copy(value, bank);
        }
        for (&value, &bank) in own.outputs.iter().zip(&choice.outputs) {
            self.add(value, bank);
        }
        self.cost.cycles += choice.cycles;
        self.act(Deed::Run { choice: number, again: depth > 0 });
        for &value in &own.outputs {
            if problem.values[value].stored && !self.dram[value] {
                self.upload(value);
            }
        }
        self.operands.truncate(outside);
        for &value in own.inputs.iter().chain(&own.outputs) {
            if self.mask[value] != 0 && self.next(value) == NEVER {
                self.drop_copy(value, 0);
                self.drop_copy(value, 1);
            }
        }
        Ok(())
    }

    fn choice(&self, node: usize, plan: &Plan) -> usize {
        let own = &self.problem.nodes[node];
        if let Some(picked) = plan.picked[node].filter(|&picked| picked < own.choices.len()) {
            return picked;
        }
        let (mut best, mut least) = (0, NEVER);
        for (number, choice) in own.choices.iter().enumerate() {
            let mut moved = choice.cycles;
            for (&value, &bank) in own.inputs.iter().zip(&choice.inputs) {
                let mask = self.mask[value];
                if mask != 0 && bank != DRAM && mask >> bank & 1 == 0 {
                    moved += self.problem.values[value].copy;
                }
            }
            if let Some(taken) = choice.taken {
                let value = own.inputs[taken];
                let last = self.uses[self.first[value + 1] - 1];
                if last > self.at as i64 && self.mask[value] != 3 {
                    moved += self.problem.values[value].copy;
                }
            }
            if moved < least {
                (best, least) = (number, moved);
            }
        }
        best
    }

    fn next(&self, value: usize) -> i64 {
        let at = self.first[value] + self.read[value];
        if at < self.first[value + 1] {
            self.uses[at]
        } else {
            NEVER
        }
    }

    fn add(&mut self, value: usize, bank: u8) {
        if self.mask[value] >> bank & 1 == 0 {
            self.mask[value] |= 1 << bank;
            self.live[usize::from(bank)].push(value);
            self.used[usize::from(bank)] += self.problem.values[value].size;
        }
    }

    fn drop_copy(&mut self, value: usize, bank: u8) {
        if self.mask[value] >> bank & 1 == 1 {
            self.mask[value] &= !(1 << bank);
            self.live[usize::from(bank)].retain(|&other| other != value);
            self.used[usize::from(bank)] -= self.problem.values[value].size;
        }
    }

    fn bring(&mut self, value: usize, bank: u8) -> Result<(), Impossible> {
        let mask = self.mask[value];
        if mask >> bank & 1 == 1 {
            return Ok(());
        }
        let facts = &self.problem.values[value];
        if mask != 0 {
            self.copy(value, bank);
        } else {
            if !self.dram[value] {
                return Err(Impossible);
            }
            self.cost.cycles += facts.down;
            self.cost.words += facts.words;
            if self.read[value] > 0 || facts.maker.is_some() {
                self.events.push((value, self.at));
            }
            self.act(Deed::Down(value, bank));
            self.add(value, bank);
        }
        Ok(())
    }

    fn copy(&mut self, value: usize, bank: u8) {
        self.cost.cycles += self.problem.values[value].copy;
        self.act(Deed::Copy(value, bank));
        self.add(value, bank);
    }

    fn upload(&mut self, value: usize) {
        if self.dram[value] {
            return;
        }
        self.dram[value] = true;
        let facts = &self.problem.values[value];
        self.cost.cycles += facts.up;
        self.cost.words += facts.words;
        if !facts.stored {
            self.events.push((value, self.at));
        }
        self.act(Deed::Up(value, 1 - (self.mask[value] & 1)));
    }

    /// Saves a value whose copy in `bank` is about to be overwritten.
    fn save(&mut self, value: usize, bank: u8) {
        if self.dram[value] || self.mask[value] & !(1 << bank) != 0 {
            return;
        }
        let other = 1 - bank;
        let at = usize::from(other);
        if self.used[at] + self.problem.values[value].size <= self.problem.rooms[at] {
            self.copy(value, other);
        } else {
            self.upload(value);
        }
    }

    fn make_room(&mut self, node: usize, choice: &Choice, plan: &Plan) {
        let own = &self.problem.nodes[node];
        let mut needed = [0; 2];
        for (&value, &bank) in own.inputs.iter().zip(&choice.inputs) {
            if bank != DRAM && self.mask[value] >> bank & 1 == 0 {
                needed[usize::from(bank)] += self.problem.values[value].size;
            }
        }
        for (place, (&value, &bank)) in own.outputs.iter().zip(&choice.outputs).enumerate() {
            if choice.taken.is_none() || place > 0 {
                needed[usize::from(bank)] += self.problem.values[value].size;
            }
        }
        for bank in 0..2u8 {
            let at = usize::from(bank);
            while self.used[at] + needed[at] > self.problem.rooms[at] {
                let Some(victim) = self.victim(bank, node, choice, plan) else { break };
                self.evict(victim, bank, needed[1 - at], plan);
            }
        }
    }

    /// Returns the value that is read last; between equals, one that needs no upload.
    fn victim(&self, bank: u8, node: usize, choice: &Choice, plan: &Plan) -> Option<usize> {
        let own = &self.problem.nodes[node];
        let mut best = None;
        let mut furthest = (-NEVER, false);
        for &value in &self.live[usize::from(bank)] {
            if own.inputs.iter().zip(&choice.inputs).any(|(&input, &wanted)| input == value && wanted == bank) {
                continue;
            }
            let rank = (self.next(value) + plan.bias[value], self.dram[value]);
            if rank > furthest {
                (best, furthest) = (Some(value), rank);
            }
        }
        best
    }

    fn evict(&mut self, value: usize, bank: u8, reserved: i64, plan: &Plan) {
        let other = 1 - bank;
        let at = usize::from(other);
        if self.next(value) < NEVER && self.mask[value] == 1 << bank {
            let fits = self.used[at] + reserved + self.problem.values[value].size <= self.problem.rooms[at];
            if fits && !self.parked[value] {
                self.copy(value, other);
                self.parked[value] = true;
            } else if self.dram[value] {
                // Nothing is lost.
            } else if plan.remade[value] && !self.operands.contains(&value) {
                self.act(Deed::Forget(value, bank));
            } else {
                self.upload(value);
            }
        }
        self.drop_copy(value, bank);
    }
}

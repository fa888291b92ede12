//! The timeline of a whole program: the step of each line, and the start of each MV.
//!
//! Lines and MVs are placed one after the other. A line goes to the first step at which its instructions may stand, and all
//! MVs that it depends on have ended. An MV begins when all lines and MVs that it depends on are over, and its memories are
//! free. So lines of one node fill the steps in which another node waits, or leaves slots unused.

use crate::op::Op;
use crate::placing::Placing;
use crate::rules::{up, Name, Rules};
use crate::touches::{Access, Port, TouchTimes, Unit};
use rustc_hash::FxHashMap as Map;
use std::sync::Arc;

/// The ports that an MV holds, for how many cycles, and the cycles from then to its end.
pub type Transfer = (Vec<Name>, i64, i64);

/// What a line or an MV needs.
#[derive(Clone)]
pub struct Needs {
    /// The instructions of a line.
    ops: Vec<Arc<Op>>,
    /// What an MV reads and writes.
    moved: [Vec<Access>; 2],
    /// What an MV holds.
    transfer: Option<Transfer>,
    /// Whether it touches a memory that MVs use.
    pub shared: bool,
}

impl Needs {
    /// Returns what a line needs.
    pub fn of_line(rules: &Rules, ops: Vec<Arc<Op>>) -> Self {
        let mut all = ops.iter().flat_map(|op| op.accesses.iter().flatten());
        let shared = all.any(|access| rules.shared.contains(&access.memory));
        Self { ops, moved: Default::default(), transfer: None, shared }
    }

    /// Returns what an MV needs that reads and writes some words.
    pub fn of_move(moved: [Vec<Access>; 2], transfer: Transfer) -> Self {
        Self { ops: Vec::new(), moved, transfer: Some(transfer), shared: true }
    }

    /// Its instructions, if it is a line.
    pub fn ops(&self) -> &[Arc<Op>] {
        &self.ops
    }

    /// What it reads, or what it writes, in the order of its operands.
    pub fn accesses(&self, written: bool) -> impl Iterator<Item = &Access> {
        let side = usize::from(written);
        self.ops.iter().flat_map(move |op| &op.accesses[side]).chain(&self.moved[side])
    }

    /// What each of its instructions reads and writes, and what they fill; an MV is one.
    pub(crate) fn instructions(&self) -> impl Iterator<Item = ([&[Access]; 2], Filler)> {
        fn slices(both: &[Vec<Access>; 2]) -> [&[Access]; 2] {
            both.each_ref().map(Vec::as_slice)
        }
        let filler = |op: &Op| op.form.facts.part.map_or(Filler::All, Filler::Part);
        let ops = self.ops.iter().map(move |op| (slices(&op.accesses), filler(op)));
        ops.chain(self.transfer.iter().map(move |_| (slices(&self.moved), Filler::Units)))
    }

    /// Whether `later` must not start before this has finished.
    pub fn conflicts(&self, later: &Self) -> bool {
        let meet = |mine: bool, theirs: bool| {
            self.accesses(mine).any(|one| later.accesses(theirs).any(|other| one.touches(other)))
        };
        meet(true, false) || meet(true, true) || meet(false, true)
    }

    /// What it reads, or what it writes, if MVs use a memory that it touches.
    fn timed(&self, written: bool) -> impl Iterator<Item = &Access> {
        self.accesses(written).filter(|_| self.shared)
    }
}

/// Which parts of a memory a write fills: all, one that a transfer names, or the units of its operand.
#[derive(Clone, Copy)]
pub(crate) enum Filler {
    All,
    Part(Name),
    Units,
}

/// The last steps with a read and with a write of a memory of which any word may be meant.
type Anywhere = Map<Name, [i64; 2]>;

fn note(memories: &mut Anywhere, memory: Name, at: i64, written: bool) {
    let last = &mut memories.entry(memory).or_insert([-1; 2])[usize::from(written)];
    *last = at.max(*last);
}

/// Places the lines and the MVs of a program.
pub struct Timeline {
    placing: Placing,
    /// When MVs end and in which steps lines stand that touch memories of MVs.
    written: TouchTimes,
    read: TouchTimes,
    lines_written: TouchTimes,
    lines_read: TouchTimes,
    ports: Map<(i64, Name), Port>,
    /// Accesses to any word of a memory, and those of which only a register knows the word.
    any: Anywhere,
    unknown: Anywhere,
    before_move: i64,
    /// If all lines fit everywhere, and MVs wait only for those of their node: the node of the last one.
    unlimited: Option<i64>,
}

const ALL: &[Unit] = &[None];

impl Timeline {
    /// Returns an empty timeline. MVs are in slot `mv`. With `unlimited`, all lines fit everywhere, and MVs wait only for those of
    /// their node.
    pub fn new(rules: Arc<Rules>, mv: Name, unlimited: bool) -> Self {
        let times = || TouchTimes::new(rules.unit);
        Self {
            written: times(),
            read: times(),
            lines_written: times(),
            lines_read: times(),
            ports: Map::default(),
            any: Map::default(),
            unknown: Map::default(),
            before_move: rules.before_moves(mv),
            unlimited: unlimited.then_some(-1),
            placing: Placing::new(rules),
        }
    }

    fn cycles(&self) -> i64 {
        self.placing.rules.cycles
    }

    /// Places lines that must follow each other without a gap; returns the step of the first.
    pub fn place_lines(&mut self, run: &[&Needs]) -> i64 {
        let numbered = || (0_i64..).zip(run);
        let mut at = 0;
        for (offset, line) in numbered() {
            at = at.max(self.earliest(line, at + offset) - offset);
        }
        let mut worst = 0;
        while self.unlimited.is_none() && !run.is_empty() {
            // The line that did not fit last is asked first.
            let number = usize::try_from(worst).unwrap_or(0);
            let ops: Vec<_> = run[number].ops.iter().map(|op| (0, Arc::clone(op))).collect();
            at = self.placing.free(&ops, at + worst) - worst;
            let mut order = std::iter::once((worst, &run[number])).chain(numbered());
            let Some((bad, _)) = order.find(|(offset, line)| !self.fits(line, at + offset)) else { break };
            at += i64::from(bad == worst);
            worst = bad;
        }
        for (offset, line) in numbered() {
            self.put(line, at + offset);
        }
        at
    }

    fn fits(&mut self, line: &Needs, at: i64) -> bool {
        let placing = &mut self.placing;
        if let [op] = line.ops.as_slice() {
            return placing.tried(op, at);
        }
        // Each instruction may fit alone, but all of them may be too many for a shared unit.
        line.ops.iter().all(|op| placing.fits(op, at))
            && placing.line(at).is_none_or(|here| here.takes_all(&line.ops, &placing.rules))
    }

    fn earliest(&self, line: &Needs, mut at: i64) -> i64 {
        for op in &line.ops {
            at = self.placing.earliest(op, at);
            at = self.after_unknown(op, at);
        }
        let mut cycle = -1;
        for access in line.timed(false) {
            cycle = cycle.max(self.written.last(access, ALL));
        }
        for access in line.timed(true) {
            cycle = cycle.max(self.written.last(access, ALL)).max(self.read.last(access, ALL));
        }
        at.max(up(cycle, self.cycles()))
    }

    /// The first step from `at` on behind accesses that may touch the same words.
    fn after_unknown(&self, op: &Op, mut at: i64) -> i64 {
        let reach = self.placing.rules.reach;
        let [read, written] = &op.anywhere;
        for memory in read {
            at = at.max(self.any.get(memory).map_or(-1, |any| any[1]) + reach);
        }
        for memory in written {
            at = self.any.get(memory).map_or(at, |any| at.max(any[1] + 1).max(any[0]));
        }
        for (memory, written) in &op.form.memories {
            let Some(unknown) = self.unknown.get(memory) else { continue };
            if *written {
                at = at.max(unknown[1] + 1).max(unknown[0]);
            } else if unknown[1] >= 0 {
                at = at.max(unknown[1] + reach);
            }
        }
        at
    }

    fn put(&mut self, line: &Needs, at: i64) {
        for op in &line.ops {
            self.placing.put(op, at);
            for &(memory, written) in &op.form.memories {
                note(&mut self.any, memory, at, written);
            }
            for (memories, written) in op.anywhere.iter().zip([false, true]) {
                for &memory in memories {
                    note(&mut self.any, memory, at, written);
                    note(&mut self.unknown, memory, at, written);
                }
            }
        }
        for (written, times) in [(false, &mut self.lines_read), (true, &mut self.lines_written)] {
            for access in line.timed(written) {
                times.note(access, ALL, at);
            }
        }
    }

    /// Places an MV of a node; returns its step and the cycle in which it ends. None for a line.
    pub fn place_move(&mut self, needs: &Needs, owner: i64) -> Option<(i64, i64)> {
        let (ports, holds, latency) = needs.transfer.as_ref()?;
        self.unlimited = self.unlimited.map(|_| owner);
        let start = self.start_of(needs)?;
        for &name in ports {
            self.ports.entry((self.unlimited.unwrap_or(0), name)).or_default().hold(start, *holds);
        }
        let end = start + holds + latency;
        for (written, times) in [(false, &mut self.read), (true, &mut self.written)] {
            for access in needs.accesses(written) {
                times.note(access, ALL, end);
                times.note(access, &access.units(&self.placing.rules), end);
            }
        }
        Some((start / self.cycles(), end))
    }

    /// The first cycle in which an MV may start, which is the first of a step; None for a line.
    pub fn start_of(&self, needs: &Needs) -> Option<i64> {
        let (ports, holds, _) = needs.transfer.as_ref()?;
        let (mut step, mut cycle) = (-1, 0);
        let rules = &self.placing.rules;
        for access in needs.accesses(false) {
            step = step.max(self.lines_written.last(access, ALL) + self.before_move);
            cycle = cycle.max(self.written.last(access, &access.units(rules)));
        }
        for access in needs.accesses(true) {
            let units = access.units(rules);
            step = step.max(self.lines_written.last(access, ALL) + 1).max(self.lines_read.last(access, ALL) + 1);
            cycle = cycle.max(self.written.last(access, &units)).max(self.read.last(access, &units));
        }
        let each = self.cycles();
        let whole = |cycle: i64| up(cycle, each) * each;
        let owner = self.unlimited.unwrap_or(0);
        let ports: Vec<_> = ports.iter().filter_map(|&name| self.ports.get(&(owner, name))).collect();
        let mut start = whole(cycle.max(step * each));
        loop {
            let before = start;
            for port in &ports {
                start = start.max(whole(port.free(start, *holds)));
            }
            if start == before {
                return Some(start);
            }
        }
    }

    /// The first step at which all that a line or an MV reads is there.
    pub fn soonest(&self, needs: &Needs) -> i64 {
        let (mut at, mut cycle) = (0, -1);
        for op in &needs.ops {
            at = self.placing.earliest_read(op, at);
        }
        for access in needs.timed(false) {
            if needs.transfer.is_some() {
                at = at.max(self.lines_written.last(access, ALL) + self.before_move);
                cycle = cycle.max(self.written.last(access, &access.units(&self.placing.rules)));
            } else {
                cycle = cycle.max(self.written.last(access, ALL));
            }
        }
        at.max(up(cycle, self.cycles()))
    }
}

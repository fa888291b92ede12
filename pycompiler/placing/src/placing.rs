//! The steps of instructions while they are placed in program order.
//!
//! Each gets a step after everything that it depends on, but may come before other instructions.

use crate::line::Line;
use crate::op::{Op, Place};
use crate::rules::{up, Name, Rules, Writer};
use rustc_hash::FxHashMap as Map;
use std::sync::Arc;

/// Instructions that stand together, each with its distance from the first step.
pub(crate) type Group = Vec<(i64, Arc<Op>)>;

/// The last write of a place: its step, its cycle, and who wrote.
type Write = (i64, i64, Writer);

/// What touched a place last.
struct Last {
    write: Option<Write>,
    read: i64,
}

const NEVER: Last = Last { write: None, read: -1 };

/// A slot or a kind of instruction.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
enum Key {
    Slot(Name),
    Kind(usize),
}

pub(crate) struct Placing {
    pub(crate) rules: Arc<Rules>,
    pub(crate) lines: Vec<Line>,
    last: Map<Place, Last>,
    /// For every port rule: the steps with a write (0) or a read (1) that it may forbid others for.
    ports: Vec<[Vec<bool>; 2]>,
    /// Maps a taken step to a later one that may be free.
    after: Map<Key, Map<i64, i64>>,
}

impl Placing {
    pub(crate) fn new(rules: Arc<Rules>) -> Self {
        let ports = rules.ports.iter().map(|_| Default::default()).collect();
        Self { rules, lines: Vec::new(), last: Map::default(), ports, after: Map::default() }
    }

    /// Places a group at the first step that it may have, and returns the step.
    pub(crate) fn place(&mut self, group: &Group) -> i64 {
        let mut at = self.free(group, 0);
        for (offset, op) in group {
            at = at.max(self.earliest(op, at + offset) - offset);
        }
        at = self.free(group, at);
        while !group.iter().all(|(offset, op)| self.tried(op, at + offset)) {
            at = self.free(group, at);
        }
        for (offset, op) in group {
            self.put(op, at + offset);
        }
        at
    }

    /// Whether `op` fits a step; if not, its kind is not tried there again.
    ///
    /// Lines only become fuller, so the answer rarely changes. One case is lost: an instruction of the same kind would fit if
    /// it reads exactly the words that the line reads already.
    pub(crate) fn tried(&mut self, op: &Op, at: i64) -> bool {
        let fits = self.fits(op, at);
        if !fits {
            self.after.entry(Key::Kind(op.form.kind)).or_default().insert(at, at + 1);
        }
        fits
    }

    /// The first step from `at` on that `after` does not rule out for the group.
    pub(crate) fn free(&mut self, group: &[(i64, Arc<Op>)], mut at: i64) -> i64 {
        loop {
            let mut settled = true;
            for (offset, op) in group {
                for key in [Key::Slot(op.form.facts.slot), Key::Kind(op.form.kind)] {
                    let Some(after) = self.after.get_mut(&key) else { continue };
                    let mut step = at + offset;
                    let mut found = step;
                    while let Some(&next) = after.get(&found) {
                        found = next;
                    }
                    while step != found {
                        step = after.insert(step, found).unwrap_or(found);
                        (at, settled) = (found - offset, false);
                    }
                }
            }
            if settled {
                return at;
            }
        }
    }

    /// The first step from `at` on at which no access of `op` comes too soon.
    pub(crate) fn earliest(&self, op: &Op, at: i64) -> i64 {
        let mut at = self.earliest_read(op, at);
        for touch in &op.writes {
            for &(word, _) in &touch.places {
                if let Some(last) = self.last.get(&(touch.memory, word)) {
                    at = at.max(last.read).max(last.write.map_or(at, |(step, ..)| step + 1));
                }
            }
        }
        at
    }

    /// The first step from `at` on at which no read of `op` comes too soon.
    pub(crate) fn earliest_read(&self, op: &Op, mut at: i64) -> i64 {
        for touch in &op.reads {
            for &(word, cycle) in &touch.places {
                let last = self.last.get(&(touch.memory, word)).and_then(|last| last.write);
                let Some((step, wrote, writer)) = last.filter(|(step, ..)| step + self.rules.reach > at) else {
                    continue;
                };
                let (mut steps, cycles) = self.rules.gap(touch.memory, writer, op.form.facts.slot);
                if let Some(cycles) = cycles {
                    steps = up(cycles + 1 + wrote - cycle, self.rules.cycles).max(1);
                }
                at = at.max(step + steps);
            }
        }
        at
    }

    /// Whether slots, ports and the rules of ports let `op` have a step.
    pub(crate) fn fits(&self, op: &Op, at: i64) -> bool {
        if self.line(at).is_some_and(|line| !line.fits(op, &self.rules)) {
            return false;
        }
        op.form.ports.iter().all(|&(rule, written)| {
            let steps = self.rules.steps(rule);
            let (mut forbidden, others) = if written { (at + 1..at + steps + 1, 1) } else { (at - steps..at, 0) };
            !forbidden.any(|n| index(n).and_then(|n| self.ports[rule][others].get(n)).is_some_and(|&is| is))
        })
    }

    pub(crate) fn line(&self, at: i64) -> Option<&Line> {
        index(at).and_then(|at| self.lines.get(at))
    }

    /// Notes that `op` has a step.
    pub(crate) fn put(&mut self, op: &Arc<Op>, at: i64) {
        let step = index(at).unwrap_or(0);
        if self.lines.len() <= step {
            self.lines.resize_with(step + 1, Line::default);
        }
        self.lines[step].0.push(Arc::clone(op));
        for touch in &op.reads {
            for &(word, _) in &touch.places {
                let last = self.last.entry((touch.memory, word)).or_insert(NEVER);
                last.read = last.read.max(at);
            }
        }
        let writer = (op.form.facts.slot, op.form.facts.source);
        for touch in &op.writes {
            for &(word, cycle) in &touch.places {
                self.last.entry((touch.memory, word)).or_insert(NEVER).write = Some((at, cycle, writer));
            }
        }
        for &(rule, written) in &op.form.ports {
            let steps = &mut self.ports[rule][usize::from(!written)];
            if steps.len() <= step {
                steps.resize(step + 1, false);
            }
            steps[step] = true;
        }
        self.after.entry(Key::Slot(op.form.facts.slot)).or_default().insert(at, at + 1);
    }
}

fn index(at: i64) -> Option<usize> {
    usize::try_from(at).ok()
}

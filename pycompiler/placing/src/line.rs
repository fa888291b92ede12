//! What the instructions of a line occupy: slots and ports.

use crate::op::{Op, Touch};
use crate::rules::{Name, Rules};
use std::sync::Arc;

/// The instructions of one step.
#[derive(Default)]
pub(crate) struct Line(pub(crate) Vec<Arc<Op>>);

impl Line {
    fn using(&self, slots: &[Name]) -> usize {
        self.0.iter().filter(|op| slots.contains(&op.form.facts.slot)).count()
    }

    /// The last read of a memory, or the last write.
    fn last(&self, memory: Name, written: bool) -> Option<&Touch> {
        self.0.iter().rev().find_map(|op| op.touches(written).iter().rev().find(|touch| touch.memory == memory))
    }

    /// Whether `op` may join.
    pub(crate) fn fits(&self, op: &Op, rules: &Rules) -> bool {
        let own = &op.form.facts;
        !self.0.iter().any(|other| other.form.facts.slot == own.slot || own.flushes && other.form.facts.flushes)
            && op.reads.iter().all(|touch| self.room(touch, false, rules))
            && op.writes.iter().all(|touch| self.room(touch, true, rules))
            && self.shares(op, rules)
            && self.0.iter().all(|other| op.leaves(other) && other.leaves(op))
    }

    /// Whether the shared units have room for all of `ops`, of which each fits.
    pub(crate) fn takes_all(&self, ops: &[Arc<Op>], rules: &Rules) -> bool {
        let count = |slots: &[Name]| ops.iter().filter(|op| slots.contains(&op.form.facts.slot)).count();
        rules.shares.iter().all(|(slots, limit)| self.using(slots) + count(slots) <= *limit)
    }

    /// Whether an access finds its port free. Reads of the same words share one.
    fn room(&self, touch: &Touch, written: bool, rules: &Rules) -> bool {
        let (memory, alike) = (touch.memory, self.last(touch.memory, written));
        let opposite = self.last(memory, !written);
        if rules.banks.contains(&memory) {
            return alike.is_none() && opposite.is_none();
        }
        let same = |other: Option<&Touch>| other.is_none_or(|other| other.words == touch.words);
        let free = if written { alike.is_none() } else { same(alike) };
        rules.above.contains(&memory) || free && (!rules.single.contains(&memory) || same(opposite))
    }

    fn shares(&self, op: &Op, rules: &Rules) -> bool {
        rules.shares.iter().filter(|(slots, _)| slots.contains(&op.form.facts.slot)).all(|(slots, limit)| {
            let mut others = self.0.iter().filter(|other| slots.contains(&other.form.facts.slot));
            self.using(slots) < *limit && others.all(|other| other.form.facts.precision == op.form.facts.precision)
        })
    }
}

//! Lines and MVs at their addresses, ready to get their steps.

use crate::code::{Instruction, Line, Shift, Values};
use crate::machine::Machine;
use crate::op::Op;
use crate::timeline::Needs;
use crate::touches::Access;
use rustc_hash::FxHashMap as Map;
use std::sync::Arc;

/// A line or an MV of a node.
#[derive(Clone)]
pub(crate) struct Ready {
    /// The line.
    pub(crate) line: Line,
    /// The values that it names.
    pub(crate) node: Arc<Values>,
    /// How far the words of each instruction, or of an MV, have moved.
    pub(crate) shifts: Vec<Shift>,
    pub(crate) needs: Needs,
}

impl Ready {
    pub(crate) fn accesses(&self, written: bool) -> impl Iterator<Item = &Access> {
        self.needs.accesses(written)
    }

    /// What it reads and what it writes.
    pub(crate) fn touched(&self) -> impl Iterator<Item = &Access> {
        self.accesses(false).chain(self.accesses(true))
    }

    pub(crate) fn is_move(&self) -> bool {
        self.line.is_move()
    }

    /// How many shifts it has: one for each instruction, or one.
    pub(crate) fn parts(&self) -> usize {
        self.line.instructions().len().max(1)
    }

    /// Returns it with the words of each instruction, or of an MV, moved farther.
    pub(crate) fn moved(&self, machine: &Machine, more: &[Shift]) -> Self {
        let shifts: Vec<Shift> =
            self.shifts.iter().zip(more).map(|(own, more)| own.iter().chain(more).copied().collect()).collect();
        let needs = match &self.line {
            Line::Move(one) => Needs::of_move(one.accesses(machine, &self.node, &shifts[0]), one.transfer.clone()),
            Line::Step(all) => {
                let each = all.iter().zip(self.needs.ops()).zip(more.iter().zip(&shifts));
                let ops = each.map(|((one, op), (more, shift))| {
                    if more.is_empty() {
                        return Arc::clone(op);
                    }
                    made(machine, one, &self.node, shift)
                });
                Needs::of_line(&machine.rules, ops.collect())
            }
        };
        Self { line: self.line.clone(), node: Arc::clone(&self.node), shifts, needs }
    }

    /// Returns it with all its words moved by `shift`.
    pub(crate) fn shifted(&self, machine: &Machine, shift: &Shift) -> Self {
        self.moved(machine, &vec![shift.clone(); self.parts()])
    }
}

fn made(machine: &Machine, one: &Instruction, node: &Values, shift: &Shift) -> Arc<Op> {
    Arc::new(Op::new(&machine.rules, Arc::clone(&one.form), &one.placed(machine, node, shift)))
}

/// Makes lines of one node ready; an instruction that stands on many lines is made once.
pub(crate) struct Addressed<'a> {
    machine: &'a Machine,
    node: &'a Arc<Values>,
    ops: Map<*const Instruction, Arc<Op>>,
}

impl<'a> Addressed<'a> {
    pub(crate) fn new(machine: &'a Machine, node: &'a Arc<Values>) -> Self {
        Self { machine, node, ops: Map::default() }
    }

    pub(crate) fn op(&mut self, one: &Arc<Instruction>) -> Arc<Op> {
        let op = self.ops.entry(Arc::as_ptr(one)).or_insert_with(|| made(self.machine, one, self.node, &Vec::new()));
        Arc::clone(op)
    }

    pub(crate) fn ready(&mut self, line: &Line) -> Ready {
        let needs = match line {
            Line::Move(one) => Needs::of_move(one.accesses(self.machine, self.node, &[]), one.transfer.clone()),
            Line::Step(all) => Needs::of_line(&self.machine.rules, all.iter().map(|one| self.op(one)).collect()),
        };
        let shifts = vec![Shift::new(); line.instructions().len().max(1)];
        Ready { line: line.clone(), node: Arc::clone(self.node), shifts, needs }
    }
}

//! Writes the lines of a program in the order of issue, and counts them for each node.
//!
//! A `nop` is inserted where a hazard demands distance, and a `wait` where a line needs the result of an MV.

use crate::clock::Clock;
use crate::code::{Line, Move};
use crate::distance::distance;
use crate::machine::Machine;
use crate::ready::Ready;
use crate::rules::Name;
use crate::text::{ends, Text};
use crate::timeline::Needs;
use std::sync::Arc;

/// What a program counts of a node.
#[derive(Clone, Default)]
pub struct Row {
    /// Its steps.
    pub steps: i64,
    /// Long words of DRAM that it reads and writes, over all groups.
    pub dram: [i64; 2],
    /// The steps that use each slot.
    pub busy: Vec<(Name, i64)>,
    /// The `nop`s that are there only for an MV.
    pub waits: i64,
}

/// An MV of a node: its memories, its long words, when it starts and when it ends.
pub struct Flight {
    /// The number of the node.
    pub node: usize,
    /// The memories that it reads and writes.
    pub ends: (Name, Name),
    /// Its words.
    pub words: i64,
    /// When it holds its memories first, and when its data has arrived.
    pub cycles: (i64, i64),
}

/// A program. Nodes have numbers.
#[derive(Default)]
pub struct Code {
    /// Its lines.
    pub lines: Vec<String>,
    /// The lines that name an address of DRAM: the value, and how far from it.
    pub relocations: Vec<(usize, Arc<str>, i64)>,
    /// The counts of each node.
    pub nodes: Vec<Row>,
    /// The cycles of the cycle model.
    pub cycles: i64,
    /// From which line and cycle on lines belong to which nodes. Their cycles count for the first one.
    pub runs: Vec<(usize, i64, Vec<usize>)>,
    /// The MVs in the order of issue.
    pub flights: Vec<Flight>,
    /// The cycles of stalls, by reason.
    pub stalls: [i64; 3],
}

/// What was issued: recent steps, and the MVs that no line has waited for.
struct Tracker {
    step: i64,
    moves: Vec<(i64, Arc<Ready>)>,
    last_tag: Option<i64>,
    reach: usize,
    /// The lines of the last steps, newest first; None is an idle step.
    last: Vec<Option<Needs>>,
}

impl Tracker {
    fn nops(&mut self, count: i64) {
        self.step += count;
        let idle = usize::try_from(count).unwrap_or(0).min(self.reach);
        self.note(vec![None; idle]);
    }

    fn note(&mut self, newest: Vec<Option<Needs>>) {
        self.last.splice(0..0, newest);
        self.last.truncate(self.reach);
    }
}

/// A program while it is written, part by part.
pub(crate) struct Writer {
    machine: Arc<Machine>,
    text: Text,
    tracker: Tracker,
    clock: Clock,
    /// Whether a line without a `wait` takes that of an MV that has ended: it costs nothing there, and no idle step is needed
    /// for it later.
    early: bool,
    /// The number of the first node of this part.
    first: usize,
    /// What stands in front of the first line of each node that had none yet.
    comments: Vec<Option<String>>,
    steps: i64,
    waits: i64,
    code: Code,
}

impl Writer {
    pub(crate) fn new(machine: Arc<Machine>) -> Self {
        let reach = usize::try_from(machine.rules.reach()).unwrap_or(0);
        Self {
            text: Text::new(Arc::clone(&machine)),
            tracker: Tracker { step: 0, moves: Vec::new(), last_tag: None, reach, last: vec![None; reach] },
            clock: Clock::new(machine.rules.cycles),
            early: false,
            first: 0,
            comments: Vec::new(),
            steps: 0,
            waits: 0,
            code: Code::default(),
            machine,
        }
    }

    /// Begins a part of nodes with comments and counts of slots.
    pub(crate) fn begin(&mut self, nodes: impl Iterator<Item = (String, Vec<(Name, i64)>)>, early: bool) {
        self.text = Text::new(Arc::clone(&self.machine));
        (self.early, self.first, self.tracker.last_tag) = (early, self.comments.len(), None);
        for (comment, busy) in nodes {
            self.comments.push(Some(comment));
            self.code.nodes.push(Row { busy, ..Row::default() });
        }
    }

    /// Writes a line of all instructions of `parts`, which counts for the first owner.
    ///
    /// Owners are counted from the first node of the part.
    pub(crate) fn put(&mut self, parts: &[Arc<Ready>], owners: &[usize]) {
        let owners: Vec<usize> = owners.iter().map(|node| self.first + node).collect();
        self.belongs_to(&owners);
        let Some(ready) = parts.first() else { return };
        if let Line::Move(one) = &ready.line {
            let one = Arc::clone(one);
            let cycles = self.transfer(ready, &one);
            let machine = Arc::clone(&self.machine);
            let row = self.counted(owners[0]);
            if let Some(dram) = one.in_dram(&machine).filter(|dram| dram.value.is_some()) {
                // What an MV reads by addresses stands anywhere in its operand.
                let each = if dram.entries.is_some() { one.words } else { dram.words };
                let written = one.source.memory != dram.memory;
                row.dram[usize::from(written)] += each * machine.rules.l2bs.0;
            }
            let ends = ends(&ready.line).unwrap_or_default();
            self.code.flights.push(Flight { node: owners[0], ends, words: one.words, cycles });
        } else {
            self.line(parts);
            self.counted(owners[0]);
        }
    }

    /// Begins a run if the next line belongs to other nodes, and says so in the text.
    fn belongs_to(&mut self, owners: &[usize]) {
        if self.code.runs.last().is_some_and(|(_, _, nodes)| nodes == owners) {
            return;
        }
        self.code.runs.push((self.code.lines.len(), self.cycles(), owners.to_vec()));
        let new: Vec<usize> = owners.iter().copied().filter(|&node| self.comments[node].is_some()).collect();
        self.introduce(new.iter().copied());
        if new != owners || new.len() > 1 {
            let all: Vec<String> = owners.iter().map(ToString::to_string).collect();
            self.code.lines.push(format!("# {}", all.join(" + ")));
        }
    }

    fn introduce(&mut self, nodes: impl Iterator<Item = usize>) {
        for node in nodes {
            let comment = self.comments[node].take();
            self.code.lines.extend(comment.map(|text| format!("# {node}: {text}")));
        }
    }

    /// Counts the steps and waits since the last call for a node.
    fn counted(&mut self, owner: usize) -> &mut Row {
        let row = &mut self.code.nodes[owner];
        row.steps += self.tracker.step - self.steps;
        self.steps = self.tracker.step;
        row.waits += std::mem::take(&mut self.waits);
        row
    }

    fn cycles(&self) -> i64 {
        self.clock.now(self.tracker.step)
    }

    /// The tags of the MVs that must finish before a line.
    fn tags_before(&self, needs: &Needs) -> Vec<i64> {
        let moves = self.tracker.moves.iter();
        moves.filter(|(_, one)| one.needs.conflicts(needs)).map(|(tag, _)| *tag).collect()
    }

    fn line(&mut self, parts: &[Arc<Ready>]) {
        let ops = parts.iter().flat_map(|one| one.needs.ops()).cloned().collect();
        let needs = Needs::of_line(&self.machine.rules, ops);
        let mut tags = if needs.shared { self.tags_before(&needs) } else { Vec::new() };
        let last = tags.pop();
        for tag in tags {
            self.wait(tag);
        }
        let idle = self.distance(&needs);
        self.nops(idle);
        self.tracker.nops(idle);
        self.tracker.step += 1;
        self.tracker.note(vec![Some(needs)]);
        let mut text = self.text.step(parts);
        let early = || if self.early { self.clock.over(self.tracker.step - 1) } else { None };
        if let Some(tag) = last.or_else(early) {
            text += &format!("; wait {}", self.text.tag(tag));
            // The line itself is one step after the wait.
            self.waited(tag, 1);
        }
        for ready in parts {
            for value in ready.line.literals() {
                self.code.relocations.push((self.code.lines.len(), Arc::clone(&ready.node.names[value]), 0));
            }
        }
        self.code.lines.push(text);
    }

    fn distance(&self, needs: &Needs) -> i64 {
        distance(&self.machine.rules, self.tracker.last.iter().map(Option::as_ref), needs)
    }

    fn transfer(&mut self, ready: &Arc<Ready>, one: &Move) -> (i64, i64) {
        for tag in self.tags_before(&ready.needs) {
            self.wait(tag);
        }
        let (first, last) = self.machine.tags;
        // If an MV still uses the next tag, it has to end first.
        let tag = self.tracker.last_tag.filter(|&tag| tag != last).map_or(first, |tag| tag + 1);
        if self.tracker.moves.iter().any(|(own, _)| *own == tag) {
            self.wait(tag);
        }
        let idle = self.distance(&ready.needs);
        self.nops(idle);
        self.waits += idle;
        self.tracker.nops(idle);
        self.tracker.last_tag = Some(tag);
        self.tracker.moves.push((tag, Arc::clone(ready)));
        if let Some(dram) = one.in_dram(&self.machine).filter(|dram| dram.entries.is_none()) {
            if let Some(value) = dram.value {
                let name = Arc::clone(&ready.node.names[value]);
                self.code.relocations.push((self.code.lines.len(), name, dram.offset));
            }
        }
        self.code.lines.push(self.text.transfer(one, ready, tag));
        self.clock.issue(tag, &one.transfer, self.tracker.step)
    }

    /// Writes idle steps.
    fn nops(&mut self, count: i64) {
        match count {
            ..=0 => {}
            1 => self.code.lines.push("nop".into()),
            _ => self.code.lines.push(format!("nop/{count}")),
        }
    }

    /// Writes an idle step that waits for an MV.
    fn wait(&mut self, tag: i64) {
        self.waits += 1;
        self.code.lines.push(format!("nop; wait {}", self.text.tag(tag)));
        self.waited(tag, 0);
        self.tracker.nops(1);
    }

    fn waited(&mut self, tag: i64, steps: i64) {
        self.tracker.moves.retain(|(own, _)| *own != tag);
        self.clock.wait(tag, self.tracker.step - steps);
    }

    /// Ends a part: waits for all MVs.
    pub(crate) fn end(&mut self) {
        let last = self.comments.len().checked_sub(1);
        let tags: Vec<i64> = self.tracker.moves.iter().map(|(tag, _)| *tag).collect();
        if let Some(last) = last.filter(|_| !tags.is_empty()) {
            self.belongs_to(&[last]);
        }
        for tag in tags {
            self.wait(tag);
        }
        if let Some(last) = last {
            self.counted(last);
        }
        self.introduce(self.first..self.comments.len());
    }

    /// Returns the program.
    pub(crate) fn finish(self) -> Code {
        Code { cycles: self.cycles(), stalls: self.clock.stalls, ..self.code }
    }
}

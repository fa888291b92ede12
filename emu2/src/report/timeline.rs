//! The cycle model: when the steps, waits and MVs of a program begin and end. docs/cycle_model.md says which numbers are
//! measured and which are assumed.

use super::traffic::{Port, Traffic, TrafficTable};
use crate::asm::{HostCommand, Item, ItemKind, Mv, Program};
use crate::spec::Spec;
use std::collections::HashMap;
use std::rc::Rc;

/// The time of one statement. Cycles count from the start of the program.
#[derive(Debug)]
pub(super) enum Event {
    /// Steps. If there is a wait, they follow it.
    Steps { wait: Option<Wait>, start: u64, count: u64 },
    /// An MV, which runs beside the steps.
    Mv(Flight),
    /// A debug statement, which takes no time.
    Nothing,
}

/// A wait: nothing issues between `start` and `start + stall`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Wait {
    pub(super) tag: u32,
    pub(super) start: u64,
    pub(super) stall: u64,
    /// No earlier MV carries the tag, so it belongs to a transfer of the host, which is taken as finished.
    pub(super) host: bool,
}

/// An MV on its way.
#[derive(Clone, Debug)]
pub(super) struct Flight {
    pub(super) issued: u64,
    /// The cycle in which its ports are free.
    pub(super) start: u64,
    /// The cycle in which it releases them.
    pub(super) released: u64,
    /// The cycle in which a wait for it ends.
    pub(super) end: u64,
    pub(super) blocks: u64,
    pub(super) traffic: Rc<Traffic>,
}

/// The clock of a program. Statements are added in source order.
pub(super) struct Timeline<'a> {
    spec: &'a Spec,
    traffic: TrafficTable<'a>,
    steps: u64,
    stalled: u64,
    /// The cycle in which each port becomes free.
    free: HashMap<Port, u64>,
    /// The cycle in which the MV with a tag ends.
    ends: HashMap<u32, u64>,
}

impl<'a> Timeline<'a> {
    pub(super) fn new(program: &'a Program) -> Self {
        let spec = &*program.spec;
        Timeline {
            spec,
            traffic: TrafficTable::new(spec),
            steps: 0,
            stalled: 0,
            free: HashMap::new(),
            ends: HashMap::new(),
        }
    }

    pub(super) fn traffic(&mut self) -> &mut TrafficTable<'a> {
        &mut self.traffic
    }

    pub(super) fn now(&self) -> u64 {
        self.cycles(self.steps).saturating_add(self.stalled)
    }

    /// Cycles of `steps` steps.
    pub(super) fn cycles(&self, steps: u64) -> u64 {
        steps.saturating_mul(u64::from(self.spec.counts.cycle))
    }

    pub(super) fn item(&mut self, item: &Item) -> Event {
        match &item.kind {
            ItemKind::Nop { count, wait } => self.advance(*count, *wait),
            ItemKind::Step(step) => self.advance(1, step.wait),
            ItemKind::Mv(mv) => Event::Mv(self.mv(mv)),
            ItemKind::Host(command) => {
                if let HostCommand::Write(words, _) | HostCommand::Read(words, _) = &**command {
                    // A transfer of the host takes no time here.
                    self.ends.entry(words.signal).or_insert(0);
                }
                Event::Nothing
            }
            ItemKind::Set(_) | ItemKind::Get(_) => Event::Nothing,
        }
    }

    fn advance(&mut self, count: u64, tag: Option<u32>) -> Event {
        let wait = tag.map(|tag| self.wait(tag));
        let start = self.now();
        self.steps = self.steps.saturating_add(count);
        Event::Steps { wait, start, count }
    }

    fn wait(&mut self, tag: u32) -> Wait {
        let start = self.now();
        let end = self.ends.get(&tag).copied();
        let stall = end.unwrap_or(0).saturating_sub(start);
        self.stalled = self.stalled.saturating_add(stall);
        Wait { tag, start, stall, host: end.is_none() }
    }

    fn mv(&mut self, mv: &Mv) -> Flight {
        let traffic = self.traffic.mv(mv);
        let form = &self.spec.forms[mv.form.transfer][mv.form.form];
        let blocks = mv.size / form.unit.unwrap_or(1).max(1);
        let issued = self.now();
        let ready = traffic.ports.iter().filter_map(|port| self.free.get(port)).max().copied();
        let start = issued.max(ready.unwrap_or(0));
        let released = start.saturating_add(traffic.cycles(blocks));
        for port in &traffic.ports {
            self.free.insert(*port, released);
        }
        let end = released.saturating_add(u64::from(self.spec.timing.mv_latency));
        if let Some(tag) = mv.tag {
            self.ends.insert(tag, end);
        }
        Flight { issued, start, released, end, blocks, traffic }
    }
}

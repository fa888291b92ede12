//! The run of a program under the debugger.

use super::breakpoint::{Breakpoint, Kind};
use super::history::{History, HistoryLimits};
use super::statements::Statements;
use super::touched::{each_touched, sets_base};
use crate::asm::{HostCommand, Item, ItemKind, Program};
use crate::error::{Code, Error};
use crate::exec::{AssumedHost, Engine, Observer, RunError};
use crate::interrupt::Interrupt;
use crate::machine::{Blocks, Image, Machine, Region};
use crate::report::{dump_lines, Clock};
use crate::spec::{Spec, Unit as AddressUnit};
use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Arc;
use std::time::Instant;

/// Statements that run at a time. A request to pause is heard between them.
const CHUNK: usize = 2048;

/// Statements of the longest region.
const REGION: usize = 1024;

/// How far a step goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unit {
    /// One statement.
    Line,
    /// One step of the machine: past MVs and debug statements to the end of the next PE line.
    Step,
    /// To the next MV or debug statement.
    Region,
}

/// Takes dump lines. None drops them.
pub(super) type Sink<'a> = &'a mut dyn FnMut(&str) -> Result<(), Error>;

/// A program, its machine, and the history of the run.
pub struct Session {
    pub(super) program: Arc<Program>,
    pub(super) statements: Statements,
    pub(super) machine: Machine,
    pub(super) engine: Engine,
    pub(super) observer: Observer,
    history: History,
    pub(super) position: usize,
    /// A move was asked for. Until then the run has not arrived at its first statement.
    pub(super) begun: bool,
    pub(super) breakpoints: Vec<Breakpoint>,
    next: u32,
    /// Writes of the user, by position.
    pokes: BTreeMap<usize, Vec<(Region, Vec<u64>)>>,
    /// The first position from which on base address registers may be other than zero.
    based: Option<usize>,
    pub(super) interrupt: Interrupt,
    clock: Option<Clock>,
    /// Statements that the warnings about timing name.
    pub(super) hazards: Vec<(usize, String)>,
}

impl Session {
    /// A session that stands before the first statement. `room` bounds the images of the run.
    ///
    /// # Errors
    /// [`Code::WrongSpec`] for a program of another spec, [`Code::Poisoned`] for a machine that stopped half way.
    pub fn new(program: Arc<Program>, machine: Machine, room: HistoryLimits) -> Result<Session, Error> {
        machine.check_usable()?;
        let spec = machine.spec().clone();
        if spec.digest != program.spec.digest {
            let (ours, theirs) = (&spec.machine.name, &program.spec.machine.name);
            let message = format!("the program is for `{theirs}`, the machine is `{ours}` or another version of it");
            return Err(Error::new(Code::WrongSpec, message));
        }
        let mut statements = Statements::new(program.clone());
        let timing = program.warnings.iter().filter(|w| w.code.id().starts_with("A07"));
        let mut hazards: Vec<(usize, String)> = timing
            .filter_map(|w| {
                let before = &program.text.as_bytes()[..w.span?.start as usize];
                let line = 1 + before.iter().filter(|byte| **byte == b'\n').count() as u32;
                Some((statements.at_line(line)?, format!("{}: {}", w.code.id(), w.message)))
            })
            .collect();
        sorting::sort(&mut hazards);
        let bases = (0..spec.memories.len()).filter(|m| spec.memories[*m].unit == AddressUnit::Base);
        let mut based = None;
        for memory in bases {
            let count = spec.memories[memory].words;
            let words = machine.read(&Region { memory, units: [None; 5], addr: 0, count })?;
            based = based.or(words.iter().any(|word| *word != 0).then_some(0));
        }
        Ok(Session {
            statements,
            engine: Engine::new(spec.clone()),
            observer: Observer::new(spec),
            history: History::new(&machine, room),
            machine,
            program,
            position: 0,
            begun: false,
            breakpoints: Vec::new(),
            next: 1,
            pokes: BTreeMap::new(),
            based,
            interrupt: Interrupt::default(),
            clock: None,
            hazards,
        })
    }

    /// Makes runs end with a stop `pause` soon after `interrupt` is requested.
    pub fn set_interrupt(&mut self, interrupt: Interrupt) {
        self.interrupt = interrupt;
    }

    /// The spec.
    pub fn spec(&self) -> Arc<Spec> {
        self.machine.spec().clone()
    }

    /// The machine as it is now.
    pub fn machine(&self) -> &Machine {
        &self.machine
    }

    /// Number of statements that have run.
    pub fn position(&self) -> usize {
        self.position
    }

    /// Number of statements of the program.
    pub fn len(&self) -> usize {
        self.statements.len()
    }

    /// Whether the program has no statement.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Line of the statement that comes next at `position`, of the last one at the end.
    pub fn line(&mut self, position: usize) -> u32 {
        self.statements.line(position)
    }

    /// Number of images of the run, and the bytes that they take.
    pub fn history(&self) -> (usize, usize) {
        self.history.size()
    }

    pub(super) fn blocks(&self) -> &Blocks {
        self.history.blocks()
    }

    /// The state as it is now.
    pub(super) fn image(&mut self) -> Image {
        self.history.image(&self.machine)
    }

    /// Steps and cycles before every statement. Computed once.
    ///
    /// # Errors
    /// [`Code::Interrupted`].
    pub fn clock(&mut self) -> Result<&Clock, Error> {
        let clock = match self.clock.take() {
            Some(clock) => clock,
            None => Clock::of_until(&self.program, &self.interrupt)?,
        };
        Ok(self.clock.insert(clock))
    }

    /// The position before the first statement at or after `line`.
    ///
    /// # Errors
    /// [`Code::NoStatement`] if there is none.
    pub fn at_line(&mut self, line: u32) -> Result<usize, Error> {
        let none = || Error::new(Code::NoStatement, format!("there is no statement at or after line {line}"));
        self.statements.at_line(line).ok_or_else(none)
    }

    /// The position before which `cycle` cycles have passed.
    ///
    /// # Errors
    /// [`Code::NoStatement`] if the program ends earlier.
    pub fn at_cycle(&mut self, cycle: u64) -> Result<usize, Error> {
        let none = || Error::new(Code::NoStatement, format!("the program ends before cycle {cycle}"));
        self.clock()?.at_cycle(cycle).ok_or_else(none)
    }

    /// The position before the next statement that carries `tag` or waits for it, from here on.
    ///
    /// # Errors
    /// [`Code::NoStatement`] if there is none.
    pub fn at_tag(&mut self, tag: u32) -> Result<usize, Error> {
        let carries = |item: &Item| match &item.kind {
            ItemKind::Mv(mv) => mv.tag == Some(tag),
            ItemKind::Step(step) => step.wait == Some(tag),
            ItemKind::Nop { wait, .. } => *wait == Some(tag),
            ItemKind::Host(command) => match &**command {
                HostCommand::Write(words, _) | HostCommand::Read(words, _) => [words.signal, words.wait].contains(&tag),
                HostCommand::Fence => false,
            },
            ItemKind::Set(_) | ItemKind::Get(_) => false,
        };
        let found = self.next_where(self.position + 1, &carries);
        let none = || Error::new(Code::NoStatement, format!("no later statement names tag i{tag:02x}"));
        found.map(|(at, _)| at).ok_or_else(none)
    }

    /// The first statement from number `from` on for which `wanted` holds.
    pub(super) fn next_where(&mut self, from: usize, wanted: &dyn Fn(&Item) -> bool) -> Option<(usize, Item)> {
        let mut at = from;
        while at < self.len() {
            let (stretch, end) = self.statements.stretch(at);
            let found = stretch.part(at..end).iter().enumerate().find(|(_, item)| wanted(item));
            if let Some((k, item)) = found {
                return Some((at + k, item.clone()));
            }
            at = end;
        }
        None
    }

    /// The last statement before number `end` for which `wanted` holds.
    fn last_where(&mut self, end: usize, wanted: &dyn Fn(&Item) -> bool) -> Option<usize> {
        let mut at = end;
        while at > 0 {
            let (stretch, _) = self.statements.stretch(at - 1);
            let part = stretch.part(0..at);
            if let Some(k) = part.iter().rposition(wanted) {
                return Some(at - part.len() + k);
            }
            at -= part.len().max(1);
        }
        None
    }

    /// The position that a step from here leads to.
    pub fn target(&mut self, unit: Unit, back: bool) -> usize {
        let here = self.position;
        let advances = |item: &Item| matches!(item.kind, ItemKind::Step(_) | ItemKind::Nop { .. });
        let ends = |item: &Item| !advances(item);
        match (unit, back) {
            (Unit::Line, false) => (here + 1).min(self.len()),
            (Unit::Line, true) => here.saturating_sub(1),
            (Unit::Step, false) => self.next_where(here, &advances).map_or(self.len(), |(at, _)| at + 1),
            (Unit::Step, true) => self.last_where(here, &advances).unwrap_or(0),
            (Unit::Region, false) => {
                let end = self.next_where(here + 1, &ends).map_or(self.len(), |(at, _)| at);
                end.min(here + REGION)
            }
            (Unit::Region, true) => self.last_where(here, &ends).unwrap_or(0).max(here.saturating_sub(REGION)),
        }
    }

    /// Adds a breakpoint and returns its number.
    ///
    /// # Errors
    /// Those of [`Kind::parse`].
    pub fn add(&mut self, text: &str) -> Result<&Breakpoint, Error> {
        let spec = self.spec();
        let kind = Kind::parse(text, &spec, |line| self.statements.at_line(line))?;
        let id = self.next;
        self.next += 1;
        self.breakpoints.push(Breakpoint { id, kind, text: text.trim().to_string() });
        let last = self.breakpoints.len() - 1;
        Ok(&self.breakpoints[last])
    }

    /// Removes a breakpoint.
    ///
    /// # Errors
    /// [`Code::BadBreakpoint`] for a number that no breakpoint has.
    pub fn remove(&mut self, id: u32) -> Result<(), Error> {
        let none = || Error::new(Code::BadBreakpoint, format!("there is no breakpoint {id}"));
        let at = self.breakpoints.iter().position(|b| b.id == id).ok_or_else(none)?;
        self.breakpoints.remove(at);
        Ok(())
    }

    /// The breakpoints in the order in which they were added.
    pub fn breakpoints(&self) -> &[Breakpoint] {
        &self.breakpoints
    }

    /// Writes words here, as [`Machine::write`]. Each later pass over this position writes them again.
    ///
    /// # Errors
    /// Those of [`Machine::write`].
    pub fn write(&mut self, region: &Region, words: &[u64]) -> Result<(), Error> {
        self.machine.write(region, words)?;
        self.wrote(region);
        self.pokes.entry(self.position).or_default().push((*region, words.to_vec()));
        self.history.forget(&self.machine, self.position);
        Ok(())
    }

    /// Notes a write from outside.
    fn wrote(&mut self, region: &Region) {
        self.history.written.add(region.memory, region.addr..region.addr + region.count);
        if self.machine.spec().memories[region.memory].unit == AddressUnit::Base {
            self.based = Some(self.based.map_or(self.position, |at| at.min(self.position)));
        }
    }

    /// Notes what the statements `range` may write.
    fn touch(&mut self, range: Range<usize>, items: &[Item]) {
        let spec = self.machine.spec().clone();
        for (at, item) in range.zip(items) {
            if self.based.is_none_or(|based| at < based) && sets_base(&spec, item) {
                self.based = Some(at);
            }
            let based = self.based(at);
            each_touched(&spec, item, based, &mut |memory, rows| self.history.written.add(memory, rows));
        }
    }

    /// Whether base address registers may be other than zero at statement `at`.
    pub(super) fn based(&self, at: usize) -> bool {
        self.based.is_some_and(|based| based <= at)
    }

    /// Goes to `position`, forwards or backwards. Nothing is dumped, and no breakpoint stops it.
    ///
    /// # Errors
    /// The error of a statement. The session then stands before that statement.
    pub fn go(&mut self, position: usize) -> Result<(), RunError> {
        let interrupt = std::mem::take(&mut self.interrupt);
        let gone = self.go_until(position.min(self.len()));
        self.interrupt = interrupt;
        gone.map(drop)
    }

    fn go_until(&mut self, position: usize) -> Result<bool, RunError> {
        let image = self.history.before(position + 1);
        if position < self.position || image > self.position {
            self.position = self.history.restore(&mut self.machine, position);
        }
        self.advance(position, &mut None)
    }

    /// Runs forwards to `target` without looking at breakpoints. Returns false if a pause was requested on the way.
    ///
    /// # Errors
    /// The error of a statement. The session then stands before that statement.
    pub(super) fn advance(&mut self, target: usize, sink: &mut Option<Sink<'_>>) -> Result<bool, RunError> {
        while self.position < target {
            if self.interrupt.requested() {
                return Ok(false);
            }
            let from = self.position;
            let (stretch, end) = self.statements.stretch(from);
            let (reach, near) = self.history.reach(from, target);
            let mut to = reach.min(end).min(from + CHUNK);
            if let Some((poke, _)) = self.pokes.range(from + 1..).next() {
                to = to.min(*poke);
            }
            let items = stretch.part(from..to);
            self.run(from, items, sink)?;
            if self.history.due(self.position, near && self.position == reach) {
                self.history.record(&self.machine, self.position);
            }
        }
        Ok(true)
    }

    /// Runs the statements from here on that `items` holds.
    pub(super) fn run(&mut self, from: usize, items: &[Item], sink: &mut Option<Sink<'_>>) -> Result<(), RunError> {
        self.touch(from..from + items.len(), items);
        let started = Instant::now();
        let on_get = &mut |get: &_, machine: &_| match sink {
            Some(sink) => dump_lines(machine, get, sink),
            None => Ok(()),
        };
        let ran = self.engine.run_statements(&mut self.machine, items, &mut AssumedHost, on_get);
        if let Err(error) = ran {
            // Statements before the one at fault run again without it.
            let at = items.iter().position(|item| item.line >= error.line).unwrap_or(0);
            self.position = self.history.restore(&mut self.machine, from);
            self.go(from + at)?;
            return Err(error);
        }
        self.history.ran(items.len(), started.elapsed());
        self.position = from + items.len();
        for (region, words) in self.pokes.get(&self.position).cloned().unwrap_or_default() {
            let written = self.machine.write(&region, &words);
            self.wrote(&region);
            written.map_err(|e| RunError { line: 0, diagnostic: *e.0 })?;
        }
        Ok(())
    }

    /// The place of the youngest image before `position`.
    pub(super) fn image_before(&self, position: usize) -> usize {
        self.history.before(position)
    }
}

//! Runs with breakpoints, forwards and backwards.

use super::breakpoint::{Kind, Stop};
use super::place::{unit_name, PlaceSet};
use super::session::{Session, Sink};
use super::touched::each_touched;
use super::values::{self, Found};
use crate::asm::{Item, ItemKind, Program, Step};
use crate::error::Error;
use crate::exec::RunError;
use crate::interrupt::Interrupt;
use crate::machine::{Machine, Owner, PathRows};
use crate::spec::{LevelName, Unit as AddressUnit};
use std::ops::Range;

/// Statements that are looked at together for a breakpoint.
const WINDOW: usize = 2048;

/// Why a breakpoint stops: its number and a text.
type Reason = (u32, String);

/// What is noted before a statement runs alone.
#[derive(Default)]
struct Before {
    /// Conditions that held.
    held: Vec<u32>,
    /// Words of places whose writes are seen by their change.
    words: Vec<(u32, Vec<u64>)>,
    reasons: Vec<Reason>,
}

impl Session {
    /// Runs forwards to the next stop, at most to position `limit`. Dump lines go to `sink`. The first move may stop where it
    /// begins.
    pub fn run_forward(&mut self, limit: usize, sink: &mut dyn FnMut(&str) -> Result<(), Error>) -> Stop {
        let limit = limit.min(self.len());
        if !std::mem::replace(&mut self.begun, true) && self.position < limit {
            let reasons = self.standing();
            if !reasons.is_empty() {
                return stopped(reasons);
            }
        }
        let mut sink: Option<Sink<'_>> = Some(sink);
        match self.search(limit, &mut sink) {
            Ok(Some(stop)) => stop,
            Ok(None) if limit == self.len() => Stop::plain("end"),
            Ok(None) => Stop::plain("step"),
            Err(error) => Stop::failed(error),
        }
    }

    /// Goes back to the last place before this one at which a breakpoint stops, or to the start.
    pub fn run_back(&mut self) -> Stop {
        self.begun = true;
        let here = self.position;
        match self.search_back(here) {
            Ok(stop) => stop,
            Err(error) => Stop::failed(error),
        }
    }

    /// Goes to `position` and says so. Dump lines of a way forwards go to `sink`.
    pub fn step_to(&mut self, position: usize, sink: &mut dyn FnMut(&str) -> Result<(), Error>) -> Stop {
        self.begun = true;
        let gone = match position < self.position {
            true => self.go(position).map(|()| true),
            false => self.advance(position.min(self.len()), &mut Some(sink)),
        };
        match gone {
            Ok(true) if self.position == 0 => Stop::plain("start"),
            Ok(true) if self.position == self.len() => Stop::plain("end"),
            Ok(true) => Stop::plain("step"),
            Ok(false) => Stop::plain("pause"),
            Err(error) => Stop::failed(error),
        }
    }

    /// Runs the statements that are left, past all breakpoints.
    ///
    /// # Errors
    /// The error of a statement.
    pub fn finish(&mut self, sink: &mut dyn FnMut(&str) -> Result<(), Error>) -> Result<(), RunError> {
        self.interrupt = Interrupt::default();
        self.advance(self.len(), &mut Some(sink)).map(drop)
    }

    /// The program.
    pub fn program(&self) -> &Program {
        &self.program
    }

    /// The machine as it is now, without the history of the run.
    pub fn into_machine(self) -> Machine {
        self.machine
    }

    /// Runs to the next stop at or before `end`. A stop at this position does not count.
    fn search(&mut self, end: usize, sink: &mut Option<Sink<'_>>) -> Result<Option<Stop>, RunError> {
        let mut moved = false;
        while self.position < end || moved {
            if moved {
                let reasons = self.standing();
                if !reasons.is_empty() {
                    return Ok(Some(stopped(reasons)));
                }
            }
            if self.position >= end {
                return Ok(None);
            }
            if self.interrupt.requested() {
                return Ok(Some(Stop::plain("pause")));
            }
            moved = true;
            let window = end.min(self.position + WINDOW);
            let line = self.next_standing(window);
            let candidate = self.next_candidate(line.unwrap_or(window));
            let target = candidate.or(line).unwrap_or(if self.watches() { window } else { self.next_line(end) });
            if !self.advance(target, sink)? {
                return Ok(Some(Stop::plain("pause")));
            }
            if candidate.is_some() {
                let mut reasons = self.single(sink)?;
                if !reasons.is_empty() {
                    reasons.extend(self.standing());
                    return Ok(Some(stopped(reasons)));
                }
            }
        }
        Ok(None)
    }

    fn search_back(&mut self, here: usize) -> Result<Stop, RunError> {
        let mut end = here;
        while end > 0 {
            let start = self.image_before(end);
            self.go(start)?;
            // A stop where an image stands is found on the way to it.
            let reasons = if start == 0 { self.standing() } else { Vec::new() };
            let mut last = (!reasons.is_empty()).then(|| (start, stopped(reasons)));
            while let Some(stop) = self.search(end, &mut None)? {
                if stop.reason == "pause" {
                    return Ok(stop);
                }
                if self.position < here {
                    last = Some((self.position, stop));
                }
            }
            if let Some((position, stop)) = last {
                self.go(position)?;
                return Ok(stop);
            }
            end = start;
        }
        self.go(0)?;
        Ok(Stop::plain("start"))
    }

    /// Whether a breakpoint looks at what statements do.
    fn watches(&self) -> bool {
        self.breakpoints.iter().any(|b| !matches!(b.kind, Kind::Line { .. } | Kind::Hazard))
    }

    /// The next position behind this one, up to `end`, at which a breakpoint may stop before the statement there.
    fn next_line(&self, end: usize) -> usize {
        self.next_standing(end).unwrap_or(end)
    }

    fn next_standing(&self, end: usize) -> Option<usize> {
        let here = self.position;
        let hazards = self.breakpoints.iter().any(|b| b.kind == Kind::Hazard);
        let hazards = self.hazards.iter().filter(|_| hazards).map(|(at, _)| *at);
        let lines = self.breakpoints.iter().filter_map(|b| match b.kind {
            Kind::Line { position, .. } => Some(position),
            _ => None,
        });
        lines.chain(hazards).filter(|at| (here + 1..=end).contains(at)).min()
    }

    /// The breakpoints that stop before the statement here.
    fn standing(&self) -> Vec<Reason> {
        let mut reasons = Vec::new();
        for breakpoint in &self.breakpoints {
            match &breakpoint.kind {
                Kind::Line { position, condition, .. }
                    if *position == self.position
                        && condition.as_ref().is_none_or(|condition| condition.holds(&self.machine)) =>
                {
                    reasons.push((breakpoint.id, breakpoint.text.clone()));
                }
                Kind::Hazard => {
                    let here = self.hazards.iter().filter(|(at, _)| *at == self.position);
                    reasons.extend(here.map(|(_, text)| (breakpoint.id, text.clone())));
                }
                _ => {}
            }
        }
        reasons
    }

    /// The next statement from here on, before `end`, at whose end a breakpoint may stop.
    fn next_candidate(&mut self, end: usize) -> Option<usize> {
        if !self.watches() {
            return None;
        }
        let mut at = self.position;
        while at < end {
            let (stretch, stretch_end) = self.statements.stretch(at);
            let part = stretch.part(at..end.min(stretch_end));
            if let Some(k) = part.iter().enumerate().position(|(k, item)| self.concerns(at + k, item)) {
                return Some(at + k);
            }
            at += part.len().max(1);
        }
        None
    }

    /// Whether a breakpoint may stop after this statement.
    fn concerns(&self, at: usize, item: &Item) -> bool {
        let spec = self.machine.spec();
        let step = if let ItemKind::Step(step) = &item.kind { Some(step) } else { None };
        self.breakpoints.iter().any(|breakpoint| match &breakpoint.kind {
            Kind::Line { .. } | Kind::Hazard => false,
            Kind::When(condition) => condition.places().any(|place| self.touches(at, item, place)),
            Kind::Write(place) => self.touches(at, item, place),
            Kind::Infinity => step.is_some_and(|step| values::gives_numbers(spec, step)),
            Kind::Flag => step.is_some_and(|step| values::gives_flags(step)),
            Kind::Overflow => step.is_some_and(|step| values::converts(spec, step)),
        })
    }

    /// Whether the statement may write a word of `place`.
    fn touches(&self, at: usize, item: &Item, place: &PlaceSet) -> bool {
        match place.owner {
            Owner::Path(_) => matches!(item.kind, ItemKind::Step(_)),
            Owner::Memory(wanted) => {
                let mut found = false;
                each_touched(self.machine.spec(), item, self.based(at), &mut |memory, rows| {
                    found |= memory == wanted && rows.start < place.rows.end && place.rows.start < rows.end;
                });
                found
            }
        }
    }

    /// The first statement of `range` that may write a word of `place`, by its number.
    pub fn first_write(&mut self, place: &PlaceSet, range: Range<usize>) -> Option<usize> {
        let mut at = range.start;
        while at < range.end.min(self.len()) {
            let (stretch, end) = self.statements.stretch(at);
            let end = end.min(range.end);
            let mut items = (at..end).zip(stretch.part(at..end));
            if let Some((found, _)) = items.find(|(at, item)| self.touches(*at, item, place)) {
                return Some(found);
            }
            at = end;
        }
        None
    }

    /// Runs the statement here alone, and returns the breakpoints that stop after it.
    fn single(&mut self, sink: &mut Option<Sink<'_>>) -> Result<Vec<Reason>, RunError> {
        let at = self.position;
        let (stretch, _) = self.statements.stretch(at);
        let items = stretch.part(at..at + 1);
        let [item] = items else { return Ok(Vec::new()) };
        let before = self.before(at, item).map_err(|e| RunError { line: item.line, diagnostic: *e.0 })?;
        let step = if let ItemKind::Step(step) = &item.kind { Some(step) } else { None };
        let infinities = self.breakpoints.iter().any(|b| b.kind == Kind::Infinity);
        let hidden = step.filter(|step| infinities && !step.forward && values::gives_numbers(&self.spec(), step));
        let infinity = match hidden {
            Some(step) => self.run_showing(at, item, step, sink)?,
            None => {
                self.run(at, items, sink)?;
                step.filter(|_| infinities).and_then(|step| values::infinity(&self.machine, step))
            }
        };
        let Before { held, words, mut reasons } = before;
        let spec = self.spec();
        let found =
            |id: u32, found: Found| (id, format!("{} in {}", found.1, unit_name(&spec, LevelName::Pe, found.0)));
        for breakpoint in &self.breakpoints {
            let id = breakpoint.id;
            match &breakpoint.kind {
                Kind::When(condition) if !held.contains(&id) && condition.holds(&self.machine) => {
                    reasons.push((id, breakpoint.text.clone()));
                }
                Kind::Write(place) => {
                    let old = words.iter().find(|(of, _)| *of == id);
                    if old.is_some_and(|(_, old)| *old != place.bits(&self.machine)) {
                        reasons.push((id, breakpoint.text.clone()));
                    }
                }
                Kind::Infinity => reasons.extend(infinity.clone().map(|infinity| found(id, infinity))),
                Kind::Flag => {
                    let flag = step.and_then(|step| values::flag(&self.machine, step));
                    reasons.extend(flag.map(|flag| found(id, flag)));
                }
                _ => {}
            }
        }
        Ok(reasons)
    }

    /// What must be known of the state before the statement.
    fn before(&mut self, at: usize, item: &Item) -> Result<Before, Error> {
        let spec = self.spec();
        let step = if let ItemKind::Step(step) = &item.kind { Some(step) } else { None };
        let mut before = Before::default();
        for breakpoint in self.breakpoints.clone() {
            let id = breakpoint.id;
            match &breakpoint.kind {
                Kind::When(condition) if condition.holds(&self.machine) => before.held.push(id),
                Kind::Write(place) if self.touches(at, item, place) => {
                    let exact = match (place.owner, &item.kind) {
                        // Flags, base addresses and matrix registers are no plain destinations.
                        (Owner::Memory(memory), ItemKind::Step(step)) => {
                            let plain = matches!(spec.memories[memory].unit, AddressUnit::Word | AddressUnit::Cycle);
                            plain.then_some((memory, step))
                        }
                        _ => None,
                    };
                    match (exact, &item.kind) {
                        (Some((memory, step)), _) => {
                            let wanted = |pe| place.names_pe(&spec, pe);
                            let rows = &place.rows;
                            if let Some(((l1b, lane), row)) =
                                self.observer.writes_to(&mut self.machine, step, memory, rows, &wanted)?
                            {
                                let unit = super::place::pe_unit(&spec, l1b, lane);
                                let name = &spec.memories[memory].name;
                                let text =
                                    format!("write to {name}[{row}] of {}", unit_name(&spec, LevelName::Pe, unit));
                                before.reasons.push((id, text));
                            }
                        }
                        (None, ItemKind::Set(_)) => before.reasons.push((id, breakpoint.text.clone())),
                        (None, _) => before.words.push((id, place.bits(&self.machine))),
                    }
                }
                Kind::Overflow => {
                    let overflow = match step {
                        Some(step) => self.observer.overflow(&mut self.machine, step)?,
                        None => None,
                    };
                    if let Some(((l1b, lane), number)) = overflow {
                        let unit = unit_name(&spec, LevelName::Pe, super::place::pe_unit(&spec, l1b, lane));
                        let number = crate::report::general(number);
                        before.reasons.push((id, format!("the conversion of {number} overflows in {unit}")));
                    }
                }
                _ => {}
            }
        }
        Ok(before)
    }

    /// Runs a step that keeps the forwarding paths, and looks at its results all the same.
    fn run_showing(
        &mut self,
        at: usize,
        item: &Item,
        step: &Step,
        sink: &mut Option<Sink<'_>>,
    ) -> Result<Option<Found>, RunError> {
        let paths: Vec<Vec<PathRows>> = self.machine.state.l1b.iter().map(|l1b| l1b.forward.clone()).collect();
        let shown = Step { forward: true, ..step.clone() };
        let shown = [Item { kind: ItemKind::Step(Box::new(shown)), ..item.clone() }];
        self.run(at, &shown, sink)?;
        let found = values::infinity(&self.machine, step);
        for (l1b, paths) in self.machine.state.l1b.iter_mut().zip(paths) {
            l1b.forward = paths;
        }
        Ok(found)
    }
}

fn stopped(reasons: Vec<Reason>) -> Stop {
    let mut ids: Vec<u32> = reasons.iter().map(|(id, _)| *id).collect();
    ids.dedup();
    let text = reasons.into_iter().map(|(_, text)| text).collect::<Vec<String>>().join("\n");
    Stop { reason: "breakpoint", breakpoints: ids, text, error: None }
}

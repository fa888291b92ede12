//! The counters of a program. The machine has no branches, so the text alone determines them.

use super::timeline::{Event, Flight, Timeline, Wait};
use super::traffic::{MemoryWords, Port, Traffic};
use crate::asm::{ItemKind, PeKind, Program, Step};
use crate::error::Error;
use crate::interrupt::Interrupt;
use crate::spec::Spec;
use indexmap::IndexMap;
use serde::Serialize;
use std::collections::BTreeMap;

/// Steps, cycles and moved words of a program. Cycles follow the spec's timing model (docs/cycle_model.md).
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Report {
    /// Name of the spec.
    pub machine: String,
    /// PE lines, nops included.
    pub steps: u64,
    /// Cycles of all steps plus stalls.
    pub cycles: u64,
    /// Cycles that waits stall the steps.
    pub stall_cycles: u64,
    /// Number of waits.
    pub waits: u64,
    /// Number of waits that stall.
    pub stalled_waits: u64,
    /// Number of MV instructions.
    pub mvs: u64,
    /// Cycles in which at least one MV is on its way.
    pub mv_busy_cycles: u64,
    /// The cycle in which the last MV ends, even if nothing waits for it.
    pub mv_end: u64,
    /// Cycles for which MVs hold each memory that they use: `dram0`, `l2bm3.1`.
    pub port_cycles: IndexMap<String, u64>,
    /// Steps in which a slot is busy, by slot.
    pub busy_steps: IndexMap<String, u64>,
    /// Long words that MVs move over DRAM.
    pub dram_words: MemoryWords,
    /// Long words that transfers move, by memory, over the whole chip.
    pub words: IndexMap<String, MemoryWords>,
    /// Tags of waits that no earlier MV carries. They are taken as finished host transfers.
    pub host_tags: Vec<u32>,
    /// The waits that stall, in order: line of the source, from 1, and cycles. Texts of a report leave them out.
    #[serde(skip)]
    pub stalls: Vec<(u32, u64)>,
}

/// The memory whose traffic is also reported separately.
const DRAM: &str = "dram";

impl Report {
    /// Counts the costs of `program`.
    pub fn of(program: &Program) -> Report {
        Report::of_until(program, &Interrupt::default()).unwrap_or_default()
    }

    /// Does the same as [`Report::of`], but stops if `interrupt` is requested.
    ///
    /// # Errors
    /// [`Code::Interrupted`](crate::error::Code::Interrupted).
    pub fn of_until(program: &Program, interrupt: &Interrupt) -> Result<Report, Error> {
        let mut timeline = Timeline::new(program);
        let mut counts = Counts::new(&program.spec);
        program.for_each(|item| {
            match timeline.item(item) {
                Event::Steps { wait, count, .. } => {
                    counts.report.steps = counts.report.steps.saturating_add(count);
                    if let Some(wait) = wait {
                        counts.wait(item.line, &wait);
                    }
                    if let ItemKind::Step(step) = &item.kind {
                        counts.step(step, &mut timeline);
                    }
                }
                Event::Mv(flight) => counts.mv(&flight),
                Event::Nothing => {}
            }
            interrupt.check()
        })?;
        Ok(Report { cycles: timeline.now(), ..counts.finish() })
    }
}

/// Counters, by the numbers of entries in the lists of the spec.
struct Counts<'a> {
    spec: &'a Spec,
    report: Report,
    slots: Vec<u64>,
    words: Vec<MemoryWords>,
    ports: BTreeMap<Port, u64>,
    alu: usize,
    mau: usize,
    in_flight: Cover,
}

impl<'a> Counts<'a> {
    fn new(spec: &'a Spec) -> Self {
        let report = Report { machine: spec.machine.name.clone(), ..Report::default() };
        let slots = vec![0; spec.slots.len()];
        let words = vec![MemoryWords::default(); spec.memories.len()];
        let (alu, mau) = (slot(spec, "alu"), slot(spec, "mau"));
        Counts { spec, report, slots, words, ports: BTreeMap::new(), alu, mau, in_flight: Cover::default() }
    }

    fn wait(&mut self, line: u32, wait: &Wait) {
        self.report.waits += 1;
        if wait.stall > 0 {
            self.report.stall_cycles = self.report.stall_cycles.saturating_add(wait.stall);
            self.report.stalled_waits += 1;
            self.report.stalls.push((line, wait.stall));
        }
        if wait.host && !self.report.host_tags.contains(&wait.tag) {
            self.report.host_tags.push(wait.tag);
        }
    }

    fn step(&mut self, step: &Step, timeline: &mut Timeline<'_>) {
        let mut transfer = |counts: &mut Self, form: crate::asm::FormRef| {
            let entry = &counts.spec.transfers[form.transfer];
            counts.busy(slot(counts.spec, &entry.slot));
            let units = counts.spec.units(entry.level);
            counts.moved(&timeline.traffic().transfer(form), units);
        };
        for instruction in &step.pe {
            match instruction.kind {
                PeKind::Alu { .. } => self.busy(self.alu),
                PeKind::Mau { .. } => self.busy(self.mau),
                PeKind::Matrix { op, .. } => self.busy(slot(self.spec, &self.spec.matrix_ops[op].slot)),
                // Only the turnaround register is used.
                PeKind::L1bm { form, address: None } => {
                    self.busy(slot(self.spec, &self.spec.transfers[form.transfer].slot));
                }
                PeKind::L1bm { form, .. } => transfer(self, form),
            }
        }
        for instruction in &step.l2bm {
            transfer(self, instruction.form);
        }
    }

    fn busy(&mut self, slot: usize) {
        if let Some(count) = self.slots.get_mut(slot) {
            *count += 1;
        }
    }

    fn mv(&mut self, flight: &Flight) {
        self.report.mvs += 1;
        self.report.mv_end = self.report.mv_end.max(flight.end);
        self.in_flight.add(flight.issued, flight.start, flight.end);
        for port in &flight.traffic.ports {
            *self.ports.entry(*port).or_default() += flight.released - flight.start;
        }
        self.moved(&flight.traffic, flight.blocks);
    }

    fn moved(&mut self, traffic: &Traffic, times: u64) {
        for (memory, words) in &traffic.words {
            let total = &mut self.words[*memory];
            total.read += words.read * times;
            total.written += words.written * times;
        }
    }

    fn finish(self) -> Report {
        let Counts { spec, mut report, .. } = self;
        report.mv_busy_cycles = self.in_flight.total();
        report.port_cycles = self.ports.iter().map(|(port, cycles)| (port.name(spec), *cycles)).collect();
        let slots = spec.slots.iter().zip(self.slots).filter(|(_, count)| *count > 0);
        report.busy_steps = slots.map(|(slot, count)| (slot.name.clone(), count)).collect();
        let words = spec.memories.iter().zip(self.words).filter(|(_, words)| *words != MemoryWords::default());
        report.words = words.map(|(memory, words)| (memory.name.clone(), words)).collect();
        report.dram_words = report.words.get(DRAM).copied().unwrap_or_default();
        report
    }
}

fn slot(spec: &Spec, name: &str) -> usize {
    spec.slots.iter().position(|s| s.name == name).unwrap_or(usize::MAX)
}

/// The length of a union of intervals. Only intervals that may still grow are kept.
#[derive(Debug, Default)]
struct Cover {
    closed: u64,
    /// Disjoint intervals, in order.
    open: Vec<(u64, u64)>,
}

impl Cover {
    /// Adds `start..end`. No later interval starts before `now`.
    fn add(&mut self, now: u64, mut start: u64, mut end: u64) {
        let closed = self.open.iter().take_while(|(_, end)| *end < now).count();
        self.closed += self.open.drain(..closed).map(|(start, end)| end - start).sum::<u64>();
        self.open.retain(|old| {
            let apart = old.1 < start || end < old.0;
            if !apart {
                (start, end) = (start.min(old.0), end.max(old.1));
            }
            apart
        });
        let at = self.open.partition_point(|old| old.0 < start);
        self.open.insert(at, (start, end));
    }

    fn total(&self) -> u64 {
        self.closed + self.open.iter().map(|(start, end)| end - start).sum::<u64>()
    }
}

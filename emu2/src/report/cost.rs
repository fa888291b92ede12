//! The cycle model and the counters of a program. The machine has no branches, so they are facts of its text.

use crate::asm::{FormRef, ItemKind, Mv, PeKind, Program, Selected};
use crate::exec::mv_selectors;
use crate::spec::{End, Place, Spec, Throughput};
use indexmap::IndexMap;
use serde::Serialize;
use std::collections::{HashMap, HashSet};

/// Long words read from and written to one memory by transfers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct MemoryWords {
    /// Long words read.
    pub read: u64,
    /// Long words written.
    pub written: u64,
}

/// What a program costs. Cycles follow the spec's timing model.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Report {
    /// Name of the spec.
    pub machine: String,
    /// PE lines, nops included.
    pub steps: u64,
    /// Cycles of all steps plus stalls.
    pub cycles: u64,
    /// Cycles that waits stall.
    pub stall_cycles: u64,
    /// MV instructions.
    pub mvs: u64,
    /// Steps in which a slot is busy, by slot.
    pub busy_steps: IndexMap<String, u64>,
    /// Long words that MVs move over DRAM.
    pub dram_words: MemoryWords,
    /// Long words that transfers move, by memory, over the whole chip.
    pub words: IndexMap<String, MemoryWords>,
    /// Tags of waits that no earlier MV carries: taken as finished host transfers.
    pub host_tags: Vec<u32>,
}

/// The memory whose traffic is reported by itself.
const DRAM: &str = "dram";

/// Facts of one form with its selectors.
#[derive(Clone, Debug)]
struct FormCost {
    /// Per block: long words by memory.
    words: Vec<(usize, MemoryWords)>,
    /// Ports: memory and unit.
    ports: Vec<(usize, Place)>,
    throughput: u64,
}

impl Report {
    /// Counts what `program` does.
    pub fn of(program: &Program) -> Report {
        let mut model = Model::new(&program.spec);
        for item in &program.items {
            match &item.kind {
                ItemKind::Nop { count, wait } => model.steps(*count, *wait),
                ItemKind::Step(step) => {
                    model.steps(1, step.wait);
                    for instruction in &step.pe {
                        match instruction.kind {
                            PeKind::Alu { .. } => model.busy("alu"),
                            PeKind::Mau { .. } => model.busy("mau"),
                            PeKind::Matrix { op, .. } => model.busy(&program.spec.matrix_ops[op].slot),
                            // Nothing moves in L1BM.
                            PeKind::L1bm { form, address: None } => {
                                model.busy(&program.spec.transfers[form.transfer].slot);
                            }
                            PeKind::L1bm { form, .. } => model.transfer(form),
                        }
                    }
                    for instruction in &step.l2bm {
                        model.transfer(instruction.form);
                    }
                }
                ItemKind::Mv(mv) => model.mv(mv),
                ItemKind::Set(_) | ItemKind::Get(_) => {}
            }
        }
        let mut report = model.report;
        report.cycles = report.steps.saturating_mul(u64::from(program.spec.counts.cycle)) + report.stall_cycles;
        report.dram_words = report.words.get(DRAM).copied().unwrap_or_default();
        report
    }
}

struct Model<'a> {
    spec: &'a Spec,
    report: Report,
    costs: HashMap<(FormRef, Selected, Selected), FormCost>,
    /// The cycle in which each port becomes free.
    free: HashMap<(usize, Place), u64>,
    /// The cycle in which the MV with a tag ends.
    ends: HashMap<u32, u64>,
}

impl<'a> Model<'a> {
    fn new(spec: &'a Spec) -> Self {
        let report = Report { machine: spec.machine.name.clone(), ..Report::default() };
        Model { spec, report, costs: HashMap::new(), free: HashMap::new(), ends: HashMap::new() }
    }

    fn now(&self) -> u64 {
        self.report.steps.saturating_mul(u64::from(self.spec.counts.cycle)) + self.report.stall_cycles
    }

    fn steps(&mut self, count: u64, wait: Option<u32>) {
        if let Some(tag) = wait {
            match self.ends.get(&tag) {
                Some(end) => self.report.stall_cycles += end.saturating_sub(self.now()),
                None if self.report.host_tags.contains(&tag) => {}
                None => self.report.host_tags.push(tag),
            }
        }
        self.report.steps = self.report.steps.saturating_add(count);
    }

    fn busy(&mut self, slot: &str) {
        *self.report.busy_steps.entry(slot.to_string()).or_default() += 1;
    }

    fn transfer(&mut self, form: FormRef) {
        let slot = self.spec.transfers[form.transfer].slot.clone();
        self.busy(&slot);
        let level = self.spec.transfers[form.transfer].level;
        let units = self.spec.units(level);
        let parameter = self.spec.parameters[form.transfer].as_ref();
        let named: Vec<_> = parameter.iter().map(|p| (p.name.clone(), form.parameter)).collect();
        let cost = self.cost(form, Selected::default(), Selected::default(), &named);
        self.count(&cost, units);
    }

    fn mv(&mut self, mv: &Mv) {
        self.report.mvs += 1;
        let form = &self.spec.forms[mv.form.transfer][mv.form.form];
        let named = mv_selectors(form, mv);
        let cost = self.cost(mv.form, mv.source_unit, mv.destination_unit, &named);
        self.count(&cost, mv.size / form.unit.unwrap_or(1));
        let busy = mv.size.div_ceil(cost.throughput.max(1));
        let ready = cost.ports.iter().filter_map(|port| self.free.get(port)).max().copied();
        let start = self.now().max(ready.unwrap_or(0));
        for port in &cost.ports {
            self.free.insert(*port, start + busy);
        }
        if let Some(tag) = mv.tag {
            self.ends.insert(tag, start + u64::from(self.spec.timing.mv_latency) + busy);
        }
    }

    fn count(&mut self, cost: &FormCost, times: u64) {
        for (memory, words) in &cost.words {
            let total = self.report.words.entry(self.spec.memories[*memory].name.clone()).or_default();
            total.read += words.read * times;
            total.written += words.written * times;
        }
    }

    fn cost(&mut self, form: FormRef, from: Selected, to: Selected, named: &[(String, i64)]) -> FormCost {
        if let Some(cost) = self.costs.get(&(form, from, to)) {
            return cost.clone();
        }
        let resolved = &self.spec.forms[form.transfer][form.form];
        let mut values: Vec<(&str, i64)> = named.iter().map(|(n, v)| (n.as_str(), *v)).collect();
        values.push(("i", 0));
        // A map that cannot be evaluated has been refused when the spec was loaded.
        let moves = resolved.evaluate(&values).unwrap_or_default();
        let sources: HashSet<Place> = moves.iter().map(|m| m.0).collect();
        let destinations: HashSet<Place> = moves.iter().map(|m| m.1).collect();
        let unit = |p: &Place| Place { addr: 0, ..*p };
        let mut words = Vec::new();
        let mut ports = Vec::new();
        let mut groups = HashSet::new();
        for (end, places, read) in [(&resolved.source, &sources, true), (&resolved.destination, &destinations, false)] {
            let End::Memory { operand, .. } = end else { continue };
            let Some(memory) = self.spec.memory(&self.spec.operands[*operand].memory) else { continue };
            // The two words of a narrowed result are one long word.
            let count = places.iter().map(|p| Place { half: 0, ..*p }).collect::<HashSet<_>>().len() as u64;
            let moved =
                if read { MemoryWords { read: count, written: 0 } } else { MemoryWords { read: 0, written: count } };
            words.push((memory, moved));
            let units: HashSet<Place> = places.iter().map(unit).collect();
            groups.extend(units.iter().map(|u| u.group));
            ports.extend(units.into_iter().map(|u| (memory, u)));
        }
        let throughput = match &resolved.throughput {
            Some(Throughput { same_group, .. }) if groups.len() <= 1 => u64::from(*same_group),
            Some(Throughput { across, .. }) => u64::from(*across),
            None => u64::from(self.spec.timing.mv_throughput),
        };
        let cost = FormCost { words, ports, throughput };
        self.costs.insert((form, from, to), cost.clone());
        cost
    }
}

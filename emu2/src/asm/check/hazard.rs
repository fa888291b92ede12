//! The rows of the spec's hazard table, applied to a program line by line.

use super::extent::{meet, Extent};
use super::flight::{Flight, Flights};
use super::forward::Worked;
use super::gap::{self, TooEarly, Write};
use crate::asm::lexicon::Lexicon;
use crate::asm::line::Line;
use crate::asm::program::{MaskEntry, Mv, PeKind, Selected, SourceKind, Target};
use crate::asm::sink::Sink;
use crate::error::{Code, Diagnostic, Span};
use crate::spec::{End, Evidence, Hazard, HazardRule, ResolvedForm, Spec};

/// Where in the source, and with what tables.
#[derive(Clone, Copy)]
pub(in crate::asm) struct Place<'p> {
    pub(in crate::asm) spec: &'p Spec,
    pub(in crate::asm) lexicon: &'p Lexicon,
    /// Line of the source.
    pub(in crate::asm) line: u32,
}

/// A row of the table and the slots it concerns as writers, bit by bit.
#[derive(Clone, Copy, Debug)]
struct Row {
    hazard: usize,
    writers: u32,
}

/// Follows a program and keeps what later reads may meet. Debug statements are exempt and never come here.
#[derive(Debug)]
pub(in crate::asm) struct Hazards {
    /// The step that the next line will be.
    step: u64,
    /// Rows of the table that a read must respect, by memory and reading slot.
    rules: Vec<Vec<Row>>,
    /// Recent writes, by memory.
    recent: Vec<Vec<Write>>,
    /// Steps that writes are kept, by memory; 0: no row needs them.
    kept: Vec<u64>,
    flights: Flights,
    worked: Worked,
    forward: Option<Evidence>,
}

impl Hazards {
    pub(in crate::asm) fn new(spec: &Spec) -> Self {
        let (memories, slots) = (spec.memories.len(), spec.slots.len());
        let mut rules = vec![Vec::new(); memories * slots];
        let mut kept = vec![0; memories];
        for (row, hazard) in spec.hazards.iter().enumerate() {
            let names = |n: &String| spec.slots.iter().position(|s| s.name == *n).map_or(0, |at| 1u32 << at);
            let writers = hazard.writers.iter().map(names).fold(0, |a, b| a | b);
            let row = Row { hazard: row, writers: if hazard.writers.is_empty() { u32::MAX } else { writers } };
            let readers = |slot: &usize| hazard.readers.is_empty() || hazard.readers.contains(&spec.slots[*slot].name);
            for memory in hazard.memories.iter().filter_map(|n| spec.memory(n)) {
                for slot in (0..slots).filter(readers) {
                    rules[memory * slots + slot].push(row);
                }
                if hazard.rule != HazardRule::Wait {
                    kept[memory] = gap::horizon(hazard, spec.counts.cycle).max(kept[memory]);
                }
            }
        }
        let forward = spec.hazards.iter().find(|h| h.rule == HazardRule::Forward).map(|h| h.evidence);
        let recent = vec![Vec::new(); memories];
        Hazards { step: 0, rules, recent, kept, flights: Flights::default(), worked: Worked::default(), forward }
    }

    /// A line that was refused: one step.
    pub(in crate::asm) fn refused(&mut self) {
        self.worked.assume();
        self.skip(1);
    }

    /// Idle steps.
    pub(in crate::asm) fn skip(&mut self, steps: u64) {
        self.step = self.step.saturating_add(steps);
    }

    /// A `wait` before the step.
    pub(in crate::asm) fn wait(&mut self, tag: u32) {
        self.flights.wait(tag);
    }

    /// One PE line.
    pub(in crate::asm) fn step(&mut self, place: Place<'_>, line: &Line, sink: &mut Sink) {
        self.forward_reads(place.spec, line, sink);
        // Reads see the state before the step, so all of them come before any write.
        for instruction in &line.pe {
            let slot = pe_slot(place.lexicon, &instruction.kind);
            for source in &instruction.sources {
                if let SourceKind::Memory(access) = &source.kind {
                    self.read(place, access.memory, slot, &Extent::of(access, None), source.span, sink);
                }
            }
            if let PeKind::L1bm { form, address } = instruction.kind {
                let reach = place.lexicon.reach(place.spec, form.transfer, form.form);
                let resolved = &place.spec.forms[form.transfer][form.form];
                if let Some((memory, extent)) = run(place.lexicon, &resolved.source, address, reach.source) {
                    self.read(place, memory, slot, &extent, instruction.span, sink);
                }
            }
        }
        for upper in &line.l2bm {
            let reach = place.lexicon.reach(place.spec, upper.form.transfer, upper.form.form);
            let slot = place.lexicon.transfer_slots[upper.form.transfer];
            let resolved = &place.spec.forms[upper.form.transfer][upper.form.form];
            if let Some((memory, extent)) = run(place.lexicon, &resolved.source, upper.source, reach.source) {
                self.read(place, memory, slot, &extent, upper.span, sink);
            }
        }
        self.writes(place, line, sink);
        self.worked.step(line);
        self.step = self.step.saturating_add(1);
    }

    fn writes(&mut self, place: Place<'_>, line: &Line, sink: &mut Sink) {
        for instruction in &line.pe {
            let slot = pe_slot(place.lexicon, &instruction.kind);
            for destination in &instruction.destinations {
                let Target::Memory(access) = &destination.target else { continue };
                let cycles = destination.mask.and_then(|m| match m.entry {
                    MaskEntry::Cycles(cycles) => Some(cycles),
                    MaskEntry::Register(_) => None,
                });
                let extent = Extent::of(access, cycles);
                self.write(access.memory, slot, place.line, extent);
            }
            if let PeKind::L1bm { form, address } = instruction.kind {
                let reach = place.lexicon.reach(place.spec, form.transfer, form.form);
                let resolved = &place.spec.forms[form.transfer][form.form];
                if let Some((memory, extent)) = run(place.lexicon, &resolved.destination, address, reach.destination) {
                    self.write(memory, slot, place.line, extent);
                }
            }
        }
        for upper in &line.l2bm {
            let reach = place.lexicon.reach(place.spec, upper.form.transfer, upper.form.form);
            let slot = place.lexicon.transfer_slots[upper.form.transfer];
            let resolved = &place.spec.forms[upper.form.transfer][upper.form.form];
            if let Some((memory, extent)) =
                run(place.lexicon, &resolved.destination, upper.destination, reach.destination)
            {
                self.written_twice(place, memory, &extent, upper.span, sink);
                self.write(memory, slot, place.line, extent);
            }
        }
    }

    /// One MV line: takes no step.
    pub(in crate::asm) fn mv(&mut self, place: Place<'_>, mv: &Mv, span: Span, sink: &mut Sink) {
        let Place { spec, lexicon, line } = place;
        let form: &ResolvedForm = &spec.forms[mv.form.transfer][mv.form.form];
        let reach = lexicon.reach(spec, mv.form.transfer, mv.form.form);
        let blocks = (mv.size / form.unit.unwrap_or(1).max(1)).saturating_sub(1);
        let slot = lexicon.transfer_slots[mv.form.transfer];
        let source = run(lexicon, &form.source, mv.source, blocks * reach.source_stride + reach.source);
        let length = blocks * reach.destination_stride + reach.destination;
        let destination = run(lexicon, &form.destination, mv.destination, length);
        let (Some((from, read)), Some((to, written))) = (source, destination) else { return };
        let (read, written) = (select(read, mv.source_unit), select(written, mv.destination_unit));
        self.read(place, from, slot, &read, span, sink);
        self.flights.start(Flight { pair: (from, to), tag: mv.tag, line, written, reported: false });
    }

    /// Warns of words above the PEs that an earlier instruction of the step writes too: which one wins is not known.
    fn written_twice(&self, place: Place<'_>, memory: usize, extent: &Extent, span: Span, sink: &mut Sink) {
        let (size, cycles) = (size(place, memory), place.spec.counts.cycle);
        let twice = |w: &Write| w.step == self.step && meet(&w.extent, extent, size, cycles).is_some();
        if self.recent[memory].iter().any(twice) {
            let message = format!(
                "another instruction of the line writes the same words of {}",
                place.spec.memories[memory].name
            );
            sink.warn(Code::WrittenTwice, span, message);
        }
    }

    fn write(&mut self, memory: usize, slot: usize, line: u32, extent: Extent) {
        let (step, kept) = (self.step, self.kept[memory]);
        if kept > 0 {
            let recent = &mut self.recent[memory];
            recent.retain(|w| step - w.step <= kept);
            recent.push(Write { step, slot, line, extent });
        }
    }

    fn read(&mut self, place: Place<'_>, memory: usize, slot: usize, extent: &Extent, span: Span, sink: &mut Sink) {
        let spec = place.spec;
        let (size, cycles) = (size(place, memory), spec.counts.cycle);
        for row in &self.rules[memory * spec.slots.len() + slot] {
            let hazard = &spec.hazards[row.hazard];
            if hazard.rule == HazardRule::Wait {
                if let Some(flight) = self.flights.writing(memory, extent, size, cycles) {
                    report_wait(spec, hazard, memory, flight, span, sink);
                }
                continue;
            }
            let writes = |w: &&Write| row.writers >> w.slot & 1 == 1;
            let early = |w: &Write| gap::check(hazard, w, extent, self.step, size, cycles);
            let worst = self.recent[memory].iter().filter(writes).filter_map(early).max_by_key(|e| e.missing);
            if let Some(early) = worst {
                report_gap(spec, hazard, memory, early, span, sink);
            }
        }
    }

    fn forward_reads(&self, spec: &Spec, line: &Line, sink: &mut Sink) {
        let Some(evidence) = self.forward else { return };
        for (span, path) in self.worked.idle(spec, line) {
            let name = &spec.forwards[path].name;
            let message = format!("`${name}` is read, and its unit was idle in the step before");
            let severity = sink.severity(evidence);
            sink.push(Diagnostic { severity, ..Diagnostic::warning(Code::IdleUnit, Some(span), message) });
        }
    }
}

fn pe_slot(lexicon: &Lexicon, kind: &PeKind) -> usize {
    match kind {
        PeKind::Alu { .. } => lexicon.alu_slot,
        PeKind::Mau { .. } => lexicon.mau_slot,
        PeKind::Matrix { .. } => lexicon.mau_slot,
        PeKind::L1bm { form, .. } => lexicon.transfer_slots[form.transfer],
    }
}

/// Memory and run of an end above the PEs.
fn run(lexicon: &Lexicon, end: &End, start: u64, length: u64) -> Option<(usize, Extent)> {
    let End::Memory { operand, .. } = end else { return None };
    let memory = lexicon.operand_memories[*operand]?;
    Some((memory, Extent::Run { start, length, units: Selected::default() }))
}

fn select(extent: Extent, selected: Selected) -> Extent {
    match extent {
        Extent::Run { start, length, .. } => Extent::Run { start, length, units: selected },
        cycles @ Extent::Cycles { .. } => cycles,
    }
}

/// The memory's size in the unit of its extents: words for the PEs, long words above.
fn size(place: Place<'_>, memory: usize) -> u64 {
    let entry = &place.spec.memories[memory];
    if entry.level == crate::spec::LevelName::Pe {
        place.lexicon.sizes[memory]
    } else {
        entry.words
    }
}

fn report_gap(spec: &Spec, hazard: &Hazard, memory: usize, early: TooEarly, span: Span, sink: &mut Sink) {
    let name = &spec.memories[memory].name;
    let code = if hazard.rule == HazardRule::Port { Code::PortHazard } else { Code::DataHazard };
    let unit = if early.cycles { "cycle" } else { "step" };
    let plural = |n: u64| format!("{n} {unit}{}", if n == 1 { "" } else { "s" });
    let message = format!(
        "{name} is read too soon after line {} wrote it: {} lie{} in between, {} are needed",
        early.line,
        plural(early.actual),
        if early.actual == 1 { "s" } else { "" },
        early.needed
    );
    let nops = if early.missing == 1 { "`nop`".to_string() } else { format!("`nop/{}`", early.missing) };
    let help = format!("put {nops} or as many other steps before this line");
    let severity = sink.severity(hazard.evidence);
    sink.push(Diagnostic { severity, ..Diagnostic::warning(code, Some(span), message) }.help(help));
}

fn report_wait(spec: &Spec, hazard: &Hazard, memory: usize, flight: &Flight, span: Span, sink: &mut Sink) {
    let name = &spec.memories[memory].name;
    let message = format!("{name} is read, and the MV of line {} may not have finished writing it", flight.line);
    let help = match flight.tag {
        Some(tag) => format!("put `nop; wait i{tag:02x}` before this line"),
        None => {
            format!("give the MV of line {} a tag such as `i01` and put `nop; wait i01` before this line", flight.line)
        }
    };
    let severity = sink.severity(hazard.evidence);
    sink.push(Diagnostic { severity, ..Diagnostic::warning(Code::WaitHazard, Some(span), message) }.help(help));
}

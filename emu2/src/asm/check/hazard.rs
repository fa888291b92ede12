//! Applies the hazard table of the spec to a program, line by line.

use super::extent::{meet, Extent};
use super::flight::{Flight, Flights};
use super::forward::Worked;
use super::gap::{self, Write};
use super::line_context::LineContext;
use super::mask_cycles::MaskCycles;
use super::report::{report_gap, report_wait};
use super::turnaround::Turnaround;
use crate::asm::lexicon::Lexicon;
use crate::asm::line::Line;
use crate::asm::sink::Sink;
use crate::asm::statement::{
    Access, Address, Destination, Mask, MaskEntry, Mv, PeInstruction, PeKind, Selected, SourceKind, Target,
};
use crate::error::{Code, Diagnostic, Span};
use crate::spec::{End, Evidence, HazardRule, LevelName, ResolvedForm, Spec, Unit, WORDS_PER_LONG};

/// A row of the hazard table. Bit s of `writers` is set if the row concerns writes of slot s.
#[derive(Clone, Copy, Debug)]
struct Row {
    hazard: usize,
    writers: u32,
    /// If set, the row concerns only transfers that take their words from this memory.
    source: Option<usize>,
}

/// Follows a program and keeps the writes that later reads may come too soon after. Debug statements are exempt and
/// never come here.
#[derive(Debug)]
pub(in crate::asm) struct Hazards {
    /// The number of the next step.
    step: u64,
    /// The rows that apply to a read, by memory and reading slot.
    rules: Vec<Vec<Row>>,
    /// Recent writes, by memory.
    recent: Vec<Vec<Write>>,
    /// For how many steps writes are kept, by memory. 0 if no row needs them.
    kept: Vec<u64>,
    flights: Flights,
    worked: Worked,
    turnaround: Turnaround,
    masks: MaskCycles,
    forward: Option<Evidence>,
    /// By memory, whether it is a base address register that the program has written. Addresses that it is added to are
    /// then unknown.
    moved: Vec<bool>,
    /// By memory, whether the current line was already seen to read it for an address or a mask.
    asked: Vec<bool>,
}

impl Hazards {
    pub(in crate::asm) fn new(spec: &Spec) -> Self {
        let (memories, slots) = (spec.memories.len(), spec.slots.len());
        let mut rules = vec![Vec::new(); memories * slots];
        let mut kept = vec![0; memories];
        for (row, hazard) in spec.hazards.iter().enumerate() {
            let names = |n: &String| spec.slots.iter().position(|s| s.name == *n).map_or(0, |at| 1u32 << at);
            let writers = hazard.writers.iter().map(names).fold(0, |a, b| a | b);
            let writers = if hazard.writers.is_empty() { u32::MAX } else { writers };
            let row = Row { hazard: row, writers, source: hazard.source.as_ref().and_then(|n| spec.memory(n)) };
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
        Hazards {
            step: 0,
            rules,
            recent,
            kept,
            flights: Flights::default(),
            worked: Worked::default(),
            turnaround: Turnaround::default(),
            masks: MaskCycles::new(spec),
            forward,
            moved: vec![false; memories],
            asked: vec![false; memories],
        }
    }

    /// Takes a line that was refused. Its `wait` and its idle steps count. The effects of its instructions are unknown.
    pub(in crate::asm) fn refused(&mut self, line: &Line) {
        match line.wait {
            Some(tag) => self.flights.wait(tag),
            None if line.waits => self.flights.clear(),
            None => {}
        }
        self.worked.assume();
        self.turnaround.assume();
        self.masks.assume();
        self.skip(line.nop.unwrap_or(1));
    }

    /// Takes idle steps.
    pub(in crate::asm) fn skip(&mut self, steps: u64) {
        self.step = self.step.saturating_add(steps);
    }

    /// Takes a `wait` before the step.
    pub(in crate::asm) fn wait(&mut self, tag: u32) {
        self.flights.wait(tag);
    }

    /// Checks one PE line and records its writes.
    pub(in crate::asm) fn step(&mut self, context: LineContext<'_>, line: &Line, sink: &mut Sink) {
        self.forward_reads(context.spec, line, sink);
        self.turnaround.step(context, line, self.step, sink);
        self.asked.fill(false);
        // Reads see the state before the step, so all of them come before any write.
        for instruction in &line.pe {
            let slot = context.lexicon.kind_slot(&instruction.kind);
            for source in &instruction.sources {
                if let SourceKind::Memory(access) = &source.kind {
                    let cycles = self.cycles_read(instruction, access);
                    let extent = Extent::of(access, self.is_moved(context, access), cycles);
                    self.read(context, access.memory, slot, &extent, source.span, sink);
                    self.address_reads(context, access, slot, source.span, sink);
                }
            }
            self.register_reads(context, instruction, slot, sink);
            if let PeKind::L1bm { form, address: Some(address) } = instruction.kind {
                let reach = context.lexicon.reach(context.spec, form.transfer, form.form);
                let resolved = &context.spec.forms[form.transfer][form.form];
                if let Some((memory, extent)) = run(context.lexicon, &resolved.source, address, reach.source) {
                    self.read(context, memory, slot, &extent, instruction.span, sink);
                }
            }
        }
        for transfer in &line.l2bm {
            let reach = context.lexicon.reach(context.spec, transfer.form.transfer, transfer.form.form);
            let slot = context.lexicon.transfer_slots[transfer.form.transfer];
            let resolved = &context.spec.forms[transfer.form.transfer][transfer.form.form];
            if let Some((memory, extent)) = run(context.lexicon, &resolved.source, transfer.source, reach.source) {
                let extent = select(extent, transfer.source_unit);
                self.read(context, memory, slot, &extent, transfer.span, sink);
            }
        }
        self.writes(context, line, sink);
        self.masks.step(line);
        self.worked.step(line);
        self.step = self.step.saturating_add(1);
    }

    /// Checks the reads of registers: for masks, for addresses of destinations, and of the matrix register of a product
    /// or matrix read.
    fn register_reads(&mut self, context: LineContext<'_>, instruction: &PeInstruction, slot: usize, sink: &mut Sink) {
        let lexicon = context.lexicon;
        if let Some(mask) = instruction.zero_flush {
            self.mask_read(context, mask, slot, instruction.span, sink);
        }
        for destination in &instruction.destinations {
            if let Some(mask) = destination.mask {
                self.mask_read(context, mask, slot, destination.span, sink);
            }
            if let Target::Memory(access) = &destination.target {
                self.address_reads(context, access, slot, destination.span, sink);
            }
        }
        let bank = match instruction.kind {
            PeKind::Mau { bank, .. } => bank,
            PeKind::Matrix { bank, .. } => Some(bank).filter(|_| instruction.sources.is_empty()),
            PeKind::Alu { .. } | PeKind::L1bm { .. } => None,
        };
        if let Some(memory) = bank.and_then(|bank| lexicon.bank_memories[bank]) {
            let extent = Extent::register(None, size(context, memory));
            self.read(context, memory, slot, &extent, instruction.span, sink);
        }
    }

    fn mask_read(&mut self, context: LineContext<'_>, mask: Mask, slot: usize, span: Span, sink: &mut Sink) {
        let (MaskEntry::Register(entry), Some(memory)) = (mask.entry, context.lexicon.mask_memory) else { return };
        self.ask(context, memory, &Extent::register(Some(entry), size(context, memory)), (slot, span), sink);
    }

    /// Checks the registers that the address of an access needs: base address register and T register.
    fn address_reads(&mut self, context: LineContext<'_>, access: &Access, slot: usize, span: Span, sink: &mut Sink) {
        if let Some(base) = context.lexicon.added_bases[access.memory] {
            self.ask(context, base, &Extent::register(None, size(context, base)), (slot, span), sink);
        }
        if let Some(entry) = context.lexicon.entry_memory.filter(|_| access.indirect) {
            let words = context.lexicon.sizes[entry] as u32 / context.spec.counts.cycle.max(1);
            let extent = Extent::Cycles { address: Address::Cycle, words, mask: None };
            self.ask(context, entry, &extent, (slot, span), sink);
        }
    }

    /// Checks a read of a register. One finding per line and register is enough.
    fn ask(
        &mut self,
        context: LineContext<'_>,
        memory: usize,
        extent: &Extent,
        (slot, span): (usize, Span),
        sink: &mut Sink,
    ) {
        if !std::mem::replace(&mut self.asked[memory], true) {
            self.read(context, memory, slot, extent, span, sink);
        }
    }

    fn is_moved(&self, context: LineContext<'_>, access: &Access) -> bool {
        context.lexicon.added_bases[access.memory].is_some_and(|base| self.moved[base])
    }

    fn target_write(&mut self, context: LineContext<'_>, destination: &Destination, slot: usize) {
        let Some(memory) = context.lexicon.target_memory(&destination.target) else { return };
        let extent = match &destination.target {
            Target::Memory(access) => {
                let cycles = destination.mask.and_then(|mask| self.cycles_written(mask, access));
                Extent::of(access, self.is_moved(context, access), cycles)
            }
            Target::Base { .. } => {
                self.moved[memory] = true;
                Extent::register(None, size(context, memory))
            }
            Target::Flags { entry } => Extent::register(Some(*entry), size(context, memory)),
        };
        self.write(memory, slot, context.line, extent);
    }

    /// The cycles in which a masked access can write. `None` if unknown: a long mask does not mask the second long word
    /// of a wider access.
    fn cycles_written(&self, mask: Mask, access: &Access) -> Option<u32> {
        (mask.wide || access.words <= WORDS_PER_LONG).then(|| self.masks.of(mask))
    }

    /// The cycles in which a source can change a result; `None` is all cycles. A zero flush clears the result in the
    /// others, also for forwarding. Flags come from before the flush. A long mask leaves the second long word of the
    /// result, which in the ALU comes from the second long words of the sources.
    fn cycles_read(&self, instruction: &PeInstruction, access: &Access) -> Option<u32> {
        let mask = instruction.zero_flush?;
        let flags = instruction.destinations.iter().any(|d| matches!(d.target, Target::Flags { .. }));
        let narrow = matches!(instruction.kind, PeKind::Alu { .. }) && access.words <= WORDS_PER_LONG;
        (!flags && (mask.wide || narrow)).then(|| self.masks.of(mask))
    }

    fn writes(&mut self, context: LineContext<'_>, line: &Line, sink: &mut Sink) {
        for instruction in &line.pe {
            let slot = context.lexicon.kind_slot(&instruction.kind);
            for destination in &instruction.destinations {
                self.target_write(context, destination, slot);
            }
            if let (PeKind::Matrix { bank, .. }, false) = (&instruction.kind, instruction.sources.is_empty()) {
                if let Some(memory) = context.lexicon.bank_memories[*bank] {
                    self.write(memory, slot, context.line, Extent::register(None, size(context, memory)));
                }
            }
            if let PeKind::L1bm { form, address: Some(address) } = instruction.kind {
                let reach = context.lexicon.reach(context.spec, form.transfer, form.form);
                let resolved = &context.spec.forms[form.transfer][form.form];
                if let Some((memory, extent)) = run(context.lexicon, &resolved.destination, address, reach.destination)
                {
                    self.write(memory, slot, context.line, extent);
                }
            }
        }
        for transfer in &line.l2bm {
            let reach = context.lexicon.reach(context.spec, transfer.form.transfer, transfer.form.form);
            let slot = context.lexicon.transfer_slots[transfer.form.transfer];
            let resolved = &context.spec.forms[transfer.form.transfer][transfer.form.form];
            if let Some((memory, extent)) =
                run(context.lexicon, &resolved.destination, transfer.destination, reach.destination)
            {
                self.written_twice(context, memory, &extent, transfer.span, sink);
                let source = context.spec.end_memory(&resolved.source);
                self.transfer_write(memory, (slot, source), context.line, extent);
            }
        }
    }

    /// Checks one MV line. It takes no step.
    pub(in crate::asm) fn mv(&mut self, context: LineContext<'_>, mv: &Mv, span: Span, sink: &mut Sink) {
        let LineContext { spec, lexicon, line } = context;
        let form: &ResolvedForm = &spec.forms[mv.form.transfer][mv.form.form];
        let reach = lexicon.reach(spec, mv.form.transfer, mv.form.form);
        let blocks = (mv.size / form.unit.unwrap_or(1).max(1)).saturating_sub(1);
        let slot = lexicon.transfer_slots[mv.form.transfer];
        let source = run(lexicon, &form.source, mv.source, blocks * reach.source_stride + reach.source);
        let length = blocks * reach.destination_stride + reach.destination;
        let destination = run(lexicon, &form.destination, mv.destination, length);
        let (Some((from, read)), Some((to, written))) = (source, destination) else { return };
        // A table may give any address, so the whole memory counts.
        let widen = |extent: Extent, memory, table: Option<u64>| match table {
            Some(_) => Extent::Run { start: 0, length: size(context, memory), units: Selected::default() },
            None => extent,
        };
        let (read, written) = (widen(read, from, mv.source_dar), widen(written, to, mv.destination_dar));
        let (read, written) = (select(read, mv.source_unit), select(written, mv.destination_unit));
        self.read(context, from, slot, &read, span, sink);
        self.flights.start(Flight { pair: (from, to), tag: mv.tag, line, written, reported: false });
    }

    /// Warns of words above the PEs that another instruction of the line writes too. Which of the two wins is unknown.
    fn written_twice(&self, context: LineContext<'_>, memory: usize, extent: &Extent, span: Span, sink: &mut Sink) {
        let (size, cycles) = (size(context, memory), context.spec.counts.cycle);
        let twice = |w: &Write| w.step == self.step && meet(&w.extent, extent, size, cycles).is_some();
        if self.recent[memory].iter().any(twice) {
            let message = format!(
                "another instruction of the line writes the same words of {}",
                context.spec.memories[memory].name
            );
            sink.warn(Code::WrittenTwice, span, message);
        }
    }

    fn write(&mut self, memory: usize, slot: usize, line: u32, extent: Extent) {
        self.transfer_write(memory, (slot, None), line, extent);
    }

    fn transfer_write(&mut self, memory: usize, (slot, source): (usize, Option<usize>), line: u32, extent: Extent) {
        let (step, kept) = (self.step, self.kept[memory]);
        if kept > 0 {
            let recent = &mut self.recent[memory];
            recent.retain(|w| step - w.step <= kept);
            recent.push(Write { step, slot, source, line, extent });
        }
    }

    fn read(
        &mut self,
        context: LineContext<'_>,
        memory: usize,
        slot: usize,
        extent: &Extent,
        span: Span,
        sink: &mut Sink,
    ) {
        let spec = context.spec;
        let (size, cycles) = (size(context, memory), spec.counts.cycle);
        for row in &self.rules[memory * spec.slots.len() + slot] {
            let hazard = &spec.hazards[row.hazard];
            if hazard.rule == HazardRule::Wait {
                if let Some(flight) = self.flights.writing(memory, extent, size, cycles) {
                    report_wait(spec, hazard, memory, flight, span, sink);
                }
                continue;
            }
            let from = |w: &Write| row.source.is_none() || row.source == w.source;
            let writes = |w: &&Write| row.writers >> w.slot & 1 == 1 && from(w);
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
            let message = format!("`${name}` is read, and its unit was idle in the last step that was not a `nop`");
            let severity = sink.severity(evidence);
            sink.push(Diagnostic { severity, ..Diagnostic::warning(Code::IdleUnit, Some(span), message) });
        }
    }
}

/// The memory of an end above the PEs, and its run of long words.
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

/// The size of a memory in the unit of its extents: words in PE memories with word addresses, else long words. A
/// register never has more entries than long words.
fn size(context: LineContext<'_>, memory: usize) -> u64 {
    let entry = &context.spec.memories[memory];
    match (entry.level, entry.unit) {
        (LevelName::Pe, Unit::Word | Unit::Cycle) => context.lexicon.sizes[memory],
        _ => entry.words,
    }
}

//! Lowering of programs and the engine.
//!
//! Statements are lowered in source order into [`step::Step`]s. A **region** is a run of steps that stay inside an L1B;
//! every L1B runs a whole region on its own, so regions are what threads share out and what keeps a working set in cache.
//! L2BM instructions, MVs and debug statements end a region.

mod compute;
mod direct;
mod fixed;
mod flag;
mod lower;
mod maps;
mod mask;
mod matrix;
mod mv;
mod operand;
mod piece;
mod plan;
mod quick;
mod regions;
mod step;
mod table;
mod tags;
mod upper;
mod values;

use crate::asm::{self, DebugGet, DebugSet, Item, ItemKind, Program};
use crate::error::{Code, Diagnostic, Error};
use crate::interrupt::Interrupt;
use crate::machine::{L1b, Layout, Machine, Region};
use crate::num::level::Level;
use crate::spec::{Spec, Unit, WORDS_PER_LONG};
use crate::threads;
pub(crate) use mv::selectors as mv_selectors;
pub use regions::Regions;
use regions::Supply;
pub use tags::{AssumedHost, Tags};

use lower::Lowering;
use plan::Stretch;
use rayon::prelude::*;
use std::sync::{Mutex, PoisonError};
use step::{Scratch, Step};

/// A region is run when it has grown to this many steps: all of them pass through the nearer caches once for every L1B, and so
/// does what an L1B holds once for every region.
const REGION_STEPS: usize = 1024;

/// So many steps of a region are lowered and planned together.
const STRETCH: usize = 256;

/// Below this many steps, handing a region to other threads costs more than it gains.
const PARALLEL_STEPS: usize = 16;

/// Pieces of the L1Bs for each thread, so that none waits long for another one.
const PIECES: usize = 8;

/// An error of a running program, at a line of its source.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RunError {
    /// Line of the source, from 1.
    pub line: u32,
    /// What went wrong.
    pub diagnostic: Diagnostic,
}

/// Runs `program`. `on_get` sees every `d get` with the machine as it is at that point, in source order.
///
/// Fails with [`Code::WrongSpec`] before anything ran; after any later error the machine is poisoned until reset.
pub fn run(
    machine: &mut Machine,
    program: &Program,
    on_get: &mut dyn FnMut(&DebugGet, &Machine) -> Result<(), Error>,
) -> Result<(), RunError> {
    Engine::new(program.spec.clone()).run(machine, program, &mut AssumedHost, on_get)
}

/// As [`run`], but every op takes the general path: what the faster forms are tested against.
///
/// # Errors
/// As [`run`].
pub fn run_general(
    machine: &mut Machine,
    program: &Program,
    on_get: &mut dyn FnMut(&DebugGet, &Machine) -> Result<(), Error>,
) -> Result<(), RunError> {
    let mut engine = Engine::new(program.spec.clone());
    engine.scratch.set_general();
    engine.run(machine, program, &mut AssumedHost, on_get)
}

/// Runs programs of one spec; keeps what they share, and buffers.
pub struct Engine {
    lowering: Lowering,
    uppers: upper::Uppers,
    mvs: mv::Mvs,
    supply: Supply,
    scratch: Scratch,
    /// Buffers of other threads, while none uses them.
    spare: Mutex<Vec<Scratch>>,
    spare_lowerings: Mutex<Vec<Lowering>>,
    /// Forwarding paths.
    paths: usize,
    /// Slot of the turnaround register among the memories of an L1B.
    turnaround: usize,
    interrupt: Interrupt,
}

impl Engine {
    /// An engine for machines and programs of `spec`.
    pub fn new(spec: std::sync::Arc<Spec>) -> Engine {
        let (scratch, paths) = (Scratch::new(&spec), spec.forwards.len());
        let register = spec.memory(&spec.turnaround.memory).unwrap_or_default();
        let turnaround = Layout::new(&spec).slot(register).index;
        let (uppers, mvs, spare, spare_lowerings) = Default::default();
        let lowering = Lowering::new(spec);
        let supply = Supply::Once;
        let interrupt = Interrupt::default();
        Engine { lowering, uppers, mvs, supply, scratch, spare, spare_lowerings, paths, turnaround, interrupt }
    }

    /// Later runs end with [`Code::Interrupted`] soon after `interrupt` is requested.
    pub fn set_interrupt(&mut self, interrupt: Interrupt) {
        self.interrupt = interrupt;
    }

    /// As [`run`], with what is known of completion tags; MVs add to it.
    ///
    /// # Errors
    /// As [`run`], and for a `wait` that `tags` refuses, with its line.
    pub fn run(
        &mut self,
        machine: &mut Machine,
        program: &Program,
        tags: &mut dyn Tags,
        on_get: &mut dyn FnMut(&DebugGet, &Machine) -> Result<(), Error>,
    ) -> Result<(), RunError> {
        machine.check_usable().map_err(|e| at(0, e))?;
        Level::check_wanted().map_err(|e| at(0, e))?;
        let ours = &self.lowering.spec().fingerprint;
        if [machine.spec(), &program.spec].iter().any(|spec| spec.fingerprint != *ours) {
            let (ours, theirs) = (&machine.spec().machine.name, &program.spec.machine.name);
            let message = format!("the program is for `{theirs}`, the machine is `{ours}` or another version of it");
            return Err(at(0, Error::new(Code::WrongSpec, message)));
        }
        let ran = program.for_each_block(|items| {
            let mut collected = Vec::new();
            items.iter().try_for_each(|item| self.item(machine, item, &mut collected, tags, on_get))?;
            self.flush(machine, &mut collected)?;
            // A region that was left half done is the last thing that such a program has run.
            self.interrupt.check().map_err(|e| at(items.last().map_or(0, |item| item.line), e))
        });
        if ran.is_err() {
            self.uppers.forget();
            machine.poison();
        }
        ran
    }

    /// As [`Engine::run`] of a program that runs again and again: `regions` keeps it as the engine runs it, and must always come
    /// with the same program.
    ///
    /// # Errors
    /// As [`Engine::run`].
    pub fn run_again(
        &mut self,
        machine: &mut Machine,
        program: &Program,
        regions: &Regions,
        tags: &mut dyn Tags,
        on_get: &mut dyn FnMut(&DebugGet, &Machine) -> Result<(), Error>,
    ) -> Result<(), RunError> {
        self.supply = regions.supply();
        let ran = self.run(machine, program, tags, on_get);
        let supply = std::mem::replace(&mut self.supply, Supply::Once);
        if ran.is_ok() {
            regions.keep(supply);
        }
        ran
    }

    fn item<'p>(
        &mut self,
        machine: &mut Machine,
        item: &'p Item,
        collected: &mut Collected<'p>,
        tags: &mut dyn Tags,
        on_get: &mut dyn FnMut(&DebugGet, &Machine) -> Result<(), Error>,
    ) -> Result<(), RunError> {
        let at = |e: Error| at(item.line, e);
        self.interrupt.check().map_err(at)?;
        match &item.kind {
            // Idle steps change no state; they count in the cycle model only.
            ItemKind::Nop { wait, .. } => wait.map_or(Ok(()), |tag| tags.wait(tag)).map_err(at),
            ItemKind::Step(step) => {
                step.wait.map_or(Ok(()), |tag| tags.wait(tag)).map_err(at)?;
                if step.l2bm.is_empty() {
                    self.uppers.run(machine);
                    return if self.collect(collected, item.line, step) >= REGION_STEPS {
                        self.flush(machine, collected)
                    } else {
                        Ok(())
                    };
                }
                if let ([instruction], true) = (&step.l2bm[..], step.pe.is_empty()) {
                    self.run_collected(machine, collected)?;
                    if self.uppers.take(machine, instruction).map_err(at)? {
                        return Ok(());
                    }
                }
                self.flush(machine, collected)?;
                self.collect(collected, item.line, step);
                // The step's reads see the state before any of its writes, on both sides of the L1BM.
                let moved = self.uppers.read(machine, &step.l2bm).map_err(at)?;
                self.flush(machine, collected)?;
                upper::write(machine, moved);
                Ok(())
            }
            ItemKind::Mv(instruction) => {
                self.flush(machine, collected)?;
                self.mvs.run(machine, instruction).map_err(at)?;
                instruction.tag.into_iter().for_each(|tag| tags.signal(tag));
                Ok(())
            }
            ItemKind::Set(set) => {
                self.flush(machine, collected)?;
                debug_set(machine, set).map_err(at)
            }
            ItemKind::Get(get) => {
                self.flush(machine, collected)?;
                on_get(get, machine).map_err(at)
            }
        }
    }

    /// Adds a step to the region; the steps that it has then.
    fn collect<'p>(&mut self, collected: &mut Collected<'p>, line: u32, step: &'p asm::Step) -> usize {
        self.supply.count_step().unwrap_or_else(|| {
            collected.push((line, step));
            collected.len()
        })
    }

    /// Runs what has been put off: L2BM instructions or a region.
    fn flush(&mut self, machine: &mut Machine, collected: &mut Collected<'_>) -> Result<(), RunError> {
        self.uppers.run(machine);
        self.run_collected(machine, collected)
    }

    /// Runs the steps collected so far in every L1B.
    fn run_collected(&mut self, machine: &mut Machine, collected: &mut Collected<'_>) -> Result<(), RunError> {
        if self.supply.is_kept() {
            if let Some(region) = self.supply.next_region() {
                self.run_region(region.stretches(), machine);
            }
        } else if !collected.is_empty() {
            let region = self.lower(machine.layout(), collected)?;
            collected.clear();
            self.run_region(&region, machine);
            self.supply.record(region);
        }
        Ok(())
    }

    /// A region as it runs. Stretches of it are lowered each on its own.
    fn lower(&mut self, layout: &Layout, steps: &[(u32, &asm::Step)]) -> Result<Vec<Stretch>, RunError> {
        let (paths, turnaround, lanes) = (self.paths, self.turnaround, self.lowering.spec().lanes());
        let stretch = |lowering: &mut Lowering, steps: &[(u32, &asm::Step)]| -> Result<Stretch, RunError> {
            let lowered = steps.iter().map(|(line, step)| lowering.step(layout, step).map_err(|e| at(*line, e)));
            let mut lowered = lowered.collect::<Result<Vec<Step>, RunError>>()?;
            direct::mark_live(&mut lowered, paths, turnaround);
            Ok(Stretch::new(lowered, paths, lanes))
        };
        if steps.len() <= STRETCH || threads::count() == 1 {
            return steps.chunks(STRETCH).map(|steps| stretch(&mut self.lowering, steps)).collect();
        }
        let (lowering, spare) = (&self.lowering, &self.spare_lowerings);
        let stretches = steps.par_chunks(STRETCH).map(|steps| {
            let free = spare.lock().unwrap_or_else(PoisonError::into_inner).pop();
            let mut lowering = free.unwrap_or_else(|| lowering.clone());
            let stretch = stretch(&mut lowering, steps);
            spare.lock().unwrap_or_else(PoisonError::into_inner).push(lowering);
            stretch
        });
        // The first error of the program is the one that counts.
        threads::share(|| stretches.collect::<Vec<_>>()).into_iter().collect()
    }

    fn run_region(&mut self, region: &[Stretch], machine: &mut Machine) {
        if region.iter().all(|stretch| idle(&stretch.steps)) {
            return;
        }
        let steps: usize = region.iter().map(|stretch| stretch.steps.len()).sum();
        let l1bs = &mut machine.state.l1b[..];
        let threads = threads::count();
        if steps < PARALLEL_STEPS || threads == 1 {
            for (index, l1b) in l1bs.iter_mut().enumerate() {
                if self.interrupt.requested() {
                    return;
                }
                step::run_region(region, l1b, index, &mut self.scratch);
            }
            return;
        }
        let (scratch, spare) = (&self.scratch, &self.spare);
        let each = l1bs.len().div_ceil(threads * PIECES);
        let interrupt = &self.interrupt;
        let run = |(piece, l1bs): (usize, &mut [L1b])| {
            let free = spare.lock().unwrap_or_else(PoisonError::into_inner).pop();
            let mut scratch = free.unwrap_or_else(|| scratch.clone());
            for (k, l1b) in l1bs.iter_mut().enumerate().take_while(|_| !interrupt.requested()) {
                step::run_region(region, l1b, piece * each + k, &mut scratch);
            }
            spare.lock().unwrap_or_else(PoisonError::into_inner).push(scratch);
        };
        threads::share(|| l1bs.par_chunks_mut(each).enumerate().for_each(run));
    }
}

/// Steps that a region has so far, with their lines.
type Collected<'p> = Vec<(u32, &'p asm::Step)>;

fn at(line: u32, e: Error) -> RunError {
    RunError { line, diagnostic: *e.0 }
}

/// Whether no step does anything in an L1B.
fn idle(region: &[Step]) -> bool {
    region.iter().all(|step| step.ops.is_empty())
}

/// Long-word address of access `k` of a debug statement at `address`, and which word of it for word accesses.
pub fn debug_place(spec: &Spec, memory: usize, words: u32, address: u64, k: u64) -> (u64, Option<u32>) {
    match spec.memories[memory].unit {
        Unit::Long | Unit::Base | Unit::Matrix => (address + k, None),
        // Where the entry's first cycle lies.
        Unit::Mask => ((address + k) * u64::from(spec.counts.cycle), None),
        // The T register's entries are 2 long words; debug statements see the first of each.
        Unit::Cycle => ((address + k) * u64::from(crate::spec::HALVES), None),
        Unit::Word if words < WORDS_PER_LONG => {
            let word = address + k;
            (word / u64::from(WORDS_PER_LONG), Some((word % u64::from(WORDS_PER_LONG)) as u32))
        }
        Unit::Word => (address / u64::from(WORDS_PER_LONG) + k, None),
    }
}

fn debug_set(machine: &mut Machine, set: &DebugSet) -> Result<(), Error> {
    let spec = machine.spec().clone();
    let location = &set.location;
    let whole = spec.memories[location.memory].unit != Unit::Cycle && location.words >= WORDS_PER_LONG;
    if whole {
        let (addr, _) = debug_place(&spec, location.memory, location.words, location.address, 0);
        let count = set.payload.len() as u64;
        let region = Region { memory: location.memory, units: location.units, addr, count };
        return machine.write(&region, &set.payload);
    }
    for (k, word) in set.payload.iter().enumerate() {
        let (addr, part) = debug_place(&spec, location.memory, location.words, location.address, k as u64);
        let region = Region { memory: location.memory, units: location.units, addr, count: 1 };
        let Some(part) = part else {
            machine.write(&region, &[*word])?;
            continue;
        };
        let mut old = machine.read(&region)?;
        for value in &mut old {
            // Word 0 is the upper half; the payload's upper half is the value.
            let shift = if part == 0 { 0 } else { 32 };
            *value = (*value & !(0xFFFF_FFFF_0000_0000 >> shift)) | ((word & 0xFFFF_FFFF_0000_0000) >> shift);
        }
        machine.write(&region, &old)?;
    }
    Ok(())
}

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

use crate::asm::{self, DebugGet, DebugSet, ItemKind, Program};
use crate::error::{Code, Diagnostic, Error};
use crate::machine::{Layout, Machine, Region};
use crate::num::level::Level;
use crate::spec::{Spec, Unit, WORDS_PER_LONG};
pub(crate) use mv::selectors as mv_selectors;
pub use regions::Regions;
use regions::Supply;
pub use tags::{AssumedHost, Tags};

use lower::Lowering;
use rayon::prelude::*;
use std::sync::{Mutex, PoisonError};
use step::{Scratch, Step};

/// A region is run when it has grown to this many steps: all of them pass through the nearer caches once for every L1B.
const REGION_STEPS: usize = 256;

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
    region: Vec<Step>,
    supply: Supply,
    scratch: Scratch,
    /// Buffers of other threads, while none uses them.
    spare: Mutex<Vec<Scratch>>,
    /// Forwarding paths.
    paths: usize,
    /// Slot of the turnaround register among the memories of an L1B.
    turnaround: usize,
}

impl Engine {
    /// An engine for machines and programs of `spec`.
    pub fn new(spec: std::sync::Arc<Spec>) -> Engine {
        let (scratch, paths) = (Scratch::new(&spec), spec.forwards.len());
        let register = spec.memory(&spec.turnaround.memory).unwrap_or_default();
        let turnaround = Layout::new(&spec).slot(register).index;
        let (uppers, mvs, spare) = Default::default();
        let lowering = Lowering::new(spec);
        Engine { lowering, uppers, mvs, region: Vec::new(), supply: Supply::Once, scratch, spare, paths, turnaround }
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
        let at = |line: u32, e: Error| RunError { line, diagnostic: *e.0 };
        machine.check_usable().map_err(|e| at(0, e))?;
        Level::check_wanted().map_err(|e| at(0, e))?;
        let ours = &self.lowering.spec().fingerprint;
        if [machine.spec(), &program.spec].iter().any(|spec| spec.fingerprint != *ours) {
            let (ours, theirs) = (&machine.spec().machine.name, &program.spec.machine.name);
            let message = format!("the program is for `{theirs}`, the machine is `{ours}` or another version of it");
            return Err(at(0, Error::new(Code::WrongSpec, message)));
        }
        let ran =
            program.for_each(|item| self.item(machine, &item.kind, tags, on_get).map_err(|error| at(item.line, error)));
        if ran.is_err() {
            self.region.clear();
            machine.poison();
            return ran;
        }
        self.flush(machine);
        Ok(())
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

    fn item(
        &mut self,
        machine: &mut Machine,
        kind: &ItemKind,
        tags: &mut dyn Tags,
        on_get: &mut dyn FnMut(&DebugGet, &Machine) -> Result<(), Error>,
    ) -> Result<(), Error> {
        match kind {
            // Idle steps change no state; they count in the cycle model only.
            ItemKind::Nop { wait, .. } => wait.map_or(Ok(()), |tag| tags.wait(tag)),
            ItemKind::Step(step) => {
                step.wait.map_or(Ok(()), |tag| tags.wait(tag))?;
                if step.l2bm.is_empty() {
                    if self.collect(machine, step)? >= REGION_STEPS {
                        self.flush(machine);
                    }
                    return Ok(());
                }
                self.flush(machine);
                self.collect(machine, step)?;
                if let ([instruction], true) = (&step.l2bm[..], self.idle()) {
                    if self.uppers.run_alone(machine, instruction)? {
                        self.flush(machine);
                        return Ok(());
                    }
                }
                // The step's reads see the state before any of its writes, on both sides of the L1BM.
                let moved = self.uppers.read(machine, &step.l2bm)?;
                self.flush(machine);
                upper::write(machine, moved);
                Ok(())
            }
            ItemKind::Mv(instruction) => {
                self.flush(machine);
                self.mvs.run(machine, instruction)?;
                instruction.tag.into_iter().for_each(|tag| tags.signal(tag));
                Ok(())
            }
            ItemKind::Set(set) => {
                self.flush(machine);
                debug_set(machine, set)
            }
            ItemKind::Get(get) => {
                self.flush(machine);
                on_get(get, machine)
            }
        }
    }

    /// Adds a step to the region; the steps that it has then.
    fn collect(&mut self, machine: &Machine, step: &asm::Step) -> Result<usize, Error> {
        if let Some(count) = self.supply.count_step() {
            return Ok(count);
        }
        self.region.push(self.lowering.step(machine.layout(), step)?);
        Ok(self.region.len())
    }

    /// Whether no step of the region does anything in an L1B.
    fn idle(&self) -> bool {
        idle(self.supply.region().map_or(&self.region, |region| &region.steps))
    }

    /// Runs the steps collected so far in every L1B.
    fn flush(&mut self, machine: &mut Machine) {
        if self.supply.is_kept() {
            if let Some(region) = self.supply.next_region() {
                region.get().into_iter().for_each(|region| self.run_region(region, machine));
            }
            return;
        }
        let mut steps = std::mem::take(&mut self.region);
        if steps.is_empty() {
            return;
        }
        direct::mark_live(&mut steps, self.paths, self.turnaround);
        let region = plan::Region::new(steps, self.paths, machine.spec().lanes());
        self.run_region(&region, machine);
        self.supply.record(region);
    }

    fn run_region(&mut self, region: &plan::Region, machine: &mut Machine) {
        if idle(&region.steps) {
            return;
        }
        let l1bs = &mut machine.state.l1b[..];
        let threads = rayon::current_num_threads();
        if region.steps.len() < PARALLEL_STEPS || threads == 1 {
            for (index, l1b) in l1bs.iter_mut().enumerate() {
                step::run_region(region, l1b, index, &mut self.scratch);
            }
            return;
        }
        let (scratch, spare) = (&self.scratch, &self.spare);
        let each = l1bs.len().div_ceil(threads * PIECES);
        l1bs.par_chunks_mut(each).enumerate().for_each(|(piece, l1bs)| {
            let free = spare.lock().unwrap_or_else(PoisonError::into_inner).pop();
            let mut scratch = free.unwrap_or_else(|| scratch.clone());
            for (k, l1b) in l1bs.iter_mut().enumerate() {
                step::run_region(region, l1b, piece * each + k, &mut scratch);
            }
            spare.lock().unwrap_or_else(PoisonError::into_inner).push(scratch);
        });
    }
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

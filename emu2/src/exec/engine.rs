//! The engine: collects steps and L2BM instructions into regions, runs each region in every L2B, and runs all other
//! statements between regions.

use super::debug_place::debug_set;
use super::fast::data_flow::Segment;
use super::fast::liveness::mark_live;
use super::host_command;
use super::kept_regions::{KeptRegions, StepSource};
use super::lower::Lowering;
use super::op::{Scratch, Step};
use super::region::{pieces, run_each, run_on_l2b, Collected, Entry, Region, Stretch};
use super::tags::{AssumedHost, Tags};
use super::thread_buffers::ThreadBuffers;
use super::transfer_l2bm::RegionTransfer;
use super::{transfer_l2bm, transfer_mv};
use crate::asm::{DebugGet, Item, ItemKind, Program};
use crate::error::{Code, Diagnostic, Error};
use crate::interrupt::Interrupt;
use crate::machine::{L1b, Layout, Machine, State};
use crate::num::level::Level;
use crate::spec::Spec;
use crate::threads;
use rayon::prelude::*;
use std::sync::{Arc, Mutex, PoisonError};

/// A region runs at the latest when it has this many steps and transfers. Its steps pass through the host's near caches
/// once for every L1B, and the memories of an L1B once for every region.
const REGION: usize = 1024;

/// Steps that are lowered and planned together.
const SEGMENT_STEPS: usize = 256;

/// Below this many steps, handing a region to other threads costs more than it gains.
const PARALLEL_STEPS: usize = 16;

/// So many transfers take about as long as a step.
const TRANSFERS_PER_STEP: usize = 2;

/// Groups of L1Bs for each thread, so that no thread waits long for another one.
const PIECES: usize = 8;

/// An error of a running program, at a line of its source.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RunError {
    /// Line of the source, from 1.
    pub line: u32,
    /// What went wrong.
    pub diagnostic: Diagnostic,
}

/// Runs `program`. `on_get` is called at every `d get`, in source order, with the machine as it is at that point.
///
/// # Errors
/// [`Code::WrongSpec`] before anything ran. [`Code::Poisoned`] after an earlier error. Every later error, also one of
/// `on_get`, carries the line of its statement and poisons the machine until it is reset.
pub fn run(
    machine: &mut Machine,
    program: &Program,
    on_get: &mut dyn FnMut(&DebugGet, &Machine) -> Result<(), Error>,
) -> Result<(), RunError> {
    Engine::new(program.spec.clone()).run(machine, program, &mut AssumedHost, on_get)
}

/// Does the same as [`run`], but runs every op in its general form. The faster forms are tested against it.
///
/// # Errors
/// Those of [`run`].
pub fn run_general(
    machine: &mut Machine,
    program: &Program,
    on_get: &mut dyn FnMut(&DebugGet, &Machine) -> Result<(), Error>,
) -> Result<(), RunError> {
    let mut engine = Engine::new(program.spec.clone());
    engine.scratch.set_general();
    engine.run(machine, program, &mut AssumedHost, on_get)
}

/// Runs programs of one spec. Keeps tables and buffers from program to program.
pub struct Engine {
    lowering: Lowering,
    pub(super) l2bm_transfers: transfer_l2bm::L2bmTransfers,
    mv_transfers: transfer_mv::MvTransfers,
    pub(super) step_source: StepSource,
    /// Regions are lowered and not run; see [`Engine::prepare`].
    pub(super) only_lowers: bool,
    scratch: Scratch,
    /// Buffers for other threads, while no thread uses them.
    spare: Mutex<Vec<Scratch>>,
    spare_lowerings: Mutex<Vec<Lowering>>,
    /// Number of forwarding paths.
    paths: usize,
    /// Slot of the turnaround register among the memories of an L1B.
    turnaround: usize,
    interrupt: Interrupt,
}

impl Engine {
    /// An engine for machines and programs of `spec`.
    pub fn new(spec: Arc<Spec>) -> Engine {
        let (scratch, paths) = (Scratch::new(&spec), spec.forwards.len());
        let register = spec.memory(&spec.turnaround.memory).unwrap_or_default();
        let turnaround = Layout::new(&spec).slot(register).index;
        let (l2bm_transfers, mv_transfers, spare, spare_lowerings) = Default::default();
        let lowering = Lowering::new(spec);
        let step_source = StepSource::Once;
        Engine {
            lowering,
            l2bm_transfers,
            mv_transfers,
            step_source,
            only_lowers: false,
            scratch,
            spare,
            spare_lowerings,
            paths,
            turnaround,
            interrupt: Interrupt::default(),
        }
    }

    /// Makes later runs end with [`Code::Interrupted`] soon after `interrupt` is requested.
    pub fn set_interrupt(&mut self, interrupt: Interrupt) {
        self.interrupt = interrupt;
    }

    /// Does the same as [`run`], with the caller's completion tags. MVs signal their tags.
    ///
    /// # Errors
    /// Those of [`run`], and the error of a `wait` that `tags` refuses, with its line.
    pub fn run(
        &mut self,
        machine: &mut Machine,
        program: &Program,
        tags: &mut dyn Tags,
        on_get: &mut dyn FnMut(&DebugGet, &Machine) -> Result<(), Error>,
    ) -> Result<(), RunError> {
        machine.check_usable().map_err(|e| at(0, e))?;
        Level::check_wanted().map_err(|e| at(0, e))?;
        let ours = &self.lowering.spec().digest;
        if [machine.spec(), &program.spec].iter().any(|spec| spec.digest != *ours) {
            let (ours, theirs) = (&machine.spec().machine.name, &program.spec.machine.name);
            let message = format!("the program is for `{theirs}`, the machine is `{ours}` or another version of it");
            return Err(at(0, Error::new(Code::WrongSpec, message)));
        }
        machine.lose_written();
        let ran = program.for_each_block(|items| self.run_statements(machine, items, tags, on_get));
        if ran.is_err() {
            machine.poison();
        }
        ran
    }

    /// Runs statements of a program for the machine's spec. At their end every memory and path is as the program leaves it.
    ///
    /// # Errors
    /// Those of [`Engine::run`]. The machine may then be used only after it was restored or reset.
    pub fn run_statements(
        &mut self,
        machine: &mut Machine,
        items: &[Item],
        tags: &mut dyn Tags,
        on_get: &mut dyn FnMut(&DebugGet, &Machine) -> Result<(), Error>,
    ) -> Result<(), RunError> {
        let mut collected = Collected::default();
        items.iter().try_for_each(|item| self.item(machine, item, &mut collected, tags, on_get))?;
        self.flush(machine, &mut collected)?;
        // An interrupt may have stopped a region in the middle, and that region may have been the last statement.
        self.interrupt.check().map_err(|e| at(items.last().map_or(0, |item| item.line), e))
    }

    /// Does the same as [`Engine::run`], for a program that runs again and again. `regions` keeps the lowered program, so
    /// it must always come with the same program.
    ///
    /// # Errors
    /// Those of [`Engine::run`].
    pub fn run_again(
        &mut self,
        machine: &mut Machine,
        program: &Program,
        regions: &KeptRegions,
        tags: &mut dyn Tags,
        on_get: &mut dyn FnMut(&DebugGet, &Machine) -> Result<(), Error>,
    ) -> Result<(), RunError> {
        self.step_source = regions.step_source();
        let ran = self.run(machine, program, tags, on_get);
        let step_source = std::mem::replace(&mut self.step_source, StepSource::Once);
        if ran.is_ok() {
            regions.keep(step_source);
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
            // Idle steps change no state. Only the cycle model counts them.
            ItemKind::Nop { wait, .. } => wait.map_or(Ok(()), |tag| tags.wait(tag)).map_err(at),
            ItemKind::Step(step) => {
                step.wait.map_or(Ok(()), |tag| tags.wait(tag)).map_err(at)?;
                if self.joins_region(machine, item.line, step, collected)? {
                    return self.flush_full(machine, collected);
                }
                self.flush(machine, collected)?;
                self.collect(collected, item.line, step);
                // The step's reads see the state before any of its writes, on both sides of the L1BM.
                let moved = self.l2bm_transfers.read(machine, &step.l2bm).map_err(at)?;
                self.flush(machine, collected)?;
                transfer_l2bm::write(machine, moved);
                Ok(())
            }
            ItemKind::Mv(instruction) => {
                self.flush(machine, collected)?;
                self.mv_transfers.run(machine, instruction).map_err(at)?;
                instruction.tag.into_iter().for_each(|tag| tags.signal(tag));
                Ok(())
            }
            ItemKind::Set(set) => {
                self.flush(machine, collected)?;
                debug_set(machine, set).map_err(at)
            }
            ItemKind::Host(command) => {
                self.flush(machine, collected)?;
                host_command::run(machine, command, tags).map_err(at)
            }
            ItemKind::Get(get) => {
                self.flush(machine, collected)?;
                on_get(get, machine).map_err(at)
            }
        }
    }

    /// Runs the region if it is full.
    pub(super) fn flush_full(&mut self, machine: &mut Machine, collected: &mut Collected<'_>) -> Result<(), RunError> {
        if collected.count >= REGION {
            self.flush(machine, collected)
        } else {
            Ok(())
        }
    }

    /// Runs what is collected so far in every L2B.
    pub(super) fn flush(&mut self, machine: &mut Machine, collected: &mut Collected<'_>) -> Result<(), RunError> {
        if std::mem::take(&mut collected.count) == 0 {
            return Ok(());
        }
        if self.step_source.is_kept() {
            if let Some(region) = self.step_source.next_region() {
                self.run_region(region.stretches(), machine);
            }
        } else {
            let region = self.lower(machine.layout(), collected.take())?;
            if !self.only_lowers {
                self.run_region(&region, machine);
            }
            self.step_source.record(region);
        }
        Ok(())
    }

    /// Lowers a region. Its segments are lowered separately.
    fn lower(&mut self, layout: &Layout, stretches: Vec<Stretch<Vec<Entry<'_>>>>) -> Result<Region, RunError> {
        let (paths, turnaround, lanes) = (self.paths, self.turnaround, self.lowering.spec().lanes());
        let segment = |lowering: &mut Lowering, entries: &[Entry<'_>]| -> Result<Segment, RunError> {
            let (mut steps, mut copies): (Vec<Step>, Vec<(usize, Vec<RegionTransfer>)>) = Default::default();
            for entry in entries {
                match entry {
                    Entry::Step(line, step) => steps.push(lowering.step(layout, step).map_err(|e| at(*line, e))?),
                    Entry::Copy(transfer) => match copies.last_mut() {
                        Some((before, all)) if *before == steps.len() => all.push(transfer.clone()),
                        _ => copies.push((steps.len(), vec![transfer.clone()])),
                    },
                }
            }
            mark_live(&mut steps, paths, turnaround);
            Ok(Segment::new(steps, copies, paths, lanes))
        };
        let cut: Vec<Vec<&[Entry<'_>]>> = stretches
            .iter()
            .map(|stretch| match stretch {
                Stretch::Each(entries) => pieces(entries, SEGMENT_STEPS),
                Stretch::Reductions(_) => Vec::new(),
            })
            .collect();
        let chunks: Vec<&[Entry<'_>]> = cut.iter().flatten().copied().collect();
        let steps: usize = chunks.iter().map(|steps| steps.len()).sum();
        let segments: Vec<Result<Segment, RunError>> = if steps <= SEGMENT_STEPS || threads::count() == 1 {
            chunks.iter().map(|steps| segment(&mut self.lowering, steps)).collect()
        } else {
            let (lowering, spare) = (&self.lowering, &self.spare_lowerings);
            let segments = chunks.par_iter().with_min_len(chunks.len() * SEGMENT_STEPS / steps / 2).map(|steps| {
                let free = spare.lock().unwrap_or_else(PoisonError::into_inner).pop();
                let mut lowering = free.unwrap_or_else(|| lowering.clone());
                let segment = segment(&mut lowering, steps);
                spare.lock().unwrap_or_else(PoisonError::into_inner).push(lowering);
                segment
            });
            threads::share(|| segments.collect())
        };
        // The first error in the order of the program is returned.
        let mut segments = segments.into_iter();
        let counts: Vec<usize> = cut.iter().map(Vec::len).collect();
        let lowered = stretches.into_iter().zip(counts).map(|(stretch, count)| match stretch {
            Stretch::Each(_) => {
                segments.by_ref().take(count).collect::<Result<Vec<Segment>, RunError>>().map(Stretch::Each)
            }
            Stretch::Reductions(all) => Ok(Stretch::Reductions(all)),
        });
        lowered.collect()
    }

    fn run_region(&mut self, region: &[Stretch<Vec<Segment>>], machine: &mut Machine) {
        if region.iter().all(Stretch::idle) {
            return;
        }
        let per_l2b = transfer_l2bm::l1bs_of_l2b(machine.spec());
        let State { l1b: l1bs, l2b: l2bs, .. } = &mut machine.state;
        let transfers: usize = region.iter().map(Stretch::transfers).sum();
        let work = region.iter().map(Stretch::steps).sum::<usize>() + transfers / TRANSFERS_PER_STEP;
        let (threads, interrupt) = (threads::count(), &self.interrupt);
        let stop = || interrupt.requested();
        if work < PARALLEL_STEPS || threads == 1 {
            for (index, (l2b, l1bs)) in l2bs.iter_mut().zip(l1bs.chunks_exact_mut(per_l2b)).enumerate() {
                run_on_l2b(region, l2b, l1bs, index * per_l2b, &mut self.scratch, stop);
            }
            return;
        }
        let buffers = ThreadBuffers { scratch: &self.scratch, spare: &self.spare };
        if let ([Stretch::Each(segments)], 0) = (region, transfers) {
            let each = l1bs.len().div_ceil(threads * PIECES);
            let run = |(piece, l1bs): (usize, &mut [L1b])| {
                buffers.with(|scratch| {
                    for (k, l1b) in l1bs.iter_mut().enumerate().take_while(|_| !stop()) {
                        run_each(segments, (&mut [], 0), l1b, piece * each + k, scratch);
                    }
                });
            };
            return threads::share(|| l1bs.par_chunks_mut(each).enumerate().for_each(run));
        }
        let l2bs = l2bs.par_iter_mut().zip(l1bs.par_chunks_exact_mut(per_l2b)).enumerate();
        threads::share(|| {
            l2bs.for_each(|(index, (l2b, l1bs))| {
                buffers.with(|scratch| run_on_l2b(region, l2b, l1bs, index * per_l2b, scratch, stop));
            });
        });
    }
}

pub(super) fn at(line: u32, e: Error) -> RunError {
    RunError { line, diagnostic: *e.0 }
}

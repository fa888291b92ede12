//! What a program needs before its first run: its lowered form, and the host's pages of the memories that it writes.

use super::engine::{Engine, RunError};
use super::kept_regions::{KeptRegions, StepSource};
use super::region::{Collected, Region, Stretch};
use crate::asm::{Item, ItemKind, Program};
use crate::machine::{L1b, Machine};
use crate::threads;
use rayon::prelude::*;

/// Long words of the smallest page of a host.
const PAGE: usize = 512;

impl Engine {
    /// Does in advance what the first [`Engine::run_again`] of a program would do once: lowers the program, and lets the
    /// host provide the pages of the PE memories that it writes. No memory changes.
    ///
    /// A program that cannot be lowered, that is too long to be kept, or that belongs to another spec is left to its run,
    /// which tells what is wrong.
    pub fn prepare(&mut self, machine: &mut Machine, program: &Program, regions: &KeptRegions) {
        if machine.spec().digest != program.spec.digest {
            return;
        }
        let Some(recording) = regions.recording() else { return };
        (self.step_source, self.only_lowers) = (recording, true);
        // A program that is too long to be kept is read no further.
        let lowered = program.for_each_block(|items| match self.lower_statements(machine, items) {
            Ok(()) if self.step_source.records() => Ok(()),
            _ => Err(()),
        });
        self.only_lowers = false;
        let recorded = std::mem::replace(&mut self.step_source, StepSource::Once);
        if lowered.is_ok() {
            touch(machine, &rows_written(recorded.recorded()));
            regions.keep(recorded);
        }
    }

    /// Collects and lowers regions exactly as [`Engine::run_statements`] does.
    fn lower_statements(&mut self, machine: &mut Machine, items: &[Item]) -> Result<(), RunError> {
        let mut collected = Collected::default();
        for item in items {
            if !self.step_source.records() {
                return Ok(());
            }
            match &item.kind {
                ItemKind::Nop { .. } => {}
                ItemKind::Step(step) if self.joins_region(machine, item.line, step, &mut collected)? => {
                    self.flush_full(machine, &mut collected)?;
                }
                ItemKind::Step(step) => {
                    self.flush(machine, &mut collected)?;
                    self.collect(&mut collected, item.line, step);
                    self.flush(machine, &mut collected)?;
                }
                _ => self.flush(machine, &mut collected)?,
            }
        }
        self.flush(machine, &mut collected)
    }
}

/// Per slot of PE memories: the rows that the regions write. An address that differs between PEs counts without the part
/// that differs.
fn rows_written(regions: &[Region]) -> Vec<Vec<bool>> {
    let mut written: Vec<Vec<bool>> = Vec::new();
    let stretches = regions.iter().flatten();
    let segments = stretches.filter_map(|stretch| match stretch {
        Stretch::Each(segments) => Some(segments),
        Stretch::Reductions(_) => None,
    });
    let ops = segments.flatten().flat_map(|segment| &segment.steps).flat_map(|step| &step.ops);
    for write in ops.flat_map(|op| op.writes()) {
        let (slot, (first, end)) = (write.access.slot, write.access.reach());
        let (first, end) = (first as usize, end as usize);
        if written.len() <= slot {
            written.resize(slot + 1, Vec::new());
        }
        let rows = &mut written[slot];
        if rows.len() < end {
            rows.resize(end, false);
        }
        rows[first..end].fill(true);
    }
    written
}

/// Adds zero to a word of each page of these rows. A read before the write would cost a page fault more.
fn touch(machine: &mut Machine, written: &[Vec<bool>]) {
    let lanes = machine.spec().lanes();
    let rows_of_page = (PAGE / lanes).max(1);
    let each = |l1b: &mut L1b| {
        for (words, rows) in l1b.pe.iter_mut().zip(written) {
            let pages = words.chunks_mut(rows_of_page * lanes).zip(rows.chunks(rows_of_page));
            for (page, _) in pages.filter(|(_, rows)| rows.contains(&true)) {
                page.iter_mut().step_by(PAGE).for_each(|word| *word |= std::hint::black_box(0));
            }
        }
    };
    if threads::count() == 1 {
        machine.state.l1b.iter_mut().for_each(each);
    } else {
        threads::share(|| machine.state.l1b.par_iter_mut().for_each(each));
    }
}

//! Which statements join a region.

use super::engine::{at, Engine, RunError};
use super::region::Collected;
use super::transfer_l2bm::RegionTransfer;
use crate::asm;
use crate::machine::Machine;

impl Engine {
    /// Adds a step to the region, with its L2BM instruction if it has one. False, and nothing is added, if the instruction
    /// ends the region.
    pub(super) fn joins_region<'p>(
        &mut self,
        machine: &mut Machine,
        line: u32,
        step: &'p asm::Step,
        collected: &mut Collected<'p>,
    ) -> Result<bool, RunError> {
        if step.l2bm.is_empty() {
            self.collect(collected, line, step);
            return Ok(true);
        }
        let [instruction] = &step.l2bm[..] else { return Ok(false) };
        let transfer = self.l2bm_transfers.in_region(machine, instruction);
        if transfer.is_err() {
            // An error of an earlier step comes first.
            self.flush(machine, collected)?;
        }
        let Some(transfer) = transfer.map_err(|e| at(line, e))? else { return Ok(false) };
        self.collect_both(collected, line, step, transfer);
        Ok(true)
    }

    /// Adds a step to the region.
    pub(super) fn collect<'p>(&mut self, collected: &mut Collected<'p>, line: u32, step: &'p asm::Step) {
        collected.count = self.step_source.count().unwrap_or_else(|| {
            collected.step(line, step);
            collected.count + 1
        });
    }

    /// Adds a step with an L2BM instruction to the region. What the one reads, the other has not written yet: PEs never touch
    /// L2BM, so words go up before the PEs write to L1BM, and come down after they have read there.
    fn collect_both<'p>(
        &mut self,
        collected: &mut Collected<'p>,
        line: u32,
        step: &'p asm::Step,
        transfer: RegionTransfer,
    ) {
        let down = transfer.down();
        if down && !step.pe.is_empty() {
            self.collect(collected, line, step);
        }
        collected.count = self.step_source.count().unwrap_or_else(|| {
            collected.transfer(transfer);
            collected.count + 1
        });
        if !down && !step.pe.is_empty() {
            self.collect(collected, line, step);
        }
    }
}

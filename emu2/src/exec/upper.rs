//! L2BM instructions: between the memory of every L2B and those of its L1Bs.

use super::lower::{Lowering, Upper};
use super::maps::wrapped;
use crate::asm::UpperTransfer;
use crate::error::Error;
use crate::machine::Machine;
use std::sync::Arc;

/// What an L2BM instruction has read and still has to write: the words of every L2B in run order.
pub(super) struct Moved {
    transfer: Arc<Upper>,
    words: Vec<Vec<u64>>,
}

/// Reads the sources of all L2BM instructions of a step.
pub(super) fn read(
    machine: &Machine,
    lowering: &mut Lowering,
    instructions: &[UpperTransfer],
) -> Result<Vec<Moved>, Error> {
    let per_l2b = super::l1bs_of_l2b(machine.spec());
    let mut all = Vec::new();
    for instruction in instructions {
        let transfer = lowering.upper(machine.layout(), instruction)?;
        let mut words = Vec::with_capacity(machine.state.l2b.len());
        for (l2b, l1bs) in machine.state.l2b.iter().zip(machine.state.l1b.chunks_exact(per_l2b)) {
            let mut buffer = vec![0; transfer.words];
            let mut rest = &mut buffer[..];
            for run in transfer.runs.iter() {
                let (target, tail) = std::mem::take(&mut rest).split_at_mut(run.length);
                let (memory, addr) = if transfer.down {
                    (&l2b[transfer.upper_slot], transfer.upper + run.upper)
                } else {
                    (&l1bs[run.l1b].own[transfer.lower_slot], transfer.lower + run.lower)
                };
                wrapped(addr, run.length, memory.len(), |at, to, n| {
                    target[to..to + n].copy_from_slice(&memory[at..at + n]);
                });
                rest = tail;
            }
            words.push(buffer);
        }
        all.push(Moved { transfer, words });
    }
    Ok(all)
}

/// Writes what [`read`] has read.
pub(super) fn write(machine: &mut Machine, all: Vec<Moved>) {
    let per_l2b = super::l1bs_of_l2b(machine.spec());
    for Moved { transfer, words } in all {
        let l2bs = machine.state.l2b.iter_mut().zip(machine.state.l1b.chunks_exact_mut(per_l2b));
        for ((l2b, l1bs), buffer) in l2bs.zip(words) {
            let mut rest = &buffer[..];
            for run in transfer.runs.iter() {
                let (source, tail) = rest.split_at(run.length);
                let (memory, addr) = if transfer.down {
                    (&mut l1bs[run.l1b].own[transfer.lower_slot], transfer.lower + run.lower)
                } else {
                    (&mut l2b[transfer.upper_slot], transfer.upper + run.upper)
                };
                let size = memory.len();
                wrapped(addr, run.length, size, |at, from, n| {
                    memory[at..at + n].copy_from_slice(&source[from..from + n]);
                });
                rest = tail;
            }
        }
    }
}

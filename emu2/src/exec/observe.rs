//! What a step would do, at its run-time addresses and under its masks, without doing it.

use super::access::{shift, UPPER};
use super::lower::Lowering;
use super::mask::{MaskRows, Through};
use super::op::{Op, Scratch};
use super::source::{Conversion, Fetch, Source};
use crate::asm::{self, PeKind};
use crate::error::Error;
use crate::machine::Machine;
use crate::num::convert;
use crate::num::format::FloatFormat;
use crate::num::lane::Lane;
use crate::spec::{Spec, WORDS_PER_LONG};
use std::ops::Range;
use std::sync::Arc;

/// The kernel from floats to integers.
const TO_INTEGER: &str = "ftoi";

/// A PE: the chip-wide number of its L1B and its lane there.
pub type LaneOfL1b = (usize, usize);

/// Looks at steps before they run.
pub struct Observer {
    lowering: Lowering,
    base_slots: Vec<usize>,
    fetch: Fetch,
    rows: MaskRows,
    zeros: Vec<u64>,
    cycles: usize,
}

impl Observer {
    /// An observer of machines of `spec`.
    pub fn new(spec: Arc<Spec>) -> Observer {
        let lanes = spec.lanes();
        Observer {
            base_slots: Scratch::new(&spec).base_slots,
            fetch: Fetch::new(lanes),
            rows: MaskRows::new(lanes),
            zeros: vec![0; lanes],
            cycles: spec.counts.cycle as usize,
            lowering: Lowering::new(spec),
        }
    }

    /// The first PE for which `step` writes to long words `rows` of `memory`, with the long word. `wanted` says which PEs count.
    ///
    /// # Errors
    /// [`Code::NoKernel`](crate::error::Code::NoKernel) for a step that the engine cannot run.
    pub fn writes_to(
        &mut self,
        machine: &mut Machine,
        step: &asm::Step,
        memory: usize,
        rows: &Range<u64>,
        wanted: &dyn Fn(LaneOfL1b) -> bool,
    ) -> Result<Option<(LaneOfL1b, u64)>, Error> {
        let step = self.lowering.step(machine.layout(), step)?;
        let slot = machine.layout().slot(memory).index;
        for (index, l1b) in machine.state.l1b.iter_mut().enumerate() {
            l1b.settle(&self.base_slots);
            let writes = step.ops.iter().flat_map(Op::writes).filter(|write| write.access.slot == slot);
            for (write, c) in writes.flat_map(|write| (0..self.cycles).map(move |c| (write, c))) {
                let through = write.mask.rows(l1b, c, &mut self.rows);
                write.access.addresses(l1b, c, &mut self.fetch.addresses);
                for (lane, word) in self.fetch.addresses.iter().enumerate() {
                    let (l0, l1) = match through {
                        Through::All => (u64::MAX, u64::MAX),
                        Through::Nothing => (0, 0),
                        Through::Rows => (self.rows.l0[lane], self.rows.l1[lane]),
                    };
                    let narrow = write.access.words < WORDS_PER_LONG;
                    let first = if narrow { (l0 & UPPER) >> shift(*word) } else { l0 };
                    let second = if write.access.words > WORDS_PER_LONG { l1 } else { 0 };
                    let row = u64::from(word / WORDS_PER_LONG);
                    let written = [(row, first), (row + 1, second)];
                    let hit = written.into_iter().find(|(row, bits)| *bits != 0 && rows.contains(row));
                    if let Some((row, _)) = hit.filter(|_| wanted((index, lane))) {
                        return Ok(Some(((index, lane), row)));
                    }
                }
            }
        }
        Ok(None)
    }

    /// The first PE for which a conversion of `step` gives an infinity or the largest integer for a finite number that does not fit,
    /// with that number.
    ///
    /// # Errors
    /// [`Code::NoKernel`](crate::error::Code::NoKernel) for a step that the engine cannot run.
    pub fn overflow(&mut self, machine: &mut Machine, step: &asm::Step) -> Result<Option<(LaneOfL1b, f64)>, Error> {
        let spec = machine.spec().clone();
        let lowered = self.lowering.step(machine.layout(), step)?;
        for (instruction, op) in step.pe.iter().zip(&lowered.ops) {
            if let PeKind::Alu { op: entry, precision: Some(precision), unsigned, .. } = instruction.kind {
                let lane = spec.precisions[precision].lane();
                if let (true, Some(source), Some(lane)) =
                    (spec.alu[entry].kernel == TO_INTEGER, op.sources.first(), lane)
                {
                    if let Some(found) = self.integer_overflow(machine, source, lane, unsigned) {
                        return Ok(Some(found));
                    }
                }
            }
            for source in op.sources.iter().filter(|s| s.conversion == Some(Conversion::ReduceSingles)) {
                if let Some(found) = self.half_overflow(machine, source) {
                    return Ok(Some(found));
                }
            }
        }
        Ok(None)
    }

    fn half_overflow(&mut self, machine: &mut Machine, source: &Source) -> Option<(LaneOfL1b, f64)> {
        let plain = Source { conversion: None, ..source.clone() };
        let mut halves = vec![0; self.zeros.len()];
        for (index, l1b) in machine.state.l1b.iter_mut().enumerate() {
            l1b.settle(&self.base_slots);
            for c in 0..self.cycles {
                let (l0, l1) = plain.fetch(l1b, index, c, &self.zeros, &mut self.fetch);
                convert::reduce_f4(l0, l1, &mut halves);
                for (lane, halves) in halves.iter().enumerate() {
                    let singles = [l0[lane] >> 32, l0[lane] & 0xFFFF_FFFF, l1[lane] >> 32, l1[lane] & 0xFFFF_FFFF];
                    for (k, single) in singles.into_iter().enumerate() {
                        let half = FloatFormat::HALF.to_f64(halves >> (48 - 16 * k) & 0xFFFF);
                        let single = FloatFormat::SINGLE.to_f64(single);
                        if half.is_infinite() && single.is_finite() {
                            return Some(((index, lane), single));
                        }
                    }
                }
            }
        }
        None
    }

    fn integer_overflow(
        &mut self,
        machine: &mut Machine,
        source: &Source,
        lane: Lane,
        unsigned: bool,
    ) -> Option<(LaneOfL1b, f64)> {
        let (format, width) = (lane.format()?, lane.width());
        let limit = 2f64.powi(width as i32 - i32::from(!unsigned));
        // The smallest signed integer fits.
        let fits = |number: f64| number.abs().floor() < limit || (!unsigned && number == -limit);
        for (index, l1b) in machine.state.l1b.iter_mut().enumerate() {
            l1b.settle(&self.base_slots);
            for c in 0..self.cycles {
                let (l0, _) = source.fetch(l1b, index, c, &self.zeros, &mut self.fetch);
                for (pe, word) in l0.iter().enumerate() {
                    let lanes = (0..lane.count() as u32).map(|k| word >> (k * width) & (u64::MAX >> (64 - width)));
                    let found = lanes.map(|bits| format.to_f64(bits)).find(|number| !fits(*number));
                    if let Some(number) = found.filter(|number| number.is_finite()) {
                        return Some(((index, pe), number));
                    }
                }
            }
        }
        None
    }
}

//! From resolved statements to what the engine runs: addresses wrapped, kernels bound, index maps compiled.

use super::compute::{Compute, MauOp};
use super::fixed;
use super::maps::{moves, pe_runs, upper_runs, PeRun, UpperRun};
use super::operand::{Access, Conversion, Origin, Source, Write};
use super::step::{Op, Step};
use crate::asm::{self, Convert, FormRef, PeInstruction, PeKind, SourceKind, UpperTransfer};
use crate::error::{Code, Error};
use crate::machine::{Layout, Slot};
use crate::num::alu::{alu_kernel, AluParams};
use crate::num::lane::Lane;
use crate::spec::{DataWidth, End, ForwardUnit, MauPort, Spec, Unit, HALVES, IMM, IMMU, WORDS_PER_LONG, WORD_BITS};
use std::collections::HashMap;
use std::sync::Arc;

/// A lowered L2BM instruction.
#[derive(Clone, Debug)]
pub(super) struct Upper {
    /// Slot among the L2B's memories.
    pub(super) upper_slot: usize,
    /// Written address there.
    pub(super) upper: u64,
    /// Slot among the L1B's memories.
    pub(super) lower_slot: usize,
    /// Written address there.
    pub(super) lower: u64,
    /// L2B to L1Bs.
    pub(super) down: bool,
    /// Block copies.
    pub(super) runs: Arc<[UpperRun]>,
    /// Long words of all of them.
    pub(super) words: usize,
}

/// Lowers statements of one program; keeps what several of them share.
pub(super) struct Lowering {
    spec: Arc<Spec>,
    fixed: HashMap<(usize, Lane), Arc<[u64]>>,
    pe_maps: HashMap<FormRef, Arc<[PeRun]>>,
    upper_maps: HashMap<FormRef, Arc<[UpperRun]>>,
}

impl Lowering {
    pub(super) fn new(spec: Arc<Spec>) -> Lowering {
        Lowering { spec, fixed: HashMap::new(), pe_maps: HashMap::new(), upper_maps: HashMap::new() }
    }

    /// The PE part of a step.
    pub(super) fn step(&mut self, layout: &Layout, step: &asm::Step) -> Result<Step, Error> {
        let ops = step.pe.iter().map(|i| self.instruction(layout, i)).collect::<Result<_, _>>()?;
        Ok(Step { ops, forward: step.forward })
    }

    fn instruction(&mut self, layout: &Layout, instruction: &PeInstruction) -> Result<Op, Error> {
        let spec = self.spec.clone();
        let lane = match instruction.kind {
            PeKind::Alu { precision, .. } => precision.and_then(|p| spec.precisions[p].lane()),
            PeKind::Mau { precision, .. } => spec.precisions[precision].lane(),
            PeKind::L1bm { .. } => None,
        };
        let sources = instruction.sources.iter().enumerate();
        let sources = sources.map(|(at, source)| {
            let addend = match instruction.kind {
                PeKind::Mau { op, .. } => spec.mau[op].sources.get(at) == Some(&MauPort::Z),
                _ => false,
            };
            self.source(layout, source, lane, addend)
        });
        let sources = sources.collect::<Result<Vec<_>, _>>()?;
        let writes = instruction.destinations.iter().map(|destination| Write {
            access: access(&spec, layout, &destination.access),
            mask: destination.mask.unwrap_or(u32::MAX),
        });
        let (compute, unit) = match instruction.kind {
            PeKind::Alu { op, unsigned, literal, .. } => {
                (alu(&spec, op, lane, unsigned, literal)?, Some(ForwardUnit::Alu))
            }
            PeKind::Mau { op, mau_precision, half, reduced, .. } => {
                let negated = |port| {
                    let at = spec.mau[op].sources.iter().position(|p| *p == port);
                    at.is_some_and(|at| instruction.sources[at].negate)
                };
                let lane = lane.ok_or_else(|| no_kernel("a MAU op without a lane type"))?;
                let op = MauOp::bind(&spec, op, lane, mau_precision, half, reduced, &negated)?;
                (Compute::Mau(op), Some(ForwardUnit::Mau))
            }
            PeKind::L1bm { form, address } => {
                let resolved = &spec.forms[form.transfer][form.form];
                let to_pe = matches!(resolved.destination, End::Pe);
                let end = if to_pe { &resolved.source } else { &resolved.destination };
                let slot = memory_slot(&spec, layout, end)?.index;
                let runs = self.pe_map(form, to_pe)?;
                if to_pe {
                    (Compute::Load { slot, address, runs }, Some(ForwardUnit::L1bm))
                } else {
                    (Compute::Store { slot, address, runs }, None)
                }
            }
        };
        let forward = unit.and_then(|unit| spec.forwards.iter().position(|f| f.unit == unit));
        Ok(Op { compute, sources, writes: writes.collect(), forward })
    }

    fn source(
        &mut self,
        layout: &Layout,
        source: &asm::Source,
        lane: Option<Lane>,
        addend: bool,
    ) -> Result<Source, Error> {
        let spec = self.spec.clone();
        let origin = match &source.kind {
            SourceKind::Memory(a) => Origin::Memory(access(&spec, layout, a)),
            SourceKind::Forward(path) => Origin::Forward(*path),
            SourceKind::Fixed(id) => {
                let lane = lane.ok_or_else(|| no_kernel("a fixed input of an op without lanes"))?;
                Origin::Fixed(match self.fixed.get(&(*id, lane)) {
                    Some(rows) => rows.clone(),
                    None => {
                        let rows = fixed::rows(&spec, *id, lane)?;
                        self.fixed.insert((*id, lane), rows.clone());
                        rows
                    }
                })
            }
        };
        // The addend port of half products takes singles.
        let conversion = match (source.convert, lane) {
            (None, _) => None,
            (Some(Convert::Extend), Some(Lane::H)) if addend => Some(Conversion::ExtendHalves),
            (Some(Convert::Extend), Some(Lane::F)) => Some(Conversion::ExtendHalfPair),
            (Some(Convert::Extend), Some(Lane::D)) => Some(Conversion::ExtendSingle),
            (Some(Convert::Reduce), Some(Lane::H)) if !addend => Some(Conversion::ReduceSingles),
            (Some(convert), _) => return Err(no_kernel(&format!("{convert:?} of this operand"))),
        };
        Ok(Source { origin, conversion })
    }

    fn pe_map(&mut self, form: FormRef, to_pe: bool) -> Result<Arc<[PeRun]>, Error> {
        if let Some(runs) = self.pe_maps.get(&form) {
            return Ok(runs.clone());
        }
        let runs: Arc<[PeRun]> = pe_runs(&self.spec, &self.moves(form)?, to_pe).into();
        self.pe_maps.insert(form, runs.clone());
        Ok(runs)
    }

    fn moves(&self, form: FormRef) -> Result<Vec<crate::spec::Move>, Error> {
        let parameter = self.spec.parameters[form.transfer].as_ref();
        let values: Vec<_> = parameter.iter().map(|p| (p.name.as_str(), form.parameter)).collect();
        moves(&self.spec.forms[form.transfer][form.form], &values)
    }

    /// An L2BM instruction.
    pub(super) fn upper(&mut self, layout: &Layout, instruction: &UpperTransfer) -> Result<Arc<Upper>, Error> {
        let form = instruction.form;
        let spec = self.spec.clone();
        let resolved = &spec.forms[form.transfer][form.form];
        let (source, destination) =
            (memory_slot(&spec, layout, &resolved.source)?, memory_slot(&spec, layout, &resolved.destination)?);
        let down = source.level < destination.level;
        let runs = match self.upper_maps.get(&form) {
            Some(runs) => runs.clone(),
            None => {
                let runs: Arc<[UpperRun]> = upper_runs(&self.moves(form)?, down).into();
                self.upper_maps.insert(form, runs.clone());
                runs
            }
        };
        let words = runs.iter().map(|r| r.length).sum();
        let (upper, lower) = if down { (source, destination) } else { (destination, source) };
        let (at_upper, at_lower) = if down {
            (instruction.source, instruction.destination)
        } else {
            (instruction.destination, instruction.source)
        };
        Ok(Arc::new(Upper {
            upper_slot: upper.index,
            upper: at_upper,
            lower_slot: lower.index,
            lower: at_lower,
            down,
            runs,
            words,
        }))
    }
}

fn no_kernel(what: &str) -> Error {
    Error::new(Code::NoKernel, format!("the engine cannot run {what}"))
}

fn memory_slot(spec: &Spec, layout: &Layout, end: &End) -> Result<Slot, Error> {
    let memory = match end {
        End::Memory { operand, .. } => spec.memory(&spec.operands[*operand].memory),
        End::Pe => None,
    };
    memory.map(|m| layout.slot(m)).ok_or_else(|| no_kernel("a transfer between these operands"))
}

/// Word addresses per cycle: modulo the memory, truncated to the access width.
fn access(spec: &Spec, layout: &Layout, access: &asm::Access) -> Access {
    let slot = layout.slot(access.memory);
    let size = (slot.words * u64::from(WORDS_PER_LONG)) as u32;
    let at = (0..spec.counts.cycle).map(|c| {
        let word = match spec.memories[access.memory].unit {
            Unit::Cycle => c * HALVES * WORDS_PER_LONG,
            _ => access.address.at(c) % size,
        };
        word - word % access.words
    });
    Access { slot: slot.index, words: access.words, at: at.collect() }
}

fn alu(spec: &Spec, op: usize, lane: Option<Lane>, unsigned: bool, literal: Option<u32>) -> Result<Compute, Error> {
    let entry = &spec.alu[op];
    if let Some(word) = literal {
        let upper = u64::from(word) << WORD_BITS;
        return match entry.kernel.as_str() {
            IMM => Ok(Compute::Constant(upper | u64::from(word))),
            IMMU => Ok(Compute::Constant(upper)),
            other => Err(no_kernel(&format!("the literal kernel `{other}`"))),
        };
    }
    let kernel = lane.and_then(|lane| alu_kernel(&entry.kernel, lane, unsigned));
    let kernel = kernel.ok_or_else(|| no_kernel(&format!("`{}` in this precision", entry.name)))?;
    let params = AluParams { bit: entry.bit, amount: entry.amount, table: entry.table.unwrap_or_default() };
    Ok(Compute::Alu { kernel, params, path: entry.data == DataWidth::Path })
}

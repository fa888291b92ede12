//! Lowering of a PE line: it wraps addresses, finds kernels and turns index maps into copies.

mod l1bm;

use super::access::{Access, Offset};
use super::compute::{BlockKernel, Compute, SecondLongWord};
use super::destination::{BaseWrite, Write};
use super::fast::plain_rows::plan_step;
use super::fixed_input;
use super::flag::{FlagWrite, Flags};
use super::l1bm_map::{moves, PeRun, ReductionLayout};
use super::mask::LoweredMask;
use super::matrix::MatrixAccess;
use super::mau_op::{MauForm, MauOp};
use super::no_kernel::no_kernel;
use super::op::{Op, Step, MAX_SOURCES};
use super::source::{Conversion, Origin, Source};
use crate::asm::{self, Convert, FormRef, PeInstruction, PeKind, SourceKind, Target};
use crate::error::Error;
use crate::machine::{Layout, Slot};
use crate::num::alu::{alu_bitwise, alu_cancels, alu_kernel, AluParams};
use crate::num::flags::FlagRule;
use crate::num::lane::Lane;
use crate::spec::{
    reduction_lane, DataWidth, End, ForwardUnit, MatrixKernel, MauPort, Spec, Unit, Widen, BLOCK, BLOCK_EXTENDED,
    HALVES, IMM, IMMU, LONG_BITS, ROTATE, WORDS_PER_LONG, WORD_BITS, ZERO,
};
use smallvec::SmallVec;
use std::collections::HashMap;
use std::sync::Arc;

/// Lowers PE lines. Keeps fixed inputs and index maps, which many lines share.
#[derive(Clone)]
pub(super) struct Lowering {
    spec: Arc<Spec>,
    /// Long words of one plane of a path.
    plane: usize,
    /// Slot of the mask registers.
    masks: usize,
    /// For each memory that has one: slot and name of its base address register.
    bases: Vec<Option<(usize, String)>>,
    /// Slot of the T register.
    cycle_register: usize,
    fixed: HashMap<(usize, Lane), Arc<[u64]>>,
    pe_maps: HashMap<FormRef, Arc<[PeRun]>>,
    meetings: HashMap<FormRef, Arc<ReductionLayout>>,
}

impl Lowering {
    pub(super) fn new(spec: Arc<Spec>) -> Lowering {
        let layout = Layout::new(&spec);
        let slot = |memory: Option<usize>| memory.map(|m| layout.slot(m).index).unwrap_or_default();
        let base = |memory: &crate::spec::Memory| {
            let operand = spec.operands.iter().find(|o| o.memory == memory.name);
            let name = operand.and_then(|o| o.base.clone())?;
            Some((layout.slot(spec.memory(&name)?).index, name))
        };
        Lowering {
            plane: spec.counts.cycle as usize * spec.lanes(),
            masks: slot(spec.memory(&spec.mask.memory)),
            bases: spec.memories.iter().map(base).collect(),
            cycle_register: slot(spec.memories.iter().position(|m| m.unit == Unit::Cycle)),
            spec,
            fixed: HashMap::new(),
            pe_maps: HashMap::new(),
            meetings: HashMap::new(),
        }
    }

    /// The spec of the lines.
    pub(super) fn spec(&self) -> &Spec {
        &self.spec
    }

    /// Lowers the PE part of a step.
    pub(super) fn step(&mut self, layout: &Layout, step: &asm::Step) -> Result<Step, Error> {
        let mut ops: Vec<Op> = step.pe.iter().map(|i| self.instruction(layout, i)).collect::<Result<_, _>>()?;
        plan_step(&mut ops, self.spec.counts.cycle as usize);
        let prepares = ops.iter().any(|op| op.compute.product().is_some());
        Ok(Step { ops, prepares, forward: step.forward })
    }

    fn instruction(&mut self, layout: &Layout, instruction: &PeInstruction) -> Result<Op, Error> {
        let spec = self.spec.clone();
        let precision = match instruction.kind {
            PeKind::Alu { precision, .. } => precision,
            PeKind::Mau { precision, .. } | PeKind::Matrix { precision, .. } => Some(precision),
            PeKind::L1bm { .. } => None,
        };
        let lane = precision.and_then(|p| spec.precisions[p].lane());
        let sources = instruction.sources.iter().enumerate();
        let sources = sources.map(|(at, source)| {
            let addend = match instruction.kind {
                PeKind::Mau { op, .. } => spec.mau[op].sources.get(at) == Some(&MauPort::Z),
                _ => false,
            };
            let widened = matches!(instruction.kind, PeKind::L1bm { .. });
            self.source(layout, source, lane, addend, widened)
        });
        let mut sources = sources.collect::<Result<SmallVec<[Source; MAX_SOURCES]>, _>>()?;
        if let PeKind::L1bm { form, .. } = instruction.kind {
            if spec.forms[form.transfer][form.form].widen == Some(Widen::Always) {
                sources.iter_mut().for_each(|s| s.conversion = Some(Conversion::ExtendHalves));
            }
        }
        let (compute, unit) = self.compute(layout, instruction, lane)?;
        let forward = unit.and_then(|unit| spec.forwards.iter().position(|f| f.unit == unit));
        let masks = self.masks;
        let masked = |mask: Option<&asm::Mask>| LoweredMask::new(mask, masks);
        let zero_flush = instruction.zero_flush.as_ref().map(|m| masked(Some(m)));
        let mut op = Op {
            compute,
            sources,
            writes: SmallVec::new(),
            late_writes: Vec::new(),
            base_writes: Vec::new(),
            flag_writes: Vec::new(),
            zero_flush,
            mixes: mixed_lane(&spec, instruction, lane),
            cancels: cancels(&spec, instruction),
            forward,
            second: SecondLongWord::Any,
            plain_rows: None,
            live: true,
            keep: true,
        };
        op.second = op.compute.second(self.plane);
        for destination in &instruction.destinations {
            let mask = masked(destination.mask.as_ref());
            match &destination.target {
                Target::Memory(target) => {
                    let late = spec.memories[target.memory].unit == Unit::Cycle;
                    let write = Write::new(self.access(layout, target), mask, late);
                    if late {
                        op.late_writes.push(write);
                    } else {
                        op.writes.push(write);
                    }
                }
                Target::Base { base, words } => {
                    let register = &spec.bases[*base];
                    let slot = spec.memory(&register.memory).map(|m| layout.slot(m).index).unwrap_or_default();
                    // guess: the low bits of the accessed width are taken. They lie at the left end of the path.
                    let shift = LONG_BITS.saturating_sub(words * WORD_BITS);
                    op.base_writes.push(BaseWrite { slot, shift, bits: (1 << register.bits) - 1, mask });
                }
                Target::Flags { entry } => {
                    let rule = flags(&spec, instruction, lane, &op.compute)?;
                    op.flag_writes.push(FlagWrite { rule, slot: masks, entry: *entry as usize, mask });
                }
            }
        }
        Ok(op)
    }

    /// The operation of an instruction, and the unit whose forwarding path takes the result.
    fn compute(
        &mut self,
        layout: &Layout,
        instruction: &PeInstruction,
        lane: Option<Lane>,
    ) -> Result<(Compute, Option<ForwardUnit>), Error> {
        let spec = self.spec.clone();
        let register =
            |bank: usize| spec.memory(&spec.banks[bank].memory).map(|m| layout.slot(m).index).unwrap_or_default();
        Ok(match instruction.kind {
            PeKind::Alu { op, precision, unsigned, literal, length } => {
                let form = AluForm { op, precision, unsigned, literal, length };
                (alu(&spec, &form, lane)?, Some(ForwardUnit::Alu))
            }
            PeKind::Mau { op, precision, mau_precision, half, reduced, bank } => {
                let negated = |port| {
                    let at = spec.mau[op].sources.iter().position(|p| *p == port);
                    at.is_some_and(|at| instruction.sources[at].negate)
                };
                let matrix = bank.map(register);
                let form = MauForm { op, precision, mau_precision, half, reduced, matrix, negated: &negated };
                (Compute::Mau(MauOp::bind(&spec, &form)?), Some(ForwardUnit::Mau))
            }
            PeKind::Matrix { op, mau_precision, bank, row, wide, .. } => {
                let lane = lane.ok_or_else(|| no_kernel("a matrix access without a lane type"))?;
                let negate = instruction.sources.first().is_some_and(|s| s.negate);
                let sign = (0..lane.count() as u32).fold(0, |row, k| row | 1 << (k * lane.width() + lane.width() - 1));
                let access = MatrixAccess {
                    slot: register(bank),
                    first: row as usize,
                    rows: spec.mau_precisions[mau_precision].rows as usize,
                    wide,
                    elements: lane.count(),
                    signs: if negate { sign } else { 0 },
                };
                match spec.matrix_ops[op].kernel {
                    MatrixKernel::Write => (Compute::MatrixWrite(access), None),
                    MatrixKernel::Read => (Compute::MatrixRead(access), Some(ForwardUnit::Matrix)),
                }
            }
            PeKind::L1bm { form, address } => self.l1bm(layout, form, address)?,
        })
    }

    fn source(
        &mut self,
        layout: &Layout,
        source: &asm::Source,
        lane: Option<Lane>,
        addend: bool,
        widened: bool,
    ) -> Result<Source, Error> {
        let spec = self.spec.clone();
        let origin = match &source.kind {
            SourceKind::Memory(a) => Origin::Memory(self.access(layout, a)),
            SourceKind::Forward(path) => Origin::Forward(*path),
            SourceKind::Fixed(id) => {
                let lane = lane.ok_or_else(|| no_kernel("a fixed input of an op without lanes"))?;
                Origin::Fixed(match self.fixed.get(&(*id, lane)) {
                    Some(rows) => rows.clone(),
                    None => {
                        let rows = fixed_input::rows(&spec, *id, lane)?;
                        self.fixed.insert((*id, lane), rows.clone());
                        rows
                    }
                })
            }
        };
        // The addend port of half products takes singles.
        let conversion = match (source.convert, lane) {
            (None, _) => None,
            (Some(Convert::Extend), None) if widened => Some(Conversion::ExtendHalves),
            (Some(Convert::Extend), Some(Lane::H)) if addend => Some(Conversion::ExtendHalves),
            (Some(Convert::Extend), Some(Lane::F)) => Some(Conversion::ExtendHalfPair),
            (Some(Convert::Extend), Some(Lane::D)) => Some(Conversion::ExtendSingle),
            (Some(Convert::Reduce), Some(Lane::H)) if !addend => Some(Conversion::ReduceSingles),
            (Some(convert), _) => return Err(no_kernel(&format!("{convert:?} of this operand"))),
        };
        Ok(Source { origin, conversion })
    }

    /// The word addresses of the cycles: modulo the memory size, truncated to the access width.
    fn access(&self, layout: &Layout, access: &asm::Access) -> Access {
        let spec = &self.spec;
        let slot = layout.slot(access.memory);
        let unit = spec.memories[access.memory].unit;
        let size = (slot.words * u64::from(WORDS_PER_LONG)) as u32;
        let at = (0..spec.counts.cycle).map(|c| {
            let word = match unit {
                Unit::Cycle => c * HALVES * WORDS_PER_LONG,
                _ => access.address.at(c) % size,
            };
            word - word % access.words
        });
        let base = self.bases[access.memory].as_ref();
        let register = base.and_then(|(_, name)| spec.bases.iter().find(|b| b.memory == *name));
        let bits = register.map_or(WORD_BITS, |b| b.bits);
        let offset = (access.indirect || access.modify.is_some()).then(|| Offset {
            indirect: access.indirect.then(|| {
                // Of the T register, as many bits take part as a base address has.
                (self.cycle_register, (1 << bits) - 1)
            }),
            modify: access.modify.map(|last| (last, spec.counts.pe)),
        });
        let base = base.map(|(slot, _)| *slot);
        Access { slot: slot.index, words: access.words, at: at.collect(), size, base, bits, offset }
    }

    fn moves(&self, form: FormRef) -> Result<Vec<crate::spec::Move>, Error> {
        let named = self.spec.form_values(form.transfer, form.parameter);
        let values: Vec<_> = named.iter().map(|(n, v)| (n.as_str(), *v)).collect();
        moves(&self.spec.forms[form.transfer][form.form], &values)
    }
}

pub(super) fn memory_slot(spec: &Spec, layout: &Layout, end: &End) -> Result<Slot, Error> {
    let memory = match end {
        End::Memory { operand, .. } => spec.memory(&spec.operands[*operand].memory),
        End::Pe => None,
    };
    memory.map(|m| layout.slot(m)).ok_or_else(|| no_kernel("a transfer between these operands"))
}

/// The parts of an ALU operation that the mnemonic and the operands state.
struct AluForm {
    op: usize,
    precision: Option<usize>,
    unsigned: bool,
    literal: Option<u32>,
    length: Option<u32>,
}

fn params(entry: &crate::spec::Alu) -> AluParams {
    AluParams { bit: entry.bit, amount: entry.amount, table: entry.table.unwrap_or_default() }
}

fn alu(spec: &Spec, form: &AluForm, lane: Option<Lane>) -> Result<Compute, Error> {
    let entry = &spec.alu[form.op];
    if let Some(word) = form.literal {
        let upper = u64::from(word) << WORD_BITS;
        return match entry.kernel.as_str() {
            IMM => Ok(Compute::Constant(upper | u64::from(word))),
            IMMU => Ok(Compute::Constant(upper)),
            other => Err(no_kernel(&format!("the literal kernel `{other}`"))),
        };
    }
    let letter = form.precision.map(|p| &spec.precisions[p]);
    let path = entry.data == DataWidth::Path || letter.is_some_and(|l| entry.path_precisions.contains(&l.name));
    let fail = || no_kernel(&format!("`{}` in this precision", entry.name));
    match entry.kernel.as_str() {
        ZERO => return Ok(Compute::Constant(0)),
        ROTATE => return Ok(Compute::Rotate { distance: entry.amount as usize, pes: spec.counts.pe as usize }),
        BLOCK | BLOCK_EXTENDED => {
            let kernel = match (lane, letter.is_some_and(|l| l.pseudo), form.length) {
                (Some(Lane::D), _, None) => BlockKernel::D,
                (Some(Lane::F), false, None) => BlockKernel::F,
                (Some(Lane::F), true, None) => BlockKernel::G,
                (Some(Lane::H), _, Some(kept)) => BlockKernel::H { kept, extended: entry.kernel == BLOCK_EXTENDED },
                _ => return Err(fail()),
            };
            return Ok(Compute::Block { kernel, path });
        }
        _ => {}
    }
    let kernel = lane.and_then(|lane| alu_kernel(&entry.kernel, lane, form.unsigned)).ok_or_else(fail)?;
    Ok(Compute::Alu { kernel, params: params(entry), path })
}

/// The lanes of an instruction whose bits depend on each other.
fn mixed_lane(spec: &Spec, instruction: &PeInstruction, lane: Option<Lane>) -> Option<Lane> {
    match instruction.kind {
        PeKind::Alu { op, .. } if alu_bitwise(&spec.alu[op].kernel) => None,
        PeKind::L1bm { form, .. } => {
            let reduction = &spec.reductions[spec.transfers[form.transfer].reduction?];
            let widened = spec.forms[form.transfer][form.form].widen == Some(Widen::Always);
            reduction_lane(spec, reduction, widened)
        }
        _ => lane,
    }
}

/// Whether an instruction takes a source from itself.
fn cancels(spec: &Spec, instruction: &PeInstruction) -> bool {
    let [x, y] = &instruction.sources[..] else { return false };
    let kernel = matches!(instruction.kind, PeKind::Alu { op, .. } if alu_cancels(&spec.alu[op].kernel));
    kernel && (&x.kind, x.negate, x.convert) == (&y.kind, y.negate, y.convert)
}

/// How an instruction that writes a mask register computes its flags.
fn flags(spec: &Spec, instruction: &PeInstruction, lane: Option<Lane>, compute: &Compute) -> Result<Flags, Error> {
    match (instruction.kind, compute) {
        (PeKind::Alu { op, unsigned, .. }, _) => {
            let entry = &spec.alu[op];
            let name = entry.unsigned_flag.as_ref().filter(|_| unsigned).unwrap_or(&entry.flag);
            let rule = FlagRule::from_name(name).ok_or_else(|| no_kernel(&format!("the flag rule `{name}`")))?;
            // Ops without a precision make no flags, so their lanes do not matter.
            Ok(Flags::Alu(rule, lane.unwrap_or(Lane::L), params(entry)))
        }
        (_, Compute::Mau(op)) => Ok(Flags::Mau(op.output())),
        _ => Err(no_kernel("flags of an instruction that is neither ALU nor MAU")),
    }
}

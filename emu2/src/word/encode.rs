//! Encodes one step to its machine word.

use super::bits::Word;
use super::draft::{refuse, Draft, Refusal};
use super::print;
use crate::asm::{Access, Address, Convert, Destination, Mask, MaskEntry, PeInstruction, PeKind, Source, SourceKind};
use crate::asm::{Step, Target};
use crate::error::{Code, Diagnostic, Span};
use crate::spec::{ControlKernel, Encoding, EncodingOp, EncodingPlace, EncodingUnit, OpTarget, Selector, Spec, Status};

/// The machine word of a step.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StepWord {
    /// The word.
    pub word: Word,
    /// The parts that rest on inferred positions or values, as text.
    pub inferred: Vec<String>,
}

/// Encodes a step of PE instructions. `whole` is the place of the line.
///
/// # Errors
/// One diagnostic for each instruction or control statement without a known machine word.
pub fn encode_step(spec: &Spec, encoding: &Encoding, step: &Step, whole: Span) -> Result<StepWord, Vec<Diagnostic>> {
    let mut draft = Draft::new(encoding);
    let mut refused = Vec::new();
    let mut keep = |result: Result<(), Refusal>, span: Span| {
        if let Err(mut diagnostic) = result {
            diagnostic.span.get_or_insert(span);
            refused.push(*diagnostic);
        }
    };
    let noforward = print::control(spec, ControlKernel::Noforward);
    keep(draft.set(encoding.forward, u64::from(step.forward), noforward), whole);
    for instruction in &step.pe {
        keep(Encoder { spec, draft: &mut draft }.instruction(instruction), instruction.span);
    }
    for transfer in &step.l2bm {
        keep(Err(no_word(&spec.transfers[transfer.form.transfer].name)), transfer.span);
    }
    if let Some(tag) = step.wait {
        keep(Err(no_word(&print::wait(spec, tag))), whole);
    }
    match refused.is_empty() {
        true => Ok(StepWord { word: draft.word, inferred: draft.inferred }),
        false => Err(refused),
    }
}

/// The error that no machine word of `what` is known.
pub(super) fn no_word(what: &str) -> Refusal {
    refuse(Code::NoWord, format!("no machine word of `{what}` is known"))
}

struct Encoder<'s, 'd, 'e> {
    spec: &'s Spec,
    draft: &'d mut Draft<'e>,
}

impl<'e> Encoder<'_, '_, 'e> {
    fn instruction(&mut self, i: &PeInstruction) -> Result<(), Refusal> {
        let encoding: &'e Encoding = self.draft.encoding;
        let op = self.find(i)?;
        let unit = &encoding.units[op.unit];
        let name = print::mnemonic(self.spec, &i.kind);
        if !op.seen.contains(&name) {
            self.draft.inferred.push(format!("`{name}`, whose fields were seen with other mnemonics only"));
        }
        if let Some(flush) = i.zero_flush {
            return Err(no_word(&format!("{name}{}", print::mask(self.spec, flush))));
        }
        for (field, value) in &op.sets {
            self.draft.set(*field, *value, &name)?;
        }
        self.kind(unit, i, &name)?;
        for (at, source) in i.sources.iter().enumerate() {
            self.source(unit, op.target, at, source).map_err(|d| at_span(d, source.span))?;
        }
        for destination in &i.destinations {
            self.destination(op.unit, destination, &name).map_err(|d| at_span(d, destination.span))?;
        }
        Ok(())
    }

    /// The entry that encodes an instruction.
    fn find(&self, i: &PeInstruction) -> Result<&'e EncodingOp, Refusal> {
        let (target, length) = match i.kind {
            PeKind::Alu { op, length, .. } => (OpTarget::Alu(op), length),
            PeKind::Mau { op, .. } => (OpTarget::Mau(op), None),
            PeKind::Matrix { op, .. } => (OpTarget::Matrix(op), None),
            PeKind::L1bm { form, .. } => {
                let (transfer, form, parameter) = (form.transfer, form.form, form.parameter);
                (OpTarget::Transfer { transfer, form, parameter }, None)
            }
        };
        let encoding: &'e Encoding = self.draft.encoding;
        let fits = |o: &&EncodingOp| o.target == target && length.is_none_or(|n| o.length == Some(n));
        encoding.ops.iter().find(fits).ok_or_else(|| no_word(&print::head(self.spec, i)))
    }

    /// Encodes the parts of an instruction that are not operands: precision, matrix register, immediate, half, row,
    /// address.
    fn kind(&mut self, unit: &EncodingUnit, i: &PeInstruction, name: &str) -> Result<(), Refusal> {
        let missing = |what: &str| refuse(Code::NoWord, format!("no machine word of `{name}` is known: {what}"));
        let (precision, bank) = match i.kind {
            PeKind::Alu { precision, .. } => (precision, None),
            PeKind::Mau { precision, bank, .. } => (Some(precision), bank),
            PeKind::Matrix { precision, bank, .. } => (Some(precision), Some(bank)),
            PeKind::L1bm { .. } => (None, None),
        };
        if let Some(precision) = precision {
            let coded = unit.precision.as_ref().ok_or_else(|| missing("its precision has no field"))?;
            let code = coded.code(precision).ok_or_else(|| missing("its precision has no code"))?;
            self.draft.code(coded.field, code, name)?;
        }
        if let Some(bank) = bank {
            let coded = unit.bank.as_ref().ok_or_else(|| missing("its matrix register has no field"))?;
            let code = coded.code(bank).ok_or_else(|| missing("its matrix register has no code"))?;
            self.draft.code(coded.field, code, &format!("{name} {}", print::bank(self.spec, bank, None, false)))?;
        }
        match i.kind {
            PeKind::Alu { unsigned: true, .. } => Err(missing("the unsigned form has no witness")),
            PeKind::Alu { literal: Some(word), .. } if unit.literal.is_empty() => {
                Err(missing(&format!("nothing holds {word:#x}")))
            }
            PeKind::Alu { literal: Some(word), .. } => self.draft.literal(&unit.literal, word, name),
            PeKind::Mau { reduced: true, .. } => Err(missing("the reduced result has no field")),
            PeKind::Mau { half: Some(half), .. } => {
                let coded = unit.half.as_ref().ok_or_else(|| missing("the half has no field"))?;
                let code = coded.code(half).ok_or_else(|| missing("the half has no code"))?;
                self.draft.code(coded.field, code, name)
            }
            PeKind::Matrix { op, precision, row, wide, .. } => {
                let field = unit.row.ok_or_else(|| missing("its row has no field"))?;
                self.draft.set(field, u64::from(row), &format!("row {row}"))?;
                // The word has a bit for this only if the precision has both forms.
                let (entry, letter) = (&self.spec.matrix_ops[op], &self.spec.precisions[precision].name);
                match unit.wide.filter(|_| entry.wide.contains(letter) && !entry.wide_only.contains(letter)) {
                    Some(field) => self.draft.set(field, u64::from(wide), name),
                    None => Ok(()),
                }
            }
            PeKind::L1bm { address: None, .. } => Err(missing("the turnaround register has no witness")),
            PeKind::L1bm { address: Some(address), .. } => {
                let field = unit.address.ok_or_else(|| missing("its address has no field"))?;
                self.draft.set(field, address, name)
            }
            PeKind::Alu { .. } | PeKind::Mau { .. } => Ok(()),
        }
    }

    fn source(&mut self, unit: &EncodingUnit, target: OpTarget, at: usize, source: &Source) -> Result<(), Refusal> {
        let text = print::source(self.spec, source);
        let input = input(self.spec, unit, target, at).and_then(|port| unit.inputs[port].as_ref());
        let input = input.ok_or_else(|| no_word(&text))?;
        let missing = |what: &str| refuse(Code::NoWord, format!("no machine word with `{text}` here is known: {what}"));
        let selector = match &source.kind {
            SourceKind::Memory(access) => Selector::Memory(access.memory),
            SourceKind::Forward(path) => Selector::Forward(*path),
            SourceKind::Fixed(_) => return Err(missing("fixed inputs have no witness")),
        };
        let code = input.select.code(selector).ok_or_else(|| missing("the selector has no code for it"))?;
        self.draft.code(input.select.field, code, &text)?;
        match (source.negate, input.negate) {
            (true, None) => return Err(missing("the sign has no field")),
            (_, None) => {}
            (negate, Some(field)) => self.draft.set(field, u64::from(negate), &text)?,
        }
        match (source.convert, input.reduce) {
            (Some(Convert::Extend), _) | (Some(Convert::Reduce), None) => {
                return Err(missing("the conversion has no field"));
            }
            (None, None) => {}
            (convert, Some(field)) => self.draft.set(field, u64::from(convert.is_some()), &text)?,
        }
        match &source.kind {
            SourceKind::Memory(access) => {
                let port = self.draft.encoding.ports.iter().find(|p| p.memory == access.memory);
                self.place(port.and_then(|p| p.read.as_ref()), access, &text)
            }
            SourceKind::Forward(_) | SourceKind::Fixed(_) => Ok(()),
        }
    }

    fn destination(&mut self, unit: usize, destination: &Destination, name: &str) -> Result<(), Refusal> {
        let text = print::destination(self.spec, destination);
        let missing =
            |what: &str| refuse(Code::NoWord, format!("no machine word of `{name}` into `{text}` is known: {what}"));
        let Target::Memory(access) = &destination.target else {
            return Err(missing("only memories have write fields"));
        };
        let encoding: &'e Encoding = self.draft.encoding;
        let port = encoding.ports.iter().find(|p| p.memory == access.memory);
        let port = port.ok_or_else(|| missing("the memory has no write field"))?;
        let code = port.source.code(unit).ok_or_else(|| missing("its result has no code as a source of writes"))?;
        self.draft.set(port.enable, 1, &text)?;
        self.draft.code(port.source.field, code, &text)?;
        self.draft.set(port.mask, u64::from(destination.mask.is_some()), &text)?;
        if let Some(mask) = destination.mask {
            let entry = mask_entry(self.spec, mask).ok_or_else(|| missing("2-long masks have no field"))?;
            self.draft.set(encoding.mask, entry, &text)?;
        }
        self.place(port.write.as_ref(), access, &text)
    }

    fn place(&mut self, place: Option<&EncodingPlace>, access: &Access, text: &str) -> Result<(), Refusal> {
        let missing = |what: &str| refuse(Code::NoWord, format!("no machine word with `{text}` is known: {what}"));
        if access.indirect || access.modify.is_some() {
            return Err(missing("T-indirect and `j` addresses have no witness"));
        }
        let (place, base, stride) = match (&access.address, place) {
            (Address::Cycle, _) => return Ok(()),
            (Address::Flat(_), _) => return Err(missing("address lists belong to another kind of word")),
            (Address::Stride { .. }, None) => return Err(missing("the memory has no address field")),
            (Address::Stride { base, stride }, Some(place)) => (place, *base, *stride),
        };
        if access.words == 0 || stride % access.words != 0 {
            return Err(missing("the word counts strides in accesses"));
        }
        let width = place.width.code(access.words).ok_or_else(|| missing("its width has no code"))?;
        self.draft.code(place.width.field, width, text)?;
        self.draft.set(place.address, u64::from(base), text)?;
        self.draft.set(place.stride, u64::from(stride / access.words), text)
    }
}

/// The input port that source `at` of an operation uses.
pub(super) fn input(spec: &Spec, unit: &EncodingUnit, target: OpTarget, at: usize) -> Option<usize> {
    match target {
        OpTarget::Mau(op) => spec.mau[op].sources.get(at).map(|port| *port as usize),
        OpTarget::Alu(_) | OpTarget::Matrix(_) | OpTarget::Transfer { .. } => {
            (0..unit.inputs.len()).filter(|port| unit.inputs[*port].is_some()).nth(at)
        }
    }
}

/// The number of the entry of a mask. Registers come first, then patterns with cycle 0 in the highest bit.
fn mask_entry(spec: &Spec, mask: Mask) -> Option<u64> {
    let cycles = spec.counts.cycle;
    match mask {
        Mask { wide: true, .. } => None,
        Mask { entry: MaskEntry::Register(entry), .. } => Some(u64::from(entry)),
        Mask { entry: MaskEntry::Cycles(bits), .. } => {
            let pattern = (0..cycles).fold(0, |p, c| p << 1 | u64::from(bits >> c & 1));
            Some(u64::from(spec.mask.entries) + pattern)
        }
    }
}

/// The mask that the number of an entry stands for.
pub(super) fn entry_mask(spec: &Spec, number: u64) -> Mask {
    let cycles = spec.counts.cycle;
    let entry = match number.checked_sub(u64::from(spec.mask.entries)) {
        None => MaskEntry::Register(number as u32),
        Some(pattern) => {
            MaskEntry::Cycles((0..cycles).fold(0, |p, c| p | ((pattern >> (cycles - 1 - c) & 1) as u32) << c))
        }
    };
    Mask { wide: false, entry }
}

fn at_span(mut diagnostic: Refusal, span: Span) -> Refusal {
    diagnostic.span.get_or_insert(span);
    diagnostic
}

impl StepWord {
    /// How well the encoding of the word is known.
    pub fn status(&self) -> Status {
        if self.inferred.is_empty() {
            Status::Seen
        } else {
            Status::Inferred
        }
    }
}

//! Decodes one machine word to its step.

use super::bits::Word;
use super::draft::literal_bits;
use super::encode::{encode_step, entry_mask, input, StepWord};
use crate::asm::{
    Access, Address, Convert, Destination, FormRef, PeInstruction, PeKind, Source, SourceKind, Step, Target,
};
use crate::error::{Code, Span};
use crate::spec::{
    Coded, Encoding, EncodingOp, EncodingPlace, End, MatrixKernel, OpTarget, Selector, Spec, Status, HALVES,
    WORDS_PER_LONG,
};

/// The reason why a word cannot be decoded.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WordFault {
    /// Error code.
    pub code: Code,
    /// The digits at fault: the first one, and how many.
    pub digits: (u32, u32),
    /// What is wrong.
    pub message: String,
}

/// The meaning of a word.
#[derive(Clone, Debug)]
pub struct Decoded {
    /// The step. `None` is an idle step.
    pub step: Option<Step>,
    /// The parts of the step whose encoding uses inferred positions or values.
    pub inferred: Vec<String>,
    /// An instruction that the word cannot show beside the others. It is present if the next step reads its result.
    pub hidden: Option<PeInstruction>,
}

/// Decodes a word to the step that encodes to it.
///
/// # Errors
/// [`WordFault`] for bits of unknown meaning, for values that no known instruction makes, and for fields that no
/// instruction of the step uses.
pub fn decode_word(spec: &Spec, encoding: &Encoding, word: &Word) -> Result<Decoded, WordFault> {
    if *word == Word::idle(encoding) {
        return Ok(Decoded { step: None, inferred: Vec::new(), hidden: None });
    }
    let decoder = Decoder::new(spec, encoding, word)?;
    let shown = decoder.step(false)?;
    let fault = match decoder.check(&shown) {
        Ok(StepWord { inferred, .. }) if !shown.pe.is_empty() => {
            let with = decoder.step(true).ok().filter(|s| decoder.check(s).is_ok());
            let is_shown = |i: &PeInstruction| shown.pe.iter().any(|j| j.kind == i.kind);
            let hidden = with.and_then(|s| s.pe.into_iter().find(|i| !is_shown(i)));
            return Ok(Decoded { step: Some(shown), inferred, hidden });
        }
        Ok(_) => None,
        Err(fault) => Some(fault),
    };
    let all = decoder.step(true)?;
    match decoder.check(&all) {
        Ok(StepWord { inferred, .. }) => Ok(Decoded { step: Some(all), inferred, hidden: None }),
        Err(other) => Err(fault.unwrap_or(other)),
    }
}

struct Decoder<'a> {
    spec: &'a Spec,
    encoding: &'a Encoding,
    word: &'a Word,
    /// Per unit, the instruction that the word shows.
    ops: Vec<Option<&'a EncodingOp>>,
    /// The bits in which an immediate lies.
    literal: Word,
}

impl<'a> Decoder<'a> {
    fn new(spec: &'a Spec, encoding: &'a Encoding, word: &'a Word) -> Result<Self, WordFault> {
        let value = |field: usize| word.field(&encoding.fields[field]);
        let shows = |op: &&EncodingOp| !op.sets.is_empty() && op.sets.iter().all(|(f, v)| value(*f) == *v);
        let of_unit = |unit: usize| encoding.ops.iter().filter(|o| o.unit == unit).find(shows);
        let ops: Vec<_> = (0..encoding.units.len()).map(of_unit).collect();
        let holds = |op: &&&EncodingOp| matches!(op.target, OpTarget::Alu(at) if spec.alu[at].literal);
        let literal = match ops.iter().flatten().find(holds) {
            Some(op) => literal_bits(encoding.bits, &encoding.units[op.unit].literal),
            None => Word::zero(encoding.bits),
        };
        let decoder = Decoder { spec, encoding, word, ops, literal };
        decoder.check_unknown()?;
        decoder.check_units()?;
        Ok(decoder)
    }

    fn value(&self, field: usize) -> u64 {
        self.word.field(&self.encoding.fields[field])
    }

    fn covered(&self, field: usize) -> bool {
        self.literal.field(&self.encoding.fields[field]) != 0
    }

    fn fault(&self, field: usize, what: &str) -> WordFault {
        let f = &self.encoding.fields[field];
        let message = format!("`{}` is {}: {what}", f.name, self.value(field));
        WordFault { code: Code::UnreadableWord, digits: (f.first, f.width), message }
    }

    /// Checks that fields of unknown meaning are idle.
    fn check_unknown(&self) -> Result<(), WordFault> {
        for (at, field) in self.encoding.fields.iter().enumerate() {
            let value = self.value(at);
            if field.status != Status::Unknown || value == field.idle || self.covered(at) {
                continue;
            }
            let set = (field.first..field.first + field.width)
                .zip((0..field.width).rev())
                .find(|(bit, shift)| u64::from(self.word.bit(*bit)) != field.idle >> shift & 1);
            let digit = set.map_or(field.first, |(bit, _)| bit);
            let message = format!("digit {digit} is not idle, and nobody knows what `{}` means", field.name);
            return Err(WordFault { code: Code::UnknownBits, digits: (digit, 1), message });
        }
        Ok(())
    }

    /// Checks that a unit without a known instruction is idle.
    fn check_units(&self) -> Result<(), WordFault> {
        let idle = |field: usize| self.value(field) == self.encoding.fields[field].idle;
        for op in self.encoding.ops.iter().filter(|o| self.ops[o.unit].is_none()) {
            if let Some((field, _)) = op.sets.iter().find(|(field, _)| !idle(*field)) {
                let unit = &self.encoding.units[op.unit].name;
                return Err(self.fault(*field, &format!("no known instruction of `{unit}` looks like this")));
            }
        }
        Ok(())
    }

    /// The step that the word shows. `implicit` adds the instructions that set no field of their own.
    fn step(&self, implicit: bool) -> Result<Step, WordFault> {
        let mut pe = Vec::new();
        let mut units = Vec::new();
        for (unit, shown) in self.ops.iter().enumerate() {
            let own = || self.encoding.ops.iter().find(|o| o.unit == unit);
            let op = shown.or_else(|| own().filter(|_| implicit && self.encoding.units[unit].implicit));
            if let Some(op) = op {
                pe.push(self.instruction(op)?);
                units.push(unit);
            }
        }
        for port in self.encoding.ports.iter().filter(|p| !self.covered(p.enable) && self.value(p.enable) == 1) {
            let field = port.source.field;
            let writer = port.source.keys(self.value(field)).next();
            let writer = writer.ok_or_else(|| self.fault(field, "nothing known writes from there"))?;
            let at = units.iter().position(|u| *u == writer);
            let at = at.ok_or_else(|| self.fault(field, "the step has no instruction whose result that would be"))?;
            let access = self.access(port.memory, port.write.as_ref())?;
            let masked = self.value(port.mask) == 1;
            let mask = masked.then(|| entry_mask(self.spec, self.value(self.encoding.mask)));
            let target = Target::Memory(access);
            pe[at].destinations.push(Destination { span: Span::default(), target, mask });
        }
        let forward = self.value(self.encoding.forward) == 1;
        Ok(Step { pe, l2bm: Vec::new(), wait: None, forward })
    }

    /// Checks that the step encodes to this word.
    fn check(&self, step: &Step) -> Result<StepWord, WordFault> {
        let encoded = encode_step(self.spec, self.encoding, step, Span::default()).map_err(|all| {
            let message = all.first().map_or(String::new(), |d| d.message.clone());
            WordFault { code: Code::UnreadableWord, digits: (0, self.encoding.bits), message }
        })?;
        let differs = |f: &usize| encoded.word.field(&self.encoding.fields[*f]) != self.value(*f);
        match (0..self.encoding.fields.len()).find(differs) {
            None => Ok(encoded),
            Some(field) => Err(self.fault(field, "no instruction of the step sets it so")),
        }
    }

    fn instruction(&self, op: &EncodingOp) -> Result<PeInstruction, WordFault> {
        let kind = self.kind(op)?;
        let count = match op.target {
            OpTarget::Alu(at) => self.spec.alu[at].sources as usize,
            OpTarget::Mau(at) => self.spec.mau[at].sources.len(),
            OpTarget::Matrix(at) => usize::from(self.spec.matrix_ops[at].kernel == MatrixKernel::Write),
            OpTarget::Transfer { transfer, form, .. } => {
                usize::from(matches!(self.spec.forms[transfer][form].source, End::Pe))
            }
        };
        let unit = &self.encoding.units[op.unit];
        let mut sources = Vec::with_capacity(count);
        for port in (0..count).filter_map(|at| input(self.spec, unit, op.target, at)) {
            sources.extend(unit.inputs[port].as_ref().map(|i| self.source(i, op)).transpose()?);
        }
        Ok(PeInstruction { span: Span::default(), kind, sources, destinations: Vec::new(), zero_flush: None })
    }

    fn kind(&self, op: &EncodingOp) -> Result<PeKind, WordFault> {
        let (spec, unit) = (self.spec, &self.encoding.units[op.unit]);
        let bank = || unit.bank.as_ref().map(|coded| self.key(coded)).transpose();
        Ok(match op.target {
            OpTarget::Alu(at) => {
                let alu = &spec.alu[at];
                let precision = self.precision(op, &alu.name, &alu.precisions)?;
                let letter = precision.map(|p| &spec.precisions[p].name);
                let named = alu.lengths.as_ref().is_some_and(|l| Some(&l.precision) == letter);
                let literal = alu.literal.then(|| {
                    unit.literal
                        .iter()
                        .fold(0, |value, piece| value | (self.word.get(piece.first, piece.width()) as u32) << piece.low)
                });
                let length = op.length.filter(|_| named);
                PeKind::Alu { op: at, precision, unsigned: false, literal, length }
            }
            OpTarget::Mau(at) => {
                let mau = &spec.mau[at];
                let (precision, mau_precision) = self.mau_precision(op, &mau.name, &mau.precisions)?;
                let pair = mau.product && spec.mau_precisions[mau_precision].pair;
                let half = unit.half.as_ref().filter(|_| pair).map(|coded| self.key(coded)).transpose()?;
                let bank = if mau.matrix { bank()? } else { None };
                PeKind::Mau { op: at, precision, mau_precision, half, reduced: false, bank }
            }
            OpTarget::Matrix(at) => {
                let matrix = &spec.matrix_ops[at];
                let (precision, mau_precision) = self.mau_precision(op, &matrix.name, &matrix.precisions)?;
                let letter = &spec.precisions[precision].name;
                let may = matrix.wide.contains(letter) && unit.wide.is_some_and(|field| self.value(field) == 1);
                let wide = matrix.wide_only.contains(letter) || may;
                let row = unit.row.map_or(0, |field| self.value(field)) as u32;
                PeKind::Matrix { op: at, precision, mau_precision, bank: bank()?.unwrap_or(0), row, wide }
            }
            OpTarget::Transfer { transfer, form, parameter } => {
                let address = unit.address.map_or(0, |field| self.value(field));
                PeKind::L1bm { form: FormRef { transfer, form, parameter }, address: Some(address) }
            }
        })
    }

    fn key<K: Copy + PartialEq>(&self, coded: &Coded<K>) -> Result<K, WordFault> {
        let key = coded.keys(self.value(coded.field)).next();
        key.ok_or_else(|| self.fault(coded.field, "nothing known has this code"))
    }

    /// The precision of an operation, if it has precisions. If several share the code, it is the one that stands for
    /// all of them.
    fn precision(&self, op: &EncodingOp, name: &str, letters: &[String]) -> Result<Option<usize>, WordFault> {
        let coded = self.encoding.units[op.unit].precision.as_ref();
        let Some(coded) = coded.filter(|_| !letters.is_empty()) else { return Ok(None) };
        let stands = |at: &usize| {
            let letter = &self.spec.precisions[*at].name;
            let mnemonic = format!("{letter}{name}");
            letters.contains(letter) && !self.encoding.shared.iter().any(|s| s.name == mnemonic)
        };
        let found = coded.keys(self.value(coded.field)).find(stands);
        match found {
            Some(at) => Ok(Some(at)),
            None => Err(self.fault(coded.field, &format!("`{name}` has no such precision"))),
        }
    }

    fn mau_precision(&self, op: &EncodingOp, name: &str, letters: &[String]) -> Result<(usize, usize), WordFault> {
        let missing = || WordFault {
            code: Code::UnreadableWord,
            digits: (0, self.encoding.bits),
            message: format!("`{name}` has no precision in the word"),
        };
        let precision = self.precision(op, name, letters)?.ok_or_else(missing)?;
        let letter = &self.spec.precisions[precision].name;
        let mau = self.spec.mau_precisions.iter().position(|m| m.name == *letter).ok_or_else(missing)?;
        Ok((precision, mau))
    }

    fn source(&self, input: &crate::spec::EncodingInput, op: &EncodingOp) -> Result<Source, WordFault> {
        let field = input.select.field;
        let selector = input.select.keys(self.value(field)).next();
        let selector = selector.ok_or_else(|| self.fault(field, &format!("no known input of `{}`", op.name)))?;
        let kind = match selector {
            Selector::Forward(path) => SourceKind::Forward(path),
            Selector::Memory(memory) => {
                let port = self.encoding.ports.iter().find(|p| p.memory == memory);
                SourceKind::Memory(self.access(memory, port.and_then(|p| p.read.as_ref()))?)
            }
        };
        let set = |field: Option<usize>| field.is_some_and(|f| self.value(f) == 1);
        let convert = set(input.reduce).then_some(Convert::Reduce);
        Ok(Source { span: Span::default(), kind, negate: set(input.negate), convert })
    }

    fn access(&self, memory: usize, place: Option<&EncodingPlace>) -> Result<Access, WordFault> {
        let (words, address) = match place {
            None => (WORDS_PER_LONG * HALVES, Address::Cycle),
            Some(place) => {
                let words = self.key(&place.width)?;
                let stride = self.value(place.stride) as u32 * words;
                (words, Address::Stride { base: self.value(place.address) as u32, stride })
            }
        };
        Ok(Access { memory, words, address, indirect: false, modify: None })
    }
}

//! Resolves the names of the encoding to indices of the spec.

use super::super::fault::unknown;
use super::super::mnemonic::Half;
use super::super::Spec;
use super::raw::{self, Raw};
use super::*;
use crate::error::{Code, Error};

/// The suffixes of mnemonics that say which PEs multiply.
const HALVES: [(&str, Half); 2] = [("u", Half::Upper), ("d", Half::Lower)];

/// Resolves and checks the machine words of a spec.
pub(in super::super) fn resolve(raw: Raw, spec: &Spec) -> Result<Encoding, Error> {
    super::check::layout(&raw)?;
    let names = Names { spec, raw: &raw };
    let head = &raw.head;
    let (forward, mask) = (names.field("[encoding]", &head.forward)?, names.field("[encoding]", &head.mask)?);
    if spec.memory(&head.record_memory).is_none() {
        return Err(unknown(format!("[encoding]: no memory `{}`", head.record_memory)));
    }
    let ports = raw.ports.iter().map(|p| names.port(p)).collect::<Result<_, _>>()?;
    let units: Vec<EncodingUnit> = raw.units.iter().map(|u| names.unit(u)).collect::<Result<_, _>>()?;
    let ops = raw.ops.iter().map(|o| names.op(o, &units)).collect::<Result<_, _>>()?;
    let encoding = Encoding {
        bits: head.bits,
        letter: head.letter,
        forward,
        mask,
        record_memory: head.record_memory.clone(),
        doc: head.doc.clone(),
        evidence: head.evidence,
        ports,
        units,
        ops,
        fields: raw.fields,
        shared: raw.shared,
        vectors: raw.vectors,
    };
    super::check::meaning(&encoding, spec)?;
    Ok(encoding)
}

struct Names<'a> {
    spec: &'a Spec,
    raw: &'a Raw,
}

impl Names<'_> {
    /// Finds a field that an instruction may set.
    fn field(&self, place: &str, name: &str) -> Result<usize, Error> {
        let at = self.raw.fields.iter().position(|f| f.name == name);
        let at = at.ok_or_else(|| unknown(format!("{place}: no [[encoding_field]] `{name}`")))?;
        match self.raw.fields[at].status {
            Status::Unknown => Err(super::check::bad(format!("{place}: the field `{name}` is unknown"))),
            Status::Seen | Status::Inferred => Ok(at),
        }
    }

    fn optional(&self, place: &str, name: Option<&String>) -> Result<Option<usize>, Error> {
        name.map(|n| self.field(place, n)).transpose()
    }

    /// Resolves a field with its enumeration. `key` finds the index that a name stands for. `kind` is the word for such
    /// names in messages.
    fn coded<K>(
        &self,
        place: &str,
        coded: &raw::Coded,
        kind: &str,
        key: impl Fn(&str) -> Option<K>,
    ) -> Result<Coded<K>, Error> {
        let field = self.field(place, &coded.field)?;
        let values = &coded.values;
        let list = self.raw.enums.iter().find(|e| e.name == *values);
        let list = list.ok_or_else(|| unknown(format!("{place}: no [[encoding_enum]] `{values}`")))?;
        let mut codes = Vec::with_capacity(list.values.len());
        for (name, value) in &list.values {
            let key = key(name).ok_or_else(|| unknown(format!("[[encoding_enum]] `{values}`: no {kind} `{name}`")))?;
            super::check::fits(&self.raw.fields[field], *value, place)?;
            let status = if list.inferred.contains(name) { Status::Inferred } else { Status::Seen };
            codes.push(EncodingCode { key, value: *value, status });
        }
        match list.inferred.iter().find(|n| !list.values.contains_key(*n)) {
            Some(name) => Err(unknown(format!("[[encoding_enum]] `{values}`: `inferred` names `{name}`"))),
            None => Ok(Coded { field, codes }),
        }
    }

    fn place(&self, place: &str, raw: &raw::AddressField) -> Result<EncodingPlace, Error> {
        let width = |name: &str| self.spec.widths.iter().find(|w| w.name == name).map(|w| w.words);
        Ok(EncodingPlace {
            address: self.field(place, &raw.address)?,
            stride: self.field(place, &raw.stride)?,
            width: self.coded(place, &raw.width, "width", width)?,
        })
    }

    fn port(&self, raw: &raw::Port) -> Result<EncodingPort, Error> {
        let place = format!("[[encoding_port]] `{}`", raw.name);
        let memory = self.spec.memory(&raw.name);
        let memory = memory.ok_or_else(|| unknown(format!("{place}: no memory `{}`", raw.name)))?;
        let unit = |name: &str| self.raw.units.iter().position(|u| u.name == name);
        Ok(EncodingPort {
            memory,
            read: raw.read.as_ref().map(|r| self.place(&place, r)).transpose()?,
            enable: self.field(&place, &raw.write.enable)?,
            source: self.coded(&place, &raw.write.source, "[[encoding_unit]]", unit)?,
            mask: self.field(&place, &raw.write.mask)?,
            write: raw.write.place.as_ref().map(|w| self.place(&place, w)).transpose()?,
        })
    }

    fn input(&self, place: &str, raw: Option<&raw::Input>) -> Result<Option<EncodingInput>, Error> {
        let Some(raw) = raw else { return Ok(None) };
        let selector = |name: &str| {
            let memory = self.spec.memory(name).map(Selector::Memory);
            memory.or_else(|| self.spec.forwards.iter().position(|f| f.name == name).map(Selector::Forward))
        };
        let coded = raw::Coded { field: raw.field.clone(), values: raw.values.clone() };
        Ok(Some(EncodingInput {
            select: self.coded(place, &coded, "memory or forwarding path", selector)?,
            negate: self.optional(place, raw.negate.as_ref())?,
            reduce: self.optional(place, raw.reduce.as_ref())?,
        }))
    }

    fn unit(&self, raw: &raw::Unit) -> Result<EncodingUnit, Error> {
        let place = format!("[[encoding_unit]] `{}`", raw.name);
        let precision = |name: &str| self.spec.precisions.iter().position(|p| p.name == name);
        let bank = |name: &str| self.spec.banks.iter().position(|b| b.name == name);
        let half = |name: &str| HALVES.iter().find(|(letter, _)| *letter == name).map(|(_, half)| *half);
        let coded = |c: &Option<raw::Coded>, kind, key: &dyn Fn(&str) -> Option<usize>| {
            c.as_ref().map(|c| self.coded(&place, c, kind, key)).transpose()
        };
        Ok(EncodingUnit {
            name: raw.name.clone(),
            family: raw.family,
            implicit: raw.implicit,
            precision: coded(&raw.precision, "precision", &precision)?,
            inputs: [
                self.input(&place, raw.x.as_ref())?,
                self.input(&place, raw.y.as_ref())?,
                self.input(&place, raw.z.as_ref())?,
            ],
            half: raw.half.as_ref().map(|c| self.coded(&place, c, "half", half)).transpose()?,
            bank: coded(&raw.bank, "matrix register", &bank)?,
            row: self.optional(&place, raw.row.as_ref())?,
            wide: self.optional(&place, raw.wide.as_ref())?,
            address: self.optional(&place, raw.address.as_ref())?,
            literal: raw.literal.clone(),
        })
    }

    fn op(&self, raw: &raw::Op, units: &[EncodingUnit]) -> Result<EncodingOp, Error> {
        let place = format!("[[encoding_op]] `{}`", raw.name);
        let unit = units.iter().position(|u| u.name == raw.unit);
        let unit = unit.ok_or_else(|| unknown(format!("{place}: no [[encoding_unit]] `{}`", raw.unit)))?;
        let mut sets = Vec::with_capacity(raw.sets.len());
        for (name, value) in &raw.sets {
            let field = self.field(&place, name)?;
            super::check::fits(&self.raw.fields[field], *value, &place)?;
            sets.push((field, *value));
        }
        if sets.is_empty() != units[unit].implicit {
            let message = format!("{place}: an instruction sets fields, unless its unit is `implicit`");
            return Err(Error::new(Code::SpecBadValue, message));
        }
        let target = self.target(raw, units[unit].family, &place)?;
        Ok(EncodingOp { name: raw.name.clone(), unit, target, length: raw.length, sets, seen: raw.seen.clone() })
    }

    fn target(&self, raw: &raw::Op, family: Family, place: &str) -> Result<OpTarget, Error> {
        let (spec, name) = (self.spec, &raw.entry);
        if raw.form.is_some() != (family == Family::Transfer) {
            return Err(super::check::bad(format!("{place}: transfers have a `form`, others not")));
        }
        let target = match family {
            Family::Alu => spec.alu.iter().position(|a| a.name == *name).map(OpTarget::Alu),
            Family::Mau => spec.mau.iter().position(|m| m.name == *name).map(OpTarget::Mau),
            Family::MatrixOp => spec.matrix_ops.iter().position(|m| m.name == *name).map(OpTarget::Matrix),
            Family::Transfer => spec.transfers.iter().position(|t| t.name == *name).and_then(|transfer| {
                let form = spec.forms[transfer].iter().position(|f| Some(&f.name) == raw.form.as_ref())?;
                Some(OpTarget::Transfer { transfer, form, parameter: raw.parameter })
            }),
        };
        target.ok_or_else(|| unknown(format!("{place}: the spec has no such entry `{name}`")))
    }
}

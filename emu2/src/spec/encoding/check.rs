//! Checks the encoding: every bit is in one field, values fit their fields, and every word has one reading.

use super::super::fault::unknown;
use super::super::mnemonic::Mnemonic;
use super::super::{Spec, WORD_BITS};
use super::raw::Raw;
use super::{Encoding, EncodingField, EncodingOp, LiteralPiece, OpTarget, Status};
use crate::error::{Code, Error};

/// A machine word has at most this many bits.
const MAX_BITS: u32 = 512;
const BITS_PER_HEX_DIGIT: u32 = 4;

pub(super) fn bad(message: String) -> Error {
    Error::new(Code::SpecBadValue, message)
}

/// Refuses a value that a field cannot hold.
pub(super) fn fits(field: &EncodingField, value: u64, place: &str) -> Result<(), Error> {
    if value > field.maximum() {
        let message = format!("{place}: {value} does not fit the {} bits of `{}`", field.width, field.name);
        return Err(bad(message));
    }
    Ok(())
}

/// Checks the fields: each bit of the word is in exactly one, and the idle values are those of the idle word.
pub(super) fn layout(raw: &Raw) -> Result<(), Error> {
    let bits = raw.head.bits;
    if !(1..=MAX_BITS).contains(&bits) {
        return Err(bad(format!("[encoding] bits = {bits}; it must be 1 to {MAX_BITS}")));
    }
    let idle = digits(&raw.head.idle, bits).ok_or_else(|| bad(format!("[encoding] idle: {}", wrong_length(bits))))?;
    let mut next = 0;
    for field in &raw.fields {
        let place = format!("[[encoding_field]] `{}`", field.name);
        if field.width == 0 || field.width > u64::BITS {
            return Err(bad(format!("{place}: {} bits", field.width)));
        }
        if field.first < next {
            return Err(Error::new(Code::SpecDuplicate, format!("{place}: bit {} is claimed twice", field.first)));
        }
        if field.first > next {
            let message = format!("{place}: no [[encoding_field]] claims bit {next}");
            return Err(Error::new(Code::SpecMissingKey, message));
        }
        next = field.first.saturating_add(field.width);
        if next > bits {
            return Err(bad(format!("{place}: it ends at bit {}; the word has {bits}", next - 1)));
        }
        check_field(field, &idle, &place)?;
    }
    match next {
        _ if next < bits => Err(Error::new(Code::SpecMissingKey, format!("no [[encoding_field]] claims bit {next}"))),
        _ => check_vectors(raw),
    }
}

fn check_field(field: &EncodingField, idle: &[u8], place: &str) -> Result<(), Error> {
    fits(field, field.idle, place)?;
    let own = &idle[field.first as usize..(field.first + field.width) as usize];
    let held = own.iter().fold(0u64, |value, bit| value << 1 | u64::from(*bit));
    if held != field.idle {
        return Err(bad(format!("{place}: idle is {}, the idle word holds {held}", field.idle)));
    }
    let listed = field.seen.iter().flatten().chain(field.inferred.iter().flatten());
    if let Some(value) = listed.copied().find(|v| *v > field.maximum()) {
        return fits(field, value, place);
    }
    if field.inferred.is_some() != field.seen.is_some() || field.inferred.is_some_and(|[low, high]| low > high) {
        return Err(bad(format!("{place}: `seen` lists values, and `inferred` gives the range of the others")));
    }
    if field.seen.is_some() && field.status != Status::Seen {
        return Err(bad(format!("{place}: only a seen field lists values")));
    }
    Ok(())
}

fn check_vectors(raw: &Raw) -> Result<(), Error> {
    let bits = raw.head.bits;
    match raw.vectors.iter().find(|v| digits(&v.hex, bits).is_none()) {
        Some(v) => Err(bad(format!("[[encoding_vector]] `{}`: {}", v.name, wrong_length(bits)))),
        None => Ok(()),
    }
}

fn wrong_length(bits: u32) -> String {
    format!("{bits} bits are {} hex digits", bits.div_ceil(BITS_PER_HEX_DIGIT))
}

/// The bits of a hex text with exactly `bits` bits. The first digit may hold fewer than four.
fn digits(hex: &str, bits: u32) -> Option<Vec<u8>> {
    let values: Vec<u32> = hex.chars().map(|c| c.to_digit(16)).collect::<Option<_>>()?;
    let all = values.iter().flat_map(|v| (0..BITS_PER_HEX_DIGIT).rev().map(move |at| (v >> at & 1) as u8));
    let all: Vec<u8> = all.collect();
    let excess = all.len().checked_sub(bits as usize).filter(|n| *n < BITS_PER_HEX_DIGIT as usize)?;
    let (unused, own) = all.split_at(excess);
    unused.iter().all(|b| *b == 0).then(|| own.to_vec())
}

/// Checks the resolved encoding: literals, mnemonics, and that every word has one reading.
pub(super) fn meaning(encoding: &Encoding, spec: &Spec) -> Result<(), Error> {
    for unit in encoding.units.iter().filter(|u| !u.literal.is_empty()) {
        let place = format!("[[encoding_unit]] `{}`", unit.name);
        check_literal(&unit.literal, encoding, &place)?;
    }
    for shared in &encoding.shared {
        for name in [&shared.name, &shared.canonical] {
            if !spec.mnemonics.contains_key(name) {
                return Err(unknown(format!("[[encoding_shared]] `{}`: no mnemonic `{name}`", shared.name)));
            }
        }
    }
    for (at, op) in encoding.ops.iter().enumerate() {
        let place = format!("[[encoding_op]] `{}`", op.name);
        if let Some(name) = op.seen.iter().find(|n| !names(spec, op, n)) {
            return Err(unknown(format!("{place}: `{name}` is no mnemonic of it")));
        }
        // Two operations of a unit must differ in a field that both set.
        let rivals = encoding.ops[..at].iter().filter(|other| other.unit == op.unit);
        let differs = |other: &EncodingOp| {
            op.sets.iter().any(|(field, value)| other.sets.iter().any(|(f, v)| f == field && v != value))
        };
        if let Some(other) = rivals.into_iter().find(|other| !differs(other)) {
            let message = format!("{place}: its words can be those of `{}`", other.name);
            return Err(Error::new(Code::SpecDuplicate, message));
        }
        check_precisions(encoding, spec, op, &place)?;
    }
    Ok(())
}

/// Whether the mnemonic `name` belongs to the operation.
fn names(spec: &Spec, op: &EncodingOp, name: &str) -> bool {
    match (spec.mnemonics.get(name), op.target) {
        (Some(Mnemonic::Alu { op, .. }), OpTarget::Alu(at)) => *op == at,
        (Some(Mnemonic::Mau { op, .. }), OpTarget::Mau(at)) => *op == at,
        (Some(Mnemonic::Matrix { op, .. }), OpTarget::Matrix(at)) => *op == at,
        (Some(Mnemonic::Transfer(at)), OpTarget::Transfer { transfer, .. }) => *at == transfer,
        _ => false,
    }
}

fn check_literal(pieces: &[LiteralPiece], encoding: &Encoding, place: &str) -> Result<(), Error> {
    let mut claimed = 0u32;
    for piece in pieces {
        let ordered = piece.low <= piece.high && piece.high < WORD_BITS;
        if !ordered || piece.first.saturating_add(piece.width()) > encoding.bits {
            return Err(bad(format!("{place}: bits {} to {} of the literal", piece.high, piece.low)));
        }
        let mask = (u32::MAX >> (WORD_BITS - piece.width())) << piece.low;
        if claimed & mask != 0 {
            let message = format!("{place}: a bit of the literal lies in two places");
            return Err(Error::new(Code::SpecDuplicate, message));
        }
        claimed |= mask;
    }
    match claimed {
        u32::MAX => Ok(()),
        _ => Err(bad(format!("{place}: the literal has {WORD_BITS} bits"))),
    }
}

/// Checks that every code of a precision stands for exactly one precision of the operation. Mnemonics in `shared` do
/// not count, because another mnemonic stands for them.
fn check_precisions(encoding: &Encoding, spec: &Spec, op: &EncodingOp, place: &str) -> Result<(), Error> {
    let (name, letters) = match op.target {
        OpTarget::Alu(at) => (&spec.alu[at].name, &spec.alu[at].precisions),
        OpTarget::Mau(at) => (&spec.mau[at].name, &spec.mau[at].precisions),
        OpTarget::Matrix(at) => (&spec.matrix_ops[at].name, &spec.matrix_ops[at].precisions),
        OpTarget::Transfer { .. } => return Ok(()),
    };
    let Some(precision) = &encoding.units[op.unit].precision else { return Ok(()) };
    let own = |at: usize| letters.contains(&spec.precisions[at].name);
    for code in precision.codes.iter().filter(|c| own(c.key)) {
        let shared = |at: usize| {
            let mnemonic = format!("{}{name}", spec.precisions[at].name);
            encoding.shared.iter().any(|s| s.name == mnemonic)
        };
        let readings = precision.keys(code.value).filter(|at| own(*at) && !shared(*at)).count();
        if readings != 1 {
            let message = format!("{place}: precision code {} has {readings} readings", code.value);
            return Err(Error::new(Code::SpecDuplicate, message));
        }
    }
    Ok(())
}

//! A machine word while it is being built: which bits are set, and which parts are only inferred.

use super::bits::Word;
use crate::error::{Code, Diagnostic};
use crate::spec::{Encoding, EncodingCode, LiteralPiece, Status};

/// An error that may not have a place yet.
pub(super) type Refusal = Box<Diagnostic>;

pub(super) fn refuse(code: Code, message: String) -> Refusal {
    Box::new(Diagnostic::error(code, None, message))
}

#[derive(Debug)]
pub(super) struct Draft<'a> {
    pub(super) encoding: &'a Encoding,
    pub(super) word: Word,
    claimed: Word,
    /// Bits that hold an immediate. Nothing else may set them.
    literal: Word,
    /// The parts of the statement that rest on inferred positions or values.
    pub(super) inferred: Vec<String>,
}

impl<'a> Draft<'a> {
    pub(super) fn new(encoding: &'a Encoding) -> Self {
        let none = Word::zero(encoding.bits);
        Draft { encoding, word: Word::idle(encoding), claimed: none, literal: none, inferred: Vec::new() }
    }

    /// Sets a field. `what` is the part of the statement that needs it.
    pub(super) fn set(&mut self, field: usize, value: u64, what: &str) -> Result<(), Refusal> {
        self.set_known(field, value, Status::Seen, what)
    }

    /// Sets a field to a code.
    pub(super) fn code<K>(&mut self, field: usize, code: EncodingCode<K>, what: &str) -> Result<(), Refusal> {
        self.set_known(field, code.value, code.status, what)
    }

    fn set_known(&mut self, field: usize, value: u64, status: Status, what: &str) -> Result<(), Refusal> {
        let entry = &self.encoding.fields[field];
        if value > entry.maximum() {
            let message =
                format!("`{what}` needs {value} in `{}`, which holds {} at most", entry.name, entry.maximum());
            return Err(refuse(Code::NoWord, message));
        }
        match status.max(entry.status_of(value)) {
            Status::Seen => {}
            Status::Inferred => self.inferred.push(format!("`{what}`, for which `{}` is {value}", entry.name)),
            Status::Unknown => {
                let message = format!("`{what}` needs `{}` = {value}, whose meaning is not known", entry.name);
                return Err(refuse(Code::NoWord, message));
            }
        }
        let (first, width) = (entry.first, entry.width);
        let taken = self.claimed.get(first, width) != 0;
        if self.literal.get(first, width) != 0 || (taken && self.word.get(first, width) != value) {
            let held = self.word.get(first, width);
            let message =
                format!("`{what}` needs {value} in `{}`, which the rest of the line sets to {held}", entry.name);
            return Err(refuse(Code::FieldConflict, message));
        }
        self.word.set(first, width, value);
        self.claimed.set(first, width, u64::MAX);
        Ok(())
    }

    /// Writes an immediate over the fields that its bits lie in.
    pub(super) fn literal(&mut self, pieces: &[LiteralPiece], value: u32, what: &str) -> Result<(), Refusal> {
        for piece in pieces {
            let (first, width) = (piece.first, piece.width());
            if self.claimed.get(first, width) != 0 {
                let message = format!("`{what}` needs bits that the rest of the line sets");
                return Err(refuse(Code::FieldConflict, message));
            }
            self.word.set(first, width, u64::from(value >> piece.low));
            self.literal.set(first, width, u64::MAX);
        }
        Ok(())
    }
}

/// The bits of a word in which immediates lie.
pub(super) fn literal_bits(bits: u32, pieces: &[LiteralPiece]) -> Word {
    let mut word = Word::zero(bits);
    for piece in pieces {
        word.set(piece.first, piece.width(), u64::MAX);
    }
    word
}

//! Machine words as the spec declares them: `[encoding]` and the lists `encoding_*`, with every name resolved.
//!
//! Numbers called `field`, `memory`, `op`, ... index the lists of [`Encoding`] and [`Spec`](super::Spec).

mod check;
mod raw;
mod resolve;

pub(super) use raw::Raw;
pub(super) use resolve::resolve;

use super::mnemonic::Half;
use super::model::Evidence;
use serde::Deserialize;

/// How well a position or value of a machine word is known; the weaker one is the greater one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Deserialize, PartialOrd, Ord)]
#[serde(rename_all = "lowercase")]
pub enum Status {
    /// Fixed by comparing sources with the vendor's output.
    Seen,
    /// Never seen set; placed by symmetry, order or width.
    Inferred,
    /// Not established.
    Unknown,
}

/// The machine words of a spec.
#[derive(Clone, Debug)]
pub struct Encoding {
    /// Binary digits of a word.
    pub bits: u32,
    /// The letter that a word's line begins with.
    pub letter: char,
    /// Field that is 1 where forwarding paths are updated.
    pub forward: usize,
    /// Field of the write mask's entry.
    pub mask: usize,
    /// The memory that an `r` line of assembled text writes.
    pub record_memory: String,
    /// What the words cover.
    pub doc: String,
    /// How well the whole is known.
    pub evidence: Evidence,
    /// Fields in the order of their bits; every bit is in exactly one.
    pub fields: Vec<EncodingField>,
    /// Access to PE memories.
    pub ports: Vec<EncodingPort>,
    /// Units in the order in which a word's instructions are listed.
    pub units: Vec<EncodingUnit>,
    /// Instructions.
    pub ops: Vec<EncodingOp>,
    /// Mnemonics that stand for others with the same words.
    pub shared: Vec<EncodingShared>,
    /// Conformance vectors.
    pub vectors: Vec<EncodingVector>,
}

/// `[[encoding_field]]`
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct EncodingField {
    /// Name.
    pub name: String,
    /// First bit, counted from the first digit of the word.
    pub first: u32,
    /// Bits.
    pub width: u32,
    /// Value in the idle word.
    pub idle: u64,
    /// Status of its values.
    pub status: Status,
    /// The only values that have this status.
    pub seen: Option<Vec<u64>>,
    /// First and last of the other values that are inferred.
    pub inferred: Option<[u64; 2]>,
    /// One sentence.
    pub doc: String,
}

impl EncodingField {
    /// How well `value` is known in this field.
    pub fn status_of(&self, value: u64) -> Status {
        match (&self.seen, self.inferred) {
            (None, _) if value == self.idle => Status::Seen,
            (None, _) => self.status,
            (Some(seen), _) if seen.contains(&value) => self.status,
            (_, Some([low, high])) if (low..=high).contains(&value) => Status::Inferred,
            _ => Status::Unknown,
        }
    }

    /// The largest value that its bits hold.
    pub fn maximum(&self) -> u64 {
        u64::MAX >> (u64::BITS - self.width)
    }
}

/// A code of an enumeration.
#[derive(Clone, Copy, Debug)]
pub struct EncodingCode<K> {
    /// What it stands for.
    pub key: K,
    /// The value.
    pub value: u64,
    /// How well that is known.
    pub status: Status,
}

/// A field with the enumeration of its values.
#[derive(Clone, Debug)]
pub struct Coded<K> {
    /// The field.
    pub field: usize,
    /// Its values.
    pub codes: Vec<EncodingCode<K>>,
}

impl<K: Copy + PartialEq> Coded<K> {
    /// The code of `key`.
    pub fn code(&self, key: K) -> Option<EncodingCode<K>> {
        self.codes.iter().copied().find(|c| c.key == key)
    }

    /// What `value` stands for; several where they share a code.
    pub fn keys(&self, value: u64) -> impl Iterator<Item = K> + '_ {
        self.codes.iter().filter(move |c| c.value == value).map(|c| c.key)
    }
}

/// What an input selects.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Selector {
    /// Entry of `memories`.
    Memory(usize),
    /// Entry of `forwards`.
    Forward(usize),
}

/// Where an access lies.
#[derive(Clone, Debug)]
pub struct EncodingPlace {
    /// Word address of cycle 0.
    pub address: usize,
    /// Accesses from cycle to cycle.
    pub stride: usize,
    /// Words of 32 bits of an access.
    pub width: Coded<u32>,
}

/// `[[encoding_port]]`
#[derive(Clone, Debug)]
pub struct EncodingPort {
    /// Entry of `memories`.
    pub memory: usize,
    /// None: what is read has no address.
    pub read: Option<EncodingPlace>,
    /// 1 where it is written.
    pub enable: usize,
    /// The unit whose result is written.
    pub source: Coded<usize>,
    /// 1 where the write mask applies.
    pub mask: usize,
    /// None: what is written has no address.
    pub write: Option<EncodingPlace>,
}

/// An input of a unit.
#[derive(Clone, Debug)]
pub struct EncodingInput {
    /// What is read.
    pub select: Coded<Selector>,
    /// 1: negated.
    pub negate: Option<usize>,
    /// 1: `r`.
    pub reduce: Option<usize>,
}

/// The section of the spec that a unit's instructions stand in.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Family {
    /// `alu`
    Alu,
    /// `mau`
    Mau,
    /// `matrix_op`
    MatrixOp,
    /// `transfer`
    Transfer,
}

/// Some bits of an immediate's word.
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LiteralPiece {
    /// Highest bit, 31 at most.
    pub high: u32,
    /// Lowest bit.
    pub low: u32,
    /// Where the highest bit lies, counted from the first digit of the word.
    pub first: u32,
}

impl LiteralPiece {
    /// How many bits.
    pub fn width(&self) -> u32 {
        self.high + 1 - self.low
    }
}

/// `[[encoding_unit]]`
#[derive(Clone, Debug)]
pub struct EncodingUnit {
    /// Name; also what `write_source` enumerations call its result.
    pub name: String,
    /// Where its instructions stand.
    pub family: Family,
    /// Nothing but operands tells that its instruction is there.
    pub implicit: bool,
    /// Precisions.
    pub precision: Option<Coded<usize>>,
    /// The inputs x, y, z.
    pub inputs: [Option<EncodingInput>; 3],
    /// `u` or `d`.
    pub half: Option<Coded<Half>>,
    /// Matrix registers.
    pub bank: Option<Coded<usize>>,
    /// Row of a matrix register.
    pub row: Option<usize>,
    /// 1: two rows a cycle.
    pub wide: Option<usize>,
    /// Address in a memory above the PEs.
    pub address: Option<usize>,
    /// Where the bits of an immediate lie.
    pub literal: Vec<LiteralPiece>,
}

/// The entry of the spec that an operation encodes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OpTarget {
    /// Entry of `alu`.
    Alu(usize),
    /// Entry of `mau`.
    Mau(usize),
    /// Entry of `matrix_ops`.
    Matrix(usize),
    /// A form of a transfer.
    Transfer {
        /// Entry of `transfers`.
        transfer: usize,
        /// Entry of its `forms`.
        form: usize,
        /// Value of the parameter; 0 where the form has none.
        parameter: i64,
    },
}

/// `[[encoding_op]]`
#[derive(Clone, Debug)]
pub struct EncodingOp {
    /// Name.
    pub name: String,
    /// Entry of `units`.
    pub unit: usize,
    /// What it encodes.
    pub target: OpTarget,
    /// The mantissa length, where the precision names one.
    pub length: Option<u32>,
    /// Fields and their values.
    pub sets: Vec<(usize, u64)>,
    /// Mnemonics that were seen; the others are inferred.
    pub seen: Vec<String>,
}

/// `[[encoding_shared]]`
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct EncodingShared {
    /// A mnemonic.
    pub name: String,
    /// The mnemonic with the same words that stands for both.
    pub canonical: String,
}

/// `[[encoding_vector]]`
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct EncodingVector {
    /// A PE line.
    pub name: String,
    /// Its word in hex digits, most significant first.
    pub hex: String,
}

//! The machine words that the spec declares: `[encoding]` and the lists `encoding_*`, with every name resolved.
//!
//! Numbers with names such as `field`, `memory` or `op` index the lists of [`Encoding`] and [`Spec`](super::Spec).

mod check;
mod raw;
mod resolve;

pub(super) use raw::Raw;
pub(super) use resolve::resolve;

use super::mnemonic::Half;
use super::model::Evidence;
use serde::Deserialize;

/// How well a position or value of a machine word is known. A weaker status compares as greater.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Deserialize, PartialOrd, Ord)]
#[serde(rename_all = "lowercase")]
pub enum Status {
    /// Fixed by comparing sources with the vendor's output.
    Seen,
    /// Never seen set. Placed by symmetry, order or width.
    Inferred,
    /// Not established.
    Unknown,
}

/// The machine words of a spec.
#[derive(Clone, Debug)]
pub struct Encoding {
    /// Binary digits of a word.
    pub bits: u32,
    /// The letter that begins a line with a word.
    pub letter: char,
    /// Field that is 1 if the step updates the forwarding paths.
    pub forward: usize,
    /// Field of the entry of the write mask.
    pub mask: usize,
    /// The memory that an `r` line of assembled text writes.
    pub record_memory: String,
    /// Which instructions the words cover.
    pub doc: String,
    /// How well the encoding as a whole is known.
    pub evidence: Evidence,
    /// Fields in the order of their bits. Every bit is in exactly one field.
    pub fields: Vec<EncodingField>,
    /// Access to PE memories.
    pub ports: Vec<EncodingPort>,
    /// Units, in the order in which the instructions of a word are listed.
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
    /// Number of bits.
    pub width: u32,
    /// Value in the idle word.
    pub idle: u64,
    /// Status of the values of the field.
    pub status: Status,
    /// If given, only these values have this status.
    pub seen: Option<Vec<u64>>,
    /// First and last value of the range whose other values are inferred.
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

    /// The largest value that the bits of the field hold.
    pub fn maximum(&self) -> u64 {
        u64::MAX >> (u64::BITS - self.width)
    }
}

/// A code of an enumeration.
#[derive(Clone, Copy, Debug)]
pub struct EncodingCode<K> {
    /// The thing that the value stands for.
    pub key: K,
    /// The value.
    pub value: u64,
    /// How well the code is known.
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

    /// The keys that `value` stands for. There are several if they share a code.
    pub fn keys(&self, value: u64) -> impl Iterator<Item = K> + '_ {
        self.codes.iter().filter(move |c| c.value == value).map(|c| c.key)
    }
}

/// The source that an input selects.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Selector {
    /// Entry of `memories`.
    Memory(usize),
    /// Entry of `forwards`.
    Forward(usize),
}

/// The fields that give the address and width of an access.
#[derive(Clone, Debug)]
pub struct EncodingPlace {
    /// Field of the word address of cycle 0.
    pub address: usize,
    /// Field of the stride from cycle to cycle, in accesses.
    pub stride: usize,
    /// The number of 32-bit words of an access.
    pub width: Coded<u32>,
}

/// `[[encoding_port]]`
#[derive(Clone, Debug)]
pub struct EncodingPort {
    /// Entry of `memories`.
    pub memory: usize,
    /// The place of a read. `None` if the memory has no address.
    pub read: Option<EncodingPlace>,
    /// Field that is 1 if the memory is written.
    pub enable: usize,
    /// The unit whose result is written.
    pub source: Coded<usize>,
    /// Field that is 1 if the write mask applies.
    pub mask: usize,
    /// The place of a write. `None` if the memory has no address.
    pub write: Option<EncodingPlace>,
}

/// An input of a unit.
#[derive(Clone, Debug)]
pub struct EncodingInput {
    /// The source that is read.
    pub select: Coded<Selector>,
    /// Field that is 1 if the source is negated.
    pub negate: Option<usize>,
    /// Field that is 1 if the source has the conversion `r`.
    pub reduce: Option<usize>,
}

/// The section of the spec that holds the instructions of a unit.
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

/// A run of bits of the 32-bit word of an immediate.
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LiteralPiece {
    /// Highest bit, 31 at most.
    pub high: u32,
    /// Lowest bit.
    pub low: u32,
    /// Position of the highest bit in the machine word, counted from the first digit.
    pub first: u32,
}

impl LiteralPiece {
    /// The number of bits.
    pub fn width(&self) -> u32 {
        self.high + 1 - self.low
    }
}

/// `[[encoding_unit]]`
#[derive(Clone, Debug)]
pub struct EncodingUnit {
    /// Name. The enumerations `write_source` call the result of the unit by it too.
    pub name: String,
    /// The section of its instructions.
    pub family: Family,
    /// The instruction of the unit sets no field of its own. Only the operands show that it is there.
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
    /// Field that is 1 for two rows a cycle.
    pub wide: Option<usize>,
    /// Address in a memory above the PEs.
    pub address: Option<usize>,
    /// The positions of the bits of an immediate.
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
        /// Value of the parameter. 0 if the form has none.
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
    /// The entry of the spec that it encodes.
    pub target: OpTarget,
    /// The mantissa length, if the precision has one.
    pub length: Option<u32>,
    /// Fields and their values.
    pub sets: Vec<(usize, u64)>,
    /// Mnemonics whose words were seen. Those of the others are inferred.
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

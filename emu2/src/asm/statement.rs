//! Statements of a program. Every name is resolved to its entry of the spec.
//!
//! Numbers with names such as `op`, `transfer` or `memory` index the lists of [`Spec`](crate::spec::Spec).

use crate::error::Span;
use crate::spec::{Half, LevelName};

/// One statement and its place.
#[derive(Clone, Debug)]
pub struct Item {
    /// Line of the source, from 1.
    pub line: u32,
    /// Bytes of the statement.
    pub span: Span,
    /// The kind of statement.
    pub kind: ItemKind,
}

/// A statement.
#[derive(Clone, Debug)]
pub enum ItemKind {
    /// A PE line: one step.
    Step(Box<Step>),
    /// `nop` or `nop/N`.
    Nop {
        /// Number of steps.
        count: u64,
        /// Tag of a `wait` on the same line.
        wait: Option<u32>,
    },
    /// An MV.
    Mv(Box<Mv>),
    /// `d set`
    Set(Box<DebugSet>),
    /// `d get`
    Get(Box<DebugGet>),
    /// A command of the host.
    Host(Box<HostCommand>),
}

/// A command of the host.
#[derive(Clone, Debug, PartialEq)]
pub enum HostCommand {
    /// Writes these long words, then signals the tag.
    Write(HostWords, Vec<u64>),
    /// Shows this many long words, then signals the tag.
    Read(HostWords, u64),
    /// Waits until everything before has finished.
    Fence,
}

/// The words that a command of the host names, and its tags. Tag 0 is none.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct HostWords {
    /// First long word of the memory that the host reaches.
    pub address: u64,
    /// Tag that is signalled afterwards.
    pub signal: u32,
    /// Tag that is waited for first.
    pub wait: u32,
}

/// The instructions of one PE line.
#[derive(Clone, Debug)]
pub struct Step {
    /// ALU, MAU and L1BM instructions.
    pub pe: Vec<PeInstruction>,
    /// L2BM instructions.
    pub l2bm: Vec<L2bmTransfer>,
    /// Tag that the step waits for.
    pub wait: Option<u32>,
    /// False with `noforward`: forwarding paths keep their values.
    pub forward: bool,
}

/// An instruction that reads or writes PEs.
#[derive(Clone, Debug)]
pub struct PeInstruction {
    /// Bytes of the instruction.
    pub span: Span,
    /// Operation.
    pub kind: PeKind,
    /// Sources, in source order.
    pub sources: Vec<Source>,
    /// Destinations, in source order. Empty for `$nowrite`.
    pub destinations: Vec<Destination>,
    /// The zero flush. Result bits whose mask bit is 0 become 0, after the flags and before forwarding and writing.
    pub zero_flush: Option<Mask>,
}

/// The operation of a PE instruction.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum PeKind {
    /// An ALU operation.
    Alu {
        /// Entry of `alu`.
        op: usize,
        /// Entry of `precisions`.
        precision: Option<usize>,
        /// The `u` form.
        unsigned: bool,
        /// Word of an immediate.
        literal: Option<u32>,
        /// Mantissa length of a block float conversion.
        length: Option<u32>,
    },
    /// A MAU compute operation.
    Mau {
        /// Entry of `mau`.
        op: usize,
        /// Entry of `precisions`.
        precision: usize,
        /// Entry of `mau_precisions`.
        mau_precision: usize,
        /// The PEs that multiply.
        half: Option<Half>,
        /// The result is in the reduced format.
        reduced: bool,
        /// Entry of `banks`: the matrix register of a matrix-vector operation.
        bank: Option<usize>,
    },
    /// Access to a matrix register. A write has one source, a read has destinations.
    Matrix {
        /// Entry of `matrix_ops`.
        op: usize,
        /// Entry of `precisions`.
        precision: usize,
        /// Entry of `mau_precisions`.
        mau_precision: usize,
        /// Entry of `banks`.
        bank: usize,
        /// First row or column, below the precision's rows.
        row: u32,
        /// Two rows or columns a cycle (`ll`).
        wide: bool,
    },
    /// A transfer from L1BM to the PEs, with destinations, or from the PEs to L1BM, with one source.
    L1bm {
        /// Which transfer and form.
        form: FormRef,
        /// L1BM address in long words. `None` is the turnaround register.
        address: Option<u64>,
    },
}

/// A form of a transfer with its parameter.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct FormRef {
    /// Entry of `transfers`.
    pub transfer: usize,
    /// Entry of its `forms`.
    pub form: usize,
    /// Value of the parameter. 0 if the form has none.
    pub parameter: i64,
}

/// A read operand.
#[derive(Clone, Debug, PartialEq)]
pub struct Source {
    /// Bytes of the operand.
    pub span: Span,
    /// The place that is read.
    pub kind: SourceKind,
    /// The sign of every lane is flipped, after conversion.
    pub negate: bool,
    /// `e` or `r`.
    pub convert: Option<Convert>,
}

/// The place that a source reads.
#[derive(Clone, Debug, PartialEq)]
pub enum SourceKind {
    /// A PE memory.
    Memory(Access),
    /// Entry of `forwards`.
    Forward(usize),
    /// Entry of `fixed`.
    Fixed(usize),
}

/// Conversion of a source.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Convert {
    /// `e`: from the next lower format.
    Extend,
    /// `r`: from four singles to halves.
    Reduce,
}

/// A written operand.
#[derive(Clone, Debug, PartialEq)]
pub struct Destination {
    /// Bytes of the operand.
    pub span: Span,
    /// The place that is written.
    pub target: Target,
    /// The write mask of the destination itself or of a mask statement before the line. `None` writes everything.
    pub mask: Option<Mask>,
}

/// The place that a destination writes.
#[derive(Clone, Debug, PartialEq)]
pub enum Target {
    /// A PE memory: the result.
    Memory(Access),
    /// A base address register: the low bits of the result.
    Base {
        /// Entry of `bases`.
        base: usize,
        /// The number of 32-bit words that are accessed.
        words: u32,
    },
    /// A mask register: the flags.
    Flags {
        /// Number of the register, from 1.
        entry: u32,
    },
}

impl Target {
    /// The access, if the target is a PE memory.
    pub fn access(&self) -> Option<&Access> {
        match self {
            Target::Memory(access) => Some(access),
            Target::Base { .. } | Target::Flags { .. } => None,
        }
    }
}

/// A write or zero-flush mask.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Mask {
    /// If false, its bits control the halves of the first long word. If true (`ll`), they control the words of the
    /// path.
    pub wide: bool,
    /// The bits of the mask.
    pub entry: MaskEntry,
}

/// The bits of a mask.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum MaskEntry {
    /// A fixed pattern: bit c is cycle c.
    Cycles(u32),
    /// A mask register.
    Register(u32),
}

/// An access of a PE memory, with one address per cycle.
#[derive(Clone, Debug, PartialEq)]
pub struct Access {
    /// Entry of `memories`.
    pub memory: usize,
    /// 32-bit words per access: 1, 2 or 4. Always 4 for the T register.
    pub words: u32,
    /// Word address of each cycle, before wrapping. The T register has none.
    pub address: Address,
    /// The low bits of the long word that the T register holds for the cycle are added to the address.
    pub indirect: bool,
    /// One access width is added to the address on the PEs of a MAB up to this number.
    pub modify: Option<u32>,
}

/// Word addresses over the cycles of a step.
#[derive(Clone, Debug, PartialEq)]
pub enum Address {
    /// `base + c*stride`
    Stride {
        /// Address in cycle 0.
        base: u32,
        /// Words from cycle to cycle.
        stride: u32,
    },
    /// One address per cycle.
    Flat(Box<[u32]>),
    /// The entry of the cycle, in the T register.
    Cycle,
}

impl Address {
    /// The word address in cycle `c`, before wrapping.
    pub fn at(&self, c: u32) -> u32 {
        match self {
            Address::Stride { base, stride } => base + c * stride,
            Address::Flat(list) => list.get(c as usize).copied().unwrap_or(0),
            Address::Cycle => 0,
        }
    }
}

/// An L2BM instruction.
#[derive(Clone, Debug, PartialEq)]
pub struct L2bmTransfer {
    /// Bytes of the instruction.
    pub span: Span,
    /// Which transfer and form.
    pub form: FormRef,
    /// Source address in long words.
    pub source: u64,
    /// Destination address in long words.
    pub destination: u64,
    /// Units that `@` selects on the source side.
    pub source_unit: Selected,
}

/// An MV instruction.
#[derive(Clone, Debug, PartialEq)]
pub struct Mv {
    /// Which transfer and form.
    pub form: FormRef,
    /// Size in long words, counted as the form says. A multiple of the unit of the form.
    pub size: u64,
    /// Completion tag.
    pub tag: Option<u32>,
    /// Priority.
    pub priority: u32,
    /// Source address in long words, or the first DAR entry.
    pub source: u64,
    /// Set if the source goes through the DRAM address register (DAR): how many consecutive blocks one entry serves.
    pub source_dar: Option<u64>,
    /// Units that `@` selects on the source side.
    pub source_unit: Selected,
    /// Destination address in long words, or the first DAR entry.
    pub destination: u64,
    /// The same as `source_dar` for the destination.
    pub destination_dar: Option<u64>,
    /// Units that `@` selects on the destination side.
    pub destination_unit: Selected,
}

/// The units that `@` selects.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Selected {
    /// Group.
    pub group: Option<u32>,
    /// L2B inside the group.
    pub l2b: Option<u32>,
}

impl Selected {
    /// The selected unit of a level.
    pub fn number(self, level: LevelName) -> Option<u32> {
        match level {
            LevelName::Group => self.group,
            LevelName::L2b => self.l2b,
            _ => None,
        }
    }
}

/// The place that a debug statement names.
#[derive(Clone, Debug, PartialEq)]
pub struct Location {
    /// Entry of `memories`.
    pub memory: usize,
    /// 32-bit words per access. 2 for memories addressed in long words.
    pub words: u32,
    /// Address in the unit of the memory. For the T register it is the cycle.
    pub address: u64,
    /// One unit per level of the tree, outermost first. `None` is all units of the level.
    pub units: [Option<u32>; 5],
}

/// `d set`
#[derive(Clone, Debug, PartialEq)]
pub struct DebugSet {
    /// Where.
    pub location: Location,
    /// One long word per access. A word access uses its upper half.
    pub payload: Vec<u64>,
}

/// `d get`
#[derive(Clone, Debug, PartialEq)]
pub struct DebugGet {
    /// Where.
    pub location: Location,
    /// Entry of `precisions`. `None` is untyped.
    pub precision: Option<usize>,
    /// The values are block float.
    pub block: bool,
    /// Number of long words.
    pub count: u64,
    /// The statement in the form that dump lines echo.
    pub statement: String,
}

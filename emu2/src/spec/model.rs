//! The entries of a spec as its TOML spells them. Field names are the keys; unknown keys are refused.

use indexmap::IndexMap;
use serde::Deserialize;

/// How well an entry is known.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Deserialize, PartialOrd, Ord)]
#[serde(rename_all = "kebab-case")]
pub enum Evidence {
    /// Reproduced against output of the vendor's emulator or board.
    VendorOutput,
    /// Stated by the vendor's manual.
    Manual,
    /// Follows from working public programs or from other entries.
    Derived,
    /// Not established; the best guess.
    Guess,
}

impl Evidence {
    /// The spelling of the spec.
    pub fn name(self) -> &'static str {
        match self {
            Evidence::VendorOutput => "vendor-output",
            Evidence::Manual => "manual",
            Evidence::Derived => "derived",
            Evidence::Guess => "guess",
        }
    }
}

/// A few lines of assembly and the long words they must leave behind.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Example {
    /// The program.
    pub text: String,
    /// Location, as in `d get`, to the long words (16 hex digits) from there on.
    pub expect: IndexMap<String, Vec<String>>,
    /// The same for one machine by name, instead of `expect`.
    #[serde(default)]
    pub expect_on: IndexMap<String, IndexMap<String, Vec<String>>>,
}

/// `[machine]`
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Machine {
    /// Name of the spec.
    pub name: String,
    /// One sentence.
    pub doc: String,
    /// Clock frequency in MHz.
    pub clock_mhz: u32,
}

/// `[counts]`: units of a level inside one unit of the level above, and the cycles of a step.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Counts {
    /// Groups of the chip.
    pub group: u32,
    /// L2Bs of a group.
    pub l2b: u32,
    /// L1Bs of an L2B.
    pub l1b: u32,
    /// MABs of an L1B.
    pub mab: u32,
    /// PEs of a MAB.
    pub pe: u32,
    /// Cycles of a step.
    pub cycle: u32,
}

/// A level of the tree.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Deserialize, PartialOrd, Ord)]
#[serde(rename_all = "lowercase")]
pub enum LevelName {
    /// The whole chip.
    Chip,
    /// A group: DRAM, PDM.
    Group,
    /// An L2B: L2BM.
    L2b,
    /// An L1B: L1BM.
    L1b,
    /// A matrix block.
    Mab,
    /// A processing element.
    Pe,
}

/// `[[level]]`, outermost first.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Level {
    /// Which level.
    pub name: LevelName,
    /// Its letter in debug statements.
    pub selector: char,
}

/// `[[width]]`
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Width {
    /// Name in messages.
    pub name: String,
    /// What stands between `$` and the letter.
    pub prefix: String,
    /// Words of 32 bits.
    pub words: u32,
}

/// `[[format]]`
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Format {
    /// Name.
    pub name: String,
    /// Exponent bits.
    pub exponent: u32,
    /// Fraction bits.
    pub fraction: u32,
}

/// Whether a precision's lanes are floating point or integers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum LaneKind {
    /// Floating point.
    Float,
    /// Two's complement or unsigned integers.
    Int,
}

/// `[[precision]]`
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Precision {
    /// The letter of mnemonics.
    pub name: String,
    /// Floats or integers.
    pub kind: LaneKind,
    /// Name of the float format.
    pub format: Option<String>,
    /// Lanes of a long word.
    pub lanes: u32,
    /// Block float only, with a shorter mantissa than the format's.
    #[serde(default)]
    pub pseudo: bool,
}

/// What a written address counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Unit {
    /// Words of 32 bits.
    Word,
    /// Long words of 64 bits.
    Long,
    /// No address: the entry of the cycle.
    Cycle,
    /// Mask entries of one long word per cycle.
    Mask,
    /// A base address register.
    Base,
    /// A row of a matrix register.
    Matrix,
}

/// Whether reads and writes of a memory go through one port.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Ports {
    /// One port for both. A matrix register with one serves one instruction of a line.
    Shared,
    /// One for reads, one for writes.
    Split,
}

/// `[[memory]]`
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Memory {
    /// Name in the Python API and in memory files.
    pub name: String,
    /// One instance per unit of this level.
    pub level: LevelName,
    /// Long words of one instance.
    pub words: u64,
    /// What a written address counts.
    pub unit: Unit,
    /// Read and write ports.
    pub ports: Ports,
    /// Kept as pages that exist once touched.
    #[serde(default)]
    pub sparse: bool,
    /// Name in dump lines.
    pub dump: String,
    /// One sentence.
    pub doc: String,
    /// How well it is known.
    pub evidence: Evidence,
}

/// A way to write an address.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Addressing {
    /// `0v`, `0v4`: advances every cycle.
    Stride,
    /// `[0,2,4,6]`: one address per cycle.
    Flat,
    /// `t`: the low bits of the T register's long word are added.
    Indirect,
    /// `j1`: one access width more on the first PEs of a MAB.
    Modify,
}

/// `[[operand]]`: a memory as assembly names it.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Operand {
    /// Name that transfer forms use.
    pub name: String,
    /// The letter after the width prefix.
    pub letter: char,
    /// The memory.
    pub memory: String,
    /// Legal width prefixes.
    pub widths: Vec<String>,
    /// Legal ways to write the address beyond a plain number.
    pub addressing: Vec<Addressing>,
    /// Levels that `@` may select, outermost first.
    #[serde(default)]
    pub selectors: Vec<LevelName>,
    /// Memory of the base address register that is added to every address.
    pub base: Option<String>,
    /// One sentence.
    pub doc: String,
    /// How well it is known.
    pub evidence: Evidence,
}

/// The unit whose last result a forwarding path holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ForwardUnit {
    /// MAU compute.
    Mau,
    /// ALU.
    Alu,
    /// L1BM to PE.
    L1bm,
    /// Matrix read.
    Matrix,
}

/// `[[forward]]`
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Forward {
    /// Token without `$`.
    pub name: String,
    /// Whose result.
    pub unit: ForwardUnit,
    /// No other unit's input takes it.
    #[serde(default)]
    pub first_alu_input_only: bool,
    /// One sentence.
    pub doc: String,
    /// How well it is known.
    pub evidence: Evidence,
}

/// `[[base]]`: a base address register as a destination.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Base {
    /// Token without `$` and width prefix.
    pub name: String,
    /// The register's memory.
    pub memory: String,
    /// Legal width prefixes.
    pub widths: Vec<String>,
    /// Low bits of the accessed width that it keeps.
    pub bits: u32,
    /// One sentence.
    pub doc: String,
    /// How well it is known.
    pub evidence: Evidence,
}

/// `[[bank]]`: a matrix register.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Bank {
    /// Letter after the width prefix.
    pub name: String,
    /// The register's memory.
    pub memory: String,
    /// Legal width prefixes.
    pub widths: Vec<String>,
    /// One sentence.
    pub doc: String,
    /// How well it is known.
    pub evidence: Evidence,
}

/// `[mask]`: write masks and mask registers.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct MaskRegisters {
    /// Token of a destination, without `$`.
    pub destination: String,
    /// Token of a mask, without `$`.
    pub source: String,
    /// The statement that sets the masks of the following lines.
    pub statement: String,
    /// Letter of the mask registers in that statement.
    pub letter: char,
    /// The registers' memory.
    pub memory: String,
    /// Register entries, entry 0 included; the fixed patterns follow.
    pub entries: u32,
    /// Bits of an entry in one cycle.
    pub bits: u32,
    /// One paragraph.
    pub doc: String,
    /// How well it is known.
    pub evidence: Evidence,
}

/// `[[fixed]]`
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Fixed {
    /// Token without `$`.
    pub name: String,
    /// Expression over `g q b m p` and the counts, or "msb".
    pub value: String,
    /// One sentence.
    pub doc: String,
    /// How well it is known.
    pub evidence: Evidence,
}

/// What a literal's text is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum LiteralKind {
    /// A decimal number, rounded to a float format.
    Float,
    /// A signed integer.
    Signed,
    /// An unsigned integer.
    Unsigned,
}

/// `[[literal]]`
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Literal {
    /// What stands before the quotes.
    pub name: String,
    /// Float or integer.
    pub kind: LiteralKind,
    /// Float format.
    pub format: Option<String>,
    /// Integer width.
    pub bits: Option<u32>,
    /// How often the value fills the 32-bit word.
    pub repeat: u32,
    /// One sentence.
    pub doc: String,
    /// How well it is known.
    pub evidence: Evidence,
}

/// `[[slot]]`: at most one instruction of a slot per line.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Slot {
    /// Name.
    pub name: String,
    /// Shares a line with nothing.
    #[serde(default)]
    pub alone: bool,
    /// Shares a line with these slots only.
    #[serde(default)]
    pub with: Vec<String>,
    /// Needs another instruction on the line.
    #[serde(default)]
    pub needs_company: bool,
    /// How many priorities (`p0`, `p1`, ...) its instructions may ask for; 0: they have none.
    #[serde(default)]
    pub priorities: u32,
    /// One sentence.
    pub doc: String,
}

/// `[[share]]`: slots whose instructions drive one unit.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Share {
    /// Name of the unit.
    pub name: String,
    /// The slots.
    pub slots: Vec<String>,
    /// Instructions of these slots on a line, all of one precision.
    pub limit: u32,
    /// One sentence.
    pub doc: String,
    /// How well it is known.
    pub evidence: Evidence,
}

/// Which part of the 128-bit path an op works on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum DataWidth {
    /// L0; L1 of an ALU result is L1 of x.
    Long,
    /// Both long words.
    Path,
}

/// Mantissa lengths written after the mnemonic, `hbfn/9`.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Lengths {
    /// The precision that names one.
    pub precision: String,
    /// Smallest.
    pub minimum: u32,
    /// Largest.
    pub maximum: u32,
}

/// `[[alu]]`
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Alu {
    /// The op without prefixes.
    pub name: String,
    /// Legal precision letters; none: the op has no prefix.
    pub precisions: Vec<String>,
    /// Precision letters with a `u` form.
    #[serde(default)]
    pub unsigned: Vec<String>,
    /// Source operands.
    pub sources: u32,
    /// Begins with a literal.
    #[serde(default)]
    pub literal: bool,
    /// Lane function: a name of the ALU kernels, or `imm`, `immu`.
    pub kernel: String,
    /// The bit of x that `relu` tests, counted from the top.
    #[serde(default)]
    pub bit: u32,
    /// What `lrelu` subtracts from and `ilrelu` adds to the exponent field.
    #[serde(default)]
    pub amount: u32,
    /// `rsqrt`: results in 64ths, 16 for even and 16 for odd exponents.
    pub table: Option<[u8; 32]>,
    /// Block float: the mantissa lengths that a precision must name.
    pub lengths: Option<Lengths>,
    /// What the op works on.
    pub data: DataWidth,
    /// Precisions in which it works on all 128 bits whatever `data` says.
    #[serde(default)]
    pub path_precisions: Vec<String>,
    /// Flag rule.
    pub flag: String,
    /// Flag rule of the `u` form.
    pub unsigned_flag: Option<String>,
    /// Memories that no instruction of the line may touch.
    #[serde(default)]
    pub excludes: Vec<String>,
    /// One paragraph.
    pub doc: String,
    /// How well it is known.
    pub evidence: Evidence,
    /// Programs with their bits.
    pub example: Vec<Example>,
}

/// `[[mau_precision]]`
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct MauPrecision {
    /// Precision letter.
    pub name: String,
    /// Low bits of both factors whose partial products are not formed.
    pub omitted_bits: u32,
    /// What the addend port takes.
    pub addend: DataWidth,
    /// What the result fills.
    pub result: DataWidth,
    /// Format of an `r` result.
    pub reduced: String,
    /// Products need `u` or `d`.
    pub pair: bool,
    /// Low mantissa bits of a matrix factor that are not seen.
    #[serde(default)]
    pub ignored_bits: u32,
    /// Rows of the matrix register.
    pub rows: u32,
}

/// A MAU input port.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum MauPort {
    /// First factor.
    X,
    /// Second factor.
    Y,
    /// Addend.
    Z,
}

/// `[[mau]]`
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Mau {
    /// The op without prefix and suffixes.
    pub name: String,
    /// Legal precision letters.
    pub precisions: Vec<String>,
    /// The port of each written source.
    pub sources: Vec<MauPort>,
    /// Multiplies two written sources, so that `pair` precisions need `u` or `d`.
    pub product: bool,
    /// The first factor is a matrix register, written before the sources.
    #[serde(default)]
    pub matrix: bool,
    /// One paragraph.
    pub doc: String,
    /// How well it is known.
    pub evidence: Evidence,
    /// Programs with their bits.
    pub example: Vec<Example>,
}

/// What a matrix register access does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum MatrixKernel {
    /// Stores rows.
    Write,
    /// Gives columns.
    Read,
}

/// `[[matrix_op]]`: access to a matrix register.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct MatrixOp {
    /// The op without prefix.
    pub name: String,
    /// Legal precision letters.
    pub precisions: Vec<String>,
    /// What it does.
    pub kernel: MatrixKernel,
    /// Issue slot.
    pub slot: String,
    /// The MAU input that its source comes through.
    pub port: Option<MauPort>,
    /// Precisions that may move two rows or columns a cycle.
    #[serde(default)]
    pub wide: Vec<String>,
    /// Precisions that must.
    #[serde(default)]
    pub wide_only: Vec<String>,
    /// One paragraph.
    pub doc: String,
    /// How well it is known.
    pub evidence: Evidence,
    /// Programs with their bits.
    pub example: Vec<Example>,
}

/// How a transfer's parameter is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ParameterStyle {
    /// `@3`
    At,
    /// `+3`, `-3`, or nothing for the default.
    Signed,
}

/// What a transfer's mnemonic carries.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Parameter {
    /// Name in the index map.
    pub name: String,
    /// Spelling.
    pub style: ParameterStyle,
    /// Smallest value, an expression.
    pub minimum: String,
    /// Largest value, an expression.
    pub maximum: String,
    /// Value when left out; none: must be written.
    pub default: Option<i64>,
    /// Forms that have it; empty: all.
    #[serde(default)]
    pub forms: Vec<String>,
}

/// One end of a transfer form.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Side {
    /// An operand's name, or "pe" for the PE side.
    pub operand: String,
    /// Width prefix that selects this form.
    pub width: Option<String>,
    /// Levels that `@` must select here.
    #[serde(default)]
    pub selectors: Vec<LevelName>,
    /// What the written address must be a multiple of, an expression.
    pub align: Option<String>,
}

/// Published rates of an MV form in long words per cycle.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Throughput {
    /// Both ends in one group.
    pub same_group: u32,
    /// Ends in different groups.
    pub across: u32,
}

/// `[[transfer.form]]`: one index map.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Form {
    /// Name.
    pub name: String,
    /// MV: the size must be a multiple of this expression, and `i` counts such blocks.
    pub unit: Option<String>,
    /// Where the words come from.
    pub source: Side,
    /// Where they go.
    pub destination: Side,
    /// MV: published rates.
    pub throughput: Option<Throughput>,
    /// Counter to its count, an expression; outermost first.
    pub r#loop: IndexMap<String, String>,
    /// Coordinates of the source.
    pub from: IndexMap<String, String>,
    /// Coordinates of the destination.
    pub to: IndexMap<String, String>,
    /// Reductions: inputs of each stage, expressions, the stage at the elements first. The words that meet in one
    /// destination are its elements, in loop order.
    #[serde(default)]
    pub tree: Vec<String>,
    /// Where it differs from the instruction's.
    pub evidence: Option<Evidence>,
}

/// `[[reduction]]`: what a reducing transfer does with the words that meet.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Reduction {
    /// What follows the transfer's name.
    pub name: String,
    /// Precision letter.
    pub precision: String,
    /// A name of the reduction kernels.
    pub kernel: String,
    /// One sentence.
    pub doc: String,
    /// How well it is known.
    pub evidence: Evidence,
}

/// `[[transfer]]`
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Transfer {
    /// The mnemonic without its parameter.
    pub name: String,
    /// Issue slot.
    pub slot: String,
    /// The level whose every unit runs the map.
    pub level: LevelName,
    /// What the mnemonic carries.
    pub parameter: Option<Parameter>,
    /// Reductions whose names follow this one's; each makes a transfer of its own.
    #[serde(default)]
    pub reductions: Vec<String>,
    /// Set where this is one of them: entry of `reductions` of the spec.
    #[serde(skip)]
    pub reduction: Option<usize>,
    /// Index maps; the operands written decide which one is meant.
    pub form: Vec<Form>,
    /// One paragraph.
    pub doc: String,
    /// How well it is known.
    pub evidence: Evidence,
    /// Programs with their bits.
    pub example: Vec<Example>,
}

/// What a control statement does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ControlKernel {
    /// Idle steps.
    Nop,
    /// Waits for an MV.
    Wait,
    /// Freezes the forwarding paths.
    Noforward,
    /// Sets the write masks of the lines that follow.
    Mask,
    /// Ends the source.
    Quit,
}

/// `[[control]]`
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Control {
    /// The mnemonic.
    pub name: String,
    /// Issue slot.
    pub slot: String,
    /// What it does.
    pub kernel: ControlKernel,
    /// How it is written.
    pub syntax: String,
    /// One paragraph.
    pub doc: String,
    /// How well it is known.
    pub evidence: Evidence,
    /// Programs with their bits.
    pub example: Vec<Example>,
}

/// What makes a read too early.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum HazardRule {
    /// A write to any address of the memory, `steps` or less before.
    Port,
    /// A write to the same words, `steps` or `cycles` or less before.
    Data,
    /// A write to the same words by an MV that no `wait` has seen finish.
    Wait,
    /// A forwarding path whose unit was idle in the last step that was not a `nop`.
    Forward,
}

/// `[[hazard]]`: what must lie between a write and a read.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Hazard {
    /// Name.
    pub name: String,
    /// Memories concerned; none for the forward rule.
    #[serde(default)]
    pub memories: Vec<String>,
    /// Slots of the instructions that write; empty: all.
    #[serde(default)]
    pub writers: Vec<String>,
    /// Slots of the instructions that read; empty: all.
    #[serde(default)]
    pub readers: Vec<String>,
    /// The cause.
    pub rule: HazardRule,
    /// Whole steps in between.
    pub steps: Option<u32>,
    /// Full cycles between the writing and the reading cycle.
    pub cycles: Option<u32>,
    /// One sentence.
    pub doc: String,
    /// How well it is known.
    pub evidence: Evidence,
}

/// `[timing]`
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Timing {
    /// Cycles from the start of an MV to its first word.
    pub mv_latency: u32,
    /// Long words per cycle and group touched.
    pub mv_throughput: u32,
    /// Smallest tag.
    pub tag_minimum: u32,
    /// Largest tag.
    pub tag_maximum: u32,
    /// One sentence.
    pub doc: String,
    /// How well it is known.
    pub evidence: Evidence,
}

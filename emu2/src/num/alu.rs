//! ALU lane kernels, found by name: a closed table that the spec composes (manual, chapter on the ALU).
//!
//! Kernels compute L0 of the result. L1 is the caller's work (for all kernels a copy of x's L1). The engine computes
//! operations that cross PEs (`msl`, `msr`) or have no lane rule (`zero`, `imm`). Block float conversion is in its own
//! module.

mod integral;
mod logic;
mod minmax;
mod relu;
mod rsqrt;
mod shift;

use super::clone_choice::call_chosen;
use super::lane::Lane;
use super::level::Apply;

/// Parameters that a spec entry may state for a kernel. Kernels ignore the fields they do not use.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AluParams {
    /// `relu` and the flag rule `x_bit_clear`: the tested bit of x, counted from the top (0 = sign bit).
    pub bit: u32,
    /// `lrelu`: the amount subtracted from the exponent field; `ilrelu`: the amount added to it.
    pub amount: u32,
    /// `rsqrt`: result significands 32..=63 in 64ths; index `16 * (exponent odd) + (top 4 fraction bits of x)`.
    pub table: [u8; 32],
}

/// `fn(params, x, y, out)` on rows of L0, one entry per PE.
pub type AluFn = fn(&AluParams, &[u64], &[u64], &mut [u64]);

/// An ALU kernel instantiated for a lane type.
#[derive(Clone, Copy, Debug)]
pub struct AluKernel {
    run: AluFn,
    operands: u8,
}

impl AluKernel {
    /// Computes `out` (row of L0) from the rows `x` and `y`, all of one length. Kernels with one operand ignore `y`, which
    /// may then be empty.
    #[inline]
    pub fn run(self, params: &AluParams, x: &[u64], y: &[u64], out: &mut [u64]) {
        (self.run)(params, x, y, out);
    }

    /// Number of source operands, 1 or 2.
    #[must_use]
    pub const fn operands(self) -> u8 {
        self.operands
    }
}

/// One function per lane width 64, 32, 16.
type ByWidth = [AluFn; 3];

/// A row of the table; the columns are signed integer, unsigned integer, float, unsigned float.
type Entry = (&'static str, u8, [Option<ByWidth>; 4]);

/// Makes one function of the clones of a kernel, with the name under which its choice of a clone is listed.
macro_rules! clones {
    ($name:expr, $kernel:expr) => {{
        fn run(params: &AluParams, x: &[u64], y: &[u64], out: &mut [u64]) {
            struct Body;
            impl Apply<(&AluParams, &[u64], &[u64], &mut [u64])> for Body {
                #[inline(always)]
                fn apply(self, (params, x, y, out): (&AluParams, &[u64], &[u64], &mut [u64])) {
                    $kernel(params, x, y, out);
                }
            }
            call_chosen!($name, Body, (params, x, y, out));
        }
        run
    }};
}

macro_rules! lanes {
    (-) => {
        None
    };
    ($module:ident::$kernel:ident) => {
        Some([
            clones!(concat!("alu ", stringify!($kernel), " 64"), $module::$kernel::<u64>),
            clones!(concat!("alu ", stringify!($kernel), " 32"), $module::$kernel::<u32>),
            clones!(concat!("alu ", stringify!($kernel), " 16"), $module::$kernel::<u16>),
        ])
    };
}

macro_rules! table {
    ($($name:literal $operands:literal [$($column:tt)*])*) => {
        &[$(($name, $operands, columns!($($column)*))),*]
    };
}

macro_rules! columns {
    ($m:ident $i:tt $u:tt $f:tt $fu:tt) => {
        [column!($m $i), column!($m $u), column!($m $f), column!($m $fu)]
    };
}

macro_rules! column {
    ($m:ident -) => {
        lanes!(-)
    };
    ($m:ident $k:ident) => {
        lanes!($m::$k)
    };
}

#[rustfmt::skip]
static KERNELS: &[Entry] = table! {
    // name   operands  module   integer  unsigned  float   unsigned float
    "passa"   1 [logic    passa    -        passa   -]
    "inc"     1 [logic    inc      inc      -       -]
    "dec"     1 [logic    dec      dec      -       -]
    "add"     2 [logic    add      add      -       -]
    "sub"     2 [logic    sub      sub      -       -]
    "not"     1 [logic    not      -        -       -]
    "lnot"    1 [logic    lnot     -        -       -]
    "and"     2 [logic    and      -        -       -]
    "or"      2 [logic    or       -        -       -]
    "xor"     2 [logic    xor      -        -       -]
    "packbit" 2 [logic    packbit  -        packbit -]
    "lsl"     2 [shift    lsl      -        -       -]
    "lsr"     2 [shift    asr      lsr      -       -]
    "bsl"     2 [shift    bsl      -        -       -]
    "bsr"     2 [shift    bsr      -        -       -]
    "max"     2 [minmax   smax     umax     fmax    -]
    "min"     2 [minmax   smin     umin     fmin    -]
    "relu"    2 [relu     -        -        relu    -]
    "lrelu"   2 [relu     -        -        lrelu   -]
    "ilrelu"  2 [relu     -        -        ilrelu  -]
    "rsqrt"   1 [rsqrt    -        -        rsqrt   -]
    "floor"   1 [integral -        -        floor   -]
    "ftoi"    1 [integral -        -        ftoi    uftoi]
};

/// The kernel `name` on lanes of the given precision, with the opcode prefix `u` if `unsigned`. `None` if the combination
/// does not exist.
#[must_use]
pub fn alu_kernel(name: &str, lane: Lane, unsigned: bool) -> Option<AluKernel> {
    let (_, operands, columns) = KERNELS.iter().find(|(n, _, _)| *n == name)?;
    let column = 2 * usize::from(lane.format().is_some()) + usize::from(unsigned);
    let by_width = columns[column]?;
    let run = match lane.width() {
        64 => by_width[0],
        32 => by_width[1],
        _ => by_width[2],
    };
    Some(AluKernel { run, operands: *operands })
}

/// Whether each bit of the kernel's result depends only on the same bit of its operands.
#[must_use]
pub fn alu_bitwise(name: &str) -> bool {
    matches!(name, "passa" | "not" | "and" | "or" | "xor")
}

/// Whether the kernel gives 0 for two equal operands, whatever they are.
#[must_use]
pub fn alu_cancels(name: &str) -> bool {
    matches!(name, "sub" | "xor")
}

/// The names of all ALU kernels, for messages.
pub fn alu_kernel_names() -> impl Iterator<Item = &'static str> {
    KERNELS.iter().map(|(name, _, _)| *name)
}

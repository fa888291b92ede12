//! MAU operations and matrix registers of one PE in one cycle (manual, chapters on the MAU, matrix registers, numerics).

use super::chip::Chip;
use super::letters::{from_lanes, lanes, long, negated, Letter, Path};
use super::num_reference::block::{dot, Unit};
use super::num_reference::{flag_bits, fma, lane, Fmt, D, F, H};
use super::Undefined;
use emu2::spec::Half;

/// The parts of the mnemonic and the operands.
#[derive(Clone, Copy, Debug)]
pub struct Op<'a> {
    /// The name without prefix and suffixes.
    pub name: &'a str,
    pub letter: Letter,
    pub half: Option<Half>,
    pub reduced: bool,
    /// The matrix register's memory.
    pub matrix: Option<usize>,
}

/// A source after conversion, and whether its signs are flipped.
pub type Input = (Path, bool);

impl Op<'_> {
    /// Bits of the addend's and the result's lanes, their format, and the reduced format.
    fn result(&self) -> (Fmt, Fmt) {
        match self.letter.name {
            'd' => (D, F),
            _ => (F, H),
        }
    }

    /// Whether the products of PE or row group `pe` take part.
    fn multiplies(&self, pe: usize) -> bool {
        match self.half {
            None => true,
            Some(Half::Upper) => pe < 2,
            Some(Half::Lower) => pe >= 2,
        }
    }

    /// Number of low bits of both factors whose mutual products are left out.
    fn omitted(&self) -> u32 {
        match self.letter.name {
            'd' => 16,
            'f' => 5,
            _ => 0,
        }
    }

    fn finish(&self, values: &[u64]) -> (Path, u8) {
        let (plain, reduced) = self.result();
        let out = if self.reduced { reduced } else { plain };
        let flags: Vec<bool> = values.iter().map(|v| out.sign(*v) == 0).collect();
        (from_lanes(out.width(), values), flag_bits(&flags))
    }
}

/// Assigns the written sources to the ports x, y, z.
fn ports(name: &str, sources: &[Input]) -> [Option<Input>; 3] {
    let source = |at: usize| Some(sources[at]);
    match name {
        "vfma" => [source(0), source(1), source(2)],
        "vmul" => [source(0), source(1), None],
        "vadd" | "mfma" => [source(0), None, source(1)],
        "vpassa" | "mmul" => [source(0), None, None],
        _ => panic!("the manual has no MAU operation `{name}`"),
    }
}

/// `x*y + z` in the lanes of PE `me` of its MAB.
pub fn vector(op: &Op<'_>, sources: &[Input], me: usize) -> (Path, u8) {
    let [x, y, z] = ports(op.name, sources);
    let (fmt, count) = (op.letter.format(), op.letter.lanes());
    let (plain, reduced) = op.result();
    let factors = |input: Option<Input>, missing: u64| match input {
        Some((path, negate)) => negated(fmt.width(), lanes(&path, fmt.width(), count), negate),
        None => vec![missing; count],
    };
    let addends = match z {
        Some((path, negate)) => negated(plain.width(), lanes(&path, plain.width(), count), negate),
        None => vec![0; count],
    };
    let (mut xs, ys) = (factors(x, 0), factors(y, fmt.one()));
    if !op.multiplies(me) {
        xs.fill(0);
    }
    let out = if op.reduced { reduced } else { plain };
    let values: Vec<u64> = (0..count).map(|k| fma(fmt, plain, out, op.omitted(), xs[k], ys[k], addends[k])).collect();
    op.finish(&values)
}

/// Element (row, column) of a matrix register in a precision.
fn element(chip: &Chip, matrix: usize, mab: &std::ops::Range<usize>, letter: Letter, row: usize, column: usize) -> u64 {
    let (pe, k) = (column / letter.lanes(), column % letter.lanes());
    lane(chip.long(matrix, mab.start + pe, row as u64), letter.width, k as u32)
}

/// Checks that a product may take these elements: they share an exponent, except for the extended elements of half
/// precision.
fn check_block(letter: Letter, elements: &[u64]) -> Result<(), Undefined> {
    let fmt = letter.format();
    let shared = elements.iter().map(|v| fmt.exp(*v)).max().unwrap_or(0);
    let fits = |v: u64| {
        let plain = fmt.exp(v) == shared && (fmt.frac(v) == 0 || (shared != 0 && shared != fmt.ones()));
        plain || (letter.name == 'h' && fmt.exp(v) == 0 && shared != 0)
    };
    if elements.iter().all(|v| fits(*v)) {
        Ok(())
    } else {
        Err(Undefined(format!("a factor of a matrix product is not block float: {elements:x?}")))
    }
}

/// `A*x + z`: the lanes of PE `me` of a MAB; `sources` are the inputs of all its PEs.
pub fn matrix(
    chip: &Chip,
    op: &Op<'_>,
    mab: &std::ops::Range<usize>,
    sources: &[Vec<Input>],
    me: usize,
) -> Result<(Path, u8), Undefined> {
    let fmt = op.letter.format();
    let (plain, reduced) = op.result();
    let matrix = op.matrix.expect("a matrix register");
    // f: one word of x per PE, and the even columns.
    let (from_pe, column_step) = if op.letter.name == 'f' { (1, 2) } else { (op.letter.lanes(), 1) };
    let mut x = Vec::new();
    for source in sources {
        let (path, negate) = ports(op.name, source)[0].expect("x");
        x.extend(negated(fmt.width(), lanes(&path, fmt.width(), from_pe), negate));
    }
    check_block(op.letter, &x)?;
    let outputs = op.letter.lanes();
    let addends = match ports(op.name, &sources[me])[2] {
        Some((path, negate)) => negated(plain.width(), lanes(&path, plain.width(), outputs), negate),
        None => vec![0; outputs],
    };
    let unit = Unit { fmt, omit: op.omitted(), ignore: if op.letter.name == 'g' { 5 } else { 0 } };
    let out = if op.reduced { reduced } else { plain };
    let mut values = Vec::new();
    for k in 0..outputs {
        let row = outputs * me + k;
        let mut elements: Vec<u64> =
            (0..x.len()).map(|j| element(chip, matrix, mab, op.letter, row, column_step * j)).collect();
        check_block(op.letter, &elements)?;
        if !op.multiplies(me) {
            elements.fill(0);
        }
        values.push(dot(unit, &elements, &x, plain, addends[k], out));
    }
    Ok(op.finish(&values))
}

/// Rows or columns of a matrix register in a precision.
pub fn rows(letter: Letter) -> usize {
    match letter.name {
        'd' => 4,
        'f' | 'g' => 8,
        _ => 16,
    }
}

/// The long words that PE `me` reads in a cycle: columns, so that rows come back transposed.
pub fn read(
    chip: &Chip,
    letter: Letter,
    memory: usize,
    mab: &std::ops::Range<usize>,
    me: usize,
    columns: &[usize],
) -> Path {
    let mut path = [0; 4];
    for (half, column) in columns.iter().enumerate() {
        let values: Vec<u64> = (0..letter.lanes())
            .map(|k| element(chip, memory, mab, letter, letter.lanes() * me + k, column % rows(letter)))
            .collect();
        let [w0, w1, ..] = from_lanes(letter.width, &values);
        path[2 * half..2 * half + 2].copy_from_slice(&[w0, w1]);
    }
    path
}

/// The long words that a PE writes in a cycle, with their rows.
pub fn write(letter: Letter, path: &Path, negate: bool, row: &[usize]) -> Vec<(usize, u64)> {
    let signs = negated(letter.width, vec![0; letter.lanes()], negate);
    let signs = long(&from_lanes(letter.width, &signs), 0);
    row.iter().enumerate().map(|(half, row)| (row % rows(letter), long(path, half) ^ signs)).collect()
}

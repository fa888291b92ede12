//! ALU operations of one PE in one cycle (manual, chapters on the ALU, immediates and block float).

use super::letters::{from_lanes, lanes, long, path, Letter, Path};
use super::num_reference::alu::{alu, Params};
use super::num_reference::block::{convert, Cut};
use super::num_reference::flag_bits;

/// Results of `rsqrt` in 64ths over the top four fraction bits, for even and odd exponents.
const RSQRT: [u8; 32] = [
    63, 62, 60, 58, 57, 55, 54, 53, 52, 51, 50, 49, 48, 47, 46, 45, //
    45, 43, 42, 41, 40, 39, 38, 37, 36, 36, 35, 34, 34, 33, 33, 32,
];

/// The parts of the mnemonic.
#[derive(Clone, Copy, Debug)]
pub struct Op<'a> {
    /// The name without prefixes.
    pub name: &'a str,
    pub letter: Option<Letter>,
    pub unsigned: bool,
    pub literal: Option<u32>,
    pub length: Option<u32>,
}

/// Result and flags of PE `me` of a MAB; `sources` are the inputs of all its PEs.
pub fn run(op: &Op<'_>, sources: &[Vec<Path>], me: usize) -> (Path, u8) {
    let x = sources[me].first().copied().unwrap_or_default();
    let y = sources[me].get(1).copied().unwrap_or_default();
    let pes = sources.len();
    let word = || op.literal.expect("a literal");
    match op.name {
        "zero" => ([0; 4], 0),
        "imm" => ([word(); 4], 0),
        "immu" => ([word(), 0, word(), 0], 0),
        // The first long word comes from a neighbour; the second stays.
        "msl" => (path(long(&sources[(me + pes - 1) % pes][0], 0), long(&x, 1)), 0),
        "msr" => (path(long(&sources[(me + 1) % pes][0], 0), long(&x, 1)), 0),
        "bfn" | "bfe" => (block_float(op, sources, me), 0),
        _ => lane_op(op, x, y),
    }
}

/// An operation on the lanes of the first long word.
fn lane_op(op: &Op<'_>, x: Path, y: Path) -> (Path, u8) {
    let letter = op.letter.expect("a precision");
    let (name, bit, amount) = match op.name {
        "relu" | "relu0" => ("relu", 0, 0),
        "relu1" => ("relu", 1, 0),
        "relu2" => ("relu", 2, 0),
        "relu3" => ("relu", 3, 0),
        "lrelud" => ("lrelu", 0, 1),
        "lreluo" => ("lrelu", 0, 3),
        "ilrelud" => ("ilrelu", 0, 1),
        name => (name, 0, 0),
    };
    let params = Params { bit, amount, table: RSQRT };
    let class = match (letter.float.is_some(), op.unsigned) {
        (false, false) => 'i',
        (false, true) => 'u',
        (true, false) => 'f',
        (true, true) => 'v',
    };
    let count = letter.lanes();
    let (xs, ys) = (lanes(&x, letter.width, count), lanes(&y, letter.width, count));
    let results: Vec<(u64, Option<bool>)> =
        xs.iter().zip(&ys).map(|(x, y)| alu(name, class, letter.width, &params, *x, *y)).collect();
    let values: Vec<u64> = results.iter().map(|(value, _)| *value).collect();
    let flags: Vec<bool> = results.iter().map(|(_, flag)| flag.unwrap_or(false)).collect();
    let [w0, w1, ..] = from_lanes(letter.width, &values);
    ([w0, w1, x[2], x[3]], flag_bits(&flags))
}

/// Conversion of the blocks that lie across the PEs of a MAB.
fn block_float(op: &Op<'_>, sources: &[Vec<Path>], me: usize) -> Path {
    let letter = op.letter.expect("a precision");
    let fmt = letter.format();
    let extended = op.name == "bfe";
    let cut = match letter.name {
        'd' => Cut { kept: 52, raise: 0, low: 0, extended },
        'f' => Cut { kept: 23, raise: 0, low: 0, extended },
        'g' => Cut { kept: 18, raise: 0, low: 5, extended },
        _ => {
            let kept = op.length.expect("a mantissa length");
            Cut { kept, raise: 9 - kept, low: 0, extended }
        }
    };
    // Blocks of a path, and the lanes of a PE in each.
    let (blocks, each) = match letter.name {
        'd' => (1, 1),
        'f' => (2, 1),
        'g' => (1, 2),
        _ => (2, 4),
    };
    let mut out = Vec::new();
    for block in 0..blocks {
        let of_block = |source: &Vec<Path>| lanes(&source[0], letter.width, blocks * each).split_off(block * each);
        let elements: Vec<u64> = sources.iter().flat_map(|s| of_block(s).into_iter().take(each)).collect();
        out.extend_from_slice(&convert(fmt, cut, &elements)[me * each..(me + 1) * each]);
    }
    let mut result = from_lanes(letter.width, &out);
    if letter.name != 'h' {
        result[2..].copy_from_slice(&sources[me][0][2..]);
    }
    result
}

//! The meaning of the precision letters, and the 128-bit path.

use super::num_reference::{lane, pack_lanes, Fmt, D, F, H};

/// The data path of a PE in one cycle: words w0 (most significant) to w3.
pub type Path = [u32; 4];

/// A precision letter.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Letter {
    pub name: char,
    /// Bits of a lane.
    pub width: u32,
    /// Its float format, if it has one.
    pub float: Option<Fmt>,
}

impl Letter {
    /// The letter of a mnemonic.
    pub fn of(name: &str) -> Letter {
        let (width, float) = match name {
            "h" => (16, Some(H)),
            "f" | "g" => (32, Some(F)),
            "d" => (64, Some(D)),
            "s" => (16, None),
            "i" => (32, None),
            "l" => (64, None),
            _ => panic!("the manual has no precision `{name}`"),
        };
        Letter { name: name.chars().next().expect("one letter"), width, float }
    }

    /// Lanes of a long word.
    pub fn lanes(self) -> usize {
        (64 / self.width) as usize
    }

    /// The format of a float letter.
    pub fn format(self) -> Fmt {
        self.float.expect("a float precision")
    }
}

/// Long word 0 or 1 of a path.
pub fn long(path: &Path, half: usize) -> u64 {
    u64::from(path[2 * half]) << 32 | u64::from(path[2 * half + 1])
}

/// A path from its long words.
pub fn path(l0: u64, l1: u64) -> Path {
    [(l0 >> 32) as u32, l0 as u32, (l1 >> 32) as u32, l1 as u32]
}

/// The first `count` lanes of a path, from the left.
pub fn lanes(path: &Path, width: u32, count: usize) -> Vec<u64> {
    let per_long = (64 / width) as usize;
    (0..count).map(|k| lane(long(path, k / per_long), width, (k % per_long) as u32)).collect()
}

/// A path that begins with these lanes and is 0 behind them.
pub fn from_lanes(width: u32, lanes: &[u64]) -> Path {
    let per_long = (64 / width) as usize;
    let mut longs = lanes.chunks(per_long).map(|chunk| pack_lanes(width, chunk));
    path(longs.next().unwrap_or(0), longs.next().unwrap_or(0))
}

/// The lanes with their sign bits flipped.
pub fn negated(width: u32, lanes: Vec<u64>, negate: bool) -> Vec<u64> {
    let sign = if negate { 1 << (width - 1) } else { 0 };
    lanes.into_iter().map(|v| v ^ sign).collect()
}

//! How bytes of the host become bytes of the device, whose long words lie most significant byte first.

use crate::error::{Code, Error};

/// Bytes of a long word.
pub(super) const LONG_BYTES: usize = 8;

/// Bytes that are reversed together, by mode.
const UNITS: [usize; 5] = [64, 1, 2, 4, 8];

/// A mode of the endian control. It is its own inverse.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Endian {
    mode: u8,
}

impl Default for Endian {
    /// Mode 4: a `u64` of a little-endian host is a long word of the device.
    fn default() -> Self {
        Endian { mode: 4 }
    }
}

impl Endian {
    /// The mode of this number: 0 reverses blocks of 64 bytes, 1 nothing, 2, 3 and 4 units of 2, 4 and 8 bytes.
    ///
    /// # Errors
    /// [`Code::BadOption`] for other numbers.
    pub fn new(mode: u8) -> Result<Endian, Error> {
        if usize::from(mode) < UNITS.len() {
            return Ok(Endian { mode });
        }
        let message = format!("there is no endian mode {mode}");
        Err(Error::new(Code::BadOption, message).help(format!("use 0 to {}", UNITS.len() - 1)))
    }

    /// Its number.
    pub fn mode(self) -> u8 {
        self.mode
    }

    fn unit(self) -> usize {
        UNITS[usize::from(self.mode)]
    }

    /// What offsets and lengths of transfers must be multiples of, in bytes.
    ///
    /// guess: a block that is reversed lies at a multiple of its size and is transferred whole.
    pub fn granule(self) -> usize {
        self.unit().max(LONG_BYTES)
    }

    /// The long words of a multiple of the granule of bytes.
    pub(super) fn words(self, bytes: &[u8]) -> Vec<u64> {
        let mut bytes = bytes.to_vec();
        self.turn(&mut bytes);
        let (words, _) = bytes.as_chunks::<LONG_BYTES>();
        words.iter().map(|word| u64::from_be_bytes(*word)).collect()
    }

    /// The other way round, as many as fit.
    pub(super) fn bytes(self, words: &[u64], out: &mut [u8]) {
        for (bytes, word) in out.chunks_exact_mut(LONG_BYTES).zip(words) {
            bytes.copy_from_slice(&word.to_be_bytes());
        }
        self.turn(out);
    }

    fn turn(self, bytes: &mut [u8]) {
        if self.unit() > 1 {
            bytes.chunks_exact_mut(self.unit()).for_each(<[u8]>::reverse);
        }
    }
}

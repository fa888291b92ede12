//! The order of bytes in transfers between host and device. Long words of the device lie most significant byte first.

use crate::error::{Code, Error};
use std::borrow::Cow;

/// Bytes of a long word.
pub(super) const LONG_BYTES: usize = 8;

/// Number of bytes that are reversed together, by mode.
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
    /// The mode with this number: 0 reverses blocks of 64 bytes, 1 nothing, and 2, 3 and 4 reverse units of 2, 4 and 8
    /// bytes.
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

    /// The number of the mode.
    pub fn mode(self) -> u8 {
        self.mode
    }

    fn unit(self) -> usize {
        UNITS[usize::from(self.mode)]
    }

    /// Offsets and lengths of transfers must be multiples of this number of bytes.
    ///
    /// guess: a block that is reversed lies at a multiple of its size and is transferred whole.
    pub fn granule(self) -> usize {
        self.unit().max(LONG_BYTES)
    }

    /// Whether long words of the device are numbers of the host, so that nothing needs to be converted.
    fn converts_nothing(self) -> bool {
        self.unit() == LONG_BYTES && cfg!(target_endian = "little")
    }

    /// Converts bytes to long words. The number of bytes must be a multiple of the granule.
    pub(super) fn words(self, bytes: &[u8]) -> Cow<'_, [u64]> {
        if let Some(words) = bytemuck::try_cast_slice(bytes).ok().filter(|_| self.converts_nothing()) {
            return Cow::Borrowed(words);
        }
        let mut bytes = bytes.to_vec();
        self.turn(&mut bytes);
        let (words, _) = bytes.as_chunks::<LONG_BYTES>();
        words.iter().map(|word| u64::from_be_bytes(*word)).collect::<Vec<_>>().into()
    }

    /// Fills `out` with the bytes of long words that `read` fetches. `out` must have whole granules.
    pub(super) fn bytes(self, out: &mut [u8], read: impl FnOnce(&mut [u64])) {
        if self.converts_nothing() {
            if let Ok(words) = bytemuck::try_cast_slice_mut(out) {
                return read(words);
            }
        }
        let mut words = vec![0; out.len() / LONG_BYTES];
        read(&mut words);
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

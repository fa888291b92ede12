//! The source of random decisions: a seed, or the bytes of a fuzzer.

use super::num_reference::gen::Rng;

/// A stream of decisions.
pub struct Choices {
    bytes: Vec<u8>,
    at: usize,
    rng: Rng,
}

impl Choices {
    /// Decisions of a seed.
    pub fn seeded(seed: u64) -> Choices {
        Choices { bytes: Vec::new(), at: 0, rng: Rng(seed) }
    }

    /// Decisions taken from bytes, one or more each. When the bytes run out, a seed that they make takes over.
    pub fn from_bytes(bytes: &[u8]) -> Choices {
        let seed = bytes
            .iter()
            .fold(0xCBF2_9CE4_8422_2325, |hash: u64, byte| (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01B3));
        Choices { bytes: bytes.to_vec(), at: 0, rng: Rng(seed) }
    }

    /// Whether all decisions so far came from the bytes.
    pub fn has_bytes(&self) -> bool {
        self.at < self.bytes.len()
    }

    /// A number below `n`.
    pub fn below(&mut self, n: u64) -> u64 {
        assert!(n > 0);
        let mut value = 0u64;
        let mut reach = 1u64;
        while self.has_bytes() && reach < n {
            value = value << 8 | u64::from(self.bytes[self.at]);
            reach = reach.saturating_mul(256);
            self.at += 1;
        }
        if reach < n {
            value = self.rng.next();
        }
        value % n
    }

    /// True `percent` times out of 100.
    pub fn chance(&mut self, percent: u64) -> bool {
        self.below(100) < percent
    }

    /// One of the elements, of which there is at least one.
    pub fn pick<T: Clone>(&mut self, all: &[T]) -> T {
        let at = self.below(all.len() as u64);
        all[at as usize].clone()
    }

    /// 64 random bits. They are never taken from the bytes, which are for decisions.
    pub fn bits(&mut self) -> u64 {
        self.rng.next()
    }
}

//! Random changes of a text, for fuzz tests.

use proptest::prelude::*;

/// One change: its place, its kind, and a byte for it.
pub(crate) type Change = (prop::sample::Index, u8, u8);

/// How to change texts of a kind.
pub(crate) struct Manner {
    /// Bytes that mean something in such texts. They replace the byte at the place, or are inserted before it.
    pub(crate) letters: &'static [u8],
    pub(crate) overwrite: bool,
    /// This many bytes behind the place are repeated, and the rest is dropped.
    pub(crate) repeated: usize,
}

/// One to five changes.
pub(crate) fn changes() -> impl Strategy<Value = Vec<Change>> {
    proptest::collection::vec((any::<prop::sample::Index>(), 0u8..5, any::<u8>()), 1..6)
}

/// The text after the changes.
pub(crate) fn changed(text: &[u8], changes: Vec<Change>, manner: &Manner) -> Vec<u8> {
    let mut bytes = text.to_vec();
    for (at, kind, byte) in changes {
        if bytes.is_empty() {
            break;
        }
        let at = at.index(bytes.len());
        let letter = manner.letters[byte as usize % manner.letters.len()];
        match kind {
            0 => bytes[at] = byte,
            1 => bytes.insert(at, byte),
            2 => drop(bytes.remove(at)),
            3 if manner.overwrite => bytes[at] = letter,
            3 => bytes.insert(at, letter),
            _ => {
                let tail = bytes.split_off(at);
                bytes.extend(tail[..tail.len().min(manner.repeated)].repeat(2));
            }
        }
    }
    bytes
}

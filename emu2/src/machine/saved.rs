//! The state of a machine as bytes that a later process reads.
//!
//! The bytes are [`MAGIC`], the digest of the spec, blocks of long words, and a digest of all before it. A block has its number
//! and its words. Blocks of the state come first, then pages of the sparse memories, each list with its length. Only those
//! that are not zero are there. Numbers have 8 bytes, the least significant first.

use super::image::{arrays, arrays_mut, BLOCK};
use super::Machine;
use crate::error::{Code, Error};
use crate::spec::Spec;
use sha2::{Digest, Sha256};
use std::collections::HashMap;

/// The first bytes. The last one is the version.
const MAGIC: [u8; 8] = *b"\x7fEMU2S\n\x01";
const DIGEST: usize = 32;

fn bad(what: &str) -> Error {
    Error::new(Code::SavedState, what)
}

/// Splits a number off.
fn number(bytes: &mut &[u8]) -> Result<u64, Error> {
    let (first, rest) = bytes.split_first_chunk::<8>().ok_or_else(|| bad("the saved state ends too early"))?;
    *bytes = rest;
    Ok(u64::from_le_bytes(*first))
}

/// Splits words off.
fn words(bytes: &mut &[u8], count: usize) -> Result<Vec<u64>, Error> {
    let size = count.checked_mul(8).filter(|size| *size <= bytes.len());
    let (first, rest) = bytes.split_at(size.ok_or_else(|| bad("the saved state ends too early"))?);
    *bytes = rest;
    Ok(first.as_chunks::<8>().0.iter().map(|word| u64::from_le_bytes(*word)).collect())
}

/// Adds a list of blocks, each with its number.
fn list<'w>(out: &mut Vec<u8>, blocks: impl Iterator<Item = (u64, &'w [u64])>) {
    let (start, mut count) = (out.len(), 0u64);
    out.extend(count.to_le_bytes());
    for (at, words) in blocks {
        out.extend(at.to_le_bytes());
        out.extend(words.iter().flat_map(|word| word.to_le_bytes()));
        count += 1;
    }
    out[start..start + 8].copy_from_slice(&count.to_le_bytes());
}

/// Splits a list of blocks off. `size` gives the words of a block by its number; 0: there is none.
fn read_list(bytes: &mut &[u8], size: impl Fn(u64) -> usize) -> Result<Vec<(u64, Vec<u64>)>, Error> {
    let mut found = Vec::new();
    for _ in 0..number(bytes)? {
        let at = number(bytes)?;
        match size(at) {
            0 => return Err(bad("the saved state has words that the machine has not")),
            size => found.push((at, words(bytes, size)?)),
        }
    }
    Ok(found)
}

impl Machine {
    /// The contents of all memories as bytes for [`Machine::load_state`].
    ///
    /// # Errors
    /// [`Code::Poisoned`] for a machine that stopped half way.
    pub fn save_state(&self) -> Result<Vec<u8>, Error> {
        self.check_usable()?;
        let mut out = MAGIC.to_vec();
        out.extend(self.spec().digest);
        let blocks = arrays(&self.state).into_iter().flat_map(|words| words.chunks(BLOCK)).enumerate();
        list(
            &mut out,
            blocks.filter(|(_, block)| block.iter().any(|word| *word != 0)).map(|(at, block)| (at as u64, block)),
        );
        self.state.group.iter().flatten().for_each(|pages| list(&mut out, pages.held()));
        let digest = Sha256::digest(&out);
        out.extend(digest);
        Ok(out)
    }

    /// Makes the contents of all memories what [`Machine::save_state`] found.
    ///
    /// # Errors
    /// [`Code::WrongSpec`] for the state of another machine, [`Code::SavedState`] for bytes that are no state. The machine is
    /// then as it was.
    pub fn load_state(&mut self, bytes: &[u8]) -> Result<(), Error> {
        let rest = bytes.strip_prefix(&MAGIC).ok_or_else(|| bad("the file does not begin as a saved state does"))?;
        let whole = bytes.len().checked_sub(DIGEST).filter(|end| *end >= MAGIC.len() + DIGEST);
        let (data, digest) = bytes.split_at(whole.ok_or_else(|| bad("the saved state ends too early"))?);
        if Sha256::digest(data).as_slice() != digest {
            return Err(bad("the digest of the saved state is wrong: the file is damaged"));
        }
        let (spec, mut rest) = rest[..rest.len() - DIGEST].split_at(DIGEST);
        self.check_digest(spec)?;
        let rest = &mut rest;
        let sizes: Vec<usize> =
            arrays(&self.state).into_iter().flat_map(|words| words.chunks(BLOCK).map(<[u64]>::len)).collect();
        let size = |at: u64| usize::try_from(at).ok().and_then(|at| sizes.get(at)).copied().unwrap_or(0);
        let blocks: HashMap<u64, Vec<u64>> = read_list(rest, size)?.into_iter().collect();
        let mut groups = Vec::new();
        for pages in self.state.group.iter().flatten() {
            groups.push(read_list(rest, |at| pages.page_size(at))?);
        }
        if !rest.is_empty() {
            return Err(bad("the saved state goes on behind its end"));
        }
        self.reset();
        self.lose_written();
        let places = arrays_mut(&mut self.state).into_iter().flat_map(|words| words.chunks_mut(BLOCK));
        for (at, place) in (0..).zip(places) {
            blocks.get(&at).into_iter().for_each(|block| place.copy_from_slice(block));
        }
        for (pages, held) in self.state.group.iter_mut().flatten().zip(groups) {
            held.into_iter().for_each(|(at, page)| pages.write(at, &page));
        }
        Ok(())
    }

    fn check_digest(&self, digest: &[u8]) -> Result<(), Error> {
        let spec: &Spec = self.spec();
        if spec.digest == digest {
            return Ok(());
        }
        let name = &spec.machine.name;
        let message = format!("the saved state is not of `{name}`, or of another version of it");
        Err(Error::new(Code::WrongSpec, message).help("load it into the machine that saved it"))
    }
}

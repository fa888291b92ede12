//! The state of a machine as bytes that a later process reads.
//!
//! The bytes are [`MAGIC`], the digest of the spec, blocks of long words, and a digest of all before it. A block has its number
//! and its words. Blocks of the state come first, then pages of the sparse memories, each list with its length. Only those
//! that are not zero are there. Numbers have 8 bytes, the least significant first.

use super::{Blocks, Image, Machine};
use crate::error::{Code, Error};
use crate::spec::Spec;
use sha2::{Digest, Sha256};
use std::sync::Arc;

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

fn write(out: &mut Vec<u8>, number: u64, words: &[u64]) {
    out.extend(number.to_le_bytes());
    out.extend(words.iter().flat_map(|word| word.to_le_bytes()));
}

impl Machine {
    /// The contents of all memories as bytes for [`Machine::load_state`].
    ///
    /// # Errors
    /// [`Code::Poisoned`] for a machine that stopped half way.
    pub fn save_state(&self) -> Result<Vec<u8>, Error> {
        self.check_usable()?;
        let (_, image) = image_of(self);
        let mut out = MAGIC.to_vec();
        out.extend(self.spec().digest);
        let held: Vec<(usize, &Arc<[u64]>)> =
            image.blocks.iter().enumerate().filter(|(_, block)| block.iter().any(|word| *word != 0)).collect();
        out.extend((held.len() as u64).to_le_bytes());
        held.into_iter().for_each(|(at, block)| write(&mut out, at as u64, block));
        for pages in image.group.iter().flatten() {
            let held: Vec<(u64, &[u64])> = pages.held().collect();
            out.extend((held.len() as u64).to_le_bytes());
            held.into_iter().for_each(|(at, page)| write(&mut out, at, page));
        }
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
        let (blocks, last) = image_of(self);
        let mut image = Image::zeros(&blocks, self);
        for _ in 0..number(rest)? {
            let at = number(rest)?;
            let place = usize::try_from(at).ok().and_then(|at| image.blocks.get_mut(at));
            let place = place.ok_or_else(|| bad("the saved state has a block that the machine has not"))?;
            *place = words(rest, place.len())?.into();
        }
        for pages in image.group.iter_mut().flatten() {
            for _ in 0..number(rest)? {
                let at = number(rest)?;
                let size = pages.page_size(at);
                if size == 0 {
                    return Err(bad("the saved state has a page that the machine has not"));
                }
                pages.write(at, &words(rest, size)?);
            }
        }
        if !rest.is_empty() {
            return Err(bad("the saved state goes on behind its end"));
        }
        let mut written = blocks.unwritten();
        written.add_all();
        self.restore(&blocks, &image, &last, &written);
        self.lose_written();
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

fn image_of(machine: &Machine) -> (Blocks, Image) {
    let blocks = Blocks::new(machine.spec());
    let zeros = Image::zeros(&blocks, machine);
    let mut written = blocks.unwritten();
    written.add_all();
    let image = machine.image(&blocks, &zeros, &written);
    (blocks, image)
}

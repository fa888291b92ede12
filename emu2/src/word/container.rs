//! A container format for programs, defined by this project. It is a sequence of blocks of 128 bytes, as the files that boards
//! read are, and tools that look for tags in such files find those of the program.
//!
//! | bits of a block | content |
//! |---|---|
//! | 292-299, 596-603, 900-907 | tags for which the program waits, in its order, three a block; 0: none |
//! | 935-942 | tags of MVs, in the order of the program, one a block; 0: none |
//! | 1022-1023 | 1: the mode of a block with three PE slots and one MV slot |
//! | bytes 0-35, 38-73, 76-111 | content, over all blocks: [`MAGIC`], [`VERSION`], length of the text in bytes (both 4 bytes, least significant first), canonical assembly in UTF-8 with marks that say from which line of a source it comes, zeros |
//!
//! Bit n is bit n % 8 of byte n / 8, the least significant first. A real board does not read this format. The words that boards
//! read are not known well enough.

use super::print::print_with_origins;
use crate::asm::{Item, ItemKind, Program};
use crate::error::{Code, Error};
use std::convert::Infallible;
use std::ops::Range;

/// The magic number. Its first byte is not text, and the others reveal a file transfer that changed line ends.
pub const MAGIC: [u8; 8] = *b"\x7fEMU2\r\n\x1a";
/// The version that is written and read.
pub const VERSION: u32 = 2;
/// Bytes of a block.
pub const BLOCK: usize = 128;

const HEADER: usize = MAGIC.len() + 2 * size_of::<u32>();
/// Bytes of a block that hold content.
const CONTENT: [Range<usize>; 3] = [0..36, 38..74, 76..112];
const CONTENT_BYTES: usize = 108;
/// First bits of the tags for which the slots of a block wait.
const WAITS: [usize; 3] = [292, 596, 900];
/// First bit of the tag of a block's MV.
const MV: usize = 935;
/// The mode of a block, in its last byte.
const MODE: u8 = 1 << 6;

/// The tags of a program in its order: those for which it waits, and those that its MVs carry. A step of a program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TagUse {
    /// The program waits for the tag.
    Wait(u32),
    /// An MV signals the tag.
    Signal(u32),
}

/// The uses of tags in `program`, in its order. An MV without a tag is none.
pub fn tag_uses(program: &Program) -> Vec<TagUse> {
    let mut uses = Vec::new();
    let used = |item: &Item| match &item.kind {
        ItemKind::Nop { wait, .. } => wait.map(TagUse::Wait),
        ItemKind::Step(step) => step.wait.map(TagUse::Wait),
        ItemKind::Mv(mv) => mv.tag.map(TagUse::Signal),
        ItemKind::Set(_) | ItemKind::Get(_) | ItemKind::Host(_) => None,
    };
    let Ok(()) = program.for_each(|item| {
        uses.extend(used(item));
        Ok::<(), Infallible>(())
    });
    uses
}

/// Packs `program` into a container.
///
/// # Errors
/// [`Code::LineCount`] if the text is too long for a container.
pub fn pack(program: &Program) -> Result<Vec<u8>, Error> {
    let text = print_with_origins(program);
    let length = u32::try_from(text.len())
        .map_err(|_| Error::new(Code::LineCount, format!("the text of the program has {} bytes", text.len())))?;
    let mut content = MAGIC.to_vec();
    content.extend(VERSION.to_le_bytes());
    content.extend(length.to_le_bytes());
    content.extend(text.as_bytes());
    let (mut waits, mut mvs) = (Vec::new(), Vec::new());
    for used in tag_uses(program) {
        match used {
            TagUse::Wait(tag) => waits.push(tag),
            TagUse::Signal(tag) => mvs.push(tag),
        }
    }
    let blocks = content.len().div_ceil(CONTENT_BYTES).max(waits.len().div_ceil(WAITS.len())).max(mvs.len());
    let mut bytes = vec![0; blocks * BLOCK];
    let mut content = content.into_iter();
    for (at, block) in bytes.chunks_exact_mut(BLOCK).enumerate() {
        CONTENT.into_iter().flatten().zip(content.by_ref()).for_each(|(place, byte)| block[place] = byte);
        let tags = WAITS.into_iter().zip(waits.iter().skip(at * WAITS.len()));
        tags.chain(mvs.get(at).map(|tag| (MV, tag))).for_each(|(first, tag)| set_tag(block, first, *tag));
        block[BLOCK - 1] |= MODE;
    }
    Ok(bytes)
}

fn set_tag(block: &mut [u8], first: usize, tag: u32) {
    for bit in (0..8).filter(|bit| tag >> bit & 1 == 1) {
        block[(first + bit) / 8] |= 1 << ((first + bit) % 8);
    }
}

/// Returns the assembly text in a container.
///
/// # Errors
/// [`Code::BadContainer`] if the bytes are not a container of this version.
pub fn unpack(bytes: &[u8]) -> Result<String, Error> {
    let bad = |message: &str| Error::new(Code::BadContainer, message);
    if !bytes.starts_with(&MAGIC) {
        return Err(bad("the file does not begin as a program container does"));
    }
    let number = |at: usize| {
        let field = bytes.get(at..at + size_of::<u32>())?;
        Some(u32::from_le_bytes(field.try_into().ok()?))
    };
    let (Some(version), Some(length)) = (number(MAGIC.len()), number(MAGIC.len() + size_of::<u32>())) else {
        return Err(bad("the container ends inside its header"));
    };
    if version != VERSION {
        return Err(bad(&format!("the container has version {version}, not {VERSION}; assemble the program again")));
    }
    if !bytes.len().is_multiple_of(BLOCK) {
        return Err(bad(&format!("the container has {} bytes, which are no whole blocks of {BLOCK}", bytes.len())));
    }
    let content = bytes.chunks_exact(BLOCK).flat_map(|block| CONTENT.into_iter().flatten().map(|place| block[place]));
    let text: Vec<u8> = content.skip(HEADER).collect();
    let (text, rest) = text.split_at_checked(length as usize).unwrap_or((&[], &text));
    if (text.is_empty() && length > 0) || rest.iter().any(|byte| *byte != 0) {
        return Err(bad(&format!("the container does not hold {length} bytes of text, as its header says")));
    }
    String::from_utf8(text.to_vec()).map_err(|_| bad("the text of the container is not UTF-8"))
}

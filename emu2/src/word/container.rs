//! A container format for programs, defined by this project: magic number, version, length of the text, text.
//!
//! | bytes | content |
//! |---|---|
//! | 0-7 | [`MAGIC`] |
//! | 8-11 | [`VERSION`], least significant byte first |
//! | 12-15 | length of the text in bytes, least significant byte first |
//! | 16- | canonical assembly, UTF-8 |
//!
//! A real board does not read this format. The format that boards read is not known well enough.

use super::print;
use crate::asm::Program;
use crate::error::{Code, Error};

/// The magic number. Its first byte is not text, and the others reveal a file transfer that changed line ends.
pub const MAGIC: [u8; 8] = *b"\x7fEMU2\r\n\x1a";
/// The version that is written and read.
pub const VERSION: u32 = 1;

const HEADER: usize = MAGIC.len() + 2 * size_of::<u32>();

/// Packs `program` into a container.
///
/// # Errors
/// [`Code::LineCount`] if the text is too long for a container.
pub fn pack(program: &Program) -> Result<Vec<u8>, Error> {
    let text = print(program);
    let length = u32::try_from(text.len())
        .map_err(|_| Error::new(Code::LineCount, format!("the text of the program has {} bytes", text.len())))?;
    let mut bytes = MAGIC.to_vec();
    bytes.extend(VERSION.to_le_bytes());
    bytes.extend(length.to_le_bytes());
    bytes.extend(text.as_bytes());
    Ok(bytes)
}

/// Returns the assembly text in a container.
///
/// # Errors
/// [`Code::BadContainer`] if the bytes are not a container of this version.
pub fn unpack(bytes: &[u8]) -> Result<&str, Error> {
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
        return Err(bad(&format!("the container has version {version}, not {VERSION}")));
    }
    let text = &bytes[HEADER..];
    if text.len() != length as usize {
        return Err(bad(&format!("the container holds {} bytes of text, not {length}", text.len())));
    }
    std::str::from_utf8(text).map_err(|_| bad("the text of the container is not UTF-8"))
}

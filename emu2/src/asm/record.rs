//! Lines of the vendor's assembled text that also occur in sources: an `r` line writes a long word of DRAM.

use super::cursor::{fault, Parse};
use super::parser::Parser;
use super::statement::{DebugSet, ItemKind, Location};
use crate::error::{Code, Span};
use crate::spec::{LONG_BITS, WORDS_PER_LONG};

/// The first letter of a line that writes a word of DRAM.
pub(crate) const RECORD: char = 'r';
/// The count of an `r` line: one long word.
const COUNT: &str = "001";
const HEX_DIGITS: usize = LONG_BITS as usize / 4;
/// The number of digits of the address, as the vendor's tools write it.
const ADDRESS_DIGITS: usize = 9;

/// The `r` lines, without their letter, that write the same words as `set`. `None` if such lines cannot write them.
pub(crate) fn records(spec: &crate::spec::Spec, set: &DebugSet) -> Option<Vec<String>> {
    let Location { memory, address, units, .. } = set.location;
    let name = &spec.encoding.as_ref()?.record_memory;
    let group = units[0].filter(|_| spec.memory(name) == Some(memory))?;
    let line = |(k, word): (usize, &u64)| {
        format!("{group} {:0w$X} {COUNT} {word:0h$X}", address + k as u64, w = ADDRESS_DIGITS, h = HEX_DIGITS)
    };
    Some(set.payload.iter().enumerate().map(line).collect())
}

impl Parser<'_> {
    /// Reads `<group> <address> 001 <long word>` after the letter. The last three are hex.
    pub(super) fn record(&mut self) -> Parse<ItemKind> {
        self.cursor.skip_blanks();
        let text = self.cursor.rest();
        let span = Span::new(self.cursor.at(), self.cursor.end());
        let spec = self.spec;
        let fault = |message: String| fault(Code::BadRecord, span, message);
        let name = spec.encoding.as_ref().map_or("", |e| e.record_memory.as_str());
        let Some(memory) = spec.memory(name) else {
            return Err(fault(format!("`{}` has no memory for such lines", spec.machine.name)));
        };
        let mut parts = text.split([' ', '\t']).filter(|p| !p.is_empty());
        let four = [parts.next(), parts.next(), parts.next(), parts.next()];
        let ([Some(group), Some(address), Some(count), Some(word)], None) = (four, parts.next()) else {
            let parts = text.split([' ', '\t']).filter(|p| !p.is_empty()).count();
            return Err(fault(format!("{parts} parts instead of group, address, count and word")));
        };
        let hex = |text: &str| {
            let digits = text.len() <= HEX_DIGITS && text.bytes().all(|b| b.is_ascii_hexdigit());
            u64::from_str_radix(text, 16).ok().filter(|_| digits)
        };
        let decimal = |text: &str| text.parse().ok().filter(|_| text.bytes().all(|b| b.is_ascii_digit()));
        let group: u32 = decimal(group)
            .filter(|g| *g < spec.counts.group)
            .ok_or_else(|| fault(format!("`{group}` is no group: the machine has {}", spec.counts.group)))?;
        let words = spec.memories[memory].words;
        let address = hex(address)
            .filter(|a| *a < words)
            .ok_or_else(|| fault(format!("`{address}` is no hexadecimal address below {words:#x}")))?;
        if count != COUNT {
            return Err(fault(format!("the count is `{count}`; only {COUNT} is known")));
        }
        let full = word.len() == HEX_DIGITS;
        let word =
            hex(word).filter(|_| full).ok_or_else(|| fault(format!("`{word}` is not {HEX_DIGITS} hex digits")))?;
        let units = [Some(group), None, None, None, None];
        let location = Location { memory, words: WORDS_PER_LONG, address, units };
        Ok(ItemKind::Set(Box::new(DebugSet { location, payload: vec![word] })))
    }
}

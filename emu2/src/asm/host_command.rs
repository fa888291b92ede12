//! Commands of the host between the lines of a program: `c` writes words, `e` reads them, `f` waits. Public judges put them
//! into programs for the vendor's emulator, where they pass the assembler unchanged.
//!
//! guess: all but the address, the count, the payload and the first tag. No manual describes these lines. Taken are: two
//! fields that are always 0, the tag that is signalled, the tag that is waited for (0: none), a field that is always 0.
//! `f` waits until everything before it has finished, so it does nothing here.

use super::cursor::{fault_help, Parse};
use super::parser::Parser;
use super::statement::{HostCommand, HostWords, ItemKind};
use crate::error::{Code, Diagnostic, Span};
use crate::spec::{Spec, LONG_BITS};

/// The letter of a command that writes words.
pub(crate) const WRITE: char = 'c';
/// The letter of a command that reads words.
pub(crate) const READ: char = 'e';
/// The letter of a command that waits for everything before it.
pub(crate) const FENCE: char = 'f';

const HEX_DIGITS: usize = LONG_BITS as usize / 4;
/// The number of digits of the address and of the count, as the vendor's tools write them. A count may have fewer.
const ADDRESS_DIGITS: usize = 9;
const COUNT_DIGITS: usize = 6;
/// The value of the fields of unknown meaning.
const UNKNOWN: &str = "0";

/// Whether a letter begins a command of the host.
pub(crate) fn is_letter(letter: char) -> bool {
    matches!(letter, WRITE | READ | FENCE)
}

/// The memory that the host reaches, and its group.
pub(crate) fn reached(spec: &Spec) -> Option<(usize, u32)> {
    spec.memories.iter().enumerate().find_map(|(at, memory)| Some((at, memory.host?)))
}

/// A command without its letter.
pub(crate) fn text(spec: &Spec, command: &HostCommand) -> String {
    let fields = |words: &HostWords, count: usize| {
        let (signal, wait) = (spec.syntax.tag(words.signal), spec.syntax.tag(words.wait));
        let (address, a, c) = (words.address, ADDRESS_DIGITS, COUNT_DIGITS);
        format!("{UNKNOWN} {UNKNOWN} {signal} {wait} {UNKNOWN} {address:0a$X} {count:0c$X}")
    };
    match command {
        HostCommand::Write(words, payload) => {
            let hex: String = payload.iter().map(|word| format!("{word:0w$X}", w = HEX_DIGITS)).collect();
            format!("{} {hex}", fields(words, payload.len()))
        }
        HostCommand::Read(words, count) => fields(words, *count as usize),
        HostCommand::Fence => String::new(),
    }
}

/// The letter of a command.
pub(crate) fn letter(command: &HostCommand) -> char {
    match command {
        HostCommand::Write(..) => WRITE,
        HostCommand::Read(..) => READ,
        HostCommand::Fence => FENCE,
    }
}

impl Parser<'_> {
    /// Reads a command after its letter.
    pub(super) fn host_command(&mut self, letter: char) -> Parse<ItemKind> {
        self.cursor.skip_blanks();
        let span = Span::new(self.cursor.at(), self.cursor.end());
        self.command(letter, self.cursor.rest()).map(|command| ItemKind::Host(Box::new(command))).map_err(|message| {
            let (a, c) = ("0".repeat(ADDRESS_DIGITS), "0".repeat(COUNT_DIGITS));
            let payload = if letter == WRITE { " <payload>" } else { "" };
            let help = match letter {
                FENCE => "write `f` alone on the line".to_string(),
                _ => format!("write `{letter} 0 0 i01 i00 0 {a} {c}{payload}` with address and count in hex"),
            };
            fault_help(Code::HostCommand, span, message, help)
        })
    }

    fn command(&self, letter: char, text: &str) -> Result<HostCommand, String> {
        let spec = self.spec;
        let mut parts = text.split([' ', '\t']).filter(|part| !part.is_empty());
        if letter == FENCE {
            return match parts.next() {
                None => Ok(HostCommand::Fence),
                Some(part) => Err(format!("`{FENCE}` has no field `{part}`")),
            };
        }
        let Some((memory, _)) = reached(spec) else {
            return Err(format!("the host reaches no memory of `{}`", spec.machine.name));
        };
        let mut next = |name: &str| parts.next().ok_or_else(|| format!("the command has no {name}"));
        let zero = |part: &str| match part {
            UNKNOWN => Ok(()),
            other => Err(format!("a field is `{other}`; only {UNKNOWN} is known there")),
        };
        let tag = |part: &str| {
            let digits = part.strip_prefix(spec.syntax.mv_tag).filter(|d| d.len() == spec.syntax.tag_digits);
            digits.and_then(hex).map(|tag| tag as u32).ok_or_else(|| format!("`{part}` is no tag"))
        };
        let number = |part: &str, digits: std::ops::RangeInclusive<usize>, what: &str| {
            let number = Some(part).filter(|part| digits.contains(&part.len())).and_then(hex);
            let range = format!("{} to {}", digits.start(), digits.end());
            number.ok_or_else(|| format!("the {what} `{part}` has not {range} hex digits"))
        };
        zero(next("first field")?)?;
        zero(next("second field")?)?;
        let signal = tag(next("tag to signal")?)?;
        let wait = tag(next("tag to wait for")?)?;
        zero(next("fifth field")?)?;
        let address = number(next("address")?, ADDRESS_DIGITS..=ADDRESS_DIGITS, "address")?;
        let count = number(next("count")?, 1..=COUNT_DIGITS, "count")?;
        let size = spec.memories[memory].words;
        if address.checked_add(count).is_none_or(|end| end > size) {
            return Err(format!("{count} long words at {address:#x} reach past the {size} that the host reaches"));
        }
        let words = HostWords { address, signal, wait };
        let command = if letter == READ {
            HostCommand::Read(words, count)
        } else {
            let payload = next("payload")?;
            if payload.len() as u64 != count * HEX_DIGITS as u64 || !payload.is_ascii() {
                let digits = payload.len();
                return Err(format!(
                    "the payload has {digits} digits; {count} long words have {}",
                    count * HEX_DIGITS as u64
                ));
            }
            let longs =
                payload.as_bytes().chunks(HEX_DIGITS).map(|digits| std::str::from_utf8(digits).ok().and_then(hex));
            let longs: Option<Vec<u64>> = longs.collect();
            HostCommand::Write(words, longs.ok_or("the payload has other characters than hex digits")?)
        };
        match parts.next() {
            None => Ok(command),
            Some(part) => Err(format!("`{}` after the last field", part.chars().take(20).collect::<String>())),
        }
    }
}

fn hex(digits: &str) -> Option<u64> {
    let whole = digits.bytes().all(|b| b.is_ascii_hexdigit());
    u64::from_str_radix(digits, 16).ok().filter(|_| whole)
}

/// The line that shows a long word that the host has read.
///
/// guess: the label. Public judges look at what follows `: `.
pub(crate) fn shown(spec: &Spec, address: u64, word: u64) -> String {
    let name = reached(spec).map_or("", |(memory, _)| spec.memories[memory].dump.as_str());
    format!("{name}({address}): {word:0w$X}", w = HEX_DIGITS)
}

/// The error of a program with commands of the host where no host takes part.
pub(crate) fn no_host() -> crate::error::Error {
    let found = Diagnostic::error(Code::HostCommand, None, "a command of the host in a kernel of a device");
    crate::error::Error(Box::new(found.help("use `send` and `recv` of the device, and remove the line")))
}

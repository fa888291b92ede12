//! Places and conditions as text: `lm0[12].f of n0c1b2m3p0 == 1.5`.
//!
//! ```text
//! condition := all { "or" all }        all := test { "and" test }
//! test      := place ( == | != | < | <= | > | >= ) value
//! place     := name "[" first [ ":" end ] "]" [ "." format [ "[" lane "]" ] ] [ "of" units ]
//!            | "$" location of a debug statement
//! ```
//!
//! Addresses count long words. A test holds if it holds for at least one of the words that its place names.

use crate::asm::parse_location;
use crate::error::{Code, Error};
use crate::exec::debug_place;
use crate::machine::{Machine, Owner, Region};
use crate::num::lane::Lane;
use crate::report::general;
use crate::spec::{LevelName, Spec, HALVES, WORDS_PER_LONG};
use std::ops::Range;

/// The letter of long words as hexadecimal numbers.
const HEX: &str = "x";

/// How a long word is shown and compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Format {
    /// Lanes of a precision. None is one hexadecimal number.
    lane: Option<Lane>,
}

/// Long words of one memory or path in some units.
#[derive(Clone, Debug, PartialEq)]
pub struct PlaceSet {
    /// Where the words lie.
    pub owner: Owner,
    /// The long words.
    pub rows: Range<u64>,
    /// The units, outermost level first. None stands for all units of the level.
    pub units: [Option<u32>; 5],
    format: Format,
    lane: Option<usize>,
    level: LevelName,
}

/// One word of a place.
#[derive(Clone, Debug, PartialEq)]
pub struct PlaceWord {
    /// The unit as text, such as `n0c1b2m3p0`.
    pub unit: String,
    /// Long word.
    pub addr: u64,
    /// Its bits.
    pub word: u64,
    /// The numbers of its lanes.
    pub text: String,
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Compare {
    Equal,
    Unequal,
    Less,
    LessEqual,
    More,
    MoreEqual,
}

/// The signs, those first that begin with another one.
const SIGNS: [(&str, Compare); 6] = [
    ("==", Compare::Equal),
    ("!=", Compare::Unequal),
    ("<=", Compare::LessEqual),
    (">=", Compare::MoreEqual),
    ("<", Compare::Less),
    (">", Compare::More),
];

#[derive(Clone, Copy, Debug, PartialEq)]
enum Value {
    /// Bits of a lane, written with `0x`.
    Bits(u64),
    Integer(i128),
    Float(f64),
}

#[derive(Clone, Debug, PartialEq)]
struct Test {
    place: PlaceSet,
    compare: Compare,
    value: Value,
}

/// A condition on memories and paths.
#[derive(Clone, Debug, PartialEq)]
pub struct Condition {
    /// One of these holds if all of its tests hold.
    any: Vec<Vec<Test>>,
}

fn bad(message: String) -> Error {
    Error::new(Code::BadPlace, message)
}

impl Format {
    /// The format with the letter of a precision of the spec, or `x`.
    ///
    /// # Errors
    /// [`Code::BadPlace`] for another letter.
    pub fn parse(letter: &str, spec: &Spec) -> Result<Format, Error> {
        if letter == HEX {
            return Ok(Format { lane: None });
        }
        let found = spec.precisions.iter().find(|p| p.name == letter).and_then(|p| p.lane());
        let names = || spec.precisions.iter().map(|p| p.name.as_str()).chain([HEX]).collect::<Vec<_>>().join(", ");
        let lane = found.ok_or_else(|| bad(format!("`{letter}` is no format; there are {}", names())))?;
        Ok(Format { lane: Some(lane) })
    }

    fn lanes(self) -> usize {
        self.lane.map_or(1, Lane::count)
    }

    /// Bits of lane `k`. Lane 0 is the leftmost.
    fn bits(self, word: u64, k: usize) -> u64 {
        let width = self.lane.map_or(u64::BITS, Lane::width);
        word >> (width * (self.lanes() - 1 - k) as u32) & (u64::MAX >> (u64::BITS - width))
    }

    fn value(self, word: u64, k: usize) -> Value {
        let bits = self.bits(word, k);
        match self.lane {
            None => Value::Bits(bits),
            Some(lane) => match lane.format() {
                Some(format) => Value::Float(format.to_f64(bits)),
                None => {
                    let unused = u64::BITS - lane.width();
                    Value::Integer(i128::from((bits << unused) as i64 >> unused))
                }
            },
        }
    }

    /// The numbers of a long word.
    pub fn show(self, word: u64) -> String {
        let one = |k| match self.value(word, k) {
            Value::Bits(bits) => format!("0x{bits:016x}"),
            Value::Integer(number) => number.to_string(),
            Value::Float(number) => general(number),
        };
        (0..self.lanes()).map(one).collect::<Vec<String>>().join(" ")
    }
}

/// The text of a unit of `level`, such as `n0c1b2m3p0`.
pub fn unit_name(spec: &Spec, level: LevelName, unit: [u32; 5]) -> String {
    let levels = spec.levels.iter().zip(unit).filter(|(l, _)| l.name <= level);
    levels.map(|(l, number)| format!("{}{number}", l.selector)).collect()
}

impl PlaceSet {
    /// Reads a place.
    ///
    /// # Errors
    /// [`Code::BadPlace`] with what is wrong, and the errors of [`Region::check`].
    pub fn parse(text: &str, spec: &Spec) -> Result<PlaceSet, Error> {
        let text = text.trim();
        if text.starts_with('$') {
            return PlaceSet::location(text, spec);
        }
        let (place, units) = match text.split_once(" of ") {
            Some((place, units)) => (place.trim(), units.trim()),
            None => (text, ""),
        };
        let malformed = || bad(format!("`{text}` is not a place"));
        let (name, rest) = place.split_once('[').ok_or_else(malformed)?;
        let (index, rest) = rest.split_once(']').ok_or_else(malformed)?;
        let (owner, level, size) = named(name.trim(), spec)?;
        let number = |text: &str| integer(text).ok_or_else(|| bad(format!("`{text}` is not an address")));
        let rows = match index.split_once(':') {
            Some((first, end)) => number(first)?..number(end)?,
            None => number(index).map(|first| first..first.saturating_add(1))?,
        };
        if rows.is_empty() || rows.end > size {
            return Err(bad(format!("`{}` has long words 0 to {}, not `[{index}]`", name.trim(), size - 1)));
        }
        let (format, lane) = lanes(rest.trim(), spec).map_err(|found| found.unwrap_or_else(malformed))?;
        Ok(PlaceSet { owner, rows, units: selected(units, spec, level)?, format, lane, level })
    }

    /// Reads a location of a debug statement.
    fn location(text: &str, spec: &Spec) -> Result<PlaceSet, Error> {
        let (location, rest) = text.split_once('.').unwrap_or((text, ""));
        let found = parse_location(location, spec).map_err(|fault| bad(format!("`{location}`: {}", fault.message)))?;
        if found.words < WORDS_PER_LONG {
            return Err(bad(format!("`{location}` is half a long word")).help("write a place such as `lm0[12].i[0]`"));
        }
        let (first, _) = debug_place(spec, found.memory, found.words, found.address, 0);
        let rest = if rest.is_empty() { String::new() } else { format!(".{rest}") };
        let malformed = || bad(format!("`{text}` is not a place"));
        let (format, lane) = lanes(&rest, spec).map_err(|fault| fault.unwrap_or_else(malformed))?;
        let level = spec.memories[found.memory].level;
        let (owner, rows) = (Owner::Memory(found.memory), first..first + 1);
        Ok(PlaceSet { owner, rows, units: found.units, format, lane, level })
    }

    /// Calls `visit` with every unit and long word, until it returns false.
    fn each(&self, spec: &Spec, visit: &mut dyn FnMut([u32; 5], u64) -> bool) {
        // A path is a memory of the PEs. Of that level there is always one.
        let any = spec.memories.iter().position(|m| m.level == self.level).unwrap_or_default();
        let memory = if let Owner::Memory(memory) = self.owner { memory } else { any };
        let region = Region { memory, units: self.units, addr: 0, count: 0 };
        let mut go_on = true;
        region.each(spec, |unit| {
            go_on = go_on && self.rows.clone().all(|row| visit(unit, row));
        });
    }

    /// Whether the place names the PE with a chip-wide number of an L1B and a lane.
    pub(super) fn names_pe(&self, spec: &Spec, (l1b, lane): (usize, usize)) -> bool {
        let unit = pe_unit(spec, l1b, lane);
        self.units.iter().zip(unit).all(|(wanted, unit)| wanted.is_none_or(|wanted| wanted == unit))
    }

    /// The words as they are now, at most `most` of them.
    pub fn words(&self, machine: &Machine, most: usize) -> Vec<PlaceWord> {
        let spec = machine.spec();
        let mut found = Vec::new();
        self.each(spec, &mut |unit, addr| {
            let word = machine.word(self.owner, unit, addr);
            let text = match self.lane {
                None => self.format.show(word),
                Some(k) => match self.format.value(word, k) {
                    Value::Bits(bits) => format!("0x{bits:016x}"),
                    Value::Integer(number) => number.to_string(),
                    Value::Float(number) => general(number),
                },
            };
            found.push(PlaceWord { unit: unit_name(spec, self.level, unit), addr, word, text });
            found.len() < most
        });
        found
    }

    /// The bits of all words.
    pub(super) fn bits(&self, machine: &Machine) -> Vec<u64> {
        let mut found = Vec::new();
        self.each(machine.spec(), &mut |unit, addr| {
            found.push(machine.word(self.owner, unit, addr));
            true
        });
        found
    }
}

/// The unit of a PE from the chip-wide number of its L1B and its lane.
pub(super) fn pe_unit(spec: &Spec, l1b: usize, lane: usize) -> [u32; 5] {
    let (counts, l1b, lane) = (&spec.counts, l1b as u32, lane as u32);
    let l2b = l1b / counts.l1b;
    [l2b / counts.l2b, l2b % counts.l2b, l1b % counts.l1b, lane / counts.pe, lane % counts.pe]
}

/// The memory or path called `name`, with its level and its size.
fn named(name: &str, spec: &Spec) -> Result<(Owner, LevelName, u64), Error> {
    if let Some(memory) = spec.memory(name) {
        let entry = &spec.memories[memory];
        return Ok((Owner::Memory(memory), entry.level, entry.words));
    }
    if let Some(path) = spec.forwards.iter().position(|f| f.name == name) {
        return Ok((Owner::Path(path), LevelName::Pe, u64::from(HALVES * spec.counts.cycle)));
    }
    let known = spec.memories.iter().map(|m| &m.name).chain(spec.forwards.iter().map(|f| &f.name));
    let known: Vec<&str> = known.map(String::as_str).collect();
    Err(bad(format!("no memory or forwarding path is called `{name}`; there are {}", known.join(", "))))
}

/// Reads `.f` or `.f[1]`. The error is None if the text has another form.
fn lanes(text: &str, spec: &Spec) -> Result<(Format, Option<usize>), Option<Error>> {
    let Some(text) = text.strip_prefix('.') else {
        return if text.is_empty() { Ok((Format { lane: None }, None)) } else { Err(None) };
    };
    let (letter, lane) = match text.split_once('[') {
        Some((letter, lane)) => (letter, Some(lane.strip_suffix(']').and_then(integer).ok_or(None)? as usize)),
        None => (text, None),
    };
    let format = Format::parse(letter.trim(), spec).map_err(Some)?;
    match lane.filter(|lane| *lane >= format.lanes()) {
        Some(lane) => Err(Some(bad(format!("`{letter}` has lanes 0 to {}, not {lane}", format.lanes() - 1)))),
        None => Ok((format, lane)),
    }
}

/// Reads units such as `n0c1b2`.
fn selected(text: &str, spec: &Spec, level: LevelName) -> Result<[Option<u32>; 5], Error> {
    let mut units = [None; 5];
    let mut rest = text;
    while let Some(letter) = rest.chars().next() {
        let at = spec.levels.iter().position(|l| l.selector == letter);
        let at = at.ok_or_else(|| bad(format!("`{text}` names no unit; units are written as in `n0c1b2m3p0`")))?;
        rest = &rest[letter.len_utf8()..];
        let digits = rest.len() - rest.trim_start_matches(|c: char| c.is_ascii_digit()).len();
        let (number, tail) = rest.split_at(digits);
        rest = tail;
        let number = number.parse().map_err(|_| bad(format!("`{letter}` in `{text}` needs a number")))?;
        let count = spec.count(spec.levels[at].name);
        if spec.levels[at].name > level || number >= count {
            return Err(bad(format!("`{letter}{number}` in `{text}` does not exist for this memory")));
        }
        if units[at].replace(number).is_some() {
            return Err(bad(format!("`{letter}` appears twice in `{text}`")));
        }
    }
    Ok(units)
}

fn integer(text: &str) -> Option<u64> {
    let text = text.trim();
    match text.strip_prefix("0x") {
        Some(digits) => u64::from_str_radix(digits, 16).ok(),
        None => text.parse().ok(),
    }
}

fn value(text: &str) -> Result<Value, Error> {
    if let Some(bits) = text.strip_prefix("0x").and_then(|digits| u64::from_str_radix(digits, 16).ok()) {
        return Ok(Value::Bits(bits));
    }
    if let Ok(number) = text.parse() {
        return Ok(Value::Integer(number));
    }
    match text.parse::<f64>() {
        Ok(number) if !number.is_nan() => Ok(Value::Float(number)),
        _ => Err(bad(format!("`{text}` is not a number"))),
    }
}

impl Test {
    fn parse(text: &str, spec: &Spec) -> Result<Test, Error> {
        let found = SIGNS.iter().filter_map(|(sign, compare)| Some((text.find(sign)?, sign, compare)));
        // Of two signs at one place, the longer one stands first in the table.
        let (at, sign, compare) = found
            .min_by_key(|(at, sign, _)| (*at, std::cmp::Reverse(sign.len())))
            .ok_or_else(|| bad(format!("`{}` compares nothing", text.trim())))?;
        let place = PlaceSet::parse(&text[..at], spec)?;
        Ok(Test { place, compare: *compare, value: value(text[at + sign.len()..].trim())? })
    }

    fn holds(&self, machine: &Machine) -> bool {
        let format = self.place.format;
        let lanes = self.place.lane.map_or(0..format.lanes(), |k| k..k + 1);
        let mut found = false;
        self.place.each(machine.spec(), &mut |unit, addr| {
            let word = machine.word(self.place.owner, unit, addr);
            found = lanes.clone().any(|k| self.compares(format.bits(word, k), format.value(word, k)));
            !found
        });
        found
    }

    fn compares(&self, bits: u64, number: Value) -> bool {
        let order = match (number, self.value) {
            (_, Value::Bits(wanted)) => Some(bits.cmp(&wanted)),
            (Value::Bits(_), Value::Integer(wanted)) => Some(i128::from(bits).cmp(&wanted)),
            (Value::Integer(number), Value::Integer(wanted)) => Some(number.cmp(&wanted)),
            (Value::Bits(_), Value::Float(wanted)) => (bits as f64).partial_cmp(&wanted),
            (Value::Integer(number), Value::Float(wanted)) => (number as f64).partial_cmp(&wanted),
            (Value::Float(number), Value::Integer(wanted)) => number.partial_cmp(&(wanted as f64)),
            (Value::Float(number), Value::Float(wanted)) => number.partial_cmp(&wanted),
        };
        order.is_some_and(|order| match self.compare {
            Compare::Equal => order.is_eq(),
            Compare::Unequal => order.is_ne(),
            Compare::Less => order.is_lt(),
            Compare::LessEqual => order.is_le(),
            Compare::More => order.is_gt(),
            Compare::MoreEqual => order.is_ge(),
        })
    }
}

impl Condition {
    /// Reads a condition.
    ///
    /// # Errors
    /// Those of [`PlaceSet::parse`].
    pub fn parse(text: &str, spec: &Spec) -> Result<Condition, Error> {
        let all = |text: &str| text.split(" and ").map(|test| Test::parse(test, spec)).collect();
        Ok(Condition { any: text.split(" or ").map(all).collect::<Result<_, _>>()? })
    }

    /// Whether the condition holds now.
    pub fn holds(&self, machine: &Machine) -> bool {
        self.any.iter().any(|all| all.iter().all(|test| test.holds(machine)))
    }

    /// The places that the condition reads.
    pub(super) fn places(&self) -> impl Iterator<Item = &PlaceSet> {
        self.any.iter().flatten().map(|test| &test.place)
    }
}

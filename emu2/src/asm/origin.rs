//! From a line of a text to the file and line that it comes from. Marks in the text say so: `#line 7 "sum._vsm"`.
//!
//! The lines behind a mark come from that line and those after it. With `#line 7 expanded "sum._vsm"` all of them come from
//! line 7, until the next mark.

use std::path::Path;

const MARK: &str = "#line ";
const EXPANDED: &str = " expanded";

/// A line of a source.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Place<'t> {
    /// The file, as its tool was given it.
    pub file: &'t str,
    /// The line, from 1.
    pub line: u32,
    /// Many lines of the text come from this one.
    pub expanded: bool,
}

impl Place<'_> {
    /// The mark of lines that come from here.
    pub fn mark(&self) -> String {
        let expanded = if self.expanded { EXPANDED } else { "" };
        format!("{MARK}{}{expanded} \"{}\"", self.line, self.file)
    }
}

/// The marks of a text.
#[derive(Clone, Debug, Default)]
pub struct Origins<'t> {
    /// The line of each mark, and what it says.
    marks: Vec<(u32, Place<'t>)>,
    lines: u32,
}

/// Reads a mark.
fn place(line: &str) -> Option<Place<'_>> {
    let (number, file) = line.strip_prefix(MARK)?.trim_end().strip_suffix('"')?.split_once(" \"")?;
    let plain = number.strip_suffix(EXPANDED);
    let line = plain.unwrap_or(number).parse().ok()?;
    Some(Place { file, line, expanded: plain.is_some() })
}

impl<'t> Origins<'t> {
    /// Finds the marks of a text.
    pub fn of(text: &'t str) -> Origins<'t> {
        if !text.contains(MARK) {
            return Origins::default();
        }
        let lines = (1..).zip(text.lines());
        let marks = lines.filter_map(|(number, line)| Some((number, place(line)?))).collect();
        Origins { marks, lines: text.lines().count() as u32 }
    }

    /// What line `line` of the text comes from. None without a mark before it.
    pub fn of_line(&self, line: u32) -> Option<Place<'t>> {
        let (at, place) = *self.marks[..self.marks.partition_point(|(at, _)| *at < line)].last()?;
        let behind = if place.expanded { 0 } else { line - at - 1 };
        Some(Place { line: place.line + behind, ..place })
    }

    /// The first line of the text that comes from `line` of a file, or from the next line of the file from which one comes. Files
    /// are told apart by their names alone.
    pub fn first_line(&self, file: &str, line: u32) -> Option<u32> {
        let name = |file| Path::new(file).file_name();
        let ends = self.marks.iter().skip(1).map(|(at, _)| *at).chain([self.lines + 1]);
        let own = self.marks.iter().zip(ends).filter(|((_, place), _)| name(place.file) == name(file));
        let found = own.filter_map(|((at, place), end)| {
            let count = if place.expanded { 1 } else { end - at - 1 };
            match line.saturating_sub(place.line) {
                ahead if ahead < count => Some((place.line + ahead, at + 1 + ahead)),
                _ => None,
            }
        });
        found.min().map(|(_, at)| at)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn marks_are_followed() {
        let text = "nop\n#line 3 expanded \"a/k._vsm\"\nnop\nnop\n#line 7 \"a/k._vsm\"\nnop\nnop\n#line x \"y\"\n";
        let origins = Origins::of(text);
        let at = |line| origins.of_line(line).map(|place| (place.file, place.line));
        let file = "a/k._vsm";
        let expected =
            [None, None, Some((file, 3)), Some((file, 3)), Some((file, 3)), Some((file, 7)), Some((file, 8))];
        assert_eq!((1..8).map(at).collect::<Vec<_>>(), expected);
        let first = |line| origins.first_line("elsewhere/k._vsm", line);
        assert_eq!([1, 3, 4, 7, 8, 9].map(first), [Some(3), Some(3), Some(6), Some(6), Some(7), Some(8)]);
        assert_eq!((first(20), origins.first_line("other", 3)), (None, None));
        for place in [origins.of_line(3), origins.of_line(6)].into_iter().flatten() {
            assert_eq!(super::place(&place.mark()), Some(place));
        }
    }
}

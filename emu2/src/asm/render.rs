//! Writes findings as text in the style of rustc, and as records for JSON.

use super::program::AssembleError;
use crate::error::{Diagnostic, Severity, Span};
use annotate_snippets::{Level, Renderer, Snippet};
use serde::Serialize;
use std::fmt;
use std::ops::Range;

/// Converts byte offsets of a text to lines and columns.
#[derive(Clone, Debug)]
pub struct Positions<'t> {
    text: &'t str,
    /// The offsets at which lines begin.
    starts: Vec<usize>,
}

impl<'t> Positions<'t> {
    /// Finds the lines of `text`.
    pub fn new(text: &'t str) -> Self {
        let ends = text.bytes().enumerate().filter(|(_, b)| *b == b'\n').map(|(at, _)| at + 1);
        Positions { text, starts: std::iter::once(0).chain(ends).collect() }
    }

    /// Line and column of a byte, both from 1. Columns count characters.
    pub fn line_column(&self, byte: usize) -> (usize, usize) {
        let line = self.starts.partition_point(|s| *s <= byte).max(1);
        let start = self.starts[line - 1];
        let before = self.text.get(start..byte.min(self.text.len())).unwrap_or("");
        (line, before.chars().count() + 1)
    }

    /// The bytes of the lines that `span` touches, without the last line feed.
    fn lines(&self, span: Span) -> (usize, usize) {
        let at = |byte: u32| self.starts.partition_point(|s| *s <= byte as usize).max(1);
        let start = self.starts[at(span.start) - 1];
        let end = self.starts.get(at(span.end.max(span.start + 1) - 1)).map_or(self.text.len(), |next| next - 1);
        (start, end.max(start))
    }
}

/// A finding for tools. Lines and columns count from 1, columns in characters. The end is exclusive.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Record {
    /// Name of the source.
    pub file: String,
    /// Line where the finding begins.
    pub line: usize,
    /// Column where the finding begins.
    pub column: usize,
    /// Line where the finding ends.
    pub end_line: usize,
    /// Column after its end.
    pub end_column: usize,
    /// Error code.
    pub code: &'static str,
    /// `error` or `warning`.
    pub severity: &'static str,
    /// What is wrong.
    pub message: String,
    /// What to do.
    pub help: String,
}

/// One record per finding. A finding without a place is at line 1, column 1.
pub fn records(name: &str, text: &str, diagnostics: &[Diagnostic]) -> Vec<Record> {
    let positions = Positions::new(text);
    let record = |d: &Diagnostic| {
        let span = d.span.unwrap_or_default();
        let (line, column) = positions.line_column(span.start as usize);
        let (end_line, end_column) = positions.line_column(span.end as usize);
        let (message, help) = (d.message.clone(), d.help.clone());
        let (code, severity) = (d.code.id(), severity(d.severity).0);
        Record { file: name.to_string(), line, column, end_line, end_column, code, severity, message, help }
    };
    diagnostics.iter().map(record).collect()
}

/// Writes all findings, each with its lines of the source underlined. `color` adds the colors of a terminal.
pub fn render(name: &str, text: &str, diagnostics: &[Diagnostic], color: bool) -> String {
    let positions = Positions::new(text);
    let renderer = if color { Renderer::styled() } else { Renderer::plain() };
    let mut out = String::new();
    for diagnostic in diagnostics {
        let level = severity(diagnostic.severity).1;
        let excerpt = diagnostic.span.map(|span| Excerpt::new(&positions, span));
        let mut message = level.title(&diagnostic.message).id(diagnostic.code.id());
        let mut place = None;
        if let Some(Excerpt { text, line, range, column }) = &excerpt {
            let label = level.span(range.clone()).label(diagnostic.code.title());
            let snippet = Snippet::source(text).line_start(*line).annotation(label);
            // The renderer counts columns in the excerpt, so the true column goes into a note.
            place = column.map(|column| format!("this is {name}:{line}:{column}"));
            message = message.snippet(if place.is_some() { snippet } else { snippet.origin(name) });
        }
        message = message.footers(place.as_deref().map(|place| Level::Note.title(place)));
        let rendered = renderer.render(message.footer(Level::Help.title(&diagnostic.help))).to_string();
        out.push_str(rendered.trim_end());
        out.push_str("\n\n");
    }
    out
}

/// How many bytes are kept before the start of the span, and how many after it. The renderer shows fewer.
const KEPT: usize = 4096;
/// At most this many bytes of a span are underlined.
const UNDERLINED: usize = 120;

/// The lines that a span touches, or a part of them if they are long.
struct Excerpt {
    text: String,
    /// Number of the first line.
    line: usize,
    /// The span's bytes in `text`.
    range: Range<usize>,
    /// The column where the span begins in its line, from 1. Set only if `text` does not begin with the line.
    column: Option<usize>,
}

impl Excerpt {
    fn new(positions: &Positions<'_>, span: Span) -> Self {
        let (first, last) = positions.lines(span);
        let boundary = |at: usize| (at..=at + 3).find(|a| positions.text.is_char_boundary(*a)).unwrap_or(at);
        let from = (span.start as usize).clamp(first, last);
        let cut = from - first > KEPT;
        let start = if cut { boundary(from - KEPT) } else { first };
        let end = boundary(from.saturating_add(KEPT)).min(last);
        let column = cut.then(|| positions.line_column(from).1);
        let span = Span::new(from, (span.end as usize).min(boundary(from + UNDERLINED)));
        // A blank in place of a tab or control character keeps the columns, and cannot change the state of the
        // terminal.
        let plain = |c: char| if c.is_ascii_control() && c != '\n' { ' ' } else { c };
        let lines = positions.text.get(start..end).unwrap_or("");
        let text: String = lines.strip_suffix('\r').unwrap_or(lines).chars().map(plain).collect();
        let inside = |byte: u32| (byte as usize).saturating_sub(start).min(text.len());
        let (from, to) = (inside(span.start), inside(span.end));
        let valid = text.is_char_boundary(from) && text.is_char_boundary(to) && from <= to;
        let line = positions.line_column(first).0;
        Excerpt { text, line, range: if valid { from..to } else { 0..0 }, column }
    }
}

fn severity(severity: Severity) -> (&'static str, Level) {
    match severity {
        Severity::Error => ("error", Level::Error),
        Severity::Warning => ("warning", Level::Warning),
    }
}

impl fmt::Display for AssembleError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(render(&self.name, &self.text, &self.diagnostics, false).trim_end())
    }
}

impl std::error::Error for AssembleError {}

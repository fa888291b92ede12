//! Breakpoints as text, and what a stop says.

use super::place::{Condition, PlaceSet};
use crate::error::{Code, Error};
use crate::exec::RunError;
use crate::spec::Spec;

/// A breakpoint.
#[derive(Clone, Debug, PartialEq)]
pub struct Breakpoint {
    /// Its number, from 1.
    pub id: u32,
    /// When it stops.
    pub kind: Kind,
    /// As it was written.
    pub text: String,
}

/// When a breakpoint stops.
#[derive(Clone, Debug, PartialEq)]
pub enum Kind {
    /// `line 12`, `line 12 if CONDITION`: before the first statement at or after a line, if the condition holds there.
    Line {
        /// The line.
        line: u32,
        /// Number of the statement.
        position: usize,
        /// The condition.
        condition: Option<Condition>,
    },
    /// `when CONDITION`: after a statement that makes the condition true.
    When(Condition),
    /// `write PLACE`: after a statement that writes one of the words.
    Write(PlaceSet),
    /// `infinity`: after a step with an infinite result.
    Infinity,
    /// `flag`: after a step that sets a flag.
    Flag,
    /// `overflow`: after a step in which a conversion gives an infinity or a limit for a finite number.
    Overflow,
    /// `hazard`: before a statement that a warning about timing names.
    Hazard,
}

impl Kind {
    /// Reads a breakpoint. `position` finds the first statement at or after a line.
    ///
    /// # Errors
    /// [`Code::BadBreakpoint`] for another text, [`Code::NoStatement`] for a line behind the last statement, and the errors of
    /// [`Condition::parse`].
    pub fn parse(text: &str, spec: &Spec, position: impl FnOnce(u32) -> Option<usize>) -> Result<Kind, Error> {
        let (word, rest) = text.trim().split_once(char::is_whitespace).unwrap_or((text.trim(), ""));
        let rest = rest.trim();
        let bad = || {
            let help = "write `line 12`, `line 12 if CONDITION`, `when CONDITION`, `write PLACE`, `infinity`, `flag`, `overflow` or `hazard`";
            Error::new(Code::BadBreakpoint, format!("`{text}` is not a breakpoint")).help(help)
        };
        match word {
            "line" => {
                let (number, condition) = match rest.split_once(" if ") {
                    Some((number, condition)) => (number, Some(Condition::parse(condition, spec)?)),
                    None => (rest, None),
                };
                let line = number.trim().parse().map_err(|_| bad())?;
                let message = || format!("there is no statement at or after line {line}");
                let position = position(line).ok_or_else(|| Error::new(Code::NoStatement, message()))?;
                Ok(Kind::Line { line, position, condition })
            }
            "when" => Condition::parse(rest, spec).map(Kind::When),
            "write" => PlaceSet::parse(rest, spec).map(Kind::Write),
            "infinity" if rest.is_empty() => Ok(Kind::Infinity),
            "flag" if rest.is_empty() => Ok(Kind::Flag),
            "overflow" if rest.is_empty() => Ok(Kind::Overflow),
            "hazard" if rest.is_empty() => Ok(Kind::Hazard),
            _ => Err(bad()),
        }
    }
}

/// Why a run stands where it stands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stop {
    /// `step`, `breakpoint`, `end`, `start`, `pause` or `error`.
    pub reason: &'static str,
    /// The breakpoints that stopped it.
    pub breakpoints: Vec<u32>,
    /// What happened, a line for each breakpoint.
    pub text: String,
    /// The error of the statement that comes next.
    pub error: Option<RunError>,
}

impl Stop {
    pub(super) fn plain(reason: &'static str) -> Stop {
        Stop { reason, breakpoints: Vec::new(), text: String::new(), error: None }
    }

    pub(super) fn failed(error: RunError) -> Stop {
        Stop { text: error.diagnostic.message.clone(), error: Some(error), ..Stop::plain("error") }
    }
}

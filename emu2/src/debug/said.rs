//! What a debugger says, as JSON: for Python, and for those that attach to a process.

use super::breakpoint::{Breakpoint, Kind, Stop};
use super::place::{unit_name, PlaceWord};
use super::session::Session;
use crate::machine::{Difference, Owner};
use crate::spec::{LevelName, Spec};
use serde_json::{json, Value};

/// A breakpoint: id, text, line (null for those that are not at a line).
pub fn breakpoint(breakpoint: &Breakpoint) -> Value {
    let line = if let Kind::Line { line, .. } = breakpoint.kind { Some(line) } else { None };
    json!({ "id": breakpoint.id, "text": breakpoint.text, "line": line })
}

/// A stop: reason, breakpoints, text, position, line, dump, error.
pub fn stop(stop: &Stop, session: &mut Session, dump: &[String]) -> Value {
    let failed = stop.error.as_ref().map(|e| {
        let found = &e.diagnostic;
        json!({ "line": e.line, "code": found.code.id(), "message": found.message, "help": found.help })
    });
    let position = session.position();
    json!({
        "reason": stop.reason, "breakpoints": stop.breakpoints, "text": stop.text, "position": position,
        "line": session.line(position), "dump": dump, "error": failed,
    })
}

/// Words of a place: unit, addr, word, text of each.
pub fn words(words: &[PlaceWord]) -> Value {
    words.iter().map(|w| json!({ "unit": w.unit, "addr": w.addr, "word": w.word, "text": w.text })).collect()
}

/// A word that differs: memory, unit, addr, before, after.
pub fn difference(spec: &Spec, difference: &Difference) -> Value {
    let Difference { owner, unit, addr, before, after } = difference;
    let (name, level) = match owner {
        Owner::Memory(memory) => (&spec.memories[*memory].name, spec.memories[*memory].level),
        Owner::Path(path) => (&spec.forwards[*path].name, LevelName::Pe),
    };
    json!({ "memory": name, "unit": unit_name(spec, level, *unit), "addr": addr, "before": before, "after": after })
}

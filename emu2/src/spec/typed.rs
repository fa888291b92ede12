//! Converts the TOML tables of a spec to typed values.

use super::source::{Document, Entry};
use crate::error::{Code, Error};
use serde::de::DeserializeOwned;

fn typed<T: DeserializeOwned>(entry: Entry, place: &str) -> Result<T, Error> {
    let origin = entry.origin;
    T::deserialize(toml::Value::Table(entry.table)).map_err(|e| problem(e.message(), &origin, place))
}

/// The error of a table that has the wrong form. `text` is the parser's message.
fn problem(text: &str, origin: &str, place: &str) -> Error {
    let code = match text.split_whitespace().take(2).collect::<Vec<_>>()[..] {
        ["unknown", "field"] => Code::SpecUnknownKey,
        ["missing", "field"] => Code::SpecMissingKey,
        ["unknown", "variant"] => Code::SpecUnknownName,
        ["invalid", "type:"] => Code::SpecWrongType,
        _ => Code::SpecBadValue,
    };
    Error::new(code, format!("{origin}: {place}: {text}"))
}

pub(super) fn single<T: DeserializeOwned>(document: &mut Document, key: &str) -> Result<T, Error> {
    match document.single.shift_remove(key) {
        Some(entry) => typed(entry, &format!("[{key}]")),
        None => Err(Error::new(Code::SpecMissingKey, format!("the spec has no [{key}]"))),
    }
}

pub(super) fn list<T: DeserializeOwned>(document: &mut Document, key: &str) -> Result<Vec<T>, Error> {
    let entries = document.list.shift_remove(key).unwrap_or_default();
    entries.into_iter().map(|(name, entry)| typed(entry, &format!("[[{key}]] `{name}`"))).collect()
}

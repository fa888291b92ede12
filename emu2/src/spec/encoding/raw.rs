//! The entries of the encoding as they stand in the TOML files.

use super::super::model::Evidence;
use super::super::source::Document;
use super::super::typed::{list, single};
use super::{EncodingField, EncodingShared, EncodingVector, Family, LiteralPiece};
use crate::error::Error;
use indexmap::IndexMap;
use serde::Deserialize;

/// All sections of a spec about machine words.
#[derive(Clone, Debug)]
pub(in super::super) struct Raw {
    pub(super) head: Head,
    pub(super) fields: Vec<EncodingField>,
    pub(super) enums: Vec<Enum>,
    pub(super) ports: Vec<Port>,
    pub(super) units: Vec<Unit>,
    pub(super) ops: Vec<Op>,
    pub(super) shared: Vec<EncodingShared>,
    pub(super) vectors: Vec<EncodingVector>,
}

impl Raw {
    /// Takes the sections out of `document`. `None` if the spec has no machine words.
    pub(in super::super) fn take(document: &mut Document) -> Result<Option<Raw>, Error> {
        if !document.single.contains_key("encoding") {
            return Ok(None);
        }
        Ok(Some(Raw {
            head: single(document, "encoding")?,
            fields: list(document, "encoding_field")?,
            enums: list(document, "encoding_enum")?,
            ports: list(document, "encoding_port")?,
            units: list(document, "encoding_unit")?,
            ops: list(document, "encoding_op")?,
            shared: list(document, "encoding_shared")?,
            vectors: list(document, "encoding_vector")?,
        }))
    }
}

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Head {
    pub(super) bits: u32,
    pub(super) letter: char,
    pub(super) idle: String,
    pub(super) forward: String,
    pub(super) mask: String,
    pub(super) record_memory: String,
    pub(super) doc: String,
    pub(super) evidence: Evidence,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Enum {
    pub(super) name: String,
    pub(super) values: IndexMap<String, u64>,
    #[serde(default)]
    pub(super) inferred: Vec<String>,
    #[serde(rename = "doc")]
    pub(super) _doc: String,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct AddressField {
    pub(super) address: String,
    pub(super) stride: String,
    pub(super) width: Coded,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Write {
    pub(super) enable: String,
    pub(super) source: Coded,
    pub(super) mask: String,
    pub(super) place: Option<AddressField>,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Port {
    pub(super) name: String,
    pub(super) read: Option<AddressField>,
    pub(super) write: Write,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Coded {
    pub(super) field: String,
    pub(super) values: String,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Input {
    pub(super) field: String,
    pub(super) values: String,
    pub(super) negate: Option<String>,
    pub(super) reduce: Option<String>,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Unit {
    pub(super) name: String,
    pub(super) family: Family,
    #[serde(default)]
    pub(super) implicit: bool,
    pub(super) precision: Option<Coded>,
    pub(super) x: Option<Input>,
    pub(super) y: Option<Input>,
    pub(super) z: Option<Input>,
    pub(super) half: Option<Coded>,
    pub(super) bank: Option<Coded>,
    pub(super) row: Option<String>,
    pub(super) wide: Option<String>,
    pub(super) address: Option<String>,
    #[serde(default)]
    pub(super) literal: Vec<LiteralPiece>,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Op {
    pub(super) name: String,
    pub(super) unit: String,
    pub(super) entry: String,
    pub(super) form: Option<String>,
    #[serde(default)]
    pub(super) parameter: i64,
    pub(super) length: Option<u32>,
    pub(super) sets: IndexMap<String, u64>,
    pub(super) seen: Vec<String>,
}

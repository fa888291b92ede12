//! The declared machine. Its TOML files under `isa_specs/` are loaded, merged, validated and resolved here.

mod control;
mod encoding;
mod expr;
mod fault;
mod load;
mod loaded;
mod map;
mod mnemonic;
mod mnemonics;
mod model;
mod place;
mod reader;
mod resolve;
mod set;
mod source;
mod typed;

pub use encoding::{
    Coded, Encoding, EncodingCode, EncodingField, EncodingInput, EncodingOp, EncodingPlace, EncodingPort,
    EncodingShared, EncodingUnit, EncodingVector, Family, LiteralPiece, OpTarget, Selector, Status,
};
pub use expr::{Expr, ExprError};
pub use loaded::*;
pub use map::{End, ResolvedForm};
pub use mnemonic::{Half, Mnemonic};
pub use model::*;
pub use place::{Meeting, Move, Place, COORDINATES, HALVES};
pub use resolve::{reduction_lane, selector_name};
pub use set::UnitSet;
pub use source::{built_in_names, texts, what_if_names};

//! The entries of a spec as they stand in its TOML files. Field names are the keys. Unknown keys are refused.

mod arithmetic;
mod entry;
mod machine;
mod operand;
mod rules;
mod transfer;

pub use arithmetic::*;
pub use entry::*;
pub use machine::*;
pub use operand::*;
pub use rules::*;
pub use transfer::*;

//! Runs that follow the validity of every value, and look for results that depend on undefined words, on timing or on the
//! range of a format.
//!
//! A second machine holds the validity: a bit is 1 where something has written the bit of the value. Transfers run on it
//! as they run on values. A step runs on the validity first, with the addresses and masks of the real registers, and then
//! on the values, in the general engine. So the values are those of a plain run.
//!
//! | file | subject |
//! |---|---|
//! | `finding` | findings, counted |
//! | `shadow` | rows that are valid as a whole, origins |
//! | `step` | a step on the validity: inputs |
//! | `observed` | what a step works on: an L1B with its validity, buffers |
//! | `compute` | the validity of results |
//! | `decided_bits` | bits of bitwise operations that one source decides |
//! | `store` | writes of validity |
//! | `range` | values that leave their format |
//! | `traffic` | MVs in flight, tags |
//! | `worker`, `followed` | regions on all L2Bs |
//! | `text` | findings as diagnostics |
//! | `run` | the order of everything |

mod compute;
mod decided_bits;
mod finding;
mod followed;
mod observed;
mod range;
mod run;
mod shadow;
mod step;
mod store;
mod text;
mod traffic;
mod worker;

pub use run::Sanitizer;
pub use text::Finding;

//! Runs apps, the files that hold a compiled model: assembly text, constants, and where values lie in DRAM.
//!
//! An app comes from outside, so everything in it is checked before anything runs. Pieces that the host must compute are
//! refused by name, but for plain copies.

mod arrays;
mod buffer;
mod check;
mod elements;
mod model;
mod onnx;
mod place;
mod run;

pub use arrays::{write_arrays, Array, Arrays};
pub use model::{check_structure, App};
pub use run::{run_files, Loaded};

//! Programs: from the lines of nodes to assembly text. Each instruction goes to the first step that hazards, slots and ports allow.
//!
//! `code` has the lines as layers write them, `machine` and `rules` what the spec says, `op` and `ready` lines at their addresses.
//! `dependences` says what must come before what, among the instructions of a node and among nodes.
//! `placing` finds the step of an instruction; on it stand the list scheduler of one node (`schedule`, `shelf`) and the timeline
//! of a whole program (`timeline`), in which MVs run beside the lines. `merge` places nodes there, with words from `allocator`;
//! `writer` adds idle steps and waits, and `text` writes. `rows` makes pipelines of programs that run over many rows.

// `make lint` switches these lints off for tests, benches and their helpers. Here they stay on.
#![cfg_attr(not(test), warn(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::type_complexity))]

mod allocator;
mod chunks;
mod clock;
mod code;
mod dependences;
mod distance;
mod line;
mod live_ranges;
mod machine;
mod masks;
mod merge;
mod op;
mod order;
mod placing;
mod program;
mod ready;
mod ring;
mod row_program;
mod rows;
mod rules;
mod schedule;
mod shelf;
mod text;
mod timeline;
mod touches;
mod units;
mod writer;

pub use code::{Block as BlockWords, Instruction, Issue, Line, Move, Operand as Part, Pe, Shift, Value, Values};
pub use distance::distance;
pub use machine::{Machine, Memory, Names, Syntax};
pub use op::{Block, Facts, Form, Op, Operand};
pub use program::{Held, Node, Program};
pub use row_program::{Operation, Placed, Places, What};
pub use rows::place_rows;
pub use rules::{Hazard, Name, Rules};
pub use schedule::schedule;
pub use shelf::Fragment;
pub use timeline::{Needs, Timeline, Transfer};
pub use touches::{Access, Site};
pub use units::Kind;

pub use live_ranges::{ranges, whole, LiveRange, Ranges};
pub use writer::{Code, Flight, Row};

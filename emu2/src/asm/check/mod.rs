//! The checks beyond the grammar, one kind of rule per file.

mod extent;
mod flight;
mod forward;
mod gap;
mod hazard;
mod line_context;
mod mask_cycles;
mod masks;
mod ports;
mod report;
mod slots;
mod turnaround;
mod units;

pub(super) use hazard::Hazards;
pub(super) use line_context::LineContext;
pub(super) use masks::check_masks;
pub(super) use ports::Ports;
pub(super) use slots::check_slots;
pub(super) use units::check_units;

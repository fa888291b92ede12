//! What the assembler refuses or warns of beyond the grammar, one kind of rule per file.

mod extent;
mod flight;
mod forward;
mod gap;
mod hazard;
mod ports;
mod slots;

pub(super) use hazard::{Hazards, Place};
pub(super) use ports::Ports;
pub(super) use slots::check_slots;

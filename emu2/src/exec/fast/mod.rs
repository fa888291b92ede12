//! Faster forms of instructions. They leave the same bits as `fallback_step.rs`.

pub(super) mod data_flow;
pub(super) mod kernel_call;
pub(super) mod liveness;
pub(super) mod plain_rows;
mod value_numbering;
pub(super) mod wide_call;

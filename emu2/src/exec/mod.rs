//! Lowering of programs, and the engine.
//!
//! PE lines are lowered in source order into steps. A **region** is a run of steps and L2BM instructions that stay inside
//! an L2B. Every L2B runs a whole region on its own, so threads share regions out by L2B, or by L1B if there are steps
//! only. MVs and debug statements end a region.
//!
//! # Files
//!
//! One line per file, in the order of their dependencies. A file uses only files above it.
//!
//! | file | subject |
//! |---|---|
//! | `tags` | completion tags: whether the transfer that a `wait` names is done |
//! | `wrap` | addresses that wrap at the end of a memory |
//! | `debug_place` | the words that a debug statement names, and `d set` |
//! | `access` | word addresses of an operand: stride, base register, T register, differences between PEs |
//! | `mask` | write masks and zero-flush masks as rows of bits |
//! | `source` | sources: fetching rows, conversions `e` and `r` |
//! | `validity` | the bits of words that something has written, for sanitized runs |
//! | `destination` | writes of PE memories and base address registers, under masks |
//! | `flag` | flags of results, writes of mask registers |
//! | `fixed_input` | `$peid` and other fixed inputs as rows |
//! | `l1bm_map` | index maps of L1BM instructions as block copies and layouts of reductions |
//! | `l1bm` | loads from L1BM, places of stores |
//! | `matrix` | matrix registers: rows in, columns out, products |
//! | `mau_op` | MAU operations: which kernel of `num` with which operands |
//! | `mau_op/validity` | the validity of their results |
//! | `compute` | the computation of any PE instruction on whole rows |
//! | `op` | the types: an instruction, a step, the buffers that run them |
//! | `effects` | the reads and writes of an instruction; no other file derives them |
//! | `fast/liveness` | the results on forwarding paths that anyone reads |
//! | `fast/plain_rows` | ops on whole rows, in place |
//! | `fast/wide_call` | products of halves and writes of matrix registers, with resolved addresses |
//! | `fast/value_numbering` | the paths and rows that hold the same value |
//! | `fast/kernel_call` | an op as a single kernel call |
//! | `lower`, `lower/l1bm` | from a checked PE line to ops: addresses, kernels, index maps |
//! | `observe` | what a step would write or convert, for the debugger |
//! | `transfer_runs` | index maps of MVs and L2BM instructions as runs of words |
//! | `dram_address_register` | DAR: filling, writing, and lookup by MVs |
//! | `transfer_l2bm` | L2BM instructions |
//! | `fast/data_flow` | the plan of many steps: order, dead writes, joined halves |
//! | `fallback_step` | one step as the manual describes it: the reference for everything in `fast` |
//! | `region` | runs a region on one L1B |
//! | `kept_regions` | programs that run again are lowered once |
//! | `transfer_mv` | MVs |
//! | `transfer_mv/words` | the words that an MV reads and writes |
//! | `host_command` | commands of the host in a program |
//! | `engine` | the order of everything: regions, transfers, debug statements, threads |
//! | `sanitize` | runs that look for undefined values, timing and ranges that results depend on |
//!
//! Not here: the rounding of half results (`num/mau/half.rs`, `num/mau/round.rs`), latencies (`isa_specs`, tables `hazard`
//! and `timing`; `report/cost.rs` counts them), dump lines (`report/dump.rs`).

mod access;
mod collect;
mod compute;
mod debug_place;
mod destination;
mod dram_address_register;
mod effects;
mod engine;
mod fallback_step;
mod fast;
mod fixed_input;
mod flag;
mod host_command;
mod kept_regions;
mod l1bm;
mod l1bm_map;
mod lower;
mod mask;
mod matrix;
mod mau_op;
mod no_kernel;
mod observe;
mod op;
mod prepare;
mod region;
mod sanitize;
mod source;
mod tags;
mod thread_buffers;
mod transfer_l2bm;
mod transfer_mv;
mod transfer_runs;
mod validity;
mod wrap;

pub use debug_place::debug_place;
pub use engine::{run, run_general, Engine, RunError};
pub use kept_regions::KeptRegions;
pub use observe::{LaneOfL1b, Observer};
pub use sanitize::{Finding, Sanitizer};
pub use tags::{AssumedHost, HostLines, Tags};
pub(crate) use transfer_mv::selectors as mv_selectors;

//! The debugger: runs a program statement by statement, forwards and backwards.
//!
//! A program has no branches, so a moment of its run is a **position**: the number of statements that have run. Going
//! back is going to an earlier position: the newest image before it is restored, and the statements behind it run again.
//!
//! | file | subject |
//! |---|---|
//! | `statements` | the statements of a program by number and by line |
//! | `touched` | the memories that a statement may write, from its text |
//! | `place` | places and conditions as text |
//! | `history` | images of the run, thinned out with age |
//! | `values` | infinities, flags and overflows of a step |
//! | `breakpoint` | the kinds of breakpoints |
//! | `session` | a program, its machine and the history of its run |
//! | `run` | runs with breakpoints, forwards and backwards |
//! | `said` | what it says, as JSON |
//! | `compare` | differences between moments and between runs |

mod breakpoint;
mod compare;
mod history;
mod place;
mod run;
pub mod said;
mod session;
mod statements;
mod touched;
mod values;

pub use breakpoint::{Breakpoint, Kind, Stop};
pub use compare::{first_parting, Parting};
pub use history::HistoryLimits;
pub use place::{unit_name, Condition, Format, PlaceSet, PlaceWord};
pub use session::{Session, Unit};

//! Which findings refuse a program.

/// Which findings refuse a program. Errors of grammar, ranges and parallel issue always do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Policy {
    /// Hazards warn: results are those of immediate execution anyway.
    Run,
    /// Hazards refuse the program, but for rows of the spec that are guesses.
    Check,
    /// Every warning refuses the program.
    Strict,
}

//! The choice which findings refuse a program.

/// The choice which findings refuse a program. Errors of grammar, ranges and parallel issue always do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Policy {
    /// Hazards only warn. The engine makes every write visible in the next step, so results do not depend on them.
    Run,
    /// Hazards refuse the program, except those whose row of the spec is a guess.
    Check,
    /// Every warning refuses the program.
    Strict,
}

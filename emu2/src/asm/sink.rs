//! Collects findings: sets their severity by policy, and bounds how many are kept.

use super::policy::Policy;
use crate::error::{Code, Diagnostic, Severity, Span};
use crate::spec::Evidence;

/// At most this many findings of each severity are listed. The others are counted.
pub(super) const LIMIT: usize = 100;

#[derive(Debug)]
pub(super) struct Sink {
    policy: Policy,
    errors: Vec<Diagnostic>,
    warnings: Vec<Diagnostic>,
    /// The number of errors and warnings past the limit; `first_omitted` is the place of the first of them.
    omitted: (u64, u64),
    first_omitted: Span,
}

impl Sink {
    pub(super) fn new(policy: Policy) -> Self {
        Sink { policy, errors: Vec::new(), warnings: Vec::new(), omitted: (0, 0), first_omitted: Span::default() }
    }

    /// The severity of breaking a rule with this evidence.
    pub(super) fn severity(&self, evidence: Evidence) -> Severity {
        match (self.policy, evidence) {
            (Policy::Strict, _) => Severity::Error,
            (_, Evidence::Guess) | (Policy::Run, _) => Severity::Warning,
            (Policy::Check, _) => Severity::Error,
        }
    }

    /// True once another error would only be counted. Its help text is then not needed.
    pub(super) fn full(&self) -> bool {
        self.errors.len() >= LIMIT
    }

    pub(super) fn push(&mut self, mut diagnostic: Diagnostic) {
        if self.policy == Policy::Strict {
            diagnostic.severity = Severity::Error;
        }
        let (list, omitted) = match diagnostic.severity {
            Severity::Error => (&mut self.errors, &mut self.omitted.0),
            Severity::Warning => (&mut self.warnings, &mut self.omitted.1),
        };
        if list.len() < LIMIT {
            list.push(diagnostic);
            return;
        }
        *omitted += 1;
        if self.omitted.0 + self.omitted.1 == 1 {
            self.first_omitted = diagnostic.span.unwrap_or_default();
        }
    }

    /// Adds a warning that does not depend on evidence.
    pub(super) fn warn(&mut self, code: Code, span: Span, message: String) {
        self.push(Diagnostic::warning(code, Some(span), message));
    }

    /// All findings in source order, and whether they refuse the program.
    pub(super) fn finish(self) -> (Vec<Diagnostic>, bool) {
        let refused = !self.errors.is_empty();
        let mut all = self.errors;
        all.extend(self.warnings);
        sorting::sort_by_key(&mut all, |d| d.span.map(|s| s.start));
        let (errors, warnings) = self.omitted;
        if errors + warnings > 0 {
            let count = |n: u64, what: &str| format!("{n} more {what}{}", if n == 1 { "" } else { "s" });
            let message = match (errors, warnings) {
                (_, 0) => format!("and {}", count(errors, "error")),
                (0, _) => format!("and {}", count(warnings, "warning")),
                _ => format!("and {}, {}", count(errors, "error"), count(warnings, "warning")),
            };
            let more = Diagnostic::warning(Code::TooMany, Some(self.first_omitted), message);
            all.push(Diagnostic { severity: if errors > 0 { Severity::Error } else { Severity::Warning }, ..more });
        }
        (all, refused)
    }
}

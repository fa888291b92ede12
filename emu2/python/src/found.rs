//! Findings of sanitized runs on their way to Python.

use emu2::asm::{records, render, Program, Record};
use emu2::error::Error;
use emu2::exec::{RunError, Sanitizer};
use emu2::spec::Spec;
use serde::Serialize;
use std::sync::Arc;

/// A finding as a dict.
#[derive(Clone, Serialize)]
pub(crate) struct Found {
    #[serde(flatten)]
    record: Record,
    memory: Option<String>,
    unit: Option<String>,
    address: Option<u64>,
    earlier_line: Option<u32>,
    count: u64,
    /// The finding in its source lines.
    #[serde(skip)]
    pub(crate) text: String,
}

/// The findings of `sanitizer` since the last call. `program` is the one that ran.
pub(crate) fn found(program: &Program, sanitizer: &mut Sanitizer) -> Vec<Found> {
    let finding = |finding: emu2::exec::Finding| {
        let one = std::slice::from_ref(&finding.diagnostic);
        let text = render(&program.name, &program.text, one, false);
        let record = records(&program.name, &program.text, one).pop()?;
        let (memory, unit, address) = (finding.memory, finding.unit, finding.address);
        let record = Record { line: finding.line as usize, ..record };
        Some(Found { record, memory, unit, address, earlier_line: finding.earlier, count: finding.count, text })
    };
    sanitizer.findings(program).into_iter().filter_map(finding).collect()
}

/// The sanitizer of a machine, made at its first use.
pub(crate) fn sanitizer_of<'s>(spec: &Arc<Spec>, held: &'s mut Option<Sanitizer>) -> Result<&'s mut Sanitizer, Error> {
    if held.is_none() {
        *held = Some(Sanitizer::new(spec.clone())?);
    }
    held.as_mut().ok_or_else(|| Error::new(emu2::error::Code::NoKernel, "the sanitizer cannot be made"))
}

/// An error before anything ran.
pub(crate) fn at_start(error: &Error) -> RunError {
    RunError { line: 0, diagnostic: (*error.0).clone() }
}

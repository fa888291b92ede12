//! The messages about a read that comes too early.

use super::flight::Flight;
use super::gap::TooEarly;
use crate::asm::sink::Sink;
use crate::error::{Code, Diagnostic, Span};
use crate::spec::{Hazard, HazardRule, Spec};

/// Reports a gap that is too short.
pub(super) fn report_gap(spec: &Spec, hazard: &Hazard, memory: usize, early: TooEarly, span: Span, sink: &mut Sink) {
    let name = &spec.memories[memory].name;
    let code = if hazard.rule == HazardRule::Port { Code::PortHazard } else { Code::DataHazard };
    let unit = if early.cycles { "cycle" } else { "step" };
    let plural = |n: u64| format!("{n} {unit}{}", if n == 1 { "" } else { "s" });
    let message = format!(
        "{name} is read too soon after line {} wrote it: {} lie{} in between, {} are needed",
        early.line,
        plural(early.actual),
        if early.actual == 1 { "s" } else { "" },
        early.needed
    );
    let nops = if early.missing == 1 { "`nop`".to_string() } else { format!("`nop/{}`", early.missing) };
    let help = format!("put {nops} or as many other steps before this line");
    let severity = sink.severity(hazard.evidence);
    sink.push(Diagnostic { severity, ..Diagnostic::warning(code, Some(span), message) }.help(help));
}

/// Reports a read of words of an MV that may not have finished.
pub(super) fn report_wait(spec: &Spec, hazard: &Hazard, memory: usize, flight: &Flight, span: Span, sink: &mut Sink) {
    let name = &spec.memories[memory].name;
    let message = format!("{name} is read, and the MV of line {} may not have finished writing it", flight.line);
    let help = match flight.tag {
        Some(tag) => format!("put `nop; wait {}` before this line", spec.syntax.tag(tag)),
        None => {
            format!("give the MV of line {} a tag such as `i01` and put `nop; wait i01` before this line", flight.line)
        }
    };
    let severity = sink.severity(hazard.evidence);
    sink.push(Diagnostic { severity, ..Diagnostic::warning(Code::WaitHazard, Some(span), message) }.help(help));
}

//! Checks the masks of a line: it may have one mask length, one mask register and one zero flush.

use crate::asm::line::Line;
use crate::asm::sink::Sink;
use crate::asm::statement::{Mask, MaskEntry};
use crate::error::{Code, Diagnostic, Span};

/// Checks the masks of a line. Returns true if nothing was found.
pub(in crate::asm) fn check_masks(line: &Line, sink: &mut Sink) -> bool {
    let mut clean = true;
    let mut report = |code: Code, span: Span, message: &str| {
        clean = false;
        sink.push(Diagnostic::error(code, Some(span), message));
    };
    let mut first: Option<Mask> = None;
    let mut register = None;
    let mut flushed = false;
    for instruction in &line.pe {
        if instruction.zero_flush.is_some() && std::mem::replace(&mut flushed, true) {
            report(Code::FlushTwice, instruction.span, "this is the second zero flush of the line");
        }
        let flush = instruction.zero_flush.map(|mask| (mask, instruction.span));
        let writes = instruction.destinations.iter().filter_map(|d| d.mask.map(|mask| (mask, d.span)));
        for (mask, span) in flush.into_iter().chain(writes) {
            if first.get_or_insert(mask).wide != mask.wide {
                let (this, other) = if mask.wide { ("2-long", "long") } else { ("long", "2-long") };
                report(Code::MaskLengths, span, &format!("a {this} mask on a line that has a {other} mask"));
            }
            if let MaskEntry::Register(entry) = mask.entry {
                let used = *register.get_or_insert(entry);
                if used != entry {
                    let message = format!("mask register {entry} on a line that masks with {used} too");
                    report(Code::MaskRegisters, span, &message);
                }
            }
        }
    }
    clean
}

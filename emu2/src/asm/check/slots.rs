//! Checks which instructions share a line: one per slot, some only alone, some only with certain slots, some never
//! alone.

use crate::asm::lexicon::Lexicon;
use crate::asm::line::{Line, Use};
use crate::asm::sink::Sink;
use crate::error::{Code, Diagnostic};
use crate::spec::Spec;

/// Checks the slots of a line. Returns true if nothing was found.
pub(in crate::asm) fn check_slots(spec: &Spec, lexicon: &Lexicon, line: &Line, sink: &mut Sink) -> bool {
    let mut taken = 0u32;
    let mut clean = true;
    let mut report = |code: Code, at: &Use, message: String| {
        clean = false;
        sink.push(Diagnostic::error(code, Some(at.span), message));
    };
    for at in &line.uses {
        let (slot, bit) = (&spec.slots[at.slot], 1u32 << at.slot);
        if taken & bit != 0 {
            let message = format!("this is the second instruction of the line in the slot `{}`", slot.name);
            report(Code::SlotTwice, at, message);
        }
        taken |= bit;
    }
    if let Some(at) = line.uses.iter().find(|u| line.uses.len() > 1 && spec.slots[u.slot].alone) {
        let message = format!("instructions of the slot `{}` stand alone on their line", spec.slots[at.slot].name);
        report(Code::NotAlone, at, message);
        return false;
    }
    let by_itself = line.uses.iter().any(|u| !spec.slots[u.slot].needs_company);
    for at in &line.uses {
        let slot = &spec.slots[at.slot];
        let others = taken & !(1 << at.slot);
        if others & !lexicon.company[at.slot] != 0 {
            let message = format!("only {} may share a line with this", quoted(&slot.with));
            report(Code::WrongCompany, at, message);
        } else if slot.needs_company && !by_itself {
            let message = format!("the slot `{}` needs another instruction on the line", slot.name);
            report(Code::NeedsCompany, at, message);
        }
    }
    clean
}

fn quoted(names: &[String]) -> String {
    let quoted: Vec<String> = names.iter().map(|n| format!("`{n}`")).collect();
    quoted.join(", ")
}

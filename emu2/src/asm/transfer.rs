//! Reads L1BM and L2BM instructions. Their operands select the form of the transfer.

use super::cursor::{fault, fault_help, Parse};
use super::source_destination::{missing, Port, Writes};

use super::line::Line;
use super::operand::{AbovePeOperand, Kind, Operand};
use super::parser::{Head, Parser};
use super::statement::{Convert, FormRef, L2bmTransfer, PeInstruction, PeKind, Selected};
use crate::error::{Code, Span};
use crate::spec::{End, Form, LevelName, ResolvedForm, Transfer, Widen, WORDS_PER_LONG};

impl Parser<'_> {
    /// Reads a transfer after its mnemonic.
    pub(super) fn transfer(&mut self, head: Head<'_>, transfer: usize, line: &mut Line) -> Parse<Span> {
        if self.spec.forms[transfer].iter().any(|f| f.unit.is_some()) {
            return self.mv(head, transfer, line);
        }
        let flushable = self.spec.forms[transfer].iter().any(|f| matches!(f.destination, End::Pe));
        let parameter = self.parameter(head, transfer, flushable)?;
        let flush_at = self.cursor.at();
        let zero_flush = if flushable { self.zero_flush()? } else { self.no_zero_flush(head).map(|()| None)? };
        let flush_span = self.cursor.span_from(flush_at);
        self.read_operands()?;
        let span = self.span(head.start);
        if let Some(form) = self.spec.forms[transfer].iter().position(|f| implied(&f.source) && implied(&f.destination))
        {
            if let Some(extra) = self.operands.first() {
                return Err(fault(Code::ExtraOperand, extra.span, format!("`{}` takes no operand", head.text)));
            }
            let form = FormRef { transfer, form, parameter: 0 };
            let source_unit = Selected::default();
            line.l2bm.push(L2bmTransfer { span, form, source: 0, destination: 0, source_unit });
            return Ok(span);
        }
        let form = self.find_form(head, transfer, span)?;
        let resolved = &self.spec.forms[transfer][form];
        if zero_flush.is_some() && !matches!(resolved.destination, End::Pe) {
            let message = format!("`{}` takes no zero flush in this direction", head.text);
            return Err(fault_help(Code::BadMask, flush_span, message, "remove the mask"));
        }
        let parameter = self.form_parameter(head, transfer, resolved, parameter)?;
        let form = FormRef { transfer, form, parameter };
        let reach = self.lexicon.reach(self.spec, transfer, form.form);
        let mut operands = std::mem::take(&mut self.operands);
        let one_destination = matches!(resolved.destination, End::Memory { .. });
        if let Some(extra) = operands.get(2).filter(|_| one_destination) {
            let message = format!("`{}` has one source and one destination here", head.text);
            return Err(fault(Code::ExtraOperand, extra.span, message));
        }
        let mut written = operands.drain(..);
        let Some(first) = written.next() else { return Err(missing(head.text, 1, 0, span)) };
        match (&resolved.source, &resolved.destination) {
            (End::Memory { align, .. }, End::Pe) => {
                let kind = PeKind::L1bm { form, address: self.l1bm_end(first, *align, reach.source)? };
                let destinations = self.destinations(written.by_ref(), Writes::Result)?;
                line.pe.push(PeInstruction { span, kind, sources: Vec::new(), destinations, zero_flush });
            }
            (End::Pe, End::Memory { align, .. }) => {
                self.check_widening(head, transfer, resolved, &first)?;
                let port = Port { extend: resolved.widen == Some(Widen::Written), ..Port::default() };
                let source = self.source(first, port)?;
                let Some(second) = written.next() else { return Err(missing(head.text, 1, 1, span)) };
                let kind = PeKind::L1bm { form, address: self.l1bm_end(second, *align, reach.destination)? };
                let (sources, destinations) = (vec![source], Vec::new());
                line.pe.push(PeInstruction { span, kind, sources, destinations, zero_flush: None });
            }
            (End::Memory { align: from, .. }, End::Memory { align: to, .. }) => {
                let source = self.memory_end(first, *from, reach.source)?;
                let Some(second) = written.next() else { return Err(missing(head.text, 1, 1, span)) };
                // With a buffer, the operand is only the entry where a later instruction begins to write.
                let buffered = self.buffered(&resolved.destination);
                let length = if buffered { 1 } else { reach.destination };
                let destination = self.memory_end(second, *to, length)?.address;
                let (source, source_unit) = (source.address, source.selected);
                line.l2bm.push(L2bmTransfer { span, form, source, destination, source_unit });
            }
            (End::Pe, End::Pe) => {}
        }
        drop(written);
        self.operands = operands;
        Ok(span)
    }

    fn buffered(&self, end: &End) -> bool {
        matches!(end, End::Memory { operand, .. } if self.spec.operands[*operand].buffer.is_some())
    }

    /// The form that the first two operands select, as an entry of `forms`.
    pub(super) fn find_form(&self, head: Head<'_>, transfer: usize, span: Span) -> Parse<usize> {
        let [source, destination, ..] = self.operands.as_slice() else {
            return Err(missing(head.text, 1, self.operands.len(), span));
        };
        let fits = |f: &ResolvedForm| {
            self.matches(&f.source, source)
                && self.matches(&f.destination, destination)
                && turns_around(f, source, destination)
        };
        if let Some(form) = self.spec.forms[transfer].iter().position(fits) {
            return Ok(form);
        }
        let both = Span::new(source.span.start as usize, destination.span.end as usize);
        let message = format!("`{}` has no form for these operands", head.text);
        let help = if self.sink.full() { String::new() } else { self.form_help(head, transfer, source, destination) };
        let help = format!("{help}{}", self.wide_reductions(transfer, destination));
        Err(fault_help(Code::NoForm, both, message, help))
    }

    /// The closest forms as help text, written with the operands of this instruction where they fit.
    fn form_help(&self, head: Head<'_>, transfer: usize, source: &Operand, destination: &Operand) -> String {
        let forms = &self.spec.forms[transfer];
        let score = |f: &ResolvedForm| {
            let side =
                |end, operand| u32::from(self.same_class(end, operand)) * 2 + u32::from(self.matches(end, operand));
            side(&f.source, source) + side(&f.destination, destination)
        };
        let best = forms.iter().map(score).max().unwrap_or(0);
        let mut shapes: Vec<String> = Vec::new();
        for form in forms.iter().filter(|f| score(f) == best) {
            let shape =
                format!("`{} {}`", self.shape(&form.source, source), self.shape(&form.destination, destination));
            if !shapes.contains(&shape) {
                shapes.push(shape);
            }
        }
        format!("`{}` takes {}", head.text, shapes.join(" or "))
    }

    /// `end` as assembly text, with the address and selectors of `operand` if it is of the same class.
    fn shape(&self, end: &End, operand: &Operand) -> String {
        let End::Memory { operand: class, width, selectors, .. } = end else {
            return if self.same_class(end, operand) {
                self.cursor.quote(operand.span)
            } else {
                "<PE operand>".to_string()
            };
        };
        let given = match &operand.kind {
            Kind::AbovePe(given) if given.operand == *class => Some(given),
            _ => None,
        };
        let entry = &self.spec.operands[*class];
        let words = width.or(given.map(|m| m.words));
        let named =
            |p: &&String| words.is_none_or(|n| self.spec.widths.iter().any(|w| w.prefix == **p && w.words == n));
        let prefix = entry.widths.iter().find(named).map_or("", String::as_str);
        let address = given.map_or("<address>".to_string(), |m| m.address.to_string());
        let selected = given.map(|m| m.selected).unwrap_or_default();
        let number = |level: &LevelName| match level {
            _ if !selectors.contains(level) => String::new(),
            LevelName::Group => selected.group.unwrap_or(0).to_string(),
            _ => selected.l2b.unwrap_or(0).to_string(),
        };
        let numbers: Vec<String> = entry.selectors.iter().map(number).collect();
        let selector = if selectors.is_empty() { String::new() } else { format!("@{}", numbers.join(".")) };
        let suffix = if given.is_some_and(|m| m.table) { &self.table_suffix(*class) } else { &entry.suffix };
        format!("${prefix}{}{suffix}{address}{selector}", entry.letter)
    }

    /// The suffix of the operand that stands for entry `class` of `operands` and goes through a table.
    fn table_suffix(&self, class: usize) -> String {
        let name = &self.spec.operands[class].name;
        let of = |o: &&crate::spec::Operand| o.table.as_ref().is_some_and(|t| t.operand == *name);
        self.spec.operands.iter().find(of).map(|o| o.suffix.clone()).unwrap_or_default()
    }

    /// Help text that names the reductions with a form of two long words. Empty unless that is the fault.
    fn wide_reductions(&self, transfer: usize, destination: &Operand) -> String {
        let wide = match &destination.kind {
            Kind::AbovePe(named) => named.words > WORDS_PER_LONG,
            Kind::Turnaround(words) => *words > WORDS_PER_LONG,
            _ => false,
        };
        let entry = &self.spec.transfers[transfer];
        if !wide || entry.reduction.is_none() || !entry.form.iter().all(|f| f.suffix.is_empty()) {
            return String::new();
        }
        let has = |t: &&Transfer| t.entry == entry.entry && t.form.iter().any(|f| self.is_wide(f));
        let names: Vec<_> = self.spec.transfers.iter().filter(has).map(|t| format!("`{}`", t.name)).collect();
        format!("; two long words per PE: {}", names.join(", "))
    }

    fn is_wide(&self, form: &Form) -> bool {
        let words = |prefix: &String| self.spec.widths.iter().find(|w| w.prefix == *prefix).map_or(0, |w| w.words);
        form.destination.width.as_ref().is_some_and(|prefix| words(prefix) > WORDS_PER_LONG)
    }

    /// Checks `e` and `r` on the source of an L1BM instruction: `e` is legal if the form widens halves on request, `r`
    /// never.
    fn check_widening(&self, head: Head<'_>, transfer: usize, form: &ResolvedForm, source: &Operand) -> Parse<()> {
        let Some(convert) = source.convert else { return Ok(()) };
        let text = self.cursor.quote(source.span);
        let help = match (convert, form.widen) {
            (Convert::Extend, Some(Widen::Written)) => return Ok(()),
            (Convert::Extend, Some(Widen::Always)) => {
                format!("remove the `e`: `{}` widens halves by itself", head.text)
            }
            (Convert::Extend, None) => {
                let entry = &self.spec.transfers[transfer].entry;
                let takes = |t: &&Transfer| t.entry == *entry && t.form.iter().any(|f| f.widen == Some(Widen::Written));
                let names: Vec<_> = self.spec.transfers.iter().filter(takes).map(|t| format!("`{}`", t.name)).collect();
                match names.is_empty() {
                    true => "remove the `e`: only reductions of singles widen halves".to_string(),
                    false => {
                        format!("remove the `e`: halves are widened by {}, into `$llb` or with `r`", names.join(", "))
                    }
                }
            }
            (Convert::Reduce, _) => {
                "to narrow the result, write `r` at the end of the mnemonic of a reduction of singles".to_string()
            }
        };
        let message = format!("`{text}` cannot be converted here");
        Err(fault_help(Code::BadConversion, source.span, message, help))
    }

    /// The L1BM address of an L1BM instruction. `None` for the turnaround register.
    fn l1bm_end(&mut self, operand: Operand, align: u64, reach: u64) -> Parse<Option<u64>> {
        let Operand { span, kind: Kind::Turnaround(_), negate, ref mask, .. } = operand else {
            return Ok(Some(self.memory_end(operand, align, reach)?.address));
        };
        let text = self.cursor.quote(span);
        if negate {
            return Err(fault(Code::BadNegation, span, format!("`{text}` cannot be negated")));
        }
        if mask.is_some() {
            return Err(fault(Code::BadMask, span, format!("`{text}` has no write mask: all cycles are moved")));
        }
        Ok(None)
    }

    /// Whether the operand is of the class of the end. Width and selectors do not matter.
    fn same_class(&self, end: &End, operand: &Operand) -> bool {
        match (end, &operand.kind) {
            (End::Pe, kind) => !matches!(kind, Kind::AbovePe(_) | Kind::Turnaround(_)),
            (End::Memory { operand, .. }, Kind::AbovePe(named)) => *operand == named.operand,
            (End::Memory { operand, .. }, Kind::Turnaround(_)) => Some(*operand) == self.lexicon.turnaround_operand,
            (End::Memory { .. }, _) => false,
        }
    }

    fn matches(&self, end: &End, operand: &Operand) -> bool {
        let End::Memory { width, selectors, assumed, .. } = end else { return self.same_class(end, operand) };
        let (words, selected) = match &operand.kind {
            Kind::AbovePe(named) => (named.words, named.selected),
            Kind::Turnaround(words) => (*words, Selected::default()),
            _ => return false,
        };
        let selects = |level: &LevelName| {
            let given = selected.number(*level).is_some();
            selectors.contains(level) == given || (assumed.contains(level) && !given)
        };
        self.same_class(end, operand)
            && width.is_none_or(|w| w == words)
            && [LevelName::Group, LevelName::L2b].iter().all(selects)
    }

    /// Checks an operand above the PEs that covers `reach` long words.
    pub(super) fn memory_end(&mut self, operand: Operand, align: u64, reach: u64) -> Parse<AbovePeOperand> {
        let Operand { span, kind, negate, mask, .. } = operand;
        let text = || self.cursor.quote(span);
        let Kind::AbovePe(named) = kind else {
            return Err(fault(Code::WrongOperand, span, format!("`{}` cannot stand here", text())));
        };
        if negate {
            return Err(fault(Code::BadNegation, span, format!("`{}` cannot be negated", text())));
        }
        if mask.is_some() {
            return Err(fault(Code::BadMask, span, format!("`{}` has no write mask: all cycles are moved", text())));
        }
        if named.table {
            return Ok(named);
        }
        if named.address % align != 0 {
            let message = format!("address {} of this transfer must be a multiple of {align}", named.address);
            let below = named.address - named.address % align;
            return Err(fault_help(Code::Misaligned, span, message, format!("use {below} or {}", below + align)));
        }
        let name = &self.spec.memories[named.memory].name;
        if reach > named.size {
            let message = format!("the transfer covers {reach} long words, and {name} has {}", named.size);
            return Err(fault_help(Code::OperandRange, span, message, "move less at a time"));
        }
        if named.address + reach > named.size {
            let end = named.address + reach;
            let message = format!("the transfer ends at {end}, past the {} long words of {name}", named.size);
            self.sink.warn(Code::AddressWraps, span, message);
        }
        Ok(named)
    }
}

fn implied(end: &End) -> bool {
    matches!(end, End::Memory { implied: true, .. })
}

/// Whether the form suits the turnaround register: one end must be the PEs if an operand is the register.
fn turns_around(form: &ResolvedForm, source: &Operand, destination: &Operand) -> bool {
    let register = |o: &Operand| matches!(o.kind, Kind::Turnaround(_));
    let pe = |end: &End| matches!(end, End::Pe);
    !(register(source) || register(destination)) || pe(&form.source) || pe(&form.destination)
}

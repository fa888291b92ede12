//! Reads MV lines with their parameters, selectors and sizes, and the tags that `wait` names.

use super::cursor::{fault, fault_help, Parse};
use super::line::Line;
use super::operand::Kind;
use super::parser::{Head, Parser};
use super::statement::{FormRef, Mv, Selected};
use crate::error::{Code, Span};
use crate::spec::{End, LevelName, ResolvedForm};

#[derive(Debug, Default)]
struct Parameters {
    size: Option<(u64, Span)>,
    /// `Some(None)` is a tag that nothing can wait for.
    tag: Option<Option<u32>>,
    priority: Option<u32>,
    /// How many blocks one entry of a table serves.
    per_entry: Option<(u64, Span)>,
}

impl Parser<'_> {
    /// Reads an MV after its mnemonic.
    pub(super) fn mv(&mut self, head: Head<'_>, transfer: usize, line: &mut Line) -> Parse<Span> {
        let priorities = self.spec.slots.get(self.lexicon.transfer_slots[transfer]).map_or(0, |s| s.priorities);
        let parameters = if self.cursor.peek() == Some(b'/') {
            self.mv_parameters(priorities)?
        } else {
            self.expect_break("the mnemonic")?;
            Parameters::default()
        };
        let Some((size, size_span)) = parameters.size else {
            let span = self.cursor.span_from(head.start);
            return Err(fault(Code::MissingSize, span, format!("`{}` has no size", head.text)));
        };
        self.read_operands()?;
        let span = self.span(head.start);
        let form = self.find_form(head, transfer, span)?;
        if let Some(extra) = self.operands.get(2) {
            let message = format!("`{}` has one source and one destination", head.text);
            return Err(fault(Code::ExtraOperand, extra.span, message));
        }
        let resolved = &self.spec.forms[transfer][form];
        self.warn_of_assumed(resolved);
        let unit = resolved.unit.unwrap_or(1).max(1);
        if size == 0 || size % unit != 0 {
            let message = format!("nw must be aligned to the multiple of {unit}");
            let (below, letter) = (size - size % unit, self.spec.syntax.mv_size);
            let help = match below {
                0 => format!("use {letter}{unit}"),
                _ => format!("use {letter}{below} or {letter}{}", below.saturating_add(unit)),
            };
            return Err(fault_help(Code::SizeUnit, size_span, message, help));
        }
        let reach = self.lexicon.reach(self.spec, transfer, form);
        let blocks = size / unit - 1;
        let covered = |stride: u64, block: u64| blocks.saturating_mul(stride).saturating_add(block);
        let align = |end: &End| match end {
            End::Memory { align, .. } => *align,
            End::Pe => 1,
        };
        let mut operands = std::mem::take(&mut self.operands);
        let (second, first) = (operands.pop(), operands.pop());
        let (Some(first), Some(second)) = (first, second) else { return Ok(span) };
        let (from, to) = (align(&resolved.source), align(&resolved.destination));
        let tables = [&first, &second].map(|o| matches!(&o.kind, Kind::AbovePe(operand) if operand.table));
        if let Some((_, span)) = parameters.per_entry.filter(|_| tables == [false, false]) {
            let message = format!("`{}` without an operand that goes through a table", self.cursor.quote(span));
            return Err(fault_help(Code::BadMvParameter, span, message, "remove it, or use `$di` instead of `$d`"));
        }
        let per_entry = parameters.per_entry.map_or(1, |(n, _)| n);
        let [source_dar, destination_dar] = tables.map(|table| table.then_some(per_entry));
        let source = self.memory_end(first, from, covered(reach.source_stride, reach.source))?;
        let destination = self.memory_end(second, to, covered(reach.destination_stride, reach.destination))?;
        self.operands = operands;
        line.mv = Some(Box::new(Mv {
            form: FormRef { transfer, form, parameter: 0 },
            size,
            tag: parameters.tag.flatten(),
            priority: parameters.priority.unwrap_or(0),
            source: source.address,
            source_dar,
            source_unit: self.assume(&resolved.source, source.selected),
            destination: destination.address,
            destination_dar,
            destination_unit: self.assume(&resolved.destination, destination.selected),
        }));
        Ok(span)
    }

    /// Warns if a selector that the form needs is left out.
    fn warn_of_assumed(&mut self, form: &ResolvedForm) {
        for (end, operand) in [&form.source, &form.destination].into_iter().zip(&self.operands) {
            let (End::Memory { assumed, .. }, Kind::AbovePe(named)) = (end, &operand.kind) else { continue };
            for level in assumed.iter().filter(|l| named.selected.number(**l).is_none()) {
                let name = format!("{level:?}").to_lowercase();
                let message = format!("`{}` selects no {name}: 0 is meant", self.cursor.quote(operand.span));
                self.sink.warn(Code::AssumedUnit, operand.span, message);
            }
        }
    }

    /// The selected units, with 0 for a level that may be left out.
    fn assume(&self, end: &End, mut selected: Selected) -> Selected {
        let End::Memory { assumed, .. } = end else { return selected };
        for level in assumed {
            let number = match level {
                LevelName::Group => &mut selected.group,
                _ => &mut selected.l2b,
            };
            number.get_or_insert(0);
        }
        selected
    }

    /// Reads the parameters, such as `/n64i02p1`, in any order.
    fn mv_parameters(&mut self, priorities: u32) -> Parse<Parameters> {
        let (mut all, syntax) = (Parameters::default(), &self.spec.syntax);
        self.cursor.eat(b'/');
        let first = self.cursor.at();
        loop {
            let start = self.cursor.at();
            let twice = match self.cursor.peek() {
                Some(_) if self.cursor.eat_str(&syntax.mv_table) => {
                    let blocks = self.cursor.number("the blocks of an entry")?;
                    let span = self.cursor.span_from(start);
                    if blocks == 0 {
                        return Err(fault(Code::BadMvParameter, span, "an entry serves at least one block"));
                    }
                    all.per_entry.replace((blocks, span)).is_some()
                }
                Some(_) if self.cursor.eat_letter(syntax.mv_size) => {
                    let size = self.cursor.number("the size")?;
                    all.size.replace((size, self.cursor.span_from(start))).is_some()
                }
                Some(_) if self.cursor.at_letter(syntax.mv_tag) => {
                    let given = self.tag()?;
                    let named = self.mv_tag(given, self.cursor.span_from(start));
                    all.tag.replace(named).is_some()
                }
                Some(_) if self.cursor.eat_letter(syntax.mv_priority) => {
                    let priority = self.cursor.number32("the priority")?;
                    if priority >= priorities {
                        let message = format!("there is no priority {priority}");
                        let help = format!("use {0}0 to {0}{1}", syntax.mv_priority, priorities.saturating_sub(1));
                        return Err(fault_help(Code::BadMvParameter, self.cursor.span_from(start), message, help));
                    }
                    all.priority.replace(priority).is_some()
                }
                _ if self.cursor.at_break() && self.cursor.at() > first => {
                    return Ok(all);
                }
                _ => {
                    let message = format!("`{}` is not a parameter of an MV", self.cursor.word());
                    return Err(fault(Code::BadMvParameter, self.cursor.word_span(), message));
                }
            };
            if twice {
                let span = self.cursor.span_from(start);
                let message = format!("`{}` is the second of its kind", self.cursor.quote(span));
                return Err(fault(Code::BadMvParameter, span, message));
            }
        }
    }

    /// Reads the letter and the hex digits of a tag. Their number is fixed.
    fn tag(&mut self) -> Parse<u32> {
        let start = self.cursor.at();
        let count = self.spec.syntax.tag_digits;
        let letter = self.cursor.eat_letter(self.spec.syntax.mv_tag);
        let digits = self.cursor.rest().get(..count).unwrap_or("");
        match u32::from_str_radix(digits, 16) {
            Ok(tag) if letter && digits.bytes().all(|b| b.is_ascii_hexdigit()) => {
                self.cursor.move_to(self.cursor.at() + count);
                Ok(tag)
            }
            _ => {
                self.cursor.move_to(start);
                let message = format!("`{}` is not a tag", self.cursor.word());
                Err(fault(Code::BadTag, self.cursor.word_span(), message))
            }
        }
    }

    fn mv_tag(&mut self, tag: u32, span: Span) -> Option<u32> {
        if tag < self.spec.timing.tag_minimum {
            self.sink.warn(Code::UnusualTag, span, format!("nothing can wait for tag {tag:02x}"));
            return None;
        }
        self.check_largest(tag, span);
        Some(tag)
    }

    fn check_largest(&mut self, tag: u32, span: Span) {
        let largest = self.spec.timing.tag_maximum;
        if tag > largest {
            let message = format!("tag {tag:02x} is past {largest:02x}, the last documented one");
            self.sink.warn(Code::UnusualTag, span, message);
        }
    }

    /// Reads the tag of a `wait`.
    pub(super) fn wait_tag(&mut self) -> Parse<u32> {
        let start = self.cursor.at();
        let tag = self.tag()?;
        let span = self.cursor.span_from(start);
        if tag < self.spec.timing.tag_minimum {
            return Err(fault(Code::BadTag, span, format!("tag {tag:02x} cannot be waited for")));
        }
        self.check_largest(tag, span);
        Ok(tag)
    }
}

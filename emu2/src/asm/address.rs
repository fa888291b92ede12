//! Reads the addresses of operands: a number, a stride, a list, an offset per PE. Above the PEs, also reads the units
//! after `@`.

use super::cursor::{fault, fault_help, Parse};
use super::operand::AbovePeOperand;
use super::parser::Parser;
use super::statement::{Access, Address, Selected};
use super::token::Token;
use crate::error::{Code, Span};
use crate::spec::{Addressing, LevelName, Unit, HALVES, WORDS_PER_LONG};

impl<'a> Parser<'a> {
    /// Reads the address of a PE operand. Its token has been read, and so has the letter behind it if `indirect`.
    pub(super) fn access(&mut self, token: &Token, indirect: bool, start: usize) -> Parse<Access> {
        let memory = token.memory;
        if token.unit == Unit::Cycle {
            if self.cursor.peek().is_some_and(|b| b.is_ascii_digit() || b == b'[') {
                let message = format!("`${}` takes no address: it is the entry of the cycle", token.text);
                return Err(fault(Code::BadOperandAddress, self.cursor.word_span(), message));
            }
            let words = WORDS_PER_LONG * HALVES;
            return Ok(Access { memory, words, address: Address::Cycle, indirect: false, modify: None });
        }
        if indirect && !self.takes(token, Addressing::Indirect) {
            let span = Span::new(start, self.cursor.word_span().end as usize);
            let able: Vec<String> = self
                .lexicon
                .tokens
                .iter()
                .filter(|t| self.takes(t, Addressing::Indirect))
                .map(|t| format!("${}", t.text))
                .collect();
            let message = format!("`${}` takes no indirect address", token.text);
            return Err(fault_help(Code::BadOperandAddress, span, message, format!("only {} do", able.join(", "))));
        }
        let address = match self.cursor.peek() {
            Some(b'0'..=b'9') => self.plain_or_stride(token, start)?,
            Some(b'[') => self.flat(token, start)?,
            _ if indirect => Address::Stride { base: 0, stride: 0 },
            _ => {
                let message = format!("`${}` needs an address", token.text);
                return Err(fault(Code::BadOperandAddress, self.cursor.word_span(), message));
            }
        };
        let modify =
            if self.cursor.at_letter(self.spec.syntax.modify) { Some(self.modify(token, indirect)?) } else { None };
        if !indirect {
            self.check_wrap(token, &address, modify, start);
        }
        Ok(Access { memory, words: token.words, address, indirect, modify })
    }

    fn takes(&self, token: &Token, addressing: Addressing) -> bool {
        self.spec.operands[token.operand].addressing.contains(&addressing)
    }

    /// Reads `j1`: PEs up to PE 1 of a MAB add one access width to the address.
    fn modify(&mut self, token: &Token, indirect: bool) -> Parse<u32> {
        let from = self.cursor.at();
        if indirect || !self.takes(token, Addressing::Modify) {
            let why = if indirect { "an indirect address" } else { "this memory's address" };
            let message = format!("{why} takes no `{}`", self.spec.syntax.modify);
            return Err(fault_help(Code::BadOperandAddress, self.cursor.word_span(), message, "remove it"));
        }
        self.cursor.eat_letter(self.spec.syntax.modify);
        let last = self.cursor.number32("the number of the PE")?;
        let pes = self.spec.counts.pe;
        if last >= pes {
            let message = format!("there is no PE {last} in a MAB: the machine has {pes}");
            return Err(fault(Code::BadUnit, self.cursor.span_from(from), message));
        }
        Ok(last)
    }

    /// Warns if an address is certain to run past the end of its memory.
    fn check_wrap(&mut self, token: &Token, address: &Address, modify: Option<u32>, start: usize) {
        let cycles = self.spec.counts.cycle;
        let highest = match address {
            Address::Stride { base, stride } => {
                u64::from(*base) + u64::from(cycles.saturating_sub(1)) * u64::from(*stride)
            }
            Address::Flat(list) => list.iter().copied().max().unwrap_or(0).into(),
            Address::Cycle => 0,
        };
        let last = highest + modify.map_or(0, |_| u64::from(token.words));
        if last >= token.size {
            let (span, name) = (self.cursor.span_from(start), self.memory_name(token));
            let message = format!("the last address {last} is past the {} words of {name}", token.size);
            self.sink.warn(Code::AddressWraps, span, message);
        }
    }

    fn plain_or_stride(&mut self, token: &Token, start: usize) -> Parse<Address> {
        let base = self.cursor.number32("the address")?;
        self.check_base(token, base, start)?;
        if !self.cursor.at_letter(self.spec.syntax.stride) {
            return Ok(Address::Stride { base, stride: 0 });
        }
        if !self.takes(token, Addressing::Stride) {
            return Err(fault(
                Code::BadOperandAddress,
                self.cursor.word_span(),
                format!("`${}` takes no stride", token.text),
            ));
        }
        self.cursor.eat_letter(self.spec.syntax.stride);
        let at = self.cursor.at();
        let stride = match self.cursor.peek() {
            Some(b'0'..=b'9') => self.cursor.number32("the stride")?,
            _ => token.words,
        };
        if stride % token.words != 0 {
            let message =
                format!("the stride {stride} is no multiple of {}, the words of `${}`", token.words, token.text);
            return Err(fault(Code::BadStride, self.cursor.span_from(at), message));
        }
        let steps = u64::from(self.spec.counts.cycle.saturating_sub(1));
        let last = u64::from(base) + steps * u64::from(stride);
        if u64::from(stride) >= token.size || last > u64::from(u32::MAX) {
            let message =
                format!("the stride {stride} is past the {} words of {}", token.size, self.memory_name(token));
            return Err(fault(Code::BadStride, self.cursor.span_from(at), message));
        }
        Ok(Address::Stride { base, stride })
    }

    fn flat(&mut self, token: &Token, start: usize) -> Parse<Address> {
        let from = self.cursor.at();
        if !self.takes(token, Addressing::Flat) {
            return Err(fault(
                Code::BadOperandAddress,
                self.cursor.word_span(),
                format!("`${}` takes no list", token.text),
            ));
        }
        self.cursor.eat(b'[');
        let cycles = self.spec.counts.cycle as usize;
        let mut list = Vec::with_capacity(cycles);
        let mut count = 0usize;
        loop {
            self.cursor.skip_blanks();
            let address = self.cursor.number32("an address of the list")?;
            self.check_base(token, address, start)?;
            // A longer list is refused below. Its entries are only counted.
            if count < cycles {
                list.push(address);
            }
            count += 1;
            self.cursor.skip_blanks();
            if self.cursor.eat(b']') {
                break;
            }
            if !self.cursor.eat(b',') {
                let message = format!("`,` or `]` is missing before `{}`", self.cursor.word());
                return Err(fault(Code::BadOperandAddress, self.cursor.word_span(), message));
            }
        }
        if count != cycles {
            let message = format!("{count} addresses for {cycles} cycles");
            return Err(fault(Code::ListLength, self.cursor.span_from(from), message));
        }
        Ok(Address::Flat(list.into()))
    }

    #[inline]
    fn check_base(&self, token: &Token, base: u32, start: usize) -> Parse<()> {
        if u64::from(base) < token.size && base.is_multiple_of(token.words) {
            return Ok(());
        }
        let (span, name) = (self.cursor.span_from(start), self.memory_name(token));
        if u64::from(base) >= token.size {
            let message = format!("address {base} is past the {} words of {name}", token.size);
            let help = format!("the last address of this access is {}", token.size - u64::from(token.words));
            return Err(fault_help(Code::OperandRange, span, message, help));
        }
        let message = format!("address {base} is no multiple of {}, the words of `${}`", token.words, token.text);
        let (below, above) = (base - base % token.words, base - base % token.words + token.words);
        let help = format!("use `${0}{below}` or `${0}{above}`", token.text);
        Err(fault_help(Code::Misaligned, span, message, help))
    }

    pub(super) fn memory_name(&self, token: &Token) -> &'a str {
        &self.spec.memories[token.memory].name
    }

    /// Reads the address and the selectors of an operand above the PEs. Its token has been read.
    pub(super) fn above_pe_operand(&mut self, token: &Token, start: usize) -> Parse<AbovePeOperand> {
        if !self.cursor.peek().is_some_and(|b| b.is_ascii_digit()) {
            let message = format!("`${}` needs an address", token.text);
            return Err(fault(Code::BadOperandAddress, self.cursor.word_span(), message));
        }
        let address = self.cursor.number("the address")?;
        if address >= token.size {
            let (span, name) = (self.cursor.span_from(start), self.memory_name(token));
            let what =
                if token.table { format!("entries of `${}`", token.text) } else { format!("long words of {name}") };
            let message = format!("address {address} is past the {} {what}", token.size);
            return Err(fault(Code::OperandRange, span, message));
        }
        let selected = if self.cursor.peek() == Some(b'@') { self.selectors(token)? } else { Selected::default() };
        let Token { operand, memory, words, size, table, .. } = *token;
        Ok(AbovePeOperand { operand, table, memory, words, size, address, selected })
    }

    /// Reads `@2`, `@2.1` or `@.1`: one number per level of the operand. Each number may be left out.
    fn selectors(&mut self, token: &Token) -> Parse<Selected> {
        let from = self.cursor.at();
        let levels = &self.spec.operands[token.operand].selectors;
        self.cursor.eat(b'@');
        let mut selected = Selected::default();
        let mut any = false;
        for (at, level) in levels.iter().enumerate() {
            if at > 0 && !self.cursor.eat(b'.') {
                break;
            }
            let number_at = self.cursor.at();
            if !self.cursor.peek().is_some_and(|b| b.is_ascii_digit()) {
                any = false;
                continue;
            }
            let number = self.cursor.number32("the selector")?;
            let count = self.spec.count(*level);
            if number >= count {
                let message = format!("there is no {level:?} {number}: the machine has {count}").to_lowercase();
                return Err(fault(Code::BadUnit, self.cursor.span_from(number_at), message));
            }
            any = true;
            match level {
                LevelName::Group => selected.group = Some(number),
                LevelName::L2b => selected.l2b = Some(number),
                _ => {}
            }
        }
        if !any || !self.cursor.at_break() {
            let pattern: Vec<String> = levels.iter().map(|l| format!("<{l:?}>").to_lowercase()).collect();
            let help = match pattern.is_empty() {
                true => format!("`${}` takes no selector", token.text),
                false => format!("write `@{}`", pattern.join(".")),
            };
            let span = Span::new(from, self.cursor.word_span().end as usize);
            let message = format!("`{}` does not select a unit", self.cursor.quote(span));
            return Err(fault_help(Code::BadUnit, span, message, help));
        }
        Ok(selected)
    }
}

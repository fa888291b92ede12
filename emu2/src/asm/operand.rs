//! Operands of instructions: `$`, a width prefix, a letter, an address; or `$` and a name.

use super::cursor::{fault, fault_help, shorten, Parse};
use super::lexicon::{Token, NOWRITE, SIGIL};
use super::parser::Parser;
use super::program::{Access, Address, Convert, Selected};
use crate::error::{Code, Span};
use crate::spec::{Addressing, LevelName, Unit, HALVES, WORDS_PER_LONG};

/// A written operand, wherever it stands.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Operand {
    pub(super) span: Span,
    pub(super) kind: Kind,
    /// Preceded by `-`.
    pub(super) negate: bool,
    pub(super) convert: Option<Convert>,
    /// Cycle mask: bit c is cycle c.
    pub(super) mask: Option<u32>,
}

#[derive(Clone, Debug, PartialEq)]
pub(super) enum Kind {
    /// A memory of the PEs.
    Pe(Access),
    /// A memory above them.
    Upper(Upper),
    /// Entry of `forwards`.
    Forward(usize),
    /// Entry of `fixed`.
    Fixed(usize),
    Nowrite,
}

/// An operand in a memory above the PEs.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Upper {
    /// Entry of `operands`.
    pub(super) operand: usize,
    /// Entry of `memories`.
    pub(super) memory: usize,
    /// Words of 32 bits of its width prefix.
    pub(super) words: u32,
    /// Long words of the memory.
    pub(super) size: u64,
    /// In long words.
    pub(super) address: u64,
    pub(super) selected: Selected,
}

impl<'a> Parser<'a> {
    /// Reads operands into `self.operands` up to a `;` or the end.
    pub(super) fn read_operands(&mut self) -> Parse<()> {
        self.operands.clear();
        loop {
            self.cursor.skip_blanks();
            if matches!(self.cursor.peek(), None | Some(b';')) {
                return Ok(());
            }
            let operand = self.operand()?;
            self.operands.push(operand);
        }
    }

    fn operand(&mut self) -> Parse<Operand> {
        let start = self.cursor.at();
        let negate = self.cursor.eat(b'-');
        if !self.cursor.eat(SIGIL) {
            let message = format!("`{}` is not an operand: operands begin with `$`", self.cursor.word());
            return Err(fault(Code::UnexpectedText, self.cursor.word_span(), message));
        }
        let name_at = self.cursor.at();
        let letters = self.cursor.letters();
        let lexicon = self.lexicon;
        let kind = match lexicon.token(letters) {
            Some(token) if token.pe => Kind::Pe(self.access(token, start)?),
            Some(token) => Kind::Upper(self.upper(token, start)?),
            None => {
                self.cursor.move_to(name_at);
                self.named(start)?
            }
        };
        let convert = if matches!(kind, Kind::Upper(_)) { None } else { self.conversion() };
        let span = self.cursor.span_from(start);
        let mask = if self.cursor.peek() == Some(b'/') { Some(self.mask()?) } else { None };
        if !self.cursor.at_break() {
            return Err(self.glued(start));
        }
        Ok(Operand { span, kind, negate, convert, mask })
    }

    fn conversion(&mut self) -> Option<Convert> {
        if self.cursor.eat(b'e') {
            Some(Convert::Extend)
        } else if self.cursor.eat(b'r') {
            Some(Convert::Reduce)
        } else {
            None
        }
    }

    /// Text that no operand has where it stands.
    fn glued(&self, start: usize) -> Box<crate::error::Diagnostic> {
        let read = self.cursor.slice(start, self.cursor.at());
        if read.is_empty() || self.cursor.peek() == Some(SIGIL) {
            let message = format!("a blank is missing before `{}`", self.cursor.word());
            return fault(Code::UnexpectedText, self.cursor.word_span(), message);
        }
        let message = format!("`{}` cannot follow `{}`", self.cursor.word(), shorten(read));
        let help = "separate operands by blanks; after an address may stand a stride, `e` or `r`, and `/` with a mask";
        fault_help(Code::BadOperandAddress, self.cursor.word_span(), message, help)
    }

    /// A forwarding path, a fixed input, `$nowrite`, or an entry of the cycle with a conversion (`$te`).
    fn named(&mut self, start: usize) -> Parse<Kind> {
        let at = self.cursor.at();
        let word = self.cursor.take(|b| b.is_ascii_lowercase() || b.is_ascii_digit());
        if let Some(kind) = self.name(word) {
            return Ok(kind);
        }
        let stem = word.strip_suffix(['e', 'r']).unwrap_or("");
        if let Some(kind) = self.name(stem) {
            self.cursor.move_to(at + stem.len());
            return Ok(kind);
        }
        let lexicon = self.lexicon;
        if let Some(token) = lexicon.token(stem).filter(|t| t.unit == Unit::Cycle) {
            self.cursor.move_to(at + stem.len());
            return Ok(Kind::Pe(self.access(token, start)?));
        }
        self.cursor.move_to(at);
        Err(self.unknown_operand(word, start))
    }

    fn name(&self, word: &str) -> Option<Kind> {
        if word == NOWRITE {
            return Some(Kind::Nowrite);
        }
        let forward = self.spec.forwards.iter().position(|f| f.name == word).map(Kind::Forward);
        forward.or_else(|| self.spec.fixed.iter().position(|f| f.name == word).map(Kind::Fixed))
    }

    fn unknown_operand(&self, word: &str, start: usize) -> Box<crate::error::Diagnostic> {
        let span = Span::new(start, self.cursor.word_span().end as usize);
        let whole = self.cursor.quote(span);
        let message = format!("`{}` has no operand `{whole}`", self.spec.machine.name);
        // A memory operand with a letter more: a form that is not supported.
        let letters = word.trim_end_matches(|c: char| c.is_ascii_digit());
        let stem = letters.strip_suffix(|c: char| c.is_ascii_lowercase()).unwrap_or("");
        if let Some(token) = self.lexicon.token(stem) {
            let help = format!("`${}` takes a plain address; indirect addressing is not supported", token.text);
            return fault_help(Code::UnknownOperand, span, message, help);
        }
        let paths = self.spec.forwards.iter().map(|f| f.name.as_str());
        let names: Vec<&str> = paths.chain(self.spec.fixed.iter().map(|f| f.name.as_str())).chain([NOWRITE]).collect();
        let help = match self.suggestion(word, names.iter().copied()) {
            Some(known) => format!("did you mean `${known}`?"),
            None => {
                let memories: Vec<&str> = self.lexicon.tokens.iter().map(|t| t.text.as_str()).collect();
                format!("operands are ${}, ${}", memories.join(", $"), names.join(", $"))
            }
        };
        fault_help(Code::UnknownOperand, span, message, help)
    }

    /// The address of a PE operand, whose token has been read.
    fn access(&mut self, token: &Token, start: usize) -> Parse<Access> {
        let memory = token.memory;
        if token.unit == Unit::Cycle {
            if self.cursor.peek().is_some_and(|b| b.is_ascii_digit() || b == b'[') {
                let message = format!("`${}` takes no address: it is the entry of the cycle", token.text);
                return Err(fault(Code::BadOperandAddress, self.cursor.word_span(), message));
            }
            return Ok(Access { memory, words: WORDS_PER_LONG * HALVES, address: Address::Cycle, indirect: false, modify: None });
        }
        let address = match self.cursor.peek() {
            Some(b'0'..=b'9') => self.plain_or_stride(token, start)?,
            Some(b'[') => self.flat(token, start)?,
            _ => {
                let message = format!("`${}` needs an address", token.text);
                return Err(fault(Code::BadOperandAddress, self.cursor.word_span(), message));
            }
        };
        if self.cursor.peek() == Some(b'j') {
            return Err(fault(Code::Unsupported, self.cursor.word_span(), "the `j` modification is not supported"));
        }
        Ok(Access { memory, words: token.words, address, indirect: false, modify: None })
    }

    fn plain_or_stride(&mut self, token: &Token, start: usize) -> Parse<Address> {
        let base = self.cursor.number32("the address")?;
        self.check_base(token, base, start)?;
        if self.cursor.peek() != Some(b'v') {
            return Ok(Address::Stride { base, stride: 0 });
        }
        if !self.spec.operands[token.operand].addressing.contains(&Addressing::Stride) {
            return Err(fault(
                Code::BadOperandAddress,
                self.cursor.word_span(),
                format!("`${}` takes no stride", token.text),
            ));
        }
        self.cursor.eat(b'v');
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
        if last >= token.size {
            let (span, name) = (self.cursor.span_from(start), self.memory_name(token));
            let message = format!("the last cycle's address {last} is past the {} words of {name}", token.size);
            self.sink.warn(Code::AddressWraps, span, message);
        }
        Ok(Address::Stride { base, stride })
    }

    fn flat(&mut self, token: &Token, start: usize) -> Parse<Address> {
        let from = self.cursor.at();
        if !self.spec.operands[token.operand].addressing.contains(&Addressing::Flat) {
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
            // A longer list is wrong anyway: it is counted, not kept.
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

    /// Address and selectors of an operand above the PEs, whose token has been read.
    fn upper(&mut self, token: &Token, start: usize) -> Parse<Upper> {
        if !self.cursor.peek().is_some_and(|b| b.is_ascii_digit()) {
            let message = format!("`${}` needs an address", token.text);
            return Err(fault(Code::BadOperandAddress, self.cursor.word_span(), message));
        }
        let address = self.cursor.number("the address")?;
        if address >= token.size {
            let (span, name) = (self.cursor.span_from(start), self.memory_name(token));
            let message = format!("address {address} is past the {} long words of {name}", token.size);
            return Err(fault(Code::OperandRange, span, message));
        }
        let selected = if self.cursor.peek() == Some(b'@') { self.selectors(token)? } else { Selected::default() };
        let Token { operand, memory, words, size, .. } = *token;
        Ok(Upper { operand, memory, words, size, address, selected })
    }

    /// `@2`, `@2.1`, `@.1`: one number per level of the operand, each may be left out.
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

    /// `/1000`: one digit per cycle, cycle 0 first; a trailing `t` or `p` asserts lengths and changes nothing.
    fn mask(&mut self) -> Parse<u32> {
        let start = self.cursor.at();
        self.cursor.eat(b'/');
        let cycles = self.spec.counts.cycle as usize;
        let digits = self.cursor.take(|b| matches!(b, b'0' | b'1'));
        if digits.is_empty() && matches!(self.cursor.peek(), Some(b'l' | SIGIL)) {
            let message = "of the write masks only one digit per cycle, `/1000`, is supported";
            let span = Span::new(start, self.cursor.word_span().end as usize);
            return Err(fault(Code::Unsupported, span, message));
        }
        let _ = self.cursor.eat(b't') || self.cursor.eat(b'p');
        if digits.len() != cycles || cycles > u32::BITS as usize || !self.cursor.at_break() {
            let span = Span::new(start, self.cursor.word_span().end as usize);
            let message = format!("`{}` is not a mask of {cycles} cycles", self.cursor.quote(span));
            return Err(fault(Code::BadMask, span, message));
        }
        Ok(digits.bytes().rev().fold(0, |bits, digit| (bits << 1) | u32::from(digit == b'1')))
    }
}

//! Random steps of the forms that have machine words, as data.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, dead_code)]

use emu2::asm::*;
use emu2::error::Span;
use emu2::spec::{Half, MauPort, Spec};
use proptest::prelude::*;
use std::sync::Arc;

pub(crate) const NONE: Span = Span { start: 0, end: 0 };

pub(crate) fn spec(name: &str) -> Arc<Spec> {
    Arc::new(Spec::load(name).unwrap())
}

pub(crate) fn program(spec: &Arc<Spec>, items: Vec<Item>) -> Program {
    Program::of(spec.clone(), "data", items)
}

pub(crate) fn items(steps: Vec<Step>) -> Vec<Item> {
    let kinds = steps.into_iter().map(|s| ItemKind::Step(Box::new(s)));
    kinds.zip(1..).map(|(kind, line)| Item { line, span: NONE, kind }).collect()
}

/// Numbers that decide everything about a step.
pub(crate) type Choices = Vec<u32>;

pub(crate) fn choices() -> impl Strategy<Value = Choices> {
    proptest::collection::vec(any::<u32>(), 64)
}

/// Picks from a row of numbers.
pub(crate) struct Picker<'a> {
    pub(crate) spec: &'a Spec,
    choices: std::iter::Cycle<std::slice::Iter<'a, u32>>,
    turn: u32,
}

const PE_MEMORIES: [&str; 5] = ["grf0", "grf1", "lm0", "lm1", "t"];

impl<'a> Picker<'a> {
    pub(crate) fn new(spec: &'a Spec, choices: &'a Choices) -> Self {
        Picker { spec, choices: choices.iter().cycle(), turn: 0 }
    }

    /// A number below `n`.
    pub(crate) fn pick(&mut self, n: u32) -> u32 {
        self.turn += 1;
        self.choices.next().unwrap().wrapping_mul(2654435761).wrapping_add(self.turn) % n
    }

    pub(crate) fn one_in(&mut self, n: u32) -> bool {
        self.pick(n) == 0
    }

    pub(crate) fn of<T: Copy>(&mut self, list: &[T]) -> T {
        list[self.pick(list.len() as u32) as usize]
    }

    pub(crate) fn memory(&self, name: &str) -> usize {
        self.spec.memory(name).unwrap()
    }

    pub(crate) fn precision(&self, letter: &str) -> usize {
        self.spec.precisions.iter().position(|p| p.name == letter).unwrap()
    }

    fn mau_precision(&self, letter: &str) -> usize {
        self.spec.mau_precisions.iter().position(|p| p.name == letter).unwrap()
    }

    pub(crate) fn forward(&self, name: &str) -> SourceKind {
        SourceKind::Forward(self.spec.forwards.iter().position(|f| f.name == name).unwrap())
    }

    /// An access with an aligned address inside the memory.
    pub(crate) fn access(&mut self, memory: usize) -> Access {
        let entry = &self.spec.memories[memory];
        if entry.name == "t" {
            return Access { memory, words: 4, address: Address::Cycle, indirect: false, modify: None };
        }
        let words = self.of(&[1, 2, 2, 4]);
        let size = entry.words as u32 * 2;
        let base = self.pick(size / words) * words;
        let stride = words * self.of(&[0, 1, 1, 2, 5]);
        Access { memory, words, address: Address::Stride { base, stride }, indirect: false, modify: None }
    }
}

/// The accesses of one step: one region for each memory and direction.
struct Ports {
    reads: Vec<Access>,
    writes: Vec<Option<Access>>,
}

/// A step that has a word if its parts happen to agree on the fields that they share.
pub(crate) fn covered_step(spec: &Spec, choices: &Choices) -> Step {
    let mut p = Picker::new(spec, choices);
    let memories = PE_MEMORIES.map(|n| p.memory(n));
    let reads: Vec<Access> = memories.iter().map(|m| p.access(*m)).collect();
    let writes = memories.iter().zip(&reads).map(|(m, read)| {
        let shared = spec.memories[*m].name.starts_with("lm");
        Some(if shared { read.clone() } else { p.access(*m) })
    });
    let mut ports = Ports { writes: writes.collect(), reads };
    let mut pe = Vec::new();
    let letter = p.of(&["d", "f", "h", "g"]);
    let mut y = None;
    if p.one_in(2) {
        pe.push(mau(&mut p, &mut ports, letter, &mut y));
    }
    match p.pick(5) {
        0 => pe.push(matrix_write(&mut p, &ports, letter, y)),
        1 => pe.push(matrix_read(&mut p, letter)),
        _ => {}
    }
    if p.one_in(2) {
        pe.push(alu(&mut p, &mut ports));
    }
    if p.one_in(4) {
        pe.push(to_l1bm(&mut p, &ports));
    }
    if pe.is_empty() {
        pe.push(alu(&mut p, &mut ports));
    }
    let turns = p.pick(pe.len() as u32);
    pe.rotate_left(turns as usize);
    Step { pe, l2bm: Vec::new(), wait: None, forward: !p.one_in(10) }
}

fn source(p: &mut Picker<'_>, ports: &Ports) -> Source {
    let kind = match p.pick(7) {
        0 => p.forward("mauf"),
        1 => p.forward("aluf"),
        at => SourceKind::Memory(ports.reads[at as usize - 2].clone()),
    };
    Source { span: NONE, kind, negate: p.one_in(3), convert: None }
}

fn destinations(p: &mut Picker<'_>, ports: &mut Ports, mask: Option<Mask>) -> Vec<Destination> {
    let mut all = Vec::new();
    for _ in 0..p.pick(3) {
        let at = p.pick(5) as usize;
        if let Some(access) = ports.writes[at].take() {
            let mask = mask.filter(|_| p.one_in(2));
            all.push(Destination { span: NONE, target: Target::Memory(access), mask });
        }
    }
    all
}

fn mask(p: &mut Picker<'_>) -> Option<Mask> {
    p.one_in(3).then(|| Mask { wide: false, entry: MaskEntry::Cycles(p.pick(16)) })
}

fn mau(p: &mut Picker<'_>, ports: &mut Ports, letter: &str, y: &mut Option<Source>) -> PeInstruction {
    let spec = p.spec;
    let legal: Vec<usize> =
        (0..spec.mau.len()).filter(|m| spec.mau[*m].precisions.iter().any(|l| l == letter)).collect();
    let op = p.of(&legal);
    let entry = &spec.mau[op];
    let pair = entry.product && letter == "d";
    let half = pair.then(|| p.of(&[Half::Upper, Half::Lower]));
    let mut sources = Vec::new();
    for port in &entry.sources {
        let mut source = source(p, ports);
        if *port == MauPort::Y {
            source.convert = (letter == "h" && p.one_in(3)).then_some(Convert::Reduce);
            *y = Some(source.clone());
        }
        sources.push(source);
    }
    let bank = entry.matrix.then(|| p.pick(2) as usize);
    let (precision, mau_precision) = (p.precision(letter), p.mau_precision(letter));
    let kind = PeKind::Mau { op, precision, mau_precision, half, reduced: false, bank };
    let mask = mask(p);
    let destinations = destinations(p, ports, mask);
    PeInstruction { span: NONE, kind, sources, destinations, zero_flush: None }
}

fn matrix(p: &mut Picker<'_>, name: &str, letter: &str) -> PeKind {
    let op = p.spec.matrix_ops.iter().position(|m| m.name == name).unwrap();
    let rows = p.spec.mau_precisions.iter().find(|m| m.name == letter).unwrap().rows;
    let wide = letter == "h" && (name == "mread" || p.one_in(2));
    let (bank, row) = (p.pick(2) as usize, if p.one_in(2) { 0 } else { p.pick(rows) });
    let (precision, mau_precision) = (p.precision(letter), p.mau_precision(letter));
    PeKind::Matrix { op, precision, mau_precision, bank, row, wide }
}

fn matrix_write(p: &mut Picker<'_>, ports: &Ports, letter: &str, y: Option<Source>) -> PeInstruction {
    let kind = matrix(p, "mwrite", letter);
    let source = y.unwrap_or_else(|| source(p, ports));
    PeInstruction { span: NONE, kind, sources: vec![source], destinations: Vec::new(), zero_flush: None }
}

fn matrix_read(p: &mut Picker<'_>, letter: &str) -> PeInstruction {
    let kind = matrix(p, "mread", letter);
    PeInstruction { span: NONE, kind, sources: Vec::new(), destinations: Vec::new(), zero_flush: None }
}

fn alu(p: &mut Picker<'_>, ports: &mut Ports) -> PeInstruction {
    let spec = p.spec;
    let name = p.of(&["passa", "rsqrt", "bfn", "bfe", "imm", "immu"]);
    let op = spec.alu.iter().position(|a| a.name == name).unwrap();
    let entry = &spec.alu[op];
    let letters: Vec<&str> = entry.precisions.iter().map(String::as_str).collect();
    let letter = (!letters.is_empty()).then(|| p.of(&letters));
    let length = entry.lengths.as_ref().filter(|l| Some(l.precision.as_str()) == letter).map(|_| 9);
    let literal = entry.literal.then(|| p.pick(u32::MAX));
    let mut sources = Vec::new();
    if entry.sources == 1 {
        let kind = match p.pick(7) {
            0 => p.forward("mreadf"),
            1 => p.forward("aluf"),
            at => SourceKind::Memory(ports.reads[at as usize - 2].clone()),
        };
        let convert = (letter == Some("h") && p.one_in(3)).then_some(Convert::Reduce);
        sources.push(Source { span: NONE, kind, negate: false, convert });
    }
    let precision = letter.map(|l| p.precision(l));
    let kind = PeKind::Alu { op, precision, unsigned: false, literal, length };
    let mask = mask(p);
    let mut destinations = destinations(p, ports, mask);
    if literal.is_some() {
        let lm0 = p.memory("lm0");
        destinations.retain(|d| d.target.access().is_none_or(|a| a.memory != lm0));
    }
    PeInstruction { span: NONE, kind, sources, destinations, zero_flush: None }
}

fn to_l1bm(p: &mut Picker<'_>, ports: &Ports) -> PeInstruction {
    let spec = p.spec;
    let name = p.of(&["l1bmm", "l1bmrdfadd"]);
    let transfer = spec.transfers.iter().position(|t| t.name == name).unwrap();
    let form = spec.forms[transfer].iter().position(|f| f.name == "from_pe").unwrap();
    let words = spec.memories[p.memory("l1bm")].words as u32;
    let address = u64::from(p.pick(words / 4 - 4) * 4);
    let kind = PeKind::L1bm { form: FormRef { transfer, form, parameter: 0 }, address: Some(address) };
    let source = Source { negate: false, ..source(p, ports) };
    PeInstruction { span: NONE, kind, sources: vec![source], destinations: Vec::new(), zero_flush: None }
}

/// The step whose text stands for all steps with its word.
pub(crate) fn canonical(spec: &Spec, mut step: Step, mread_shows: bool) -> Step {
    let rank = |i: &PeInstruction| match i.kind {
        PeKind::Mau { .. } => 0,
        PeKind::Matrix { op, .. } if spec.matrix_ops[op].name == "mwrite" => 1,
        PeKind::Matrix { .. } => 2,
        PeKind::Alu { .. } => 3,
        PeKind::L1bm { .. } => 4,
    };
    if !mread_shows && step.pe.len() > 1 {
        step.pe.retain(|i| rank(i) != 2);
    }
    step.pe.sort_by_key(rank);
    for i in &mut step.pe {
        i.destinations.sort_by_key(|d| {
            let name = d.target.access().map(|a| spec.memories[a.memory].name.clone());
            PE_MEMORIES.iter().position(|m| Some(*m) == name.as_deref())
        });
        if let PeKind::Alu { op, precision: Some(precision), .. } = &mut i.kind {
            if spec.alu[*op].name == "passa" {
                let stands = match spec.precisions[*precision].name.as_str() {
                    "d" => "l",
                    "i" => "f",
                    "s" => "h",
                    other => other,
                };
                *precision = spec.precisions.iter().position(|p| p.name == stands).unwrap();
            }
        }
    }
    step
}

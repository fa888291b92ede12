//! Runs the same program on the engine and on the naive machine.

use super::chip::{Chip, CYCLES};
use super::data::{naive_words, used, Fill};
use super::{run, Undefined};
use emu2::asm::{
    Access, Address, Destination, Item, ItemKind, PeInstruction, PeKind, Program, Source, SourceKind, Step, Target,
};
use emu2::error::Span;
use emu2::machine::{Machine, Region};
use emu2::spec::{LevelName, Mnemonic, Spec, Unit, HALVES, WORDS_PER_LONG};
use std::panic::{catch_unwind, AssertUnwindSafe};
use std::sync::Arc;

/// A program, and the contents of the memories before it.
#[derive(Clone, Debug)]
pub struct Case {
    pub program: Program,
    pub fill: Fill,
}

/// The result of a case.
#[derive(Clone, Debug, PartialEq)]
pub enum Verdict {
    /// Both machines end in the same state, with the same dump lines.
    Same,
    /// The manual does not say what the program does.
    Undefined(String),
    /// The first differences.
    Different(String),
}

/// Runs a case on both machines.
pub fn check(case: &Case) -> Verdict {
    let spec = &case.program.spec;
    let mut machine = Machine::new(spec.clone());
    let mut chip = Chip::new(spec);
    case.fill.apply(&mut machine, &mut chip);
    let naive_lines = match run(&mut chip, &case.program) {
        Ok(lines) => lines,
        Err(Undefined(why)) => return Verdict::Undefined(why),
    };
    let engine = catch_unwind(AssertUnwindSafe(|| {
        let lines = engine_lines(&mut machine, &case.program)?;
        let difference = states(&machine, &chip).or_else(|| paths(&mut machine, &chip));
        Ok::<_, String>((lines, difference))
    }));
    match engine {
        Err(_) => Verdict::Different("the engine panics".into()),
        Ok(Err(message)) => Verdict::Different(format!("the engine refuses the program: {message}")),
        Ok(Ok((_, Some(difference)))) => Verdict::Different(difference),
        Ok(Ok((lines, None))) => lines_differ(&lines, &naive_lines).map_or(Verdict::Same, Verdict::Different),
    }
}

/// Runs a program on the engine and returns the dump lines.
pub fn engine_lines(machine: &mut Machine, program: &Program) -> Result<Vec<String>, String> {
    let mut lines = Vec::new();
    let run = emu2::report::run(machine, program, &mut |line| {
        lines.push(line.to_string());
        Ok(())
    });
    run.map_err(|e| e.diagnostic.to_string())?;
    Ok(lines)
}

/// All memories of the machine that are not sparse, and the first words of the sparse ones.
pub fn snapshot(machine: &Machine) -> Vec<Vec<u64>> {
    const SPARSE_WORDS: u64 = 1 << 14;
    let spec = machine.spec();
    let count = |m: &emu2::spec::Memory| if m.sparse { m.words.min(SPARSE_WORDS) } else { m.words };
    let regions = spec.memories.iter().enumerate().map(|(memory, m)| (memory, count(m)));
    regions
        .map(|(memory, count)| {
            machine.read(&Region { memory, units: [None; 5], addr: 0, count }).expect("a range of the memory")
        })
        .collect()
}

fn lines_differ(engine: &[String], naive: &[String]) -> Option<String> {
    if engine == naive {
        return None;
    }
    let pair = engine.iter().zip(naive).find(|(a, b)| a != b);
    Some(match pair {
        Some((a, b)) => format!("dump line\n  engine {a}\n  naive  {b}"),
        None => format!("{} dump lines of the engine, {} of the naive machine", engine.len(), naive.len()),
    })
}

/// Describes the first long word that differs.
fn states(machine: &Machine, chip: &Chip) -> Option<String> {
    let spec = &chip.spec;
    for (memory, entry) in spec.memories.iter().enumerate() {
        for (addr, count) in used(chip, memory) {
            let region = Region { memory, units: [None; 5], addr, count };
            let engine = machine.read(&region).expect("a range of the memory");
            let naive = naive_words(chip, memory, addr, count);
            if let Some(at) = (0..engine.len()).find(|at| engine[*at] != naive[*at]) {
                let (unit, k) = (at as u64 / count, addr + at as u64 % count);
                let place = unit_name(chip, entry.level, unit as usize);
                let (a, b) = (engine[at], naive[at]);
                let name = &entry.name;
                return Some(format!("{name} of {place}, long word {k}\n  engine {a:016X}\n  naive  {b:016X}"));
            }
        }
    }
    None
}

/// The unit's numbers, outermost first.
fn unit_name(chip: &Chip, level: LevelName, unit: usize) -> String {
    let below: u64 = chip.spec.units(LevelName::Pe) / chip.spec.units(level);
    let place = chip.place(unit * below as usize);
    let named = chip.spec.levels.iter().zip(place).filter(|(l, _)| l.name <= level);
    named.map(|(l, n)| format!("{}{n}", l.selector)).collect()
}

/// Describes the first forwarding path that differs. A program copies the engine's paths to the T register to read them.
fn paths(machine: &mut Machine, chip: &Chip) -> Option<String> {
    let spec = chip.spec.clone();
    let t = spec.memories.iter().position(|m| m.unit == Unit::Cycle)?;
    for (path, entry) in spec.forwards.iter().enumerate() {
        let program = copy_to_t(&spec, path, t)?;
        if let Err(message) = engine_lines(machine, &program) {
            return Some(format!("${} cannot be read: {message}", entry.name));
        }
        let count = (CYCLES * HALVES as usize) as u64;
        let region = Region { memory: t, units: [None; 5], addr: 0, count };
        let engine = machine.read(&region).expect("the T register");
        let naive: Vec<u64> = chip
            .pes
            .iter()
            .flat_map(|pe| pe.forward[path].iter().flatten().copied().collect::<Vec<u32>>())
            .collect::<Vec<u32>>()
            .chunks(2)
            .map(|w| u64::from(w[0]) << 32 | u64::from(w[1]))
            .collect();
        if let Some(at) = (0..engine.len()).find(|at| engine[*at] != naive[*at]) {
            let place = unit_name(chip, LevelName::Pe, at / count as usize);
            let (cycle, half) = (at as u64 % count / 2, at % 2);
            let (a, b) = (engine[at], naive[at]);
            let name = &entry.name;
            return Some(format!("${name} of {place}, cycle {cycle}, L{half}\n  engine {a:016X}\n  naive  {b:016X}"));
        }
    }
    None
}

/// A step that copies a forwarding path to the T register and leaves all paths as they are.
pub fn copy_to_t(spec: &Arc<Spec>, path: usize, t: usize) -> Option<Program> {
    let Mnemonic::Alu { op, precision, unsigned } = *spec.mnemonics.get("lpassa")? else { return None };
    let access =
        Access { memory: t, words: WORDS_PER_LONG * HALVES, address: Address::Cycle, indirect: false, modify: None };
    let span = Span::default();
    let instruction = PeInstruction {
        span,
        kind: PeKind::Alu { op, precision, unsigned, literal: None, length: None },
        sources: vec![Source { span, kind: SourceKind::Forward(path), negate: false, convert: None }],
        destinations: vec![Destination { span, target: Target::Memory(access), mask: None }],
        zero_flush: None,
    };
    let step = Step { pe: vec![instruction], l2bm: vec![], wait: None, forward: false };
    let items = vec![Item { line: 1, span, kind: ItemKind::Step(Box::new(step)) }];
    Some(Program::of(spec.clone(), "paths", items))
}

//! Transfers: an index map's moves, one long word at a time.

use super::chip::Chip;
use super::fetch::extend_halves;
use super::letters::{long, path, Letter, Path};
use super::num_reference::reduce::{narrowed, tree};
use super::num_reference::{lane, pack_lanes};
use emu2::asm::{FormRef, Mv, Selected, UpperTransfer};
use emu2::spec::{selector_name, End, LevelName, Move, Place};
use std::collections::BTreeMap;
use std::rc::Rc;

/// Makes sure that the map of a form is known.
pub fn prepare(chip: &mut Chip, form: FormRef) {
    if !chip.maps.contains_key(&form) {
        let parameter = chip.spec.parameters[form.transfer].as_ref();
        let values: Vec<_> = parameter.iter().map(|p| (p.name.as_str(), form.parameter)).collect();
        let moves = chip.spec.forms[form.transfer][form.form].evaluate(&values).expect("a map that was checked");
        chip.maps.insert(form, Rc::new(moves));
    }
}

fn moves(chip: &Chip, form: FormRef) -> Rc<Vec<Move>> {
    chip.maps[&form].clone()
}

/// Entry of the memory at an end of a form.
fn memory(chip: &Chip, end: &End) -> Option<usize> {
    match end {
        End::Pe => None,
        End::Memory { operand, .. } => Some(chip.memory(&chip.spec.operands[*operand].memory)),
    }
}

/// Whether a PE side in an L1B is that of a PE in a cycle.
fn is_at(chip: &Chip, place: &Place, pe: usize, cycle: usize) -> bool {
    let [_, _, _, m, p] = chip.place(pe);
    (place.mab as usize, place.pe as usize, place.cycle as usize) == (m, p, cycle)
}

/// The form of what is kept in the turnaround register: `l1bmd` without its shift.
pub fn unshifted(chip: &Chip, form: FormRef) -> FormRef {
    let shifts = chip.spec.transfers[form.transfer].name == "l1bmd";
    FormRef { parameter: if shifts { 0 } else { form.parameter }, ..form }
}

/// What an L1BM instruction brings to a PE in a cycle; None if it goes the other way. No address: what the PEs sent last.
pub fn load(chip: &Chip, form: FormRef, address: Option<u64>, pe: usize, cycle: usize) -> Option<Path> {
    let resolved = &chip.spec.forms[form.transfer][form.form];
    let l1bm = memory(chip, &resolved.source)?;
    let (source, address) = address.map_or_else(|| (chip.memory("turnaround"), 0), |address| (l1bm, address));
    let unit = chip.unit(LevelName::L1b, chip.place(pe));
    let mut longs = [0; 2];
    for (from, to) in moves(chip, form).iter().filter(|(_, to)| is_at(chip, to, pe, cycle)) {
        longs[to.half as usize] = chip.read_upper(source, unit, address + from.addr);
    }
    Some(path(longs[0], longs[1]))
}

/// A reduction over the MABs as its mnemonic says it.
struct Reduction {
    letter: Letter,
    function: String,
    /// Inputs of each stage.
    stages: Vec<usize>,
    /// The source's halves become singles first.
    widened: bool,
    /// The last stage gives halves.
    narrow: bool,
}

fn reduction(chip: &Chip, form: FormRef) -> Option<Reduction> {
    let transfer = &chip.spec.transfers[form.transfer];
    transfer.reduction?;
    let name = &transfer.name;
    let (operation, stages) = match (name.strip_prefix("l1bmr4"), name.strip_prefix("l1bmr")) {
        (Some(operation), _) => (operation, vec![4]),
        (None, Some(operation)) => (operation, vec![4, chip.spec.counts.mab as usize / 4]),
        (None, None) => panic!("no reference for {name}"),
    };
    let narrow = ["ffaddr", "fmaxr", "fminr"].contains(&operation);
    let operation = if narrow { operation.trim_end_matches('r') } else { operation };
    let (letter, function) = operation.split_at(1);
    // Halves go through the circuit of singles.
    let halves = letter == "h";
    let letter = Letter::of(if halves { "f" } else { letter });
    Some(Reduction { letter, function: function.to_string(), stages, widened: halves, narrow: narrow || halves })
}

/// Where an L1BM instruction puts the long words of a PE in a cycle: memory, offset, long word of the path.
pub fn store(chip: &Chip, form: FormRef, pe: usize, cycle: usize) -> Vec<(usize, u64, usize)> {
    if reduction(chip, form).is_some() {
        return Vec::new();
    }
    let resolved = &chip.spec.forms[form.transfer][form.form];
    let Some(memory) = memory(chip, &resolved.destination) else { return Vec::new() };
    let moves = moves(chip, form);
    let mine = moves.iter().filter(|(from, _)| is_at(chip, from, pe, cycle));
    mine.map(|(from, to)| (memory, to.addr, from.half as usize)).collect()
}

/// What a reduction over the MABs writes: memory, unit, offset, value. Four MABs with consecutive numbers meet first,
/// then the results. `word` gives the path of a PE in a cycle.
pub fn reduce(chip: &Chip, form: FormRef, word: &dyn Fn(usize, usize) -> Path) -> Vec<(usize, usize, u64, u64)> {
    let Some(Reduction { letter, function, stages, widened, narrow }) = reduction(chip, form) else {
        return Vec::new();
    };
    let memory = memory(chip, &chip.spec.forms[form.transfer][form.form].destination).expect("a memory");
    let mut writes = Vec::new();
    for first in (0..chip.pes.len()).step_by(chip.spec.lanes()) {
        let unit = chip.unit(LevelName::L1b, chip.place(first));
        // Elements by MAB, for every offset and word of a narrowed result.
        let mut results: BTreeMap<u64, BTreeMap<u32, BTreeMap<u32, u64>>> = BTreeMap::new();
        for (from, to) in moves(chip, form).iter() {
            let pe = first + (from.mab * chip.spec.counts.pe + from.pe) as usize;
            let path = word(pe, from.cycle as usize);
            let path = if widened { extend_halves(&path, 4) } else { path };
            let elements = results.entry(to.addr).or_default().entry(to.half).or_default();
            assert!(elements.insert(from.mab, long(&path, from.half as usize)).is_none());
        }
        for (addr, words) in results {
            let mut lanes = Vec::new();
            for elements in words.values() {
                for k in 0..letter.lanes() as u32 {
                    let all: Vec<u64> = elements.values().map(|v| lane(*v, letter.width, k)).collect();
                    let reduce = if narrow { narrowed } else { tree };
                    lanes.push(reduce(&function, letter.width, &stages, &all));
                }
            }
            let width = if narrow { letter.width / 2 } else { letter.width };
            writes.push((memory, unit, addr, pack_lanes(width, &lanes)));
        }
    }
    writes
}

/// What an L2BM instruction writes: memory, unit, address, value.
pub fn l2bm(chip: &mut Chip, transfer: &UpperTransfer) -> Vec<(usize, usize, u64, u64)> {
    prepare(chip, transfer.form);
    assert!(reduction(chip, transfer.form).is_none());
    let form = &chip.spec.forms[transfer.form.transfer][transfer.form.form];
    let ends = [&form.source, &form.destination].map(|end| memory(chip, end).expect("a memory"));
    let mut writes = Vec::new();
    for group in 0..chip.spec.counts.group {
        for l2b in 0..chip.spec.counts.l2b {
            let unit = |memory: usize, at: &Place| {
                let place = [group as usize, l2b as usize, at.l1b as usize, 0, 0];
                chip.unit(chip.spec.memories[memory].level, place)
            };
            for (from, to) in moves(chip, transfer.form).iter() {
                let value = chip.read_upper(ends[0], unit(ends[0], from), transfer.source + from.addr);
                writes.push((ends[1], unit(ends[1], to), transfer.destination + to.addr, value));
            }
        }
    }
    writes
}

/// Runs an MV block by block. As in the manual's formulas, what is read is the state before the instruction.
pub fn mv(chip: &mut Chip, mv: &Mv) {
    let form = &chip.spec.forms[mv.form.transfer][mv.form.form];
    let ends = [&form.source, &form.destination].map(|end| memory(chip, end).expect("a memory"));
    let mut names = Vec::new();
    for (side, end, unit) in [("src", &form.source, mv.source_unit), ("dst", &form.destination, mv.destination_unit)] {
        let Selected { group, l2b } = unit;
        for (level, number) in [(LevelName::Group, group), (LevelName::L2b, l2b)] {
            let End::Memory { selectors, .. } = end else { continue };
            if selectors.contains(&level) {
                names.push((selector_name(side, level), i64::from(number.expect("a selector"))));
            }
        }
    }
    let unit = |memory: usize, at: &Place| {
        let place = [at.group as usize, at.l2b as usize, at.l1b as usize, 0, 0];
        chip.unit(chip.spec.memories[memory].level, place)
    };
    let mut writes = Vec::new();
    for block in 0..mv.size / form.unit.expect("a unit") {
        let mut values: Vec<(&str, i64)> = names.iter().map(|(name, value)| (name.as_str(), *value)).collect();
        values.push(("i", block as i64));
        for (from, to) in form.evaluate(&values).expect("a map that was checked") {
            let value = chip.read_upper(ends[0], unit(ends[0], &from), mv.source + from.addr);
            writes.push((ends[1], unit(ends[1], &to), mv.destination + to.addr, value));
        }
    }
    for (memory, unit, addr, value) in writes {
        chip.write_upper(memory, unit, addr, value);
    }
}

//! Transfers: an index map's moves, one long word at a time.

use super::chip::Chip;
use super::letters::{long, path, Letter, Path};
use super::num_reference::reduce::tree;
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

/// What an L1BM instruction brings to a PE in a cycle; None if it goes the other way.
pub fn load(chip: &Chip, form: FormRef, address: u64, pe: usize, cycle: usize) -> Option<Path> {
    let resolved = &chip.spec.forms[form.transfer][form.form];
    let source = memory(chip, &resolved.source)?;
    let unit = chip.unit(LevelName::L1b, chip.place(pe));
    let mut longs = [0; 2];
    for (from, to) in moves(chip, form).iter().filter(|(_, to)| is_at(chip, to, pe, cycle)) {
        longs[to.half as usize] = chip.read_upper(source, unit, address + from.addr);
    }
    Some(path(longs[0], longs[1]))
}

/// Precision letter and function of a reduction over the MABs.
fn reduction(chip: &Chip, form: FormRef) -> Option<(Letter, String)> {
    let transfer = &chip.spec.transfers[form.transfer];
    transfer.reduction?;
    let operation = transfer.name.strip_prefix("l1bmr").unwrap_or_else(|| panic!("no reference for {}", transfer.name));
    let (letter, function) = operation.split_at(1);
    Some((Letter::of(letter), function.to_string()))
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
    let Some((letter, function)) = reduction(chip, form) else { return Vec::new() };
    let memory = memory(chip, &chip.spec.forms[form.transfer][form.form].destination).expect("a memory");
    let mabs = chip.spec.counts.mab as usize;
    let mut writes = Vec::new();
    for first in (0..chip.pes.len()).step_by(chip.spec.lanes()) {
        let unit = chip.unit(LevelName::L1b, chip.place(first));
        let mut results: BTreeMap<u64, Vec<u64>> = BTreeMap::new();
        for (from, to) in moves(chip, form).iter() {
            let pe = first + (from.mab * chip.spec.counts.pe + from.pe) as usize;
            let elements = results.entry(to.addr).or_insert_with(|| vec![0; mabs]);
            elements[from.mab as usize] = long(&word(pe, from.cycle as usize), from.half as usize);
        }
        for (addr, elements) in results {
            let lanes: Vec<u64> = (0..letter.lanes() as u32)
                .map(|k| {
                    let lanes: Vec<u64> = elements.iter().map(|v| lane(*v, letter.width, k)).collect();
                    tree(&function, letter.width, &[4, mabs / 4], &lanes)
                })
                .collect();
            writes.push((memory, unit, addr, pack_lanes(letter.width, &lanes)));
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

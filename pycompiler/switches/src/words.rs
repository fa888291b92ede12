//! Passes over the words of a long word: by word addresses, or by rotation and masks.
//!
//! Words of a certain width have addresses of their own. Narrower words are cut out of rotated long words and joined.

use crate::code::{vector, Goal, Line, Sink};
use crate::layout::{Level, Machine};
use crate::moves::Move;
use crate::rows::{Groups, Rows, Take};
use std::collections::BTreeSet;

/// By how much a long word is rotated, and the bits that are kept of it.
type Cut = (i64, u64);

pub(crate) fn words<S: Sink>(found: &Rows, machine: &Machine, code: &mut S) {
    if machine.bits == machine.addressed_bits {
        by_address(found, machine, code);
    } else {
        by_rotation(found, machine, code);
    }
}

fn by_address<S: Sink>(found: &Rows, machine: &Machine, code: &mut S) {
    code.runs(found.moves(), found.count(), machine.cycles, |code, _, part| {
        let (read, write) = (|m: &Move| (m.source_at, m.source), |m: &Move| (m.result_at, m.result));
        code.line(Line::Words { read: vector(part, machine, read), write: vector(part, machine, write) });
    });
}

/// Long words of the result that are made of the same cuts: their addresses, each with that of the source of each cut.
#[derive(Default)]
struct Group {
    rows: Vec<(i64, Vec<i64>)>,
    count: i64,
}

fn by_rotation<S: Sink>(found: &Rows, machine: &Machine, code: &mut S) {
    let (count, bits) = (machine.count(Level::W), machine.bits);
    let ones = if bits < 64 { (1u64 << bits) - 1 } else { u64::MAX };
    let mut groups: Groups<Vec<Cut>, Group> = Groups::default();
    for takes in
        found.takes(|m| (m.source - m.result).rem_euclid(count) * bits).chunk_by(|one, other| one.at == other.at)
    {
        let kept =
            |one: &Take| (0..count).map(|unit| (one.units >> unit & 1) * (ones << ((count - 1 - unit) * bits))).sum();
        let mut cuts: Vec<(Cut, i64)> = takes.iter().map(|one| ((one.from, kept(one)), one.source_at)).collect();
        sorting::sort(&mut cuts);
        let group = groups.entry(cuts.iter().map(|cut| cut.0).collect()).or_default();
        group.rows.push((takes[0].at, cuts.iter().map(|cut| cut.1).collect()));
        group.count += takes[0].times;
    }
    let used = groups.keys().flatten().flat_map(|&(turn, kept)| [turn as u64, kept]);
    let constants: Vec<u64> = used.filter(|&number| number != 0).collect::<BTreeSet<u64>>().into_iter().collect();
    (0..).zip(&constants).for_each(|(at, &number)| code.line(Line::Constant { number, at }));
    let constant = |number: u64| constants.partition_point(|&other| other < number) as i64;
    for (key, group) in &groups {
        code.runs(&group.rows, group.count * found.times, machine.cycles, |code, _, part| {
            let there = || Goal::At(vector(part, machine, |row| row.0));
            for (index, &(turn, kept)) in key.iter().enumerate() {
                let last = index + 1 == key.len();
                let mut read = Some(vector(part, machine, |row| row.1[index]));
                if let Some(read) = read.take_if(|_| turn != 0) {
                    code.line(Line::Rotate { read, by: constant(turn as u64) });
                }
                let first = if last { there() } else { Goal::Sum };
                let goal = if index == 0 { first } else { Goal::Forward };
                code.line(Line::Keep { read, bits: constant(kept), goal });
                if index > 0 {
                    code.line(Line::Join { goal: if last { there() } else { Goal::Sum } });
                }
            }
        });
    }
}

//! Passes as turns: the long words of all units go up by a number of units, and some units write them.
//!
//! For each result address, one move comes first and writes everywhere without a mask. The moves after it overwrite the units
//! where it is wrong. The ALU turns PEs. Between MABs, a turn goes through L1BM. Several turns may share what they read: it
//! goes up once, and comes down once for each of them.

use crate::code::{vector, Line, Place, Sink};
use crate::layout::{Level, Machine};
use crate::moves::{leaders, takers, Moves};
use rustc_hash::FxHashMap;
use std::collections::BTreeMap;

/// Long words that go up by some units. Sets of units have a bit for each; 0 means all.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Turn {
    /// By how many units they go up.
    by: i64,
    /// The units that write them.
    units: u64,
    /// Their source and result addresses.
    pairs: Vec<(i64, i64)>,
    /// How many there are, each as often as it is moved.
    count: i64,
}

/// Long words that take part in the same turns.
struct Shares {
    /// By how many units each turn goes up, and the units that write.
    turns: Vec<(i64, u64)>,
    /// The address of each source, and of its result in each turn.
    rows: Vec<(i64, Vec<i64>)>,
    count: i64,
}

/// The moves between `count` units as turns, those without a mask first.
pub(crate) fn turns(found: &Moves, count: i64) -> Vec<Turn> {
    let units = takers(found, |m| ((m.result - m.source).rem_euclid(count), m.source_at, m.result_at));
    let rank = |by: i64, set: u64| if by != 0 { -i64::from(set.count_ones()) } else { -count };
    let first = leaders(units.iter().map(|&((by, _, at), set, _)| (at, rank(by, set))));
    let mut groups: BTreeMap<(u64, i64), Turn> = BTreeMap::new();
    for (&((by, source, at), set, times), everywhere) in units.iter().zip(first) {
        let units = if everywhere { 0 } else { set };
        let turn = groups.entry((units, by)).or_insert_with(|| Turn { by, units, pairs: Vec::new(), count: 0 });
        turn.pairs.push((source, at));
        turn.count += times * found.times;
    }
    groups.into_values().collect()
}

/// The code of a pass between PEs.
pub(crate) fn between_pes<S: Sink>(found: &Moves, machine: &Machine, code: &mut S) {
    let count = machine.count(Level::Pe);
    for turn in turns(found, count) {
        let register = code.choose(turn.units);
        let upwards = turn.by <= count - turn.by;
        let rounds = if upwards { turn.by } else { count - turn.by };
        code.runs(&turn.pairs, turn.count, machine.cycles, |code, _, part| {
            let mut read = Some(vector(part, machine, |pair| pair.0));
            let write = vector(part, machine, |pair| pair.1);
            for _ in 1..rounds {
                code.line(Line::Turn { upwards, read: read.take(), write: None, register: 0 });
            }
            code.line(if rounds == 0 {
                Line::Copy { read, write, register }
            } else {
                Line::Turn { upwards, read, write: Some(write), register }
            });
        });
    }
}

/// The code of a pass in which no long word leaves its unit: the units hold copies, and each keeps its part.
pub(crate) fn inside_units<S: Sink>(found: &Moves, level: Level, machine: &Machine, code: &mut S) {
    for turn in turns(found, machine.count(level)) {
        let register = code.choose(turn.units);
        code.runs(&turn.pairs, turn.count, machine.cycles, |code, _, part| {
            let read = Some(vector(part, machine, |pair| pair.0));
            code.line(Line::Copy { read, write: vector(part, machine, |pair| pair.1), register });
        });
    }
}

/// The code of a pass between MABs, one turn after the other.
pub(crate) fn one_by_one<S: Sink>(found: &Moves, machine: &Machine, code: &mut S) {
    let mut batch = Batch::default();
    for turn in turns(found, machine.count(Level::Mab)) {
        code.runs(&turn.pairs, turn.count, machine.cycles, |code, _, part| {
            let read = vector(part, machine, |pair| pair.0);
            let down = (turn.units, turn.by, vector(part, machine, |pair| pair.1));
            batch.put(read, true, vec![down], machine, code);
        });
    }
    batch.lower(code);
}

/// The code of a pass between MABs by turns that share what they read.
///
/// The ALU copies for a turn by no unit, beside the line in which the vector goes up. That needs two memories.
pub(crate) fn shared<S: Sink>(found: &Moves, place: &Place, machine: &Machine, code: &mut S) {
    let mut batch = Batch { copies: place.apart, ..Batch::default() };
    for one in shares(found, machine.count(Level::Mab)) {
        let lifts = !place.apart || one.turns.iter().any(|&(by, _)| by != 0);
        code.runs(&one.rows, one.count, machine.cycles, |code, _, part| {
            let read = vector(part, machine, |row| row.0);
            let down =
                |(number, &(by, units)): (usize, &(i64, u64))| (units, by, vector(part, machine, |row| row.1[number]));
            batch.put(read, lifts, one.turns.iter().enumerate().map(down).collect(), machine, code);
        });
    }
    batch.lower(code);
}

fn shares(found: &Moves, count: i64) -> Vec<Shares> {
    let units = takers(found, |m| (m.source_at, (m.result - m.source).rem_euclid(count), m.result_at));
    let mut places: FxHashMap<Vec<(i64, u64)>, usize> = FxHashMap::default();
    let mut out: Vec<Shares> = Vec::new();
    for of_source in units.chunk_by(|one, other| one.0 .0 == other.0 .0) {
        let mut ways: Vec<(i64, u64, i64)> = of_source.iter().map(|&((_, by, at), set, _)| (by, set, at)).collect();
        ways.sort_unstable();
        let units = |set: u64| if i64::from(set.count_ones()) == count { 0 } else { set };
        let turns: Vec<(i64, u64)> = ways.iter().map(|&(by, set, _)| (by, units(set))).collect();
        let place = *places.entry(turns.clone()).or_insert(out.len());
        if place == out.len() {
            out.push(Shares { turns, rows: Vec::new(), count: 0 });
        }
        let ((source, ..), _, times) = of_source[0];
        out[place].rows.push((source, ways.iter().map(|way| way.2).collect()));
        out[place].count += times * found.times;
    }
    out
}

/// The units that write a vector, by how many units it turns, and its addresses.
type Down = (u64, i64, Vec<i64>);

/// Vectors that lie in L1BM at once.
#[derive(Default)]
struct Batch {
    /// Whether the ALU copies for turns by no unit.
    copies: bool,
    items: i64,
    /// Where in L1BM a vector lies.
    lifted: FxHashMap<Vec<i64>, i64>,
    downs: Vec<(Down, Vec<i64>)>,
}

impl Batch {
    /// Adds a vector, which comes down several times. If it fills the batch, all come down.
    fn put<S: Sink>(&mut self, read: Vec<i64>, lifts: bool, downs: Vec<Down>, machine: &Machine, code: &mut S) {
        if lifts && !self.lifted.contains_key(&read) {
            let at = self.lifted.len() as i64 * machine.row * machine.cycles;
            code.line(Line::Lift { read: read.clone(), at });
            self.lifted.insert(read.clone(), at);
        }
        self.downs.extend(downs.into_iter().map(|down| (down, read.clone())));
        self.items += 1;
        if self.items == machine.vectors || S::COUNTS {
            self.lower(code);
        }
    }

    fn lower<S: Sink>(&mut self, code: &mut S) {
        self.downs.sort_by_key(|((units, by, _), _)| (*units, *by));
        for ((units, by, write), read) in self.downs.drain(..) {
            let register = code.choose(units);
            match self.lifted.get(&read) {
                Some(&at) if by != 0 || !self.copies => code.line(Line::Lower { at, by, write, register }),
                Some(_) => code.beside(Line::Copy { read: Some(read), write, register }),
                None => code.line(Line::Copy { read: Some(read), write, register }),
            }
        }
        self.lifted.clear();
        self.items = 0;
    }
}

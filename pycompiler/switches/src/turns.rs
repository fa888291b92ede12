//! Passes as turns: the long words of all units go up by a number of units, and some units write them.
//!
//! For each result address, one move comes first and writes everywhere without a mask. The moves after it overwrite the units
//! where it is wrong. The ALU turns PEs. Between MABs, a turn goes through L1BM. Several turns may share what they read: it
//! goes up once, and comes down once for each of them.

use crate::code::{vector, Line, Sink};
use crate::layout::{up, Level, Machine};
use crate::rows::{lead, sorted, taken, Groups, Rows, Take};
use rustc_hash::FxHashMap;

/// Turns, and the long words that take part in all of them. A turn is by how many units it goes up, and the units that write: a
/// bit for each; 0 means all.
pub(crate) type Turns = (Vec<(i64, u64)>, Words);

/// Long words.
#[derive(Default)]
pub(crate) struct Words {
    /// The address of each source.
    sources: Vec<i64>,
    /// The address of the result of each source in each turn.
    results: Vec<i64>,
    /// How many sources there are, each as often as it is moved.
    count: i64,
}

/// What units of a level take, each from the one that lies so many units below it.
pub(crate) fn ways(found: &Rows, level: Level, machine: &Machine) -> Vec<Take> {
    let count = machine.count(level);
    found.takes(|m| if m.result < m.source { m.result - m.source + count } else { m.result - m.source })
}

/// The [ways](ways) of moves between `count` units, each turn apart, those without a mask first.
pub(crate) fn apart(found: &Rows, mut ways: Vec<Take>, count: i64) -> Vec<Turns> {
    let rank = |by: i64, units: u64| if by != 0 { -i64::from(units.count_ones()) } else { -count };
    lead(&mut ways, |way| (rank(way.from, way.units), way.from, way.source_at));
    let mut out: Groups<(u64, i64), Words> = Groups::default();
    for way in sorted(&ways, |way| way.source_at) {
        let words = out.entry((way.units, way.from)).or_default();
        words.sources.push(way.source_at);
        words.results.push(way.at);
        words.count += way.times * found.times;
    }
    out.sort_unstable_keys();
    out.into_iter().map(|((units, by), words)| (vec![(by, units)], words)).collect()
}

/// The [ways](ways) of moves between `count` units, by the turns in which their sources take part.
pub(crate) fn shared(found: &Rows, ways: &[Take], count: i64) -> Vec<Turns> {
    let mut out: Groups<Vec<(i64, u64)>, Words> = Groups::default();
    let mut own = Vec::new();
    for of_source in sorted(ways, |way| way.source_at).chunk_by(|one, other| one.source_at == other.source_at) {
        own.clear();
        own.extend(of_source.iter().map(|way| (way.from, way.units, way.at)));
        sorting::sort(&mut own);
        let units = |set: u64| if i64::from(set.count_ones()) == count { 0 } else { set };
        let words = out.entry(own.iter().map(|&(by, set, _)| (by, units(set))).collect()).or_default();
        words.sources.push(of_source[0].source_at);
        words.results.extend(own.iter().map(|way| way.2));
        words.count += of_source[0].times * found.times;
    }
    out.into_iter().collect()
}

/// Returns at least how many steps turns between MABs take if each way goes up and comes down.
pub(crate) fn least(found: &Rows, ways: &[Take], machine: &Machine) -> i64 {
    2 * up(taken(ways, found.times), machine.cycles)
}

/// The code of a pass that only the ALU makes: between PEs, or inside of units that hold copies, of which each keeps its part.
///
/// Without `two_memories`, a line that reads does not write: it turns back, or a second line copies what it turned.
pub(crate) fn by_alu<S: Sink>(found: &Rows, level: Level, two_memories: bool, machine: &Machine, code: &mut S) {
    let count = machine.count(level);
    for (turns, words) in apart(found, ways(found, level, machine), count) {
        let (by, units) = turns[0];
        let register = code.choose(units);
        let upwards = by <= count - by;
        let rounds = if upwards { by } else { count - by };
        code.runs(&words.sources, words.count, machine.cycles, |code, number, part| {
            let results = &words.results[(number * machine.cycles) as usize..][..part.len()];
            let mut read = Some(vector(part, machine, |&at| at));
            let write = vector(results, machine, |&at| at);
            for _ in 1..rounds {
                code.line(Line::Turn { upwards, read: read.take(), write: None, register: 0 });
            }
            if !two_memories && rounds < 2 {
                code.line(Line::Turn { upwards, read: read.take(), write: None, register: 0 });
            }
            code.line(match (rounds, two_memories) {
                (0, false) => Line::Turn { upwards: !upwards, read, write: Some(write), register },
                (0, true) | (1, false) => Line::Copy { read, write, register },
                _ => Line::Turn { upwards, read, write: Some(write), register },
            });
        });
    }
}

/// The code of a pass between MABs by turns that share what they read.
///
/// If it `copies`, the ALU copies for a turn by no unit, beside the line in which the vector goes up. That needs two memories.
pub(crate) fn through_l1bm<S: Sink>(of: &[Turns], copies: bool, machine: &Machine, code: &mut S) {
    let mut batch = Batch { copies, ..Batch::default() };
    for (turns, words) in of {
        let lifts = !copies || turns.iter().any(|&(by, _)| by != 0);
        code.runs(&words.sources, words.count, machine.cycles, |code, number, part| {
            let read = vector(part, machine, |&at| at);
            let own = words.results.chunks(turns.len()).skip((number * machine.cycles) as usize);
            let rows: Vec<&[i64]> = own.take(part.len()).collect();
            let down =
                |(number, &(by, units)): (usize, &(i64, u64))| (units, by, vector(&rows, machine, |row| row[number]));
            batch.put(read, lifts, turns.iter().enumerate().map(down).collect(), machine, code);
        });
    }
    batch.lower(code);
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
        sorting::sort_by_key(&mut self.downs, |((units, by, _), _)| (*units, *by));
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

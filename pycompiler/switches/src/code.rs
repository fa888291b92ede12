//! The code of passes, and two walks over it: one makes its lines, one counts them.
//!
//! The code of a pass is written once, for any [`Sink`]. It is a nest of loops over rows of addresses. [`Lines`] takes every
//! turn of a loop. [`Count`] takes the first one and multiplies, so it can count for moves that stand for many others.

use crate::layout::{up, Level, Machine};
use crate::masks::{choosing_lines, Registers};

/// Where the result of an ALU line goes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Goal {
    /// Only on the forwarding path.
    Forward,
    /// The words of the register file in which parts of a long word are joined.
    Sum,
    /// Long words of the result.
    At(Vec<i64>),
}

/// One line. `read` are long words of the source and `write` those of the result, one for each cycle. A `register` is the mask
/// register of the units that write; 0 means all. Addresses in L1BM, L2BM and PDM are long words.
#[derive(Clone, Debug, PartialEq, Eq)]
#[expect(missing_docs, reason = "each variant says what its fields are")]
pub enum Line {
    /// The lines that make the mask of `units`, a bit for each; 0 means all. Only PEs that write in `part` count.
    Choose { part: usize, units: u64, register: i64 },
    /// The ALU copies. Without `read`, it takes its own result of the step before.
    Copy { read: Option<Vec<i64>>, write: Vec<i64>, register: i64 },
    /// The ALU takes the long words of the next PE, `upwards` or downwards.
    Turn { upwards: bool, read: Option<Vec<i64>>, write: Option<Vec<i64>>, register: i64 },
    /// The ALU copies words of long words: address and word of each.
    Words { read: Vec<(i64, i64)>, write: Vec<(i64, i64)> },
    /// The lines that put a number into constant `at`.
    Constant { number: u64, at: i64 },
    /// The ALU rotates by a constant.
    Rotate { read: Vec<i64>, by: i64 },
    /// The ALU keeps the bits of a constant. Without `read`, it takes the result of the step before.
    Keep { read: Option<Vec<i64>>, bits: i64, goal: Goal },
    /// The ALU joins the result of the step before and the sum.
    Join { goal: Goal },
    /// A vector goes to L1BM.
    Lift { read: Vec<i64>, at: i64 },
    /// A vector comes from L1BM to MABs that lie `by` units further.
    Lower { at: i64, by: i64, write: Vec<i64>, register: i64 },
    /// The long words of neighbouring MABs come to all MABs; if `wide`, two each.
    Cast { at: i64, write: Vec<i64>, register: i64, wide: bool },
    /// Long words of MAB `unit` go to places in L1BM.
    Fill { unit: i64, read: Vec<i64>, at: i64, wide: bool },
    /// Words go from the L1BM of `unit` to L2BM.
    ToL2bm { unit: i64, l1bm: i64, l2bm: i64, words: i64 },
    /// Words go from L2BM to the L1BMs of `units`, or of all: the number of one, and the bits in which others differ from it.
    FromL2bm { units: Option<(i64, i64)>, l1bm: i64, l2bm: i64, words: i64 },
    /// Words go from L1BMs to others: each takes them from the one whose number is `first` but for its own bits `free`.
    Inside { first: i64, free: i64, from: i64, to: i64, words: i64 },
    /// Words of all L1BMs go to L2BM, or come from it.
    Spread { upwards: bool, l1bm: i64, l2bm: i64 },
    /// An MV of words of the L2BM of `unit` to the PDM of group `home`, or back. Behind the PDMs of all groups, `home` counts
    /// their DRAMs.
    Mv { upwards: bool, unit: i64, home: i64, l2bm: i64, at: i64, words: i64 },
    /// An MV of words of the PDM of group `home` to all L2BMs.
    MvAll { home: i64, l2bm: i64, pdm: i64, words: i64 },
}

/// What a pass must know of the places of its values.
#[derive(Clone, Copy, Debug)]
pub struct Place {
    /// Whether the addresses of the source and of the result begin at an even word.
    pub even: (bool, bool),
    /// Whether source and result lie in different memories.
    pub apart: bool,
    /// Whether only some PEs may write, whatever their units on the level of the pass.
    pub around: bool,
    /// The L1B in each L2B whose PEs write, if only one does.
    pub l1b: Option<i64>,
    /// Whether there are words of DRAM for what crosses between L2Bs.
    pub dram: bool,
}

impl Place {
    /// The places of a switch: one memory for the source and one for the result.
    pub const SWITCH: Place = Place { even: (true, true), apart: true, around: false, l1b: None, dram: true };
}

/// A memory has no room for rows that must go together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TooSmall {
    /// L1BM or L2BM.
    pub level: Level,
    /// The long words of the rows.
    pub words: i64,
    /// The long words for which there is room.
    pub room: i64,
}

/// What a walk does with code.
pub(crate) trait Sink {
    /// Whether loops are not taken turn by turn.
    const COUNTS: bool;

    /// Adds a line.
    fn line(&mut self, line: Line);

    /// Adds a line of the ALU that finds room in the step of a line that needs no ALU.
    fn beside(&mut self, line: Line);

    /// Does `body` so many times; an expanding walk does it once.
    fn times(&mut self, times: i64, body: impl FnOnce(&mut Self));

    /// Does `body` for each run of `size` items, with the number of the run. `count` is the number of items, if each counts
    /// as often as its moves are done.
    fn runs<T>(&mut self, items: &[T], count: i64, size: i64, body: impl FnMut(&mut Self, i64, &[T]));

    /// Returns the mask register of units, and adds the lines that make it if need be.
    fn choose(&mut self, units: u64) -> i64;
}

/// Makes all lines.
pub(crate) struct Lines {
    pub(crate) lines: Vec<Line>,
    /// The number of the part that is made.
    pub(crate) part: usize,
    registers: Registers,
}

impl Lines {
    /// `around`: for each part, whether only some PEs may write.
    pub(crate) fn new(around: Vec<bool>, machine: &Machine) -> Lines {
        Lines { lines: Vec::new(), part: 0, registers: Registers::new(machine.masks, around) }
    }
}

impl Sink for Lines {
    const COUNTS: bool = false;

    fn line(&mut self, line: Line) {
        self.lines.push(line);
    }

    fn beside(&mut self, line: Line) {
        self.lines.push(line);
    }

    fn times(&mut self, _: i64, body: impl FnOnce(&mut Self)) {
        body(self);
    }

    fn runs<T>(&mut self, items: &[T], _: i64, size: i64, mut body: impl FnMut(&mut Self, i64, &[T])) {
        (0..).zip(items.chunks(size as usize)).for_each(|(number, run)| body(self, number, run));
    }

    fn choose(&mut self, units: u64) -> i64 {
        let (register, new) = self.registers.choose(self.part, units);
        if new {
            self.lines.push(Line::Choose { part: self.part, units, register });
        }
        register
    }
}

/// Counts lines, and for how long MVs take the ports of memories.
pub(crate) struct Count<'a> {
    machine: &'a Machine,
    level: Level,
    /// The lines of the ALU, of L1BM and of L2BM.
    lines: [i64; 3],
    /// How often a line counts.
    factor: i64,
    registers: Registers,
    ports: Option<Ports>,
}

/// What MVs take.
struct Ports {
    /// In parts of a cycle, for each PDM, then each DRAM, and for each L2BM.
    homes: Vec<i64>,
    l2bms: Vec<i64>,
}

impl Count<'_> {
    pub(crate) fn new(level: Level, machine: &Machine) -> Count<'_> {
        let registers = Registers::new(machine.masks, Vec::new());
        Count { machine, level, lines: [0; 3], factor: 1, registers, ports: None }
    }

    /// The steps, with a wait for MVs to PDMs and one for those back.
    ///
    /// guess: other nodes fill half of what the busiest slot leaves free, and MVs behind the first run ahead of their lines.
    pub(crate) fn steps(&self) -> i64 {
        let machine = self.machine;
        let (busiest, all) = (self.lines.into_iter().max().unwrap_or(0), self.lines.iter().sum::<i64>());
        let lines = (busiest + all) / 2;
        let Some(ports) = &self.ports else { return lines };
        let busiest = ports.homes.iter().chain(&ports.l2bms).max().copied().unwrap_or(0);
        lines + 2 * machine.mv_latency + up(busiest, machine.parts() * machine.cycles)
    }

    /// Counts an MV that takes the ports of a PDM or DRAM and of L2BMs for some time.
    fn moved(&mut self, home: i64, units: impl Iterator<Item = i64>, time: i64) {
        let (groups, count) = (self.machine.groups() as usize, self.machine.count(Level::L2b) as usize);
        let new = || Ports { homes: vec![0; 2 * groups], l2bms: vec![0; count] };
        let ports = self.ports.get_or_insert_with(new);
        ports.homes[home as usize] += time * self.factor;
        units.for_each(|unit| ports.l2bms[unit as usize] += time * self.factor);
    }
}

impl Sink for Count<'_> {
    const COUNTS: bool = true;

    fn line(&mut self, line: Line) {
        let parts = self.machine.mv_parts();
        match line {
            Line::Mv { unit, home, words, .. } => {
                let time = words * self.machine.mv_time(unit, home);
                self.moved(home, unit..=unit, time);
            }
            Line::MvAll { home, words, .. } => {
                self.moved(home, 0..=self.machine.count(Level::L2b) - 1, parts.all * words);
            }
            // A line for each word of a long word.
            Line::Constant { .. } => {
                self.lines[0] +=
                    self.factor * (self.machine.count(Level::W) * self.machine.bits / self.machine.addressed_bits);
            }
            Line::Lift { .. } | Line::Lower { .. } | Line::Cast { .. } | Line::Fill { .. } => {
                self.lines[1] += self.factor
            }
            Line::ToL2bm { .. } | Line::FromL2bm { .. } | Line::Inside { .. } | Line::Spread { .. } => {
                self.lines[2] += self.factor;
            }
            _ => self.lines[0] += self.factor,
        }
    }

    fn beside(&mut self, _: Line) {}

    fn times(&mut self, times: i64, body: impl FnOnce(&mut Self)) {
        let before = self.factor;
        self.factor *= times;
        body(self);
        self.factor = before;
    }

    fn runs<T>(&mut self, items: &[T], count: i64, size: i64, mut body: impl FnMut(&mut Self, i64, &[T])) {
        if !items.is_empty() {
            self.times(up(count, size), |own| body(own, 0, &items[..items.len().min(size as usize)]));
        }
    }

    fn choose(&mut self, units: u64) -> i64 {
        let (register, new) = self.registers.choose(0, units);
        if new {
            self.lines[0] += choosing_lines(units, self.machine.count(self.level), &mut self.registers);
        }
        register
    }
}

/// Returns what is done for each of some items, as many as a step has cycles; the last is repeated if there are fewer.
pub(crate) fn vector<T, V>(items: &[T], machine: &Machine, value: impl Fn(&T) -> V) -> Vec<V> {
    (0..machine.cycles as usize).map(|index| value(&items[index.min(items.len() - 1)])).collect()
}

/// Like [`vector`], but the first is repeated: what is written last stays.
pub(crate) fn late<T, V>(items: &[T], machine: &Machine, value: impl Fn(&T) -> V) -> Vec<V> {
    let spare = machine.cycles as usize - items.len();
    (0..machine.cycles as usize).map(|index| value(&items[index.saturating_sub(spare)])).collect()
}

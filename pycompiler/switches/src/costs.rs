//! The steps of passes, counted without making their code.
//!
//! The counts follow the code of the passes in `pycompiler/layers/switch`. How words move between PEs and between MABs
//! ([`crate::ways`]), and which rows go straight to other L1Bs ([`crate::straight`]), is decided here for that code, too.

use crate::layout::{up, Change, Level, Machine};
use crate::moves::{Digits, Move, Moves};
use crate::straight::{sent, straight_steps, Sent};
use crate::ways::{mab_steps, turns, Turn};
use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};

pub(crate) fn pass_steps(change: &Change, level: Level, machine: &Machine) -> Option<i64> {
    // If several rows go together, the number of rows matters, and a part of the moves does not tell it.
    let whole = level == Level::L1b && machine.block > 1;
    let found = Digits::new(change, level, machine, whole)?;
    Some(counted(found, level, machine) + around(machine))
}

/// Passes whose steps are kept, at most. One takes up to a kilobyte.
const KEPT: usize = 1 << 16;

thread_local! {
    /// The steps of the passes that this thread has counted.
    static COUNTED: RefCell<HashMap<(Machine, Level, Digits), i64>> = RefCell::default();
}

/// The steps of a pass. The passes of a network's switches are counted again and again, so the steps are kept.
fn counted(digits: Digits, level: Level, machine: &Machine) -> i64 {
    let key = (*machine, level, digits);
    COUNTED.with_borrow_mut(|known| {
        if let Some(&steps) = known.get(&key) {
            return steps;
        }
        if known.len() >= KEPT {
            known.clear();
        }
        let steps = move_steps(&key.2.moves(), level, machine);
        known.insert(key, steps);
        steps
    })
}

/// A lower bound of the steps of a pass over `level`. `copies`: whether units of the level may hold copies.
pub(crate) fn least_steps(level: Level, copies: bool, machine: &Machine) -> i64 {
    // A long word that goes to another unit. Between units that hold copies nothing need go.
    let least = Moves { list: vec![Move { result: 1, ..Move::HERE }], times: 1 };
    // On the other levels a single move may cost next to nothing: count one step.
    let far = matches!(level, Level::L1b | Level::L2b) && !copies && machine.count(level) > 1;
    let steps = if far { move_steps(&least, level, machine) } else { 1 };
    steps + around(machine)
}

/// The steps that hazards cost before and behind a pass.
fn around(machine: &Machine) -> i64 {
    2 * machine.cycles
}

pub(crate) fn move_steps(found: &Moves, level: Level, machine: &Machine) -> i64 {
    match level {
        Level::W => words(found, machine),
        Level::Pe => pes(found, machine),
        Level::Mab => mab_steps(found, machine),
        Level::L1b => l1bs(found, machine),
        _ => l2bs(found, machine),
    }
}

fn pes(found: &Moves, machine: &Machine) -> i64 {
    let count = machine.count(Level::Pe);
    let rounds = |turn: &Turn| turn.by.min(count - turn.by).max(1);
    turns(found, count).iter().map(|turn| rounds(turn) * turn.vectors(found, machine) + turn.mask()).sum()
}

/// Whether no long word leaves its unit. Units that hold copies then keep their parts, which only the ALU moves.
fn stays(found: &Moves) -> bool {
    found.list.iter().all(|m| m.source == m.result)
}

/// Counts the copies that the ALU makes inside units, under masks of the units.
fn copies(found: &Moves, count: i64, machine: &Machine) -> i64 {
    turns(found, count).iter().map(|turn| turn.vectors(found, machine) + turn.mask()).sum()
}

fn l1bs(found: &Moves, machine: &Machine) -> i64 {
    if stays(found) {
        return copies(found, machine.count(Level::L1b), machine);
    }
    let through = through(found, machine);
    sent(found, machine).map_or(through, |sent| straight_steps(&sent, found, machine).min(through))
}

/// How rows go straight to other L1Bs. None if they cannot, or if the way through L2BM takes fewer steps.
pub(crate) fn straight(found: &Moves, machine: &Machine) -> Option<Vec<Sent>> {
    sent(found, machine).filter(|sent| straight_steps(sent, found, machine) <= through(found, machine))
}

/// Counts the steps of the way through L2BM.
fn through(found: &Moves, machine: &Machine) -> i64 {
    let wide = (machine.row / machine.l2bm_words).max(1);
    let (up_rows, down, rows) = if machine.block == 1 {
        (
            found.distinct(|m| (m.source, m.source_at)),
            found.distinct(|m| (m.result_at, m.source, m.source_at)),
            found.distinct(|m| m.result_at),
        )
    } else {
        blocks(found, machine)
    };
    wide * (up_rows + down) * found.times + 2 * up(rows * found.times, machine.cycles)
}

/// For each unit, the unit and the row that its data comes from.
type Origins = Vec<Option<(i64, i64)>>;

/// Counts the groups of rows that go up, those that come down, and the rows of the result, if several rows go together.
fn blocks(found: &Moves, machine: &Machine) -> (i64, i64, i64) {
    let (units, block) = (machine.count(Level::L1b) as usize, machine.block as usize);
    let mut origins: BTreeMap<i64, Origins> = BTreeMap::new();
    for m in &found.list {
        origins.entry(m.result_at).or_insert_with(|| vec![None; units])[m.result as usize] =
            Some((m.source, m.source_at));
    }
    let mut alike: HashMap<Vec<Option<i64>>, Vec<&Origins>> = HashMap::new();
    for row in origins.values() {
        alike.entry(row.iter().map(|o| o.map(|o| o.0)).collect()).or_default().push(row);
    }
    let mut lifted: HashSet<(i64, Vec<i64>)> = HashSet::new();
    let (mut down, mut count) = (0, 0);
    for (key, rows) in &alike {
        for part in rows.chunks(block) {
            let mut own: HashSet<(i64, Vec<i64>)> = HashSet::new();
            for (unit, origin) in key.iter().enumerate() {
                if let Some(origin) = origin {
                    // The last row is repeated to fill a block.
                    let place = |index: usize| part[index.min(part.len() - 1)][unit].map_or(0, |o| o.1);
                    own.insert((*origin, (0..block).map(place).collect()));
                }
            }
            down += own.len() as i64;
            count += 1;
            lifted.extend(own);
        }
    }
    (lifted.len() as i64, down, count * machine.block)
}

fn l2bs(found: &Moves, machine: &Machine) -> i64 {
    if stays(found) {
        return copies(found, machine.count(Level::L2b), machine);
    }
    let rows = found.distinct(|m| m.source_at) + found.distinct(|m| m.result_at);
    let parts = busiest(found, machine) * machine.row * machine.count(Level::L1b);
    2 * machine.mv_latency + found.times * (up(parts, machine.parts() * machine.cycles) + rows)
}

/// Sums up how long the rows take that cross the port of the busiest PDM or L2BM, for one word of each, in parts of a cycle. A
/// row goes up once for each group that takes it.
fn busiest(found: &Moves, machine: &Machine) -> i64 {
    let units = machine.count(Level::L2b);
    let (near, far, all) = machine.mv_parts();
    let home = |unit: i64| unit / machine.l2bs_per_group;
    let (mut pdms, mut l2bms) = (vec![0; units as usize], vec![0; units as usize]);
    let mut ways: HashSet<(i64, i64, i64)> = HashSet::new();
    let mut takers: HashMap<(i64, i64, i64), (i64, i64)> = HashMap::new();
    for m in &found.list {
        takers.entry((m.source, m.source_at, m.result_at)).or_insert((0, m.times)).0 += 1;
    }
    takers.retain(|_, (count, _)| *count == units);
    for (&(source, _, _), &(_, times)) in &takers {
        pdms[home(source) as usize] += (near + all) * times;
        l2bms[source as usize] += near * times;
        l2bms.iter_mut().for_each(|rows| *rows += all * times);
    }
    for m in &found.list {
        if takers.contains_key(&(m.source, m.source_at, m.result_at)) {
            continue;
        }
        let to = home(m.result);
        if ways.insert((to, m.source, m.source_at)) {
            let turns = m.times * if home(m.source) == to { near } else { far };
            pdms[to as usize] += turns;
            l2bms[m.source as usize] += turns;
        }
        pdms[to as usize] += near * m.times;
        l2bms[m.result as usize] += near * m.times;
    }
    pdms.into_iter().chain(l2bms).max().unwrap_or(0)
}

/// Steps in which `words` long words go to the PDMs of all groups and from there to L2BMs.
pub(crate) fn crossing(words: i64, machine: &Machine) -> i64 {
    let (near, far, _) = machine.mv_parts();
    (near + far) * words / (machine.parts() * machine.groups() * machine.cycles)
}

/// For each turn of a source address, the bits that it leaves in a long word.
type Pieces = BTreeMap<(i64, i64), u64>;

fn words(found: &Moves, machine: &Machine) -> i64 {
    if machine.bits == machine.addressed_bits {
        return up(found.distinct(|m| (m.result, m.result_at)) * found.times, machine.cycles);
    }
    let (count, bits) = (machine.count(Level::W), machine.bits);
    let ones = if bits < 64 { (1u64 << bits) - 1 } else { u64::MAX };
    let mut pieces: BTreeMap<i64, (Pieces, i64)> = BTreeMap::new();
    for m in &found.list {
        let turn = (m.source - m.result).rem_euclid(count) * bits;
        let kept = ones << ((count - 1 - m.result) * bits);
        let row = pieces.entry(m.result_at).or_insert_with(|| (Pieces::new(), m.times));
        *row.0.entry((turn, m.source_at)).or_default() |= kept;
    }
    let mut groups: HashMap<Vec<(i64, u64)>, i64> = HashMap::new();
    let mut cuts: BTreeSet<(i64, u64)> = BTreeSet::new();
    for (row, times) in pieces.values() {
        let mut key: Vec<(i64, u64)> = row.iter().map(|(&(turn, _), &kept)| (turn, kept)).collect();
        key.sort_unstable();
        cuts.extend(&key);
        *groups.entry(key).or_default() += times;
    }
    let joined = |(key, rows): (&Vec<(i64, u64)>, &i64)| up(rows * found.times, machine.cycles) * 3 * key.len() as i64;
    2 * cuts.len() as i64 + groups.iter().map(joined).sum::<i64>()
}

//! The steps of passes, counted without making their code.
//!
//! The counts follow the code of the passes in `pycompiler/layers/switch`: `pe_mab_passes.py`, `l1b_passes.py`,
//! `l2b_passes.py` and `word_passes.py`. [`crate::straight`] counts those of `straight_rows.py`,
//! [`crate::fills`] those of `mab_fills.py`.

use crate::fills::fills;
use crate::layout::{up, Change, Level, Machine};
use crate::moves::{Digits, Move, Moves, MASK};
use crate::straight::straight;
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

/// For each key, in order, the units that take a move with it, as bits, and how often these moves are done.
fn takers<K: Ord>(found: &Moves, key: impl Fn(&Move) -> K) -> Vec<(K, u64, i64)> {
    let mut all: Vec<(K, u64, i64)> = found.list.iter().map(|m| (key(m), 1 << m.result, m.times)).collect();
    all.sort_unstable_by(|one, other| one.0.cmp(&other.0));
    all.dedup_by(|next, last| {
        let same = next.0 == last.0;
        if same {
            last.1 |= next.1;
        }
        same
    });
    all
}

/// Whether each entry is the one with the least rank among those of its address. Of equal ranks the first counts.
fn leaders(entries: impl Iterator<Item = (i64, i64)>) -> Vec<bool> {
    let mut order: Vec<(i64, i64, usize)> = entries.enumerate().map(|(index, (at, rank))| (at, rank, index)).collect();
    let mut leads = vec![false; order.len()];
    order.sort_unstable();
    order.dedup_by_key(|entry| entry.0);
    order.iter().for_each(|entry| leads[entry.2] = true);
    leads
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
        Level::Mab => mabs(found, machine),
        Level::L1b => l1bs(found, machine),
        _ => l2bs(found, machine),
    }
}

/// Vectors that go up by `by` units. With `masked`, only some units write them.
struct Turn {
    by: i64,
    masked: bool,
    vectors: i64,
}

fn turns(found: &Moves, count: i64, cycles: i64) -> Vec<Turn> {
    let units = takers(found, |m| ((m.result - m.source).rem_euclid(count), m.source_at, m.result_at));
    // For each result address, one move comes first and writes everywhere without a mask.
    let rank = |by: i64, set: u64| if by != 0 { -i64::from(set.count_ones()) } else { -count };
    let first = leaders(units.iter().map(|&((by, _, at), set, _)| (at, rank(by, set))));
    let mut sizes: HashMap<(u64, i64), i64> = HashMap::new();
    for (&((by, _, _), set, times), everywhere) in units.iter().zip(first) {
        *sizes.entry((if everywhere { 0 } else { set }, by)).or_default() += times;
    }
    let turn =
        |((set, by), size): ((u64, i64), i64)| Turn { by, masked: set != 0, vectors: up(size * found.times, cycles) };
    sizes.into_iter().map(turn).collect()
}

fn pes(found: &Moves, machine: &Machine) -> i64 {
    let count = machine.count(Level::Pe);
    let steps = |turn: &Turn| turn.by.min(count - turn.by).max(1) * turn.vectors + MASK * i64::from(turn.masked);
    turns(found, count, machine.cycles).iter().map(steps).sum()
}

/// Counts the steps of turns that share what they read: it goes up once, and comes down once for each turn.
///
/// The ALU makes a copy for a turn by no unit, in the step in which the vector goes up.
fn shared_turns(found: &Moves, machine: &Machine) -> i64 {
    let count = machine.count(Level::Mab);
    let units = takers(found, |m| (m.source_at, (m.result - m.source).rem_euclid(count), m.result_at));
    let mut alike: HashMap<Vec<(i64, u64)>, i64> = HashMap::new();
    for of_source in units.chunk_by(|one, other| one.0 .0 == other.0 .0) {
        let mut turns: Vec<(i64, u64)> = of_source.iter().map(|&((_, by, _), set, _)| (by, set)).collect();
        turns.sort_unstable();
        *alike.entry(turns).or_default() += of_source.first().map_or(0, |one| one.2);
    }
    let (mut steps, mut vectors, mut masks) = (0, 0, HashSet::new());
    for (turns, sources) in &alike {
        let some = up(sources * found.times, machine.cycles);
        let stays = turns.iter().any(|&(by, _)| by == 0);
        let moves = turns.iter().any(|&(by, _)| by != 0);
        steps += some * (turns.len() as i64 + i64::from(moves && !stays));
        vectors += some;
        masks.extend(turns.iter().map(|&(_, set)| set).filter(|set| i64::from(set.count_ones()) < count));
    }
    // Masks that find no register are made again for every batch.
    let masks = masks.len() as i64;
    let again = if masks <= machine.masks { 1 } else { up(vectors, machine.vectors) };
    steps + MASK * masks * again
}

fn mabs(found: &Moves, machine: &Machine) -> i64 {
    let steps = turns_or_casts(found, machine);
    fills(found, steps, machine).map_or(steps, |fills| fills.min(steps))
}

fn turns_or_casts(found: &Moves, machine: &Machine) -> i64 {
    let by_turns: i64 = turns(found, machine.count(Level::Mab), machine.cycles)
        .iter()
        .map(|turn| 2 * turn.vectors + MASK * i64::from(turn.masked))
        .sum();
    let by_turns = by_turns.min(shared_turns(found, machine));
    // A cast brings at most one wide vector of results. This bound often shows that turns are cheaper.
    let results = found.distinct(|m| (m.source_at, m.result_at, m.source)) * found.times;
    let read = up(found.distinct(|m| m.source_at) * found.times, machine.cycles);
    if by_turns <= read + up(results, machine.wide * machine.cycles) {
        return by_turns;
    }
    let (casts, masks) = casts(found, machine);
    by_turns.min(read + casts * found.times + MASK * masks)
}

/// Returns the first unit and address of `wide` neighbours each; None if some unit is alone.
fn joined(pairs: &[(i64, i64)], wide: i64) -> Option<Vec<(i64, i64)>> {
    let found: BTreeSet<(i64, i64)> = pairs.iter().copied().collect();
    let even = |&(unit, at): &(i64, i64)| unit % wide == 0 && at % wide == 0;
    let firsts: Vec<(i64, i64)> = pairs.iter().copied().filter(even).collect();
    let both: BTreeSet<(i64, i64)> =
        firsts.iter().flat_map(|&(unit, at)| (0..wide).map(move |more| (unit + more, at + more))).collect();
    (both == found).then_some(firsts)
}

/// Counts the runs of at most `most` units that lie `apart`.
fn runs(mut waiting: Vec<(i64, i64)>, apart: i64, most: i64) -> i64 {
    let mut count = 0;
    while !waiting.is_empty() {
        let (mut last, mut length) = (None, 0);
        waiting.retain(|&(unit, _)| {
            let follows = last.is_none_or(|before| unit == before + apart) && length < most;
            if follows {
                last = Some(unit);
                length += 1;
            }
            !follows
        });
        count += 1;
    }
    count
}

/// The units and result addresses that wait for a cast, and how often.
type Waiting = (Vec<(i64, i64)>, i64);

/// Counts the casts of a pass, and their masks. A cast sends data of neighbouring units to all MABs.
fn casts(found: &Moves, machine: &Machine) -> (i64, i64) {
    let (cycles, wide) = (machine.cycles, machine.wide);
    let even = machine.count(Level::Mab) % wide == 0;
    let units = takers(found, |m| (m.source_at, m.result_at, m.source));
    let first = leaders(units.iter().map(|&((_, at, _), set, _)| (at, -i64::from(set.count_ones()))));
    let mut groups: HashMap<(i64, u64), Waiting> = HashMap::new();
    for (&((source_at, at, unit), set, times), everywhere) in units.iter().zip(first) {
        let key = (source_at, if everywhere { 0 } else { set });
        groups.entry(key).or_insert_with(|| (Vec::new(), times)).0.push((unit, at));
    }
    let masks: HashSet<u64> = groups.keys().map(|key| key.1).filter(|&set| set != 0).collect();
    let mut count = 0;
    for (_, (mut waiting, times)) in groups {
        waiting.sort_unstable();
        let narrow = runs(waiting.clone(), 1, cycles);
        let joined = if even { joined(&waiting, wide) } else { None };
        count += times * joined.map_or(narrow, |firsts| runs(firsts, wide, cycles).min(narrow));
    }
    (count, masks.len() as i64)
}

/// Whether no long word leaves its unit. Units that hold copies then keep their parts, which only the ALU moves.
fn stays(found: &Moves) -> bool {
    found.list.iter().all(|m| m.source == m.result)
}

/// Counts the copies that the ALU makes inside units, under masks of the units.
fn copies(found: &Moves, count: i64, machine: &Machine) -> i64 {
    turns(found, count, machine.cycles).iter().map(|turn| turn.vectors + MASK * i64::from(turn.masked)).sum()
}

fn l1bs(found: &Moves, machine: &Machine) -> i64 {
    if stays(found) {
        return copies(found, machine.count(Level::L1b), machine);
    }
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
    let through = wide * (up_rows + down) * found.times + 2 * up(rows * found.times, machine.cycles);
    straight(found, machine).map_or(through, |steps| steps.min(through))
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

//! The ways in which words move between PEs and between MABs. Steps are counted from them, and code is made of them.

use crate::layout::{up, Level, Machine};
use crate::moves::{Move, Moves, MASK};
use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};

/// Two addresses, or a unit and an address.
type Pair = (i64, i64);

/// Long words that go up by some units. Sets of units have a bit for each; 0 means all.
#[derive(Clone, Debug)]
pub struct Turn {
    /// By how many units they go up.
    pub by: i64,
    /// The units that write them.
    pub units: u64,
    /// Their source and result addresses.
    pub pairs: Vec<Pair>,
    /// How many there are, each as often as it is moved.
    pub(crate) size: i64,
}

impl Turn {
    pub(crate) fn vectors(&self, found: &Moves, machine: &Machine) -> i64 {
        up(self.size * found.times, machine.cycles)
    }

    pub(crate) fn mask(&self) -> i64 {
        MASK * i64::from(self.units != 0)
    }
}

/// Long words that take part in the same turns: they go up once, and come down once for each turn.
#[derive(Clone, Debug)]
pub struct Shares {
    /// By how many units each turn goes up, and the units that write.
    pub turns: Vec<(i64, u64)>,
    /// The address of each source, and of its result in each turn.
    pub rows: Vec<(i64, Vec<i64>)>,
    size: i64,
}

/// A long word of neighbouring MABs that goes to all MABs.
#[derive(Clone, Debug)]
pub struct Cast {
    /// Its address.
    pub at: i64,
    /// The first of the MABs.
    pub first: i64,
    /// The addresses to which those of the MABs go.
    pub results: Vec<i64>,
    /// The MABs that write them.
    pub units: u64,
    /// The MABs whose long words go to one of the addresses and those behind it.
    pub each: i64,
    times: i64,
}

/// Long words of one MAB that go to the places of neighbouring MABs in a row of L1BM.
#[derive(Clone, Debug)]
pub struct Fill {
    /// The first of the places.
    pub first: i64,
    /// The MAB that has the long words.
    pub unit: i64,
    /// Their addresses.
    pub words: Vec<i64>,
    /// Whether each comes with the one behind it.
    pub wide: bool,
}

/// The address of the result to which a row goes, and its fills.
pub type FillRow = (i64, Vec<Fill>);

/// The way of a pass between MABs.
#[derive(Clone, Debug)]
pub enum Way {
    /// One turn after the other.
    Turns(Vec<Turn>),
    /// Turns that share what they read.
    Shared(Vec<Shares>),
    /// Casts.
    Casts(Vec<Cast>),
    /// Rows of fills.
    Fills(Vec<FillRow>),
}

/// The way with the fewest steps. `even`: whether the addresses of the source and of the result begin at an even word.
pub(crate) fn between_mabs(found: &Moves, even: (bool, bool), machine: &Machine) -> Way {
    let count = machine.count(Level::Mab);
    let (turns, shares, casts) = (turns(found, count), shared(found, count), casts(found, even.1, machine));
    let (by_turns, by_shares) = (turn_steps(&turns, found, machine), share_steps(&shares, found, machine));
    let by_casts = cast_steps(&casts, found, machine);
    if let Some((_, rows)) = fills(found, by_turns.min(by_shares).min(by_casts), even.0, machine) {
        Way::Fills(rows)
    } else if by_shares < by_turns.min(by_casts) {
        Way::Shared(shares)
    } else if by_turns <= by_casts {
        Way::Turns(turns)
    } else {
        Way::Casts(casts)
    }
}

/// The steps of a pass between MABs.
pub(crate) fn mab_steps(found: &Moves, machine: &Machine) -> i64 {
    let count = machine.count(Level::Mab);
    let by_turns = turn_steps(&turns(found, count), found, machine);
    let by_turns = by_turns.min(share_steps(&shared(found, count), found, machine));
    // A cast brings at most one wide vector of results. This bound often shows that turns are cheaper.
    let results = found.distinct(|m| (m.source_at, m.result_at, m.source)) * found.times;
    let read = up(found.distinct(|m| m.source_at) * found.times, machine.cycles);
    let steps = if by_turns <= read + up(results, machine.wide * machine.cycles) {
        by_turns
    } else {
        by_turns.min(cast_steps(&casts(found, true, machine), found, machine))
    };
    fills(found, steps, true, machine).map_or(steps, |(fills, _)| fills)
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

/// The moves between `count` units as turns, those without a mask first.
pub(crate) fn turns(found: &Moves, count: i64) -> Vec<Turn> {
    let units = takers(found, |m| ((m.result - m.source).rem_euclid(count), m.source_at, m.result_at));
    // For each result address, one move comes first and writes everywhere without a mask.
    let rank = |by: i64, set: u64| if by != 0 { -i64::from(set.count_ones()) } else { -count };
    let first = leaders(units.iter().map(|&((by, _, at), set, _)| (at, rank(by, set))));
    let mut groups: BTreeMap<(u64, i64), Turn> = BTreeMap::new();
    for (&((by, source, at), set, times), everywhere) in units.iter().zip(first) {
        let units = if everywhere { 0 } else { set };
        let turn = groups.entry((units, by)).or_insert_with(|| Turn { by, units, pairs: Vec::new(), size: 0 });
        turn.pairs.push((source, at));
        turn.size += times;
    }
    groups.into_values().collect()
}

fn turn_steps(turns: &[Turn], found: &Moves, machine: &Machine) -> i64 {
    turns.iter().map(|turn| 2 * turn.vectors(found, machine) + turn.mask()).sum()
}

fn shared(found: &Moves, count: i64) -> Vec<Shares> {
    let units = takers(found, |m| (m.source_at, (m.result - m.source).rem_euclid(count), m.result_at));
    let mut places: HashMap<Vec<(i64, u64)>, usize> = HashMap::new();
    let mut out: Vec<Shares> = Vec::new();
    for of_source in units.chunk_by(|one, other| one.0 .0 == other.0 .0) {
        let mut ways: Vec<(i64, u64, i64)> = of_source.iter().map(|&((_, by, at), set, _)| (by, set, at)).collect();
        ways.sort_unstable();
        let units = |set: u64| if i64::from(set.count_ones()) == count { 0 } else { set };
        let turns: Vec<(i64, u64)> = ways.iter().map(|&(by, set, _)| (by, units(set))).collect();
        let place = *places.entry(turns.clone()).or_insert(out.len());
        if place == out.len() {
            out.push(Shares { turns, rows: Vec::new(), size: 0 });
        }
        let ((source, ..), _, times) = of_source[0];
        out[place].rows.push((source, ways.iter().map(|way| way.2).collect()));
        out[place].size += times;
    }
    out
}

/// Counts the steps of turns that share what they read.
///
/// The ALU makes a copy for a turn by no unit, in the step in which the vector goes up.
fn share_steps(shares: &[Shares], found: &Moves, machine: &Machine) -> i64 {
    let (mut steps, mut vectors, mut masks) = (0, 0, HashSet::new());
    for one in shares {
        let some = up(one.size * found.times, machine.cycles);
        let stays = one.turns.iter().any(|&(by, _)| by == 0);
        let moves = one.turns.iter().any(|&(by, _)| by != 0);
        steps += some * (one.turns.len() as i64 + i64::from(moves && !stays));
        vectors += some;
        masks.extend(one.turns.iter().map(|&(_, units)| units).filter(|&units| units != 0));
    }
    // Masks that find no register are made again for every batch.
    let masks = masks.len() as i64;
    let again = if masks <= machine.masks { 1 } else { up(vectors, machine.vectors) };
    steps + MASK * masks * again
}

/// The moves as casts, those without a mask first.
fn casts(found: &Moves, even: bool, machine: &Machine) -> Vec<Cast> {
    let (cycles, wide) = (machine.cycles, machine.wide);
    let even = even && machine.count(Level::Mab) % wide == 0;
    let rows = takers(found, |m| (m.source_at, m.result_at, m.source));
    let first = leaders(rows.iter().map(|&((_, at, _), set, _)| (at, -i64::from(set.count_ones()))));
    let mut places: HashMap<(i64, u64), usize> = HashMap::new();
    let mut groups: Vec<(i64, u64, i64, Vec<Pair>)> = Vec::new();
    for (&((at, result, unit), set, times), everywhere) in rows.iter().zip(first) {
        let units = if everywhere { 0 } else { set };
        let place = *places.entry((at, units)).or_insert(groups.len());
        if place == groups.len() {
            groups.push((at, units, times, Vec::new()));
        }
        groups[place].3.push((unit, result));
    }
    groups.sort_by_key(|group| group.1);
    let mut out = Vec::new();
    for (at, units, times, mut pairs) in groups {
        pairs.sort_unstable();
        let joined = if even { joined(&pairs, wide).map(|firsts| runs(firsts, wide, cycles)) } else { None };
        let narrow = runs(pairs, 1, cycles);
        let (runs, each) = match joined {
            Some(joined) if joined.len() < narrow.len() => (joined, wide),
            _ => (narrow, 1),
        };
        let cast = |run: Vec<Pair>| {
            let results = run.iter().map(|pair| pair.1).collect();
            Cast { at, first: run.first().map_or(0, |pair| pair.0), results, units, each, times }
        };
        out.extend(runs.into_iter().map(cast));
    }
    out
}

fn cast_steps(casts: &[Cast], found: &Moves, machine: &Machine) -> i64 {
    let read = up(found.distinct(|m| m.source_at) * found.times, machine.cycles);
    let masks: HashSet<u64> = casts.iter().map(|cast| cast.units).filter(|&units| units != 0).collect();
    read + casts.iter().map(|cast| cast.times).sum::<i64>() * found.times + MASK * masks.len() as i64
}

/// Returns the first unit and address of `wide` neighbours each; None if some unit is alone.
fn joined(pairs: &[Pair], wide: i64) -> Option<Vec<Pair>> {
    let found: BTreeSet<Pair> = pairs.iter().copied().collect();
    let even = |&(unit, at): &Pair| unit % wide == 0 && at % wide == 0;
    let firsts: Vec<Pair> = pairs.iter().copied().filter(even).collect();
    let both: BTreeSet<Pair> =
        firsts.iter().flat_map(|&(unit, at)| (0..wide).map(move |more| (unit + more, at + more))).collect();
    (both == found).then_some(firsts)
}

/// Cuts pairs of units and addresses into runs of at most `most` units that lie `apart`.
fn runs(mut waiting: Vec<Pair>, apart: i64, most: i64) -> Vec<Vec<Pair>> {
    let mut out = Vec::new();
    while !waiting.is_empty() {
        let mut run: Vec<Pair> = Vec::new();
        waiting.retain(|&pair| {
            let follows = run.last().is_none_or(|last| pair.0 == last.0 + apart) && (run.len() as i64) < most;
            if follows {
                run.push(pair);
            }
            !follows
        });
        out.push(run);
    }
    out
}

/// The rows of fills, and their steps. None if there are at least `most`, or if a fill may not reach behind its row.
fn fills(found: &Moves, most: i64, even: bool, machine: &Machine) -> Option<(i64, Vec<FillRow>)> {
    let (count, cycles, wide) = (machine.count(Level::Mab), machine.cycles, machine.wide);
    // Each row takes at least one fill.
    let least = found.distinct(|m| m.result_at) * found.times;
    let down = up(least, cycles);
    if wide > count || least + down >= most {
        return None;
    }
    let mut moves: Vec<&Move> = found.list.iter().collect();
    moves.sort_unstable_by_key(|m| (m.result_at, m.result));
    let even = even && count % wide == 0;
    let (mut rows, mut steps) = (Vec::new(), down);
    for row in moves.chunk_by(|one, other| one.result_at == other.result_at) {
        let (mut left, mut own) = (row, Vec::new());
        while let Some(start) = left.first() {
            let pairs = if even { pairs(left, wide, cycles) } else { 0 };
            let (taken, each) = if wide * pairs > cycles { (wide * pairs, wide) } else { (run(left, cycles), 1) };
            let words = left.iter().take(taken as usize).step_by(each as usize).map(|m| m.source_at).collect();
            own.push(Fill { first: start.result, unit: start.source, words, wide: each > 1 });
            steps += start.times * found.times;
            left = left.get(taken as usize..).unwrap_or_default();
        }
        rows.push((row[0].result_at, own));
    }
    (steps < most).then_some((steps, rows))
}

/// Counts the moves from the first on that go from one unit to neighbours, at most `most`.
fn run(moves: &[&Move], most: i64) -> i64 {
    let follows = |one: &&Move, other: &&Move| one.source == other.source && one.result + 1 == other.result;
    moves.chunk_by(follows).next().map_or(0, |run| (run.len() as i64).min(most))
}

/// Counts how often, from the first move on, neighbouring long words go to neighbours, at most `most` times.
fn pairs(moves: &[&Move], wide: i64, most: i64) -> i64 {
    let mut found = 0;
    let Some(first) = moves.first() else { return 0 };
    for pair in moves.chunks_exact(wide as usize) {
        let unit = first.result + found * wide;
        let Some(start) = pair.first().map(|m| m.source_at) else { break };
        let wanted =
            |(more, m): (i64, &&Move)| (m.source, m.result, m.source_at) == (first.source, unit + more, start + more);
        if found == most || unit % wide != 0 || start % wide != 0 || !(0..).zip(pair).all(wanted) {
            break;
        }
        found += 1;
    }
    found
}

//! One pass: which way its moves take, its code, and its steps.

use crate::code::{Count, Line, Lines, Place, Sink, TooSmall};
use crate::fills::FillRow;
use crate::layout::{Change, Level, Machine};
use crate::moves::{Chosen, Digits, Move, Moves};
use crate::rows::{Rows, Take};
use crate::straight::Sent;
use crate::turns::Turns;
use crate::{casts, crossing, fills, straight, through, turns, words};
use rustc_hash::FxHashMap;
use std::cell::RefCell;

/// The way of moves over a level.
enum Way {
    Words,
    Alu,
    /// Turns between MABs, and whether the ALU copies beside them.
    Turns(Vec<Turns>, bool),
    Casts(Vec<Take>),
    Fills(Vec<FillRow>),
    Straight(Vec<Sent>),
    Through,
    Crossing,
}

impl Way {
    /// The way of the fewest steps, and its steps.
    fn cheapest(found: &Rows, level: Level, place: &Place, machine: &Machine) -> (Way, i64) {
        let counted = |way: Way| {
            let mut count = Count::new(level, machine);
            // A walk that counts finds room for all.
            let _ = way.code(found, level, place, machine, &mut count);
            (way, count.steps())
        };
        match level {
            Level::W => counted(Way::Words),
            Level::Pe => counted(Way::Alu),
            Level::Mab => mabs(found, place, machine, counted),
            _ if found.stays() && !place.around => counted(Way::Alu),
            Level::L1b => match straight::sent(found, machine).map(|sent| counted(Way::Straight(sent))) {
                Some(straight) if straight.1 <= through::least(found, machine) => straight,
                Some(straight) => fewer(straight, counted(Way::Through)),
                None => counted(Way::Through),
            },
            _ => counted(Way::Crossing),
        }
    }

    fn code<S: Sink>(
        &self,
        found: &Rows,
        level: Level,
        place: &Place,
        machine: &Machine,
        code: &mut S,
    ) -> Result<(), TooSmall> {
        match self {
            Way::Words => words::words(found, machine, code),
            Way::Alu => turns::by_alu(found, level, place.apart, machine, code),
            Way::Turns(turns, copies) => turns::through_l1bm(turns, *copies, machine, code),
            Way::Casts(takes) => casts::casts(found, takes, place, machine, code),
            Way::Fills(rows) => fills::fills(rows, found, machine, code),
            Way::Straight(sent) => straight::straight(sent, found, machine, code),
            Way::Through => return through::through(found, machine, code),
            Way::Crossing => return crossing::crossing(found, place, machine, code),
        }
        Ok(())
    }
}

/// The way of fewer steps; of equals the first.
fn fewer(one: (Way, i64), other: (Way, i64)) -> (Way, i64) {
    if other.1 < one.1 {
        other
    } else {
        one
    }
}

/// The way between MABs of the fewest steps, and its steps.
fn mabs(found: &Rows, place: &Place, machine: &Machine, counted: impl Fn(Way) -> (Way, i64)) -> (Way, i64) {
    let (ways, count) = (turns::ways(found, Level::Mab, machine), machine.count(Level::Mab));
    let mut best = counted(Way::Turns(turns::shared(found, &ways, count), place.apart));
    // Only here all words are read before one of them is written.
    if !place.apart && found.overwrites() {
        return best;
    }
    if best.1 >= turns::least(found, &ways, machine) {
        best = fewer(counted(Way::Turns(turns::apart(found, ways, count), false)), best);
    }
    let takes = found.takes(|m| m.source);
    if best.1 > casts::least(found, &takes, machine) {
        best = fewer(best, counted(Way::Casts(takes)));
    }
    match fills::rows(found, best.1, place, machine) {
        Some(rows) => counted(Way::Fills(rows)),
        None => best,
    }
}

/// The lines of moves. Parts cross between L2Bs together where there is room: those behind the first need not wait again.
pub(crate) fn lines(parts: &[Chosen], level: Level, place: &Place, machine: &Machine) -> Result<Vec<Line>, TooSmall> {
    let mut lines = Lines::new(parts.iter().map(|part| part.around).collect(), machine);
    let found: Vec<(Rows, &Chosen)> = parts.iter().map(|part| (Rows::new(&part.moves), part)).collect();
    if level == Level::L2b && crossing::fit(&found, machine) {
        crossing::at_once(&found, place.dram, machine, &mut lines);
        return Ok(lines.lines);
    }
    for (number, (found, part)) in found.iter().enumerate() {
        lines.part = number;
        let place = Place { around: part.around, l1b: part.l1b, ..*place };
        let (way, _) = Way::cheapest(found, level, &place, machine);
        way.code(found, level, &place, machine, &mut lines)?;
    }
    Ok(lines.lines)
}

/// The steps of moves, without hazards around them.
pub(crate) fn move_steps(found: &Moves, level: Level, machine: &Machine) -> i64 {
    Way::cheapest(&Rows::new(found), level, &Place::SWITCH, machine).1
}

/// The steps of a pass with hazards around it. None if one pass cannot make the change.
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
    static COUNTED: RefCell<FxHashMap<(Machine, Level, Digits), i64>> = RefCell::default();
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

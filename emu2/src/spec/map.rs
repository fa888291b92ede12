//! Index maps: the `loop`, `from` and `to` of a transfer, parsed. Evaluates them, and checks that no map leaves its
//! memory, writes a place twice or leaves a hole.

use super::expr::{Bound, Expr, ExprError};
use super::model::{Counts, Form, LevelName, Throughput, Widen};
use crate::error::{Code, Error};
use std::collections::{BTreeMap, HashMap, HashSet};

/// One end of one moved long word. Coordinates that the map does not name are 0 here and stand for the unit that runs
/// the map. `addr` is the offset from the written address in long words.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[allow(missing_docs)] // the levels' names
pub struct Place {
    pub group: u32,
    pub l2b: u32,
    pub l1b: u32,
    pub mab: u32,
    pub pe: u32,
    pub cycle: u32,
    /// The number of the long word in a PE operand of two long words. For a narrowed result, the number of the word in
    /// its long word.
    pub half: u32,
    pub addr: u64,
}

/// The coordinates that a map may name, in the order of [`Place`].
pub const COORDINATES: [&str; 8] = ["group", "l2b", "l1b", "mab", "pe", "cycle", "half", "addr"];

/// Long words of the widest PE operand. `half` counts them.
pub const HALVES: u32 = 2;

/// One moved long word: source and destination.
pub type Move = (Place, Place);

/// A destination of a reduction and the elements that are reduced into it, in the order of the tree. `None` is the
/// neutral element.
pub type Meeting = (Place, Vec<Option<Place>>);

impl Place {
    /// The unit that the place lies in: the place with offset 0.
    pub fn unit(&self) -> Place {
        Place { addr: 0, ..*self }
    }
}

/// One end of a form, resolved.
#[derive(Clone, Debug)]
pub enum End {
    /// The PEs. Their operands are those of PE instructions.
    Pe,
    /// A memory above the PE.
    Memory {
        /// Index of the operand class.
        operand: usize,
        /// The number of 32-bit words of the width prefix that selects this form.
        width: Option<u32>,
        /// Levels that `@` selects.
        selectors: Vec<LevelName>,
        /// The levels of `selectors` that may be left out.
        assumed: Vec<LevelName>,
        /// The written address must be a multiple of this, in long words.
        align: u64,
        /// The end is not written as an operand.
        implied: bool,
    },
}

/// A transfer form with its expressions parsed and its counts evaluated.
#[derive(Clone, Debug)]
pub struct ResolvedForm {
    /// Name.
    pub name: String,
    /// Where the words come from.
    pub source: End,
    /// Where they go.
    pub destination: End,
    /// For an MV: long words of a block.
    pub unit: Option<u64>,
    /// For an MV: published rates.
    pub throughput: Option<Throughput>,
    /// For a reduction: the inputs of each stage, beginning with the stage at the elements. Empty for copies.
    pub tree: Vec<usize>,
    /// For a reduction: whether halves are widened to singles on their way in.
    pub widen: Option<Widen>,
    /// For a reduction: the last stage rounds to the next lower format.
    pub narrow: bool,
    loops: Vec<(String, u32)>,
    filter: Option<Expr>,
    from: Coordinates,
    to: Coordinates,
}

/// The named coordinates: index in [`COORDINATES`], and expression.
type Coordinates = Vec<(usize, Expr)>;

/// The named coordinates: index in [`COORDINATES`], and expression of counters.
type BoundCoordinates = Vec<(usize, Bound)>;

/// A map moves at most this many words in one evaluation. Maps of real machines move fewer.
const MAX_WORDS: u64 = 1 << 20;

impl ResolvedForm {
    /// Parses `form`. `counts` are the counts and ports of the machine by name.
    pub(super) fn resolve(
        form: &Form,
        source: End,
        destination: End,
        counts: &HashMap<String, i64>,
        place: &str,
    ) -> Result<Self, Error> {
        let fail = |e: ExprError| Error::new(Code::SpecExpression, format!("{place}: {e}"));
        let known = |n: &str| counts.get(n).copied();
        let count = |text: &str| Expr::parse(text).and_then(|e| e.eval(&known)).map_err(fail);
        let expression = |text: &str| Expr::parse(text).map(|e| e.with(&known)).map_err(fail);
        let mut loops = Vec::new();
        let mut total = 1u64;
        for (name, extent) in &form.r#loop {
            let extent = count(extent)?;
            if counts.contains_key(name) {
                return Err(Error::new(Code::SpecDuplicate, format!("{place}: the counter `{name}` is a count too")));
            }
            total = total.saturating_mul(extent.max(0) as u64);
            if extent < 1 || total > MAX_WORDS {
                return Err(Error::new(Code::SpecBadValue, format!("{place}: loop `{name}` has {extent} turns")));
            }
            loops.push((name.clone(), extent as u32));
        }
        let coordinates = |side: &indexmap::IndexMap<String, String>| -> Result<Coordinates, Error> {
            let mut out = Vec::new();
            for (name, text) in side {
                let Some(index) = COORDINATES.iter().position(|c| c == name) else {
                    let message = format!("{place}: `{name}` is no coordinate; they are {}", COORDINATES.join(", "));
                    return Err(Error::new(Code::SpecUnknownKey, message));
                };
                out.push((index, expression(text)?));
            }
            Ok(out)
        };
        let unit = form.unit.as_deref().map(count).transpose()?;
        if unit.is_some_and(|u| u < 1) {
            return Err(Error::new(Code::SpecBadValue, format!("{place}: `unit` is below 1")));
        }
        Ok(ResolvedForm {
            name: form.name.clone(),
            source,
            destination,
            unit: unit.map(|u| u as u64),
            throughput: form.throughput.clone(),
            tree: form.tree.iter().map(|t| count(t).map(|n| n.max(0) as usize)).collect::<Result<_, _>>()?,
            widen: form.widen,
            narrow: form.narrow,
            loops,
            filter: form.r#where.as_deref().map(expression).transpose()?,
            from: coordinates(&form.from)?,
            to: coordinates(&form.to)?,
        })
    }

    /// Returns every moved long word in loop order, with `parameters` by name. The maps of MVs take the block number as
    /// `i`.
    ///
    /// # Errors
    /// [`ExprError`] if an expression has no value, or a coordinate or offset is out of range.
    pub fn evaluate(&self, parameters: &[(&str, i64)]) -> Result<Vec<Move>, ExprError> {
        let (filter, from, to) = self.bound(parameters)?;
        let mut moves = Vec::new();
        self.each(&mut |counters| {
            if passes(filter.as_ref(), counters)? {
                moves.push((place(&from, counters)?, place(&to, counters)?));
            }
            Ok(())
        })?;
        Ok(moves)
    }

    /// Returns the destinations of a reduction, each with its elements in loop order. An absent element is `None`.
    ///
    /// # Errors
    /// As [`ResolvedForm::evaluate`].
    pub fn meetings(&self, parameters: &[(&str, i64)]) -> Result<Vec<Meeting>, ExprError> {
        let (filter, from, to) = self.bound(parameters)?;
        let mut all: BTreeMap<Place, Vec<Option<Place>>> = BTreeMap::new();
        self.each(&mut |counters| {
            let present = passes(filter.as_ref(), counters)?;
            let element = if present { Some(place(&from, counters)?) } else { None };
            all.entry(place(&to, counters)?).or_default().push(element);
            Ok(())
        })?;
        Ok(all.into_iter().collect())
    }

    /// Returns the filter and the coordinates of both sides with `parameters` in the place of their names.
    fn bound(
        &self,
        parameters: &[(&str, i64)],
    ) -> Result<(Option<Bound>, BoundCoordinates, BoundCoordinates), ExprError> {
        let counter = |n: &str| self.loops.iter().position(|(l, _)| l == n);
        let value = |n: &str| parameters.iter().find(|(p, _)| *p == n).map(|(_, v)| *v);
        let bind = |e: &Expr| e.bind(&counter, &value);
        let side = |coordinates: &Coordinates| {
            coordinates.iter().map(|(at, e)| bind(e).map(|b| (*at, b))).collect::<Result<BoundCoordinates, _>>()
        };
        Ok((self.filter.as_ref().map(bind).transpose()?, side(&self.from)?, side(&self.to)?))
    }

    /// Calls `visit` for every combination of the counters.
    fn each(&self, visit: &mut dyn FnMut(&[u32]) -> Result<(), ExprError>) -> Result<(), ExprError> {
        let total: u64 = self.loops.iter().map(|(_, n)| u64::from(*n)).product();
        let mut counters = vec![0u32; self.loops.len()];
        for _ in 0..total {
            visit(&counters)?;
            for at in (0..counters.len()).rev() {
                counters[at] += 1;
                if counters[at] < self.loops[at].1 {
                    break;
                }
                counters[at] = 0;
            }
        }
        Ok(())
    }

    /// Checks the map with one set of parameters: units and words are in range, no destination is written twice, and
    /// there is no hole. `sizes` are the long words of the source memory and of the destination memory.
    pub(super) fn check(
        &self,
        parameters: &[(&str, i64)],
        counts: &Counts,
        sizes: (u64, u64),
        place: &str,
    ) -> Result<(), Error> {
        let with = if parameters.is_empty() { String::new() } else { format!(" with {parameters:?}") };
        let moves =
            self.evaluate(parameters).map_err(|e| Error::new(Code::SpecExpression, format!("{place}{with}: {e}")))?;
        for (from, to) in &moves {
            for (at, size) in [(from, sizes.0), (to, sizes.1)] {
                if !in_range(at, counts, size) {
                    return Err(Error::new(Code::SpecMapRange, format!("{place}{with}: {at:?} does not exist")));
                }
            }
        }
        let mut places: Vec<Place> = moves.iter().map(|(_, to)| *to).collect();
        places.sort_unstable();
        if !self.tree.is_empty() {
            let elements: usize = self.tree.iter().product();
            let meetings = self
                .meetings(parameters)
                .map_err(|e| Error::new(Code::SpecExpression, format!("{place}{with}: {e}")))?;
            let full = |m: &Meeting| m.1.len() == elements && m.1.iter().any(Option::is_some);
            if elements == 0 || !meetings.iter().all(full) {
                return Err(Error::new(
                    Code::SpecMapOverlap,
                    format!("{place}{with}: not {elements} elements for each word"),
                ));
            }
            places.dedup();
        }
        if let Some(pair) = places.windows(2).find(|w| w[0] == w[1]) {
            return Err(Error::new(Code::SpecMapOverlap, format!("{place}{with}: {:?} is written twice", pair[0])));
        }
        match hole(&places, matches!(self.destination, End::Pe), counts) {
            Some(hole) => Err(Error::new(Code::SpecMapGap, format!("{place}{with}: {hole}"))),
            None => Ok(()),
        }
    }

    /// For one block: how many long words the busiest memory of the source reads, and how many the busiest memory of
    /// the destination writes.
    ///
    /// # Errors
    /// As [`ResolvedForm::evaluate`].
    pub fn loads(&self, parameters: &[(String, i64)]) -> Result<[u64; 2], ExprError> {
        let named: Vec<(&str, i64)> = parameters.iter().map(|(n, v)| (n.as_str(), *v)).collect();
        let moves = self.evaluate(&named)?;
        let busiest = |side: fn(&Move) -> Place| {
            let mut units: HashMap<Place, u64> = HashMap::new();
            for place in moves.iter().map(side).collect::<HashSet<_>>() {
                *units.entry(place.unit()).or_default() += 1;
            }
            units.into_values().max().unwrap_or(0)
        };
        Ok([busiest(|m| m.0), busiest(|m| m.1)])
    }

    /// By how many long words the offsets of source and destination grow from one block of an MV to the next.
    ///
    /// # Errors
    /// As [`ResolvedForm::evaluate`], and [`ExprError`] if the blocks do not lie at equal distances.
    pub fn block_strides(&self, parameters: &[(&str, i64)]) -> Result<(u64, u64), ExprError> {
        let block = |i: i64| {
            let mut all = parameters.to_vec();
            all.push(("i", i));
            self.evaluate(&all)
        };
        let (first, second, third) = (block(0)?, block(1)?, block(2)?);
        let moved = |x: &Place, y: &Place| {
            let same_unit = Place { addr: 0, ..*x } == Place { addr: 0, ..*y };
            y.addr.checked_sub(x.addr).filter(|_| same_unit)
        };
        let step = |a: &Move, b: &Move| Some((moved(&a.0, &b.0)?, moved(&a.1, &b.1)?));
        let uneven = || ExprError("blocks of an MV must lie at equal distances".into());
        let stride = step(&first[0], &second[0]).ok_or_else(uneven)?;
        let even = |a: &[Move], b: &[Move]| a.iter().zip(b).all(|(x, y)| step(x, y) == Some(stride));
        if even(&first, &second) && even(&second, &third) {
            Ok(stride)
        } else {
            Err(uneven())
        }
    }
}

fn passes(filter: Option<&Bound>, counters: &[u32]) -> Result<bool, ExprError> {
    filter.map_or(Ok(true), |f| f.eval(counters).map(|v| v != 0))
}

fn place(coordinates: &BoundCoordinates, counters: &[u32]) -> Result<Place, ExprError> {
    let mut values = [0i64; COORDINATES.len()];
    for (index, expr) in coordinates {
        values[*index] = expr.eval(counters)?;
    }
    let low = |v: i64| u32::try_from(v).map_err(|_| ExprError(format!("a coordinate is {v}")));
    let [group, l2b, l1b, mab, pe, cycle, half, addr] = values;
    Ok(Place {
        group: low(group)?,
        l2b: low(l2b)?,
        l1b: low(l1b)?,
        mab: low(mab)?,
        pe: low(pe)?,
        cycle: low(cycle)?,
        half: low(half)?,
        addr: u64::try_from(addr).map_err(|_| ExprError(format!("an offset is {addr}")))?,
    })
}

fn in_range(at: &Place, counts: &Counts, size: u64) -> bool {
    at.group < counts.group
        && at.l2b < counts.l2b
        && at.l1b < counts.l1b
        && at.mab < counts.mab
        && at.pe < counts.pe
        && at.cycle < counts.cycle
        && at.half < HALVES
        && at.addr < size
}

/// Describes the first hole of sorted destinations. A PE side must cover every PE in every cycle. A memory must be
/// covered from offset 0 without gaps.
fn hole(places: &[Place], pe: bool, counts: &Counts) -> Option<String> {
    if pe {
        let halves = places.iter().map(|p| p.half + 1).max().unwrap_or(0);
        let wanted = u64::from(counts.mab * counts.pe) * u64::from(counts.cycle * halves);
        return (places.len() as u64 != wanted).then(|| format!("{} of {wanted} PE words are written", places.len()));
    }
    let unit = |p: &Place| Place { addr: 0, ..*p };
    let mut expected = 0;
    for (at, place) in places.iter().enumerate() {
        if at > 0 && unit(place) != unit(&places[at - 1]) {
            expected = 0;
        }
        if place.addr != expected {
            return Some(format!("offset {expected} is not written before {place:?}"));
        }
        expected += 1;
    }
    None
}

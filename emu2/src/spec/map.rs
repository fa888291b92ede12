//! Index maps: the `loop`, `from` and `to` of a transfer, parsed. Evaluates them, and checks that no map leaves its
//! memory, writes a place twice or leaves a hole.

use super::expr::{Expr, ExprError};
use super::model::{Counts, Form, LevelName, Throughput, Widen};
use super::place::{Meeting, Move, Place, Places, COORDINATES, HALVES};
use super::reader::Reader;
use crate::error::{Code, Error};
use std::collections::{BTreeMap, HashMap, HashSet};

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
        let reader = self.reader(parameters)?;
        let mut moves = Vec::new();
        reader.each(&mut |counters| {
            moves.extend(reader.moved(counters)?);
            Ok(())
        })?;
        Ok(moves)
    }

    /// Returns the destinations of a reduction, each with its elements in loop order. An absent element is `None`.
    ///
    /// # Errors
    /// As [`ResolvedForm::evaluate`].
    pub fn meetings(&self, parameters: &[(&str, i64)]) -> Result<Vec<Meeting>, ExprError> {
        let reader = self.reader(parameters)?;
        let mut all: BTreeMap<Place, Vec<Option<Place>>> = BTreeMap::new();
        reader.each(&mut |counters| {
            let element = if reader.passes(counters)? { Some(reader.from(counters)?) } else { None };
            all.entry(reader.to(counters)?).or_default().push(element);
            Ok(())
        })?;
        Ok(all.into_iter().collect())
    }

    fn reader(&self, parameters: &[(&str, i64)]) -> Result<Reader<'_>, ExprError> {
        Reader::new(&self.loops, self.filter.as_ref(), &self.from, &self.to, parameters)
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
        let fail = |e: ExprError| Error::new(Code::SpecExpression, format!("{place}{with}: {e}"));
        let overlap = |what: String| Error::new(Code::SpecMapOverlap, format!("{place}{with}: {what}"));
        let (sources, destinations) = (Places::new(counts, sizes.0), Places::new(counts, sizes.1));
        let reader = self.reader(parameters).map_err(fail)?;
        // The destinations of all elements of a reduction, with 1 for those that are absent; else of the words that move.
        let (mut written, mut outside) = (Vec::new(), None);
        reader
            .each(&mut |counters| {
                let present = reader.passes(counters)?;
                if !present && self.tree.is_empty() {
                    return Ok(());
                }
                let from = if present { Some(reader.from(counters)?) } else { None };
                let to = reader.to(counters)?;
                outside = outside.or(from.filter(|from| sources.number(from).is_none()));
                match destinations.number(&to) {
                    Some(number) => written.push((number, !present)),
                    None => outside = outside.or(Some(to)),
                }
                Ok(())
            })
            .map_err(fail)?;
        if let Some(at) = outside {
            return Err(Error::new(Code::SpecMapRange, format!("{place}{with}: {at:?} does not exist")));
        }
        sorting::sort(&mut written);
        if !self.tree.is_empty() {
            let elements: usize = self.tree.iter().product();
            // Elements that are there stand before absent ones.
            let full = |group: &[(u128, bool)]| group.len() == elements && !group[0].1;
            if elements == 0 || !written.chunk_by(|a, b| a.0 == b.0).all(full) {
                return Err(overlap(format!("not {elements} elements for each word")));
            }
            written.dedup_by_key(|one| one.0);
        }
        if let Some(pair) = written.windows(2).find(|w| w[0].0 == w[1].0) {
            return Err(overlap(format!("{:?} is written twice", destinations.place(pair[0].0))));
        }
        match hole(&written, &destinations, matches!(self.destination, End::Pe), counts) {
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
            self.reader(&all)
        };
        let (first, second, third) = (block(0)?, block(1)?, block(2)?);
        let moved = |x: &Place, y: &Place| {
            let same_unit = Place { addr: 0, ..*x } == Place { addr: 0, ..*y };
            y.addr.checked_sub(x.addr).filter(|_| same_unit)
        };
        let step = |a: &Move, b: &Move| Some((moved(&a.0, &b.0)?, moved(&a.1, &b.1)?));
        let uneven = || ExprError("blocks of an MV must lie at equal distances".into());
        let mut stride = None;
        first.each(&mut |counters| {
            let (x, y, z) = (first.moved(counters)?, second.moved(counters)?, third.moved(counters)?);
            let (Some(x), Some(y), Some(z)) = (x, y, z) else {
                return if x.is_none() && y.is_none() && z.is_none() { Ok(()) } else { Err(uneven()) };
            };
            let found = step(&x, &y).filter(|found| step(&y, &z) == Some(*found)).ok_or_else(uneven)?;
            if *stride.get_or_insert(found) == found {
                Ok(())
            } else {
                Err(uneven())
            }
        })?;
        stride.ok_or_else(uneven)
    }
}

/// Describes the first hole of sorted destinations. A PE side must cover every PE in every cycle. A memory must be
/// covered from offset 0 without gaps.
fn hole(written: &[(u128, bool)], places: &Places, pe: bool, counts: &Counts) -> Option<String> {
    if pe {
        let halves = if written.iter().any(|one| places.place(one.0).half > 0) { HALVES } else { 1 };
        let wanted = u64::from(counts.mab * counts.pe) * u64::from(counts.cycle * halves);
        return (written.len() as u64 != wanted).then(|| format!("{} of {wanted} PE words are written", written.len()));
    }
    let (mut unit, mut expected) = (None, 0);
    for (number, _) in written {
        let (own, offset) = places.split(*number);
        if unit.replace(own) != Some(own) {
            expected = 0;
        }
        if offset != expected {
            let place = places.place(*number);
            return Some(format!("offset {expected} is not written before {place:?}"));
        }
        expected += 1;
    }
    None
}

//! Differences between two runs: the first statement after which their states differ.

use super::session::Session;
use crate::asm::{Item, ItemKind};
use crate::error::{Code, Error};
use crate::exec::RunError;
use crate::machine::Difference;

/// Where two runs part.
#[derive(Clone, Debug, PartialEq)]
pub struct Parting {
    /// Positions in both runs: behind the statements after which the states differ.
    pub positions: (usize, usize),
    /// Lines of these statements. 0 if the runs begin with different memories.
    pub lines: (u32, u32),
    /// The first words that differ.
    pub words: Vec<Difference>,
    /// How many words differ in all.
    pub count: usize,
}

impl Session {
    /// Checks that the run has a position.
    ///
    /// # Errors
    /// [`Code::NoStatement`] if the program ends before it.
    pub fn check(&self, position: usize) -> Result<(), Error> {
        match self.len() {
            last if position <= last => Ok(()),
            last => {
                Err(Error::new(Code::NoStatement, format!("the program ends at position {last}, before {position}")))
            }
        }
    }

    /// Calls `visit` with each word that differs between two positions, and comes back here.
    ///
    /// # Errors
    /// The error of a statement on the way.
    pub fn differences(
        &mut self,
        positions: (usize, usize),
        visit: &mut dyn FnMut(Difference),
    ) -> Result<(), RunError> {
        let here = self.position;
        self.go(positions.0)?;
        let first = self.image();
        self.go(positions.1)?;
        let second = self.image();
        first.each_difference(&second, self.blocks(), visit);
        self.go(here)
    }
}

/// Whether two statements do the same to the same state.
fn alike(one: &Item, other: &Item) -> bool {
    match (&one.kind, &other.kind) {
        (ItemKind::Step(one), ItemKind::Step(other)) => {
            let instructions = one.pe.len() == other.pe.len() && one.l2bm.len() == other.l2bm.len();
            let pe = one.pe.iter().zip(&other.pe).all(|(a, b)| {
                let sources = a.sources.len() == b.sources.len()
                    && a.sources
                        .iter()
                        .zip(&b.sources)
                        .all(|(a, b)| (&a.kind, a.negate, a.convert) == (&b.kind, b.negate, b.convert));
                let destinations = a.destinations.len() == b.destinations.len()
                    && a.destinations
                        .iter()
                        .zip(&b.destinations)
                        .all(|(a, b)| (&a.target, &a.mask) == (&b.target, &b.mask));
                sources && destinations && a.kind == b.kind && a.zero_flush == b.zero_flush
            });
            let l2bm = one.l2bm.iter().zip(&other.l2bm).all(|(a, b)| {
                (a.form, a.source, a.destination, a.source_unit) == (b.form, b.source, b.destination, b.source_unit)
            });
            instructions && pe && l2bm && one.forward == other.forward
        }
        (ItemKind::Mv(one), ItemKind::Mv(other)) => one == other,
        (ItemKind::Set(one), ItemKind::Set(other)) => one == other,
        (ItemKind::Host(one), ItemKind::Host(other)) => one == other,
        (ItemKind::Get(_), ItemKind::Get(_)) => true,
        _ => false,
    }
}

/// Whether the statement changes no state.
fn idle(item: &Item) -> bool {
    matches!(item.kind, ItemKind::Nop { .. } | ItemKind::Get(_))
}

/// Runs both sessions from their start and finds the first statement after which their states differ. Statements that change no
/// state are passed over, so the programs may have different `nop`s. Both sessions then stand where they part, or at
/// their ends. At most `most` words are listed.
///
/// # Errors
/// [`Code::WrongSpec`] for machines of different specs, and errors of the runs.
pub fn first_parting(one: &mut Session, other: &mut Session, most: usize) -> Result<Option<Parting>, RunError> {
    let at = |line, error: Error| RunError { line, diagnostic: *error.0 };
    if one.spec().digest != other.spec().digest {
        return Err(at(0, Error::new(Code::WrongSpec, "the two runs are of machines of different specs")));
    }
    one.go(0)?;
    other.go(0)?;
    if let Some(found) = parting(one, other, (0, 0), most) {
        return Ok(Some(found));
    }
    // The states are equal where both sessions stand. Statements that do the same keep them equal.
    let (mut here, mut there) = (0, 0);
    loop {
        let (first, second) = (one.next_where(here, &|item| !idle(item)), other.next_where(there, &|item| !idle(item)));
        let (ours, theirs) = (first.as_ref().map(|(_, item)| item), second.as_ref().map(|(_, item)| item));
        if ours.is_none() && theirs.is_none() {
            return Ok(None);
        }
        let same = matches!((ours, theirs), (Some(ours), Some(theirs)) if alike(ours, theirs));
        let lines = (ours.map_or(0, |item| item.line), theirs.map_or(0, |item| item.line));
        here = first.map_or(one.len(), |(at, _)| at + 1);
        there = second.map_or(other.len(), |(at, _)| at + 1);
        if same {
            continue;
        }
        one.go(here)?;
        other.go(there)?;
        if let Some(found) = parting(one, other, lines, most) {
            return Ok(Some(found));
        }
    }
}

fn parting(one: &mut Session, other: &mut Session, lines: (u32, u32), most: usize) -> Option<Parting> {
    let (mut words, mut count) = (Vec::new(), 0);
    let (ours, theirs) = (one.image(), other.image());
    ours.each_difference(&theirs, one.blocks(), &mut |difference| {
        count += 1;
        if words.len() < most {
            words.push(difference);
        }
    });
    (count > 0).then(|| Parting { positions: (one.position(), other.position()), lines, words, count })
}

//! The traffic of a transfer form with its selectors: the long words by memory, and the memories that an MV keeps busy.

use crate::asm::{FormRef, Mv, Selected};
use crate::exec::mv_selectors;
use crate::spec::{selector_name, End, LevelName, Place, Spec};
use serde::Serialize;
use std::collections::{BTreeSet, HashMap, HashSet};
use std::rc::Rc;

/// Long words read from and written to one memory by transfers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct MemoryWords {
    /// Long words read.
    pub read: u64,
    /// Long words written.
    pub written: u64,
}

/// One instance of a memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) struct Port {
    pub(super) memory: usize,
    unit: Place,
}

impl Port {
    /// A number that orders ports, from 1.
    pub(super) fn number(&self, spec: &Spec) -> usize {
        let unit = u64::from(self.unit.group * spec.counts.l2b + self.unit.l2b);
        self.memory * spec.units(LevelName::L2b) as usize + unit as usize + 1
    }

    /// The memory and its unit, in the spelling of `@` selectors: `dram0`, `l2bm3.1`.
    pub(super) fn name(&self, spec: &Spec) -> String {
        let memory = &spec.memories[self.memory];
        let Place { group, l2b, .. } = self.unit;
        match memory.level {
            LevelName::Group => format!("{}{group}", memory.name),
            _ => format!("{}{group}.{l2b}", memory.name),
        }
    }
}

/// Facts about one form with its selectors.
#[derive(Debug, Default)]
pub(super) struct Traffic {
    /// Long words by memory, for one block.
    pub(super) words: Vec<(usize, MemoryWords)>,
    /// The memories that the transfer reads and writes.
    pub(super) ports: BTreeSet<Port>,
    /// For each side: the long words of a block that pass the busiest memory, and the rate of the side.
    sides: Vec<(u64, u64)>,
}

/// The rate at which an MV of one form holds its memories, as a fraction in lowest terms: so many long words of its size
/// in so many cycles. `parameters` are the numbers of its selectors. None if the form is not that of an MV.
pub fn mv_rate(spec: &Spec, form: FormRef, parameters: Vec<(String, i64)>) -> Option<(u64, u64)> {
    let unit = spec.forms[form.transfer][form.form].unit?;
    let sides = traffic(spec, form, parameters).sides;
    let (load, rate) = sides.into_iter().max_by(|a, b| (a.0 * b.1).cmp(&(b.0 * a.1)))?;
    let (words, cycles) = (unit * rate, load);
    let common = gcd(words, cycles);
    (common > 0).then(|| (words / common, cycles / common))
}

fn gcd(a: u64, b: u64) -> u64 {
    if b == 0 {
        a
    } else {
        gcd(b, a % b)
    }
}

impl Traffic {
    /// Cycles for which `blocks` blocks of an MV hold its ports.
    pub(super) fn cycles(&self, blocks: u64) -> u64 {
        self.sides.iter().map(|(load, rate)| load.saturating_mul(blocks).div_ceil(*rate)).max().unwrap_or(0)
    }
}

/// Facts about forms, computed at first use.
pub(super) struct TrafficTable<'a> {
    spec: &'a Spec,
    known: HashMap<(FormRef, Selected, Selected), Rc<Traffic>>,
}

impl<'a> TrafficTable<'a> {
    pub(super) fn new(spec: &'a Spec) -> Self {
        TrafficTable { spec, known: HashMap::new() }
    }

    /// The facts of an L2BM or L1BM instruction, in one unit of its level.
    pub(super) fn transfer(&mut self, form: FormRef) -> Rc<Traffic> {
        let spec = self.spec;
        self.get((form, Selected::default(), Selected::default()), || {
            let mut named = spec.form_values(form.transfer, form.parameter);
            // An L2BM instruction moves the same amount whichever unit it selects.
            if let End::Memory { selectors, .. } = &spec.forms[form.transfer][form.form].source {
                named.extend(selectors.iter().map(|level| (selector_name("src", *level), 0)));
            }
            named
        })
    }

    /// The facts about one block of an MV.
    pub(super) fn mv(&mut self, mv: &Mv) -> Rc<Traffic> {
        let form = &self.spec.forms[mv.form.transfer][mv.form.form];
        self.get((mv.form, mv.source_unit, mv.destination_unit), || mv_selectors(form, mv))
    }

    fn get(
        &mut self,
        key: (FormRef, Selected, Selected),
        parameters: impl FnOnce() -> Vec<(String, i64)>,
    ) -> Rc<Traffic> {
        let spec = self.spec;
        self.known.entry(key).or_insert_with(|| Rc::new(traffic(spec, key.0, parameters()))).clone()
    }
}

fn traffic(spec: &Spec, form: FormRef, mut parameters: Vec<(String, i64)>) -> Traffic {
    let form = &spec.forms[form.transfer][form.form];
    parameters.push(("i".to_string(), 0));
    let named: Vec<(&str, i64)> = parameters.iter().map(|(n, v)| (n.as_str(), *v)).collect();
    // A map that cannot be evaluated was refused when the spec was loaded.
    let moves = form.evaluate(&named).unwrap_or_default();
    let loads = form.loads(&parameters).unwrap_or_default();
    let mut found = Traffic::default();
    let mut groups = HashSet::new();
    for (end, read) in [(&form.source, true), (&form.destination, false)] {
        let End::Memory { operand, .. } = end else { continue };
        let Some(memory) = spec.memory(&spec.operands[*operand].memory) else { continue };
        // The two words of a narrowed result share one long word.
        let whole = |p: Place| Place { half: 0, ..p };
        let places: HashSet<Place> = moves.iter().map(|m| whole(if read { m.0 } else { m.1 })).collect();
        let count = places.len() as u64;
        let words =
            if read { MemoryWords { read: count, written: 0 } } else { MemoryWords { read: 0, written: count } };
        found.words.push((memory, words));
        groups.extend(places.iter().map(|p| p.group));
        found.ports.extend(places.iter().map(|p| Port { memory, unit: p.unit() }));
    }
    let default = Some(spec.timing.mv_throughput);
    let rates = form.throughput.as_ref().map_or([default; 2], |t| t.sides(groups.len() > 1));
    found.sides =
        loads.into_iter().zip(rates).filter_map(|(load, rate)| Some((load, u64::from(rate?.max(1))))).collect();
    found
}

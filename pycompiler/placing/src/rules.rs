//! The rules of a machine that decide which instructions a line may hold, and how far apart instructions stand.

use std::collections::HashMap;
use std::sync::Mutex;

/// The number of a memory, an issue slot, an input, a precision or a port of MVs.
pub type Name = u16;

/// Steps or cycles that must lie between a writer and a reader of one memory.
pub struct Hazard {
    /// The memories of the rule.
    pub memories: Vec<Name>,
    /// Whether it holds for any addresses of the memory, or for the same words only.
    pub port: bool,
    /// The steps in between.
    pub steps: Option<i64>,
    /// The cycles in between.
    pub cycles: Option<i64>,
    /// The slots that write; empty stands for any.
    pub writers: Vec<Name>,
    /// The slots that read; empty stands for any.
    pub readers: Vec<Name>,
    /// The memory that the writer reads.
    pub source: Option<Name>,
}

impl Hazard {
    fn wrote(&self, slot: Name) -> bool {
        self.writers.is_empty() || self.writers.contains(&slot)
    }

    fn reads(&self, slot: Name) -> bool {
        self.readers.is_empty() || self.readers.contains(&slot)
    }
}

/// What an instruction must keep from the write of another one: the slot and the source of the writer.
pub(crate) type Writer = (Name, Option<Name>);

/// The rules of one machine.
pub struct Rules {
    /// The distances.
    pub hazards: Vec<Hazard>,
    /// Slots that share one unit, and how many of them a line may use.
    pub shares: Vec<(Vec<Name>, usize)>,
    /// Memories of which a line makes one access.
    pub banks: Vec<Name>,
    /// Memories above the PEs.
    pub above: Vec<Name>,
    /// Memories that MVs use.
    pub shared: Vec<Name>,
    /// Cycles of a step.
    pub cycles: i64,
    /// Long words of the blocks in which words above the PEs are compared if MVs touch them.
    pub unit: i64,
    /// The same where lines touch them.
    pub granule: i64,
    /// Groups, and L2Bs of each.
    pub l2bs: (i64, i64),
    pub(crate) kinds: Mutex<HashMap<crate::op::Kind, usize>>,
    /// A read this many steps after a write breaks no rule.
    pub(crate) reach: i64,
    /// For every port rule and each of its memories, which is in order: the memory and the rule.
    pub(crate) ports: Vec<(Name, usize)>,
    /// Memories in which all reads and writes of a line must touch the same words.
    pub(crate) single: Vec<Name>,
}

impl Rules {
    /// Returns the rules; `ports` and the other numbers follow from the hazards.
    pub fn new(hazards: Vec<Hazard>, cycles: i64) -> Self {
        let most = |rule: &Hazard| 1 + rule.steps.max(rule.cycles).unwrap_or(0);
        let reach = hazards.iter().map(most).max().unwrap_or(1);
        let of_ports = || hazards.iter().enumerate().filter(|(_, rule)| rule.port);
        let ports = of_ports().flat_map(|(at, rule)| rule.memories.iter().map(move |&memory| (memory, at))).collect();
        let single = of_ports().flat_map(|(_, rule)| rule.memories.iter().copied()).collect();
        let (shares, banks, above, shared) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
        let kinds = Mutex::default();
        let (unit, granule, l2bs) = (1, 1, (1, 1));
        Self { hazards, shares, banks, above, shared, cycles, unit, granule, l2bs, kinds, reach, ports, single }
    }

    /// The rules about a writer and a reader of a memory.
    pub(crate) fn applying(
        &self,
        memory: Name,
        (writer, source): Writer,
        reader: Name,
    ) -> impl Iterator<Item = &Hazard> {
        self.hazards.iter().filter(move |rule| {
            let right = rule.source.is_none() || source.is_none() || rule.source == source;
            right && rule.memories.contains(&memory) && rule.wrote(writer) && rule.reads(reader)
        })
    }

    /// The distance that the rules demand: in steps, and in cycles if a rule has them.
    pub(crate) fn gap(&self, memory: Name, (writer, source): Writer, reader: Name) -> (i64, Option<i64>) {
        let (mut steps, mut cycles) = (1, None);
        for rule in self.applying(memory, (writer, source), reader) {
            steps = steps.max(1 + rule.steps.unwrap_or(0));
            cycles = cycles.max(rule.cycles);
        }
        (steps, cycles)
    }

    /// The port rules, by their place in `ports`, that an instruction can break by an access.
    pub(crate) fn concerned(&self, memory: Name, written: bool, (slot, source): Writer) -> Vec<usize> {
        let concerns = |rule: &Hazard| {
            if written {
                (rule.source.is_none() || rule.source == source) && rule.wrote(slot)
            } else {
                rule.reads(slot)
            }
        };
        let all = self.ports.iter().enumerate();
        all.filter(|(_, &(own, rule))| own == memory && concerns(&self.hazards[rule])).map(|(at, _)| at).collect()
    }

    /// The steps of a port rule.
    pub(crate) fn steps(&self, port: usize) -> i64 {
        self.hazards[self.ports[port].1].steps.unwrap_or(0)
    }

    /// The steps for which a write can keep others away.
    pub fn reach(&self) -> i64 {
        let most =
            |rule: &Hazard| rule.steps.unwrap_or_else(|| up(rule.cycles.unwrap_or(0) + self.cycles, self.cycles) - 1);
        self.hazards.iter().map(most).max().unwrap_or(0)
    }

    /// Steps from a line that writes to an MV that reads its words.
    pub(crate) fn before_moves(&self, mv: Name) -> i64 {
        1 + self
            .hazards
            .iter()
            .filter(|rule| rule.readers.contains(&mv))
            .filter_map(|rule| rule.steps)
            .max()
            .unwrap_or(0)
    }
}

/// Divides, and rounds up.
pub(crate) fn up(number: i64, by: i64) -> i64 {
    -(-number).div_euclid(by)
}

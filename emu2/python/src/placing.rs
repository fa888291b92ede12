//! The compiler's placing of instructions in steps.

use placing::{schedule, Access, Facts, Hazard, Name, Needs, Op, Operand, Rules, Timeline};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use std::collections::{BTreeSet, HashMap};
use std::sync::{Arc, Mutex, PoisonError};

/// A rule about the distance of a writer and a reader: `pycompiler.machine.Hazard`.
#[derive(FromPyObject)]
struct HazardFacts {
    memories: BTreeSet<String>,
    rule: String,
    steps: Option<i64>,
    cycles: Option<i64>,
    writers: BTreeSet<String>,
    readers: BTreeSet<String>,
    source: Option<String>,
}

/// The rules of a machine that decide where instructions may stand.
///
/// `shares` are slots that share a unit, with how many of them a line may use. A line makes one access of each of `banks`.
/// `above` are the memories above the PEs. Their words are compared in blocks of `granule` where lines touch them, and of
/// `unit` where MVs do. `l2bs` are the groups and the L2Bs of each.
#[pyclass(name = "PlacingRules", module = "emu2._core", frozen)]
pub(crate) struct PyRules {
    rules: Arc<Rules>,
    names: Names,
}

/// Gives each name a number.
#[derive(Default)]
struct Names(Mutex<HashMap<String, Name>>);

impl Names {
    fn of(&self, name: &str) -> Name {
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(&found) = known.get(name) {
            return found;
        }
        let next = Name::try_from(known.len()).unwrap_or(Name::MAX);
        known.insert(name.to_owned(), next);
        next
    }
}

#[pymethods]
impl PyRules {
    #[new]
    #[pyo3(signature = (hazards, shares, banks, above, *, cycles, unit, granule, l2bs))]
    #[allow(clippy::too_many_arguments)]
    fn new(
        hazards: Vec<Bound<'_, PyAny>>,
        shares: Vec<(Vec<String>, usize)>,
        banks: Vec<String>,
        above: Vec<String>,
        cycles: i64,
        unit: i64,
        granule: i64,
        l2bs: (i64, i64),
    ) -> PyResult<Self> {
        if [cycles, unit, granule, l2bs.0, l2bs.1].iter().any(|&number| number < 1) {
            return Err(PyValueError::new_err("the sizes of a machine are at least 1"));
        }
        let names = Names::default();
        let all = |given: Vec<String>| given.iter().map(|one| names.of(one)).collect::<Vec<_>>();
        let set = |given: BTreeSet<String>| given.iter().map(|one| names.of(one)).collect::<Vec<_>>();
        let hazards = hazards.into_iter().map(|rule| {
            let rule: HazardFacts = rule.extract()?;
            let (memories, writers, readers) = (set(rule.memories), set(rule.writers), set(rule.readers));
            let source = rule.source.as_deref().map(|name| names.of(name));
            Ok(Hazard {
                memories,
                port: rule.rule == "port",
                steps: rule.steps,
                cycles: rule.cycles,
                writers,
                readers,
                source,
            })
        });
        let hazards = hazards.collect::<PyResult<_>>()?;
        let shares = shares.into_iter().map(|(slots, limit)| (all(slots), limit)).collect();
        let (banks, above) = (all(banks), all(above));
        let mut rules = Rules::new(hazards, cycles);
        (rules.shares, rules.banks, rules.above) = (shares, banks, above);
        (rules.unit, rules.granule, rules.l2bs) = (unit, granule, l2bs);
        Ok(Self { rules: Arc::new(rules), names })
    }
}

impl PyRules {
    fn all(&self, names: Vec<String>) -> Vec<Name> {
        names.iter().map(|one| self.names.of(one)).collect()
    }

    fn one(&self, name: Option<String>) -> Option<Name> {
        name.map(|name| self.names.of(&name))
    }

    fn operands(&self, given: Vec<OperandFacts>) -> Vec<Operand> {
        let name = |memory: &str| self.names.of(memory);
        let made = given.into_iter().map(|operand| match operand {
            OperandFacts::Pe((memory, at, wide, form)) => Operand::Pe(name(&memory), at, wide, form),
            OperandFacts::Block((memory, start, words)) => Operand::Block(name(&memory), start, words),
            OperandFacts::Whole((memory,)) => Operand::Whole(name(&memory)),
        });
        made.collect()
    }

    fn accesses(&self, given: Vec<AccessFacts>) -> Vec<Access> {
        given.into_iter().map(|access| self.access(access)).collect()
    }

    fn access(&self, given: AccessFacts) -> Access {
        let range = (!given.anywhere).then_some((given.low, given.high));
        Access::new(&self.rules, self.names.of(&given.memory), range, given.unit, given.cycles)
    }
}

/// An operand: of a PE (memory, first long word of each cycle, number of long words, form), above the PEs (memory, first long
/// word, number of long words), or a memory without addresses.
#[derive(FromPyObject)]
enum OperandFacts {
    Pe((String, Vec<i64>, i64, Vec<i64>)),
    Block((String, i64, i64)),
    Whole((String,)),
}

/// An access: `pycompiler.emit.hazards.Access`.
#[derive(FromPyObject)]
struct AccessFacts {
    memory: String,
    unit: (Option<i64>, Option<i64>),
    low: i64,
    high: i64,
    cycles: Vec<i64>,
    anywhere: bool,
}

/// An instruction with its accesses and the other facts that decide where it fits; lists are names.
#[pyclass(name = "Op", module = "emu2._core", frozen)]
pub(crate) struct PyOp {
    op: Arc<Op>,
    /// The issue slot.
    #[pyo3(get)]
    slot: Py<PyAny>,
    /// The slots whose results it reads by forwarding.
    #[pyo3(get)]
    takes: Py<PyAny>,
}

#[pymethods]
impl PyOp {
    /// `reads` and `writes` are operands: tuples with the memory, and what else `OperandFacts` names.
    #[new]
    #[pyo3(signature = (rules, slot, reads, writes, *, takes, precision, inputs, excludes, flushes, source, anywhere))]
    #[allow(clippy::too_many_arguments)]
    fn new(
        rules: &PyRules,
        slot: Bound<'_, PyAny>,
        reads: Vec<OperandFacts>,
        writes: Vec<OperandFacts>,
        takes: Bound<'_, PyAny>,
        precision: Option<String>,
        inputs: Vec<String>,
        excludes: Vec<String>,
        flushes: bool,
        source: Option<String>,
        anywhere: (Vec<String>, Vec<String>),
    ) -> PyResult<Self> {
        let facts = Facts {
            slot: rules.names.of(slot.extract()?),
            precision: rules.one(precision),
            inputs: rules.all(inputs),
            excludes: rules.all(excludes),
            takes: rules.all(takes.extract()?),
            flushes,
            source: rules.one(source),
            anywhere: [rules.all(anywhere.0), rules.all(anywhere.1)],
        };
        let op = Op::new(&rules.rules, facts, rules.operands(reads), rules.operands(writes));
        Ok(Self { op: Arc::new(op), slot: slot.unbind(), takes: takes.unbind() })
    }

    /// Returns the instruction with its words in some memories above the PEs moved up by long words.
    fn moved(&self, py: Python<'_>, rules: &PyRules, by: Vec<(String, i64)>) -> Self {
        let by: Vec<_> = by.iter().map(|(memory, more)| (rules.names.of(memory), *more)).collect();
        let op = Arc::new(self.op.moved(&rules.rules, &by));
        Self { op, slot: self.slot.clone_ref(py), takes: self.takes.clone_ref(py) }
    }
}

/// What a line or an MV needs. `transfer` has the ports of an MV, the cycles for which it holds them, and those to its end.
#[pyclass(name = "Needs", module = "emu2._core", frozen)]
pub(crate) struct PyNeeds {
    needs: Needs,
    /// The instructions of a line.
    #[pyo3(get)]
    ops: Py<PyAny>,
}

#[pymethods]
impl PyNeeds {
    #[new]
    fn new(
        rules: &PyRules,
        ops: Bound<'_, PyAny>,
        reads: Vec<AccessFacts>,
        writes: Vec<AccessFacts>,
        transfer: Option<(Vec<String>, i64, i64)>,
    ) -> PyResult<Self> {
        let own: Vec<PyRef<'_, PyOp>> = ops.extract()?;
        let needs = Needs {
            ops: own.iter().map(|op| Arc::clone(&op.op)).collect(),
            reads: rules.accesses(reads),
            writes: rules.accesses(writes),
            transfer: transfer.map(|(ports, holds, latency)| (rules.all(ports), holds, latency)),
        };
        Ok(Self { needs, ops: ops.unbind() })
    }
}

/// Returns the lines of `steps` packed, each with the numbers of its instructions, which are counted through all steps.
///
/// None if no order of the groups keeps what depends on what, or if an instruction reads, by forwarding, a result from
/// outside these steps.
#[pyfunction]
pub(crate) fn schedule_lines(
    py: Python<'_>,
    rules: &PyRules,
    steps: Vec<Vec<PyRef<'_, PyOp>>>,
) -> Option<Vec<Vec<usize>>> {
    let steps: Vec<Vec<Arc<Op>>> = steps.iter().map(|ops| ops.iter().map(|op| Arc::clone(&op.op)).collect()).collect();
    py.detach(|| schedule(&rules.rules, &steps))
}

/// The timeline of a whole program: the step of each line, and the start of each MV.
///
/// MVs are in slot `mv`. They use the memories `shared`, and their words in `shifted` may move. With `unlimited`, all lines
/// fit everywhere, and MVs wait only for those of their node.
#[pyclass(name = "Timeline", module = "emu2._core")]
pub(crate) struct PyTimeline {
    timeline: Timeline,
    rules: Py<PyRules>,
}

#[pymethods]
impl PyTimeline {
    #[new]
    fn new(rules: Bound<'_, PyRules>, mv: &str, shared: Vec<String>, shifted: &str, unlimited: bool) -> Self {
        let own = rules.get();
        let (mv, shifted) = (own.names.of(mv), own.names.of(shifted));
        let timeline = Timeline::new(Arc::clone(&own.rules), mv, own.all(shared), shifted, unlimited);
        Self { timeline, rules: rules.unbind() }
    }

    /// Places lines that must follow each other without a gap; returns the step of the first.
    fn place_lines(&mut self, run: Vec<PyRef<'_, PyNeeds>>) -> i64 {
        let run: Vec<&Needs> = run.iter().map(|one| &one.needs).collect();
        self.timeline.place_lines(&run)
    }

    /// Places an MV of a node; returns its step and the cycle in which it ends. Raises ValueError for a line.
    fn place_move(&mut self, needs: &PyNeeds, owner: i64) -> PyResult<(i64, i64)> {
        self.timeline.place_move(&needs.needs, owner).ok_or_else(no_move)
    }

    /// Returns the first cycle in which an MV may start, with its words in `shifted` moved up. Raises ValueError for a line.
    fn start_of(&self, needs: &PyNeeds, shift: i64) -> PyResult<i64> {
        self.timeline.start_of(&needs.needs, shift).ok_or_else(no_move)
    }

    /// Returns the first step at which all that a line or an MV reads is there.
    fn soonest(&self, needs: &PyNeeds) -> i64 {
        self.timeline.soonest(&needs.needs)
    }

    /// Returns the last step that touches what an access does, `more` long words higher; before, -1.
    fn last_of(&self, access: AccessFacts, more: i64) -> i64 {
        self.timeline.last_of(&self.rules.get().access(access), more)
    }
}

fn no_move() -> PyErr {
    PyValueError::new_err("only an MV has a transfer")
}

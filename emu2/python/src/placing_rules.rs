//! The rules of a machine by which the compiler places instructions, and its operands read for them.

use placing::{Block, Facts, Hazard, Name, Op, Operand, Rules};
use pyo3::exceptions::PyValueError;
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyString, PyTuple};
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

/// The classes of operands of `pycompiler.code.lines`.
type Classes = [Py<PyAny>; 4];

/// The rules of a machine that decide where instructions may stand.
///
/// `shares` are slots that share a unit, with how many of them a line may use. `banks` are the memories of matrix registers; a
/// line makes one access of each. `above` are the memories above the PEs, `shared` those that MVs use. Their words are
/// compared in blocks of `granule` where lines touch them, and of `unit` where MVs do. `l2bs` are the groups and the L2Bs of
/// each, `long` the words of a long word. `added` is the register that indirect addresses add, `entries` the memory of
/// address registers, `blocks` the memory whose blocks begin at a multiple of their words. `operands` are the classes of operands in PEs, above them, of forwarding paths and of matrix registers.
/// `issue` returns the precision, the inputs and the excluded memories of a mnemonic.
#[pyclass(name = "PlacingRules", module = "emu2._core", frozen)]
pub(crate) struct PyRules {
    pub(crate) rules: Arc<Rules>,
    pub(crate) names: Names,
    banks: HashMap<String, Name>,
    long: i64,
    added: Name,
    entries: Name,
    pub(crate) blocks: Name,
    classes: Classes,
    issue: Py<PyAny>,
    known: Mutex<HashMap<String, Issue>>,
}

/// What a mnemonic demands of its line.
#[derive(Clone)]
struct Issue {
    precision: Option<Name>,
    inputs: Vec<Name>,
    excludes: Vec<Name>,
}

/// Gives each name a number.
#[derive(Default)]
pub(crate) struct Names(Mutex<(HashMap<String, Name>, Vec<String>)>);

impl Names {
    pub(crate) fn of(&self, name: &str) -> Name {
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(&found) = known.0.get(name) {
            return found;
        }
        let next = Name::try_from(known.1.len()).unwrap_or(Name::MAX);
        known.0.insert(name.to_owned(), next);
        known.1.push(name.to_owned());
        next
    }

    pub(crate) fn text<'py>(&self, py: Python<'py>, name: Name) -> Bound<'py, PyString> {
        let known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        PyString::intern(py, known.1.get(usize::from(name)).map_or("", String::as_str))
    }
}

#[pymethods]
impl PyRules {
    #[new]
    #[pyo3(signature = (
        hazards, shares, banks, above, shared, operands, issue, *, cycles, unit, granule, l2bs, long, added, entries, blocks
    ))]
    #[allow(clippy::too_many_arguments)]
    fn new(
        hazards: Vec<Bound<'_, PyAny>>,
        shares: Vec<(Vec<String>, usize)>,
        banks: HashMap<String, String>,
        above: Vec<String>,
        shared: Vec<String>,
        operands: Classes,
        issue: Py<PyAny>,
        cycles: i64,
        unit: i64,
        granule: i64,
        l2bs: (i64, i64),
        long: i64,
        added: &str,
        entries: &str,
        blocks: &str,
    ) -> PyResult<Self> {
        if [cycles, unit, granule, l2bs.0, l2bs.1, long].iter().any(|&number| number < 1) {
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
        let banks: HashMap<_, _> = banks.into_iter().map(|(bank, memory)| (bank, names.of(&memory))).collect();
        let mut rules = Rules::new(hazards, cycles);
        (rules.shares, rules.banks) = (shares, banks.values().copied().collect());
        (rules.above, rules.shared) = (all(above), all(shared));
        (rules.unit, rules.granule, rules.l2bs) = (unit, granule, l2bs);
        let [added, entries, blocks] = [added, entries, blocks].map(|name| names.of(name));
        let (rules, classes, known) = (Arc::new(rules), operands, Mutex::default());
        Ok(Self { rules, names, banks, long, added, entries, blocks, classes, issue, known })
    }

    /// The steps for which a write can keep others away.
    #[getter]
    fn reach(&self) -> i64 {
        self.rules.reach()
    }
}

/// Returns the address of the value of an operand; 0 if it has none.
fn base(operand: &Bound<'_, PyAny>, addresses: &Bound<'_, PyAny>) -> PyResult<i64> {
    let value = operand.getattr(intern!(operand.py(), "value"))?;
    if value.is_none() {
        return Ok(0);
    }
    addresses.get_item(value)?.extract()
}

impl PyRules {
    pub(crate) fn all(&self, names: Vec<String>) -> Vec<Name> {
        names.iter().map(|one| self.names.of(one)).collect()
    }

    fn name(&self, from: &Bound<'_, PyAny>, attribute: &Bound<'_, PyString>) -> PyResult<Name> {
        let found = from.getattr(attribute)?;
        Ok(self.names.of(found.cast::<PyString>()?.to_str()?))
    }

    /// What a mnemonic demands, which is asked once.
    fn issue(&self, mnemonic: &Bound<'_, PyAny>) -> PyResult<Issue> {
        let name = mnemonic.cast::<PyString>()?.to_str()?;
        let known = || self.known.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(found) = known().get(name) {
            return Ok(found.clone());
        }
        let (precision, inputs, excludes): (Option<String>, Vec<String>, Vec<String>) =
            self.issue.call1(mnemonic.py(), (mnemonic,))?.extract(mnemonic.py())?;
        let precision = precision.map(|name| self.names.of(&name));
        let found = Issue { precision, inputs: self.all(inputs), excludes: self.all(excludes) };
        known().insert(name.to_owned(), found.clone());
        Ok(found)
    }

    /// An operand above the PEs.
    pub(crate) fn block(&self, operand: &Bound<'_, PyAny>, addresses: &Bound<'_, PyAny>) -> PyResult<Block> {
        let py = operand.py();
        let offset: i64 = operand.getattr(intern!(py, "offset"))?.extract()?;
        let entries: Option<(i64, i64)> = operand.getattr(intern!(py, "entries"))?.extract()?;
        Ok(Block {
            memory: self.name(operand, intern!(py, "memory"))?,
            unit: (operand.getattr(intern!(py, "group"))?.extract()?, operand.getattr(intern!(py, "l2b"))?.extract()?),
            start: base(operand, addresses)? + offset,
            words: operand.getattr(intern!(py, "words"))?.extract()?,
            named: !operand.getattr(intern!(py, "value"))?.is_none(),
            entries: entries.map(|(first, count)| (self.entries, first, count)),
        })
    }

    /// An operand in a PE; `words` are the 32-bit words of one access.
    fn pe(&self, operand: &Bound<'_, PyAny>, words: i64, addresses: &Bound<'_, PyAny>) -> PyResult<Operand> {
        let py = operand.py();
        let offsets: Vec<i64> = operand.getattr(intern!(py, "offsets"))?.extract()?;
        let part = operand.getattr(intern!(py, "word"))?;
        let mut form = vec![i64::try_from(offsets.len())?, words];
        if let Ok(one) = part.extract::<i64>() {
            form.push(one);
        } else {
            form.push(-1);
            form.extend(part.extract::<Option<Vec<i64>>>()?.unwrap_or_default());
        }
        let start = base(operand, addresses)?;
        let own: i64 = operand.getattr(intern!(py, "words"))?.extract()?;
        let indirect = operand.getattr(intern!(py, "indirect"))?.is_truthy()?;
        let at = offsets.into_iter().map(|offset| start + offset).collect();
        let memory = self.name(operand, intern!(py, "memory"))?;
        Ok(Operand::Pe(memory, at, (own / self.long).max(1), form, indirect.then_some(self.added)))
    }

    /// An instruction of a PE line, and the slots whose results it reads by forwarding.
    pub(crate) fn op(
        &self,
        instruction: &Bound<'_, PyAny>,
        addresses: &Bound<'_, PyAny>,
    ) -> PyResult<(Op, Vec<String>)> {
        let py = instruction.py();
        let [in_pe, above, forward, matrix] = self.classes.each_ref().map(|class| class.bind(py));
        let flush = instruction.getattr(intern!(py, "flush"))?;
        let lists = [(intern!(py, "sources"), false), (intern!(py, "destinations"), true)];
        let mut all = Vec::new();
        for (list, written) in lists {
            let list = instruction.getattr(list)?;
            all.extend(list.cast::<PyTuple>()?.iter().map(|operand| (operand, written)));
        }
        let flushes = !flush.is_none();
        all.extend(flushes.then_some((flush, false)));
        let (mut operands, mut takes, mut source, mut down) = (Vec::new(), Vec::new(), None, false);
        for (operand, written) in &all {
            let class = operand.get_type();
            if class.is(in_pe) {
                let words: i64 = operand.getattr(intern!(py, "words"))?.extract()?;
                let mask = operand.getattr(intern!(py, "mask"))?;
                if !mask.is_none() {
                    operands.push((self.pe(&mask, words.max(self.long), addresses)?, false));
                }
                operands.push((self.pe(operand, words, addresses)?, *written));
            } else if class.is(above) {
                let block = self.block(operand, addresses)?;
                source = source.or_else(|| (!written).then_some(block.memory));
                down |= *written && block.memory == self.blocks;
                operands.push((Operand::Block(block), *written));
            } else if class.is(forward) {
                takes.push(operand.getattr(intern!(py, "slot"))?.extract::<String>()?);
            } else if class.is(matrix) {
                let bank: String = operand.getattr(intern!(py, "bank"))?.extract()?;
                let memory = self.banks.get(&bank).copied().unwrap_or_else(|| self.names.of(&bank));
                operands.push((Operand::Whole(memory), *written));
            }
        }
        let mnemonic = instruction.getattr(intern!(py, "mnemonic"))?;
        let Issue { precision, inputs, excludes } = self.issue(&mnemonic)?;
        let name = mnemonic.cast::<PyString>()?.to_str()?;
        let part = name.split_once('@').filter(|_| down).map(|(_, part)| self.names.of(part));
        let slot = self.name(instruction, intern!(py, "slot"))?;
        let facts = Facts { slot, precision, inputs, excludes, takes: self.all(takes.clone()), flushes, source, part };
        Ok((Op::new(&self.rules, facts, &operands), takes))
    }
}

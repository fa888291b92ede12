//! The compiler's placing of instructions in steps.

use placing::{schedule, Access, Block, Facts, Hazard, Name, Needs, Op, Operand, Rules, Timeline};
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
    rules: Arc<Rules>,
    names: Names,
    banks: HashMap<String, Name>,
    long: i64,
    added: Name,
    entries: Name,
    blocks: Name,
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
struct Names(Mutex<(HashMap<String, Name>, Vec<String>)>);

impl Names {
    fn of(&self, name: &str) -> Name {
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(&found) = known.0.get(name) {
            return found;
        }
        let next = Name::try_from(known.1.len()).unwrap_or(Name::MAX);
        known.0.insert(name.to_owned(), next);
        known.1.push(name.to_owned());
        next
    }

    fn text<'py>(&self, py: Python<'py>, name: Name) -> Bound<'py, PyString> {
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
    fn all(&self, names: Vec<String>) -> Vec<Name> {
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
    fn block(&self, operand: &Bound<'_, PyAny>, addresses: &Bound<'_, PyAny>) -> PyResult<Block> {
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
    fn op(&self, instruction: &Bound<'_, PyAny>, addresses: &Bound<'_, PyAny>) -> PyResult<(Op, Vec<String>)> {
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

/// Long words of a memory that an operand touches.
#[pyclass(name = "Access", module = "emu2._core", frozen)]
pub(crate) struct PyAccess {
    access: Access,
    rules: Py<PyRules>,
}

/// Past the end of any memory.
const NO_END: i64 = 1 << 32;

#[pymethods]
impl PyAccess {
    /// The memory.
    #[getter]
    fn memory<'py>(&self, py: Python<'py>) -> Bound<'py, PyString> {
        self.rules.get().names.text(py, self.access.memory)
    }

    /// The group and the L2B of a memory above the PEs; None stands for all of them.
    #[getter]
    fn unit(&self) -> (Option<i64>, Option<i64>) {
        self.access.unit
    }

    /// The first long word.
    #[getter]
    fn low(&self) -> i64 {
        self.access.range.map_or(0, |(low, _)| low)
    }

    /// The long word behind the last one.
    #[getter]
    fn high(&self) -> i64 {
        self.access.range.map_or(NO_END, |(_, high)| high)
    }

    /// For an operand in a PE, the long word of each cycle.
    #[getter]
    fn cycles<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
        PyTuple::new(py, &self.access.cycles)
    }

    /// Whether only a register knows which words it touches.
    #[getter]
    fn anywhere(&self) -> bool {
        self.access.range.is_none()
    }
}

/// An instruction at its addresses, and what decides where it fits.
#[pyclass(name = "Op", module = "emu2._core", frozen)]
pub(crate) struct PyOp {
    op: Arc<Op>,
    /// The issue slot.
    #[pyo3(get)]
    slot: Py<PyAny>,
    /// The slots whose results it reads by forwarding.
    #[pyo3(get)]
    takes: Py<PyTuple>,
}

#[pymethods]
impl PyOp {
    /// Returns an instruction whose values have `addresses`. Raises KeyError if one has none.
    #[new]
    fn new(rules: &PyRules, instruction: Bound<'_, PyAny>, addresses: Bound<'_, PyAny>) -> PyResult<Self> {
        let py = instruction.py();
        let (op, takes) = rules.op(&instruction, &addresses)?;
        let slot = instruction.getattr(intern!(py, "slot"))?.unbind();
        Ok(Self { op: Arc::new(op), slot, takes: PyTuple::new(py, takes)?.unbind() })
    }
}

/// A line or an MV at its addresses: what it touches, and what decides about its step.
#[pyclass(name = "Ready", module = "emu2._core", frozen)]
pub(crate) struct PyReady {
    /// The line.
    #[pyo3(get)]
    line: Py<PyAny>,
    /// The addresses of the values that the line names.
    #[pyo3(get)]
    addresses: Py<PyAny>,
    /// The instructions of a line.
    #[pyo3(get)]
    ops: Py<PyTuple>,
    needs: Needs,
    rules: Py<PyRules>,
}

impl PyReady {
    fn accesses<'py>(&self, py: Python<'py>, written: bool) -> PyResult<Bound<'py, PyTuple>> {
        let own = |access: &Access| Py::new(py, PyAccess { access: access.clone(), rules: self.rules.clone_ref(py) });
        PyTuple::new(py, self.needs.accesses(written).map(own).collect::<PyResult<Vec<_>>>()?)
    }
}

#[pymethods]
impl PyReady {
    /// Returns a line of some instructions.
    #[new]
    fn new(rules: Py<PyRules>, line: Py<PyAny>, addresses: Py<PyAny>, ops: Bound<'_, PyTuple>) -> PyResult<Self> {
        let own = ops.iter().map(|op| Ok(Arc::clone(&op.cast::<PyOp>()?.get().op))).collect::<PyResult<_>>()?;
        let needs = Needs::of_line(&rules.get().rules, own);
        Ok(Self { line, addresses, ops: ops.unbind(), needs, rules })
    }

    /// Returns an MV in slot `slot`; `transfer` has its ports, the cycles for which it holds them, and those to its end.
    #[staticmethod]
    fn of_move(
        rules: Py<PyRules>,
        line: Bound<'_, PyAny>,
        addresses: Bound<'_, PyAny>,
        slot: &str,
        transfer: (Vec<String>, i64, i64),
    ) -> PyResult<Self> {
        let (py, own) = (line.py(), rules.get());
        let slot = own.names.of(slot);
        let operand = |name: &Bound<'_, PyString>| {
            Ok::<_, PyErr>(own.block(&line.getattr(name)?, &addresses)?.accesses(slot, None))
        };
        let (entries, read) = operand(intern!(py, "source"))?;
        let (others, written) = operand(intern!(py, "destination"))?;
        let reads = entries.into_iter().chain([read]).chain(others).collect();
        let (ports, holds, latency) = transfer;
        let needs = Needs::of_move([reads, vec![written]], (own.all(ports), holds, latency));
        Ok(Self { line: line.unbind(), addresses: addresses.unbind(), ops: PyTuple::empty(py).unbind(), needs, rules })
    }

    /// Whether it touches a memory that MVs use.
    #[getter]
    fn shared(&self) -> bool {
        self.needs.shared
    }

    /// What it reads, in the order of its operands.
    #[getter]
    fn reads<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
        self.accesses(py, false)
    }

    /// What it writes, in the order of its operands.
    #[getter]
    fn writes<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
        self.accesses(py, true)
    }

    /// Returns whether `later` must not start before this has finished.
    fn conflicts(&self, later: &Self) -> bool {
        self.needs.conflicts(&later.needs)
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

/// Counts the steps that must pass before a line or an MV is legal behind the last steps, newest first; None is an idle one.
#[pyfunction]
pub(crate) fn distance(rules: &PyRules, recent: Vec<Option<PyRef<'_, PyReady>>>, ready: &PyReady) -> i64 {
    let before = recent.iter().map(|one| one.as_ref().map(|one| &one.needs));
    placing::distance(&rules.rules, before, &ready.needs)
}

/// The words of a web (first, behind the last), the multiples by which they may move, and how many instructions it has.
type WebFacts = (i64, i64, i64, usize);

/// Returns the webs of the lines of a node in one memory, and for each line the instructions that have one, with its number.
#[pyfunction]
pub(crate) fn webs(
    rules: &PyRules,
    memory: &str,
    lines: Vec<PyRef<'_, PyReady>>,
) -> (Vec<WebFacts>, Vec<Vec<(usize, usize)>>) {
    let memory = rules.names.of(memory);
    let needs: Vec<&Needs> = lines.iter().map(|line| &line.needs).collect();
    let (webs, of_number) = placing::webs(&rules.rules, memory, memory == rules.blocks, &needs);
    let mut next = 0;
    let of_lines = needs.iter().map(|line| {
        let first = next;
        next += line.ops().len().max(1);
        (first..next).filter_map(|number| Some((number - first, *of_number.get(&number)?))).collect()
    });
    let of_lines = of_lines.collect();
    (webs.into_iter().map(|web| (web.range.0, web.range.1, web.unit, web.count)).collect(), of_lines)
}

/// The timeline of a whole program: the step of each line, and the start of each MV.
///
/// MVs are in slot `mv`, and their words in `shifted` may move. With `unlimited`, all lines fit everywhere, and MVs wait only
/// for those of their node.
#[pyclass(name = "Timeline", module = "emu2._core")]
pub(crate) struct PyTimeline(Timeline);

#[pymethods]
impl PyTimeline {
    #[new]
    fn new(rules: &PyRules, mv: &str, shifted: &str, unlimited: bool) -> Self {
        let (mv, shifted) = (rules.names.of(mv), rules.names.of(shifted));
        Self(Timeline::new(Arc::clone(&rules.rules), mv, shifted, unlimited))
    }

    /// Places lines that must follow each other without a gap; returns the step of the first.
    fn place_lines(&mut self, run: Vec<PyRef<'_, PyReady>>) -> i64 {
        let run: Vec<&Needs> = run.iter().map(|one| &one.needs).collect();
        self.0.place_lines(&run)
    }

    /// Places an MV of a node; returns its step and the cycle in which it ends. Raises ValueError for a line.
    fn place_move(&mut self, ready: &PyReady, owner: i64) -> PyResult<(i64, i64)> {
        self.0.place_move(&ready.needs, owner).ok_or_else(no_move)
    }

    /// Returns the first cycle in which an MV may start, with its words in `shifted` moved up. Raises ValueError for a line.
    fn start_of(&self, ready: &PyReady, shift: i64) -> PyResult<i64> {
        self.0.start_of(&ready.needs, shift).ok_or_else(no_move)
    }

    /// Returns the first step at which all that a line or an MV reads is there.
    fn soonest(&self, ready: &PyReady) -> i64 {
        self.0.soonest(&ready.needs)
    }

    /// Returns the last step that touches what an access does, `more` long words higher; before, -1.
    fn last_of(&self, access: &PyAccess, more: i64) -> i64 {
        self.0.last_of(&access.access, more)
    }
}

fn no_move() -> PyErr {
    PyValueError::new_err("only an MV has a transfer")
}

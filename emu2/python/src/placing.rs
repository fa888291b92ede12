//! The compiler's placing of instructions in steps.

use crate::placing_rules::PyRules;
use placing::{schedule, Access, Needs, Op, Timeline};
use pyo3::exceptions::PyValueError;
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyString, PyTuple};
use std::sync::Arc;

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

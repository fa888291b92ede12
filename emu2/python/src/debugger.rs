//! `emu2.Debugger`.

use crate::argument::{Addr, Name, Unit};
use crate::attended::{attended, Where};
use crate::machine::PyMachine;
use crate::program::PyProgram;
use crate::region::{region, shape};
use crate::spec::PySpec;
use crate::{convert, error};
use emu2::debug::{first_parting, said, Condition, HistoryLimits, PlaceSet, Session, Stop, Unit as Stride};
use emu2::error::{Code, Error};
use emu2::interrupt::Interrupt;
use emu2::machine::Machine;
use emu2::spec::Spec;
use numpy::{IntoPyArray, PyArrayDyn, PyArrayMethods, PyReadonlyArray1};
use pyo3::prelude::*;
use serde_json::{json, Value};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Runs a program statement by statement, forwards and backwards.
///
/// A program has no branches, so a moment of its run is a **position**: the number of statements that have run, 0 to
/// `statements`. `machine` gives the memories at the start; it is copied and not changed. `room` bounds the bytes of the
/// images that make going back fast. One is taken after `every` statements, by default as time allows.
///
/// Methods that move return a dict: `reason` (step, breakpoint, start, end, pause, error), `breakpoints` (their numbers),
/// `text` (what happened), `position`, `line`, `dump` (lines of `d get` on a way forwards), and `error` (None, or code, message and
/// help of the statement that comes next).
///
/// Raises EmulatorError: R0004 for a machine that stopped half way, R0005 for a program of another spec.
#[pyclass(frozen, name = "Debugger", module = "emu2")]
pub(crate) struct PyDebugger {
    spec: Arc<Spec>,
    inner: Mutex<Session>,
    /// Stops the call that is at work.
    interrupt: Mutex<Interrupt>,
}

fn unlocked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl PyDebugger {
    /// Calls `work` with the session, without the interpreter.
    fn with<T: Send>(&self, py: Python<'_>, work: impl FnOnce(&mut Session) -> Result<T, Error> + Send) -> PyResult<T> {
        py.detach(|| work(&mut unlocked(&self.inner))).map_err(|e| error::core(py, &e))
    }

    /// Calls `go`, which moves the session, and returns what it says about the stop.
    fn moved<'py>(
        &self,
        py: Python<'py>,
        go: impl FnOnce(&mut Session, &mut dyn FnMut(&str) -> Result<(), Error>) -> Result<Stop, Error> + Send,
    ) -> PyResult<Bound<'py, PyAny>> {
        let result = py.detach(|| {
            let mut session = unlocked(&self.inner);
            let session = &mut *session;
            attended(Where::Thread, None, |interrupt, dump| {
                unlocked(&self.interrupt).clone_from(interrupt);
                session.set_interrupt(interrupt.clone());
                let stop = go(session, &mut |line| dump.line(line));
                stop.map(|stop| said::stop(&stop, session, &[]))
            })
        });
        let (said, lines) = result?;
        let mut said = said.map_err(|e| error::core(py, &e))?;
        said["dump"] = lines.into();
        convert::serialize(py, &said)
    }
}

fn stride(unit: &str) -> Result<Stride, Error> {
    match unit {
        "line" => Ok(Stride::Line),
        "step" => Ok(Stride::Step),
        "region" => Ok(Stride::Region),
        _ => Err(Error::new(Code::BadOption, format!("no unit `{unit}`")).help("use `line`, `step` or `region`")),
    }
}

#[pymethods]
impl PyDebugger {
    #[new]
    #[pyo3(
        signature = (program, machine = None, *, room = Addr(1 << 30), every = None),
        text_signature = "(program, machine=None, *, room=1073741824, every=None)"
    )]
    fn new(
        py: Python<'_>,
        program: &PyProgram,
        machine: Option<&PyMachine>,
        room: Addr,
        every: Option<usize>,
    ) -> PyResult<PyDebugger> {
        let room = HistoryLimits { bytes: usize::try_from(room.0).unwrap_or(usize::MAX), every };
        let spec = program.inner.spec.clone();
        let session = py.detach(|| {
            let machine = match machine {
                Some(machine) => machine.copy(),
                None => Machine::new(spec.clone()),
            };
            Session::new(Arc::new(program.inner.clone()), machine, room)
        });
        let inner = Mutex::new(session.map_err(|e| error::core(py, &e))?);
        Ok(PyDebugger { spec, inner, interrupt: Mutex::default() })
    }

    /// The spec of the machine.
    #[getter]
    fn spec(&self) -> PySpec {
        PySpec { inner: self.spec.clone() }
    }

    /// The levels of the tree, outermost first, with the letters that name units: `[("group", "n"), ...]`.
    #[getter]
    fn levels(&self) -> Vec<(String, char)> {
        self.spec.levels.iter().map(|level| (format!("{:?}", level.name).to_lowercase(), level.selector)).collect()
    }

    /// Number of statements that have run.
    #[getter]
    fn position(&self, py: Python<'_>) -> PyResult<usize> {
        self.with(py, |session| Ok(session.position()))
    }

    /// Number of statements of the program.
    #[getter]
    fn statements(&self, py: Python<'_>) -> PyResult<usize> {
        self.with(py, |session| Ok(session.len()))
    }

    /// Line of the statement that comes next, from 1; at the end of the program that of the last one.
    #[getter]
    fn line(&self, py: Python<'_>) -> PyResult<u32> {
        self.with(py, |session| {
            let position = session.position();
            Ok(session.line(position))
        })
    }

    /// Line of the statement that comes next at a position.
    fn line_of(&self, py: Python<'_>, position: usize) -> PyResult<u32> {
        self.with(py, |session| Ok(session.line(position)))
    }

    /// Steps that have run.
    #[getter]
    fn steps(&self, py: Python<'_>) -> PyResult<u64> {
        self.with(py, |session| {
            let position = session.position();
            Ok(session.clock()?.steps(position))
        })
    }

    /// Cycles of the timing model that have passed, stalls included.
    #[getter]
    fn cycles(&self, py: Python<'_>) -> PyResult<u64> {
        self.with(py, |session| {
            let position = session.position();
            Ok(session.clock()?.cycles(position))
        })
    }

    /// The number of images of the run, and the bytes that they take.
    #[getter]
    fn history(&self, py: Python<'_>) -> PyResult<(usize, usize)> {
        self.with(py, |session| Ok(session.history()))
    }

    /// The breakpoints, a dict for each: id, text, line (None for those that are not at a line).
    #[getter]
    fn breakpoints<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let found =
            self.with(py, |session| Ok(session.breakpoints().iter().map(said::breakpoint).collect::<Vec<_>>()))?;
        convert::serialize(py, &found)
    }

    /// Adds a breakpoint: `line 12`, `line 12 if CONDITION`, `when CONDITION`, `write PLACE`, `infinity`, `flag`, `overflow` or
    /// `hazard`. docs/debugging.md says when each stops.
    ///
    /// Returns its dict, as `breakpoints` has it. Raises EmulatorError D0001, D0002 or D0003.
    fn add<'py>(&self, py: Python<'py>, text: Name) -> PyResult<Bound<'py, PyAny>> {
        let added = self.with(py, |session| session.add(&text).map(said::breakpoint))?;
        convert::serialize(py, &added)
    }

    /// Removes the breakpoint with this number. Raises EmulatorError D0003 if there is none.
    fn remove(&self, py: Python<'_>, id: u32) -> PyResult<()> {
        self.with(py, |session| session.remove(id))
    }

    /// Steps `count` times: by `line` (a statement), `step` (past MVs and debug statements to the end of a PE line) or `region` (to
    /// the next MV or debug statement). `back` steps back.
    #[pyo3(signature = (unit = Name::of("line"), *, back = false, count = 1), text_signature = "($self, unit='line', *, back=False, count=1)")]
    fn step<'py>(&self, py: Python<'py>, unit: Name, back: bool, count: u32) -> PyResult<Bound<'py, PyAny>> {
        self.moved(py, |session, sink| {
            let unit = stride(&unit)?;
            let mut stop = None;
            for _ in 0..count.max(1) {
                let target = session.target(unit, back);
                let found = stop.insert(session.step_to(target, sink));
                if found.reason != "step" {
                    break;
                }
            }
            stop.ok_or_else(|| Error::new(Code::BadOption, "no step"))
        })
    }

    /// Runs to the next breakpoint, at most to position `limit` or the end of the program; or back to the last place at which a
    /// breakpoint stops, or to the start.
    #[pyo3(signature = (*, back = false, limit = None))]
    fn run<'py>(&self, py: Python<'py>, back: bool, limit: Option<usize>) -> PyResult<Bound<'py, PyAny>> {
        self.moved(py, |session, sink| {
            Ok(if back { session.run_back() } else { session.run_forward(limit.unwrap_or(usize::MAX), sink) })
        })
    }

    /// Goes to a position, forwards or backwards, past all breakpoints. Raises EmulatorError D0002 if the program ends before it.
    fn go<'py>(&self, py: Python<'py>, position: usize) -> PyResult<Bound<'py, PyAny>> {
        self.moved(py, |session, sink| session.check(position).map(|()| session.step_to(position, sink)))
    }

    /// The position before the first statement at or after `line`. Raises EmulatorError D0002 if there is none.
    fn at_line(&self, py: Python<'_>, line: u32) -> PyResult<usize> {
        self.with(py, |session| session.at_line(line))
    }

    /// The first position before which `cycle` cycles have passed. Raises EmulatorError D0002 if the program ends earlier.
    fn at_cycle(&self, py: Python<'_>, cycle: u64) -> PyResult<usize> {
        self.with(py, |session| session.at_cycle(cycle))
    }

    /// The position before the next statement behind this one that names completion tag `tag`. Raises EmulatorError D0002 if there
    /// is none.
    fn at_tag(&self, py: Python<'_>, tag: u32) -> PyResult<usize> {
        self.with(py, |session| session.at_tag(tag))
    }

    /// The first statement of `first` to before `last` that may write to a place such as `lm0[12:16]`. Raises EmulatorError D0001.
    fn first_write(&self, py: Python<'_>, place: Name, first: usize, last: usize) -> PyResult<Option<usize>> {
        self.with(py, |s| PlaceSet::parse(&place, &s.spec()).map(|place| s.first_write(&place, first..last)))
    }

    /// The words of a place such as `lm0[12:16].f of n0c1b2m3p0`, a dict for each: unit, addr, word (bits), text (numbers). At most
    /// `most` words. Raises EmulatorError D0001.
    #[pyo3(signature = (place, *, most = 64))]
    fn evaluate<'py>(&self, py: Python<'py>, place: Name, most: usize) -> PyResult<Bound<'py, PyAny>> {
        let words = self.with(py, |session| {
            let place = PlaceSet::parse(&place, &session.spec())?;
            Ok(said::words(&place.words(session.machine(), most)))
        })?;
        convert::serialize(py, &words)
    }

    /// Whether a condition such as `lm0[12] of n0c1b2m3p0 == 0x10` holds now. Raises EmulatorError D0001.
    fn holds(&self, py: Python<'_>, condition: Name) -> PyResult<bool> {
        self.with(py, |session| Ok(Condition::parse(&condition, &session.spec())?.holds(session.machine())))
    }

    /// Reads long words of a memory as they are now. Arguments, result and errors are those of `Machine.read`.
    #[pyo3(
        signature = (memory, *, addr = Addr(0), count = Addr(1), group = None, l2b = None, l1b = None, mab = None, pe = None),
        text_signature = "($self, memory, *, addr=0, count=1, group=None, l2b=None, l1b=None, mab=None, pe=None)"
    )]
    fn read<'py>(
        &self,
        py: Python<'py>,
        memory: Name,
        addr: Addr,
        count: Addr,
        group: Option<Unit>,
        l2b: Option<Unit>,
        l1b: Option<Unit>,
        mab: Option<Unit>,
        pe: Option<Unit>,
    ) -> PyResult<Bound<'py, PyArrayDyn<u64>>> {
        let units = [group, l2b, l1b, mab, pe].map(|unit| unit.map(|Unit(number)| number));
        let read = self.with(py, |session| {
            let machine = session.machine();
            let region = region(machine, &memory, addr.0, count.0, units)?;
            Ok((machine.read(&region)?, shape(machine, &region)))
        });
        let (words, shape) = read?;
        words.into_pyarray(py).reshape(shape)
    }

    /// Writes long words to a memory, the same to every selected unit. Every later pass over this position writes them again.
    ///
    /// `words` has the shape (count,). The other arguments and errors are those of `Machine.write`.
    #[pyo3(
        signature = (memory, words, *, addr = Addr(0), group = None, l2b = None, l1b = None, mab = None, pe = None),
        text_signature = "($self, memory, words, *, addr=0, group=None, l2b=None, l1b=None, mab=None, pe=None)"
    )]
    fn write(
        &self,
        py: Python<'_>,
        memory: Name,
        words: PyReadonlyArray1<'_, u64>,
        addr: Addr,
        group: Option<Unit>,
        l2b: Option<Unit>,
        l1b: Option<Unit>,
        mab: Option<Unit>,
        pe: Option<Unit>,
    ) -> PyResult<()> {
        let units = [group, l2b, l1b, mab, pe].map(|unit| unit.map(|Unit(number)| number));
        let words = words.as_array().to_vec();
        self.with(py, |session| {
            let region = region(session.machine(), &memory, addr.0, words.len() as u64, units)?;
            session.write(&region, &words)
        })
    }

    /// The words that differ between two positions, as a dict: `count`, and `words`, at most `most` dicts with memory, unit,
    /// addr, before, after. The debugger stays where it is. Raises EmulatorError D0002, or RunError if a statement fails.
    #[pyo3(signature = (first, second, *, most = 256))]
    fn differences<'py>(
        &self,
        py: Python<'py>,
        first: usize,
        second: usize,
        most: usize,
    ) -> PyResult<Bound<'py, PyAny>> {
        self.with(py, |session| session.check(first.max(second)))?;
        let (mut count, mut words) = (0usize, Vec::new());
        let found = py.detach(|| {
            unlocked(&self.inner).differences((first, second), &mut |found| {
                count += 1;
                if words.len() < most {
                    words.push(said::difference(&self.spec, &found));
                }
            })
        });
        found.map_err(|e| error::run(py, "the program", &e))?;
        convert::serialize(py, &json!({ "count": count, "words": words }))
    }

    /// Compares two runs from their starts: the first statement after which their memories differ. Returns None if they never do,
    /// or a dict: `positions`, `lines` (0 if they differ at the start), `count`, and `words` as in `differences`. Both debuggers
    /// then stand there. `nop`s may differ.
    ///
    /// Raises EmulatorError D0004 for the debugger itself, RunError R0005 for another spec, and RunError if a statement fails.
    #[pyo3(signature = (other, *, most = 256))]
    fn parting<'py>(&self, py: Python<'py>, other: &PyDebugger, most: usize) -> PyResult<Bound<'py, PyAny>> {
        if std::ptr::eq(self, other) {
            let message = "a run is compared with itself";
            return Err(error::core(py, &Error::new(Code::BadCommand, message).help("give another debugger")));
        }
        let found = py.detach(|| {
            // Two calls must take the locks in the same order.
            let swapped = std::ptr::from_ref(other) < std::ptr::from_ref(self);
            let first = if swapped { unlocked(&other.inner) } else { unlocked(&self.inner) };
            let second = if swapped { unlocked(&self.inner) } else { unlocked(&other.inner) };
            let (mut ours, mut theirs) = if swapped { (second, first) } else { (first, second) };
            first_parting(&mut ours, &mut theirs, most)
        });
        let found = found.map_err(|e| error::run(py, "the program", &e))?;
        let found = found.map(|parting| {
            let words: Vec<Value> = parting.words.iter().map(|found| said::difference(&self.spec, found)).collect();
            json!({ "positions": parting.positions, "lines": parting.lines, "count": parting.count, "words": words })
        });
        convert::serialize(py, &found)
    }

    /// Makes a call that runs in another thread stop soon, with the reason `pause`.
    fn pause(&self) {
        unlocked(&self.interrupt).request();
    }

    fn __repr__(&self, py: Python<'_>) -> PyResult<String> {
        let (position, count) = self.with(py, |session| Ok((session.position(), session.len())))?;
        Ok(format!("Debugger(position={position}, statements={count})"))
    }
}

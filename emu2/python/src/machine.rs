//! `emu2.Machine` and `emu2.MemoryFiles`.

use crate::argument::{Addr, Name, Unit};
use crate::attended::{attended, Where};
use crate::files::FilePath;
use crate::found::{at_start, found, sanitizer_of};
use crate::program::PyProgram;
use crate::region::{region, shape};
use crate::report::PyReport;
use crate::spec::PySpec;
use crate::{convert, error};
use emu2::error::{Code, Error};
use emu2::exec::{Engine, HostLines, Sanitizer};
use emu2::files::{read, STATE_LIMIT};
use emu2::interrupt::Interrupt;
use emu2::machine::{Machine, MemoryFiles, Region};
use emu2::report::dump_lines;
use emu2::spec::Spec;
use numpy::{IntoPyArray, PyArrayDyn, PyArrayMethods, PyReadonlyArrayDyn, PyUntypedArrayMethods};
use pyo3::prelude::*;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// A machine with all its memories.
#[pyclass(frozen, name = "Machine", module = "emu2")]
pub(crate) struct PyMachine {
    spec: Arc<Spec>,
    inner: Mutex<Machine>,
    /// This lock is taken after that of the machine.
    engine: Mutex<Engine>,
    /// What sanitized runs know of the memories. It is made for the first one, and its lock is taken last.
    sanitizer: Mutex<Option<Sanitizer>>,
}

/// The regions that memory files (JSON) name: those to load before a run and those to save after it.
#[pyclass(frozen, name = "MemoryFiles", module = "emu2")]
pub(crate) struct PyMemoryFiles {
    inner: MemoryFiles,
    saved: Vec<(String, u32, u64, u64)>,
}

impl PyMachine {
    /// Locks the machine. A thread that panicked while it held the lock cannot leave broken arrays behind.
    pub(crate) fn lock(&self) -> MutexGuard<'_, Machine> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A machine with the same contents.
    pub(crate) fn copy(&self) -> Machine {
        self.lock().copy()
    }

    /// Calls `work` with the machine. The lock is taken without the interpreter. Otherwise a run whose dump goes to a
    /// Python object could wait for a thread that waits for the run.
    fn with<T: Send>(&self, py: Python<'_>, work: impl FnOnce(&mut Machine) -> Result<T, Error> + Send) -> PyResult<T> {
        py.detach(|| work(&mut self.lock())).map_err(|e| error::core(py, &e))
    }

    /// Does the same as [`PyMachine::with`], for work that may be long.
    fn attended(
        &self,
        py: Python<'_>,
        work: impl FnOnce(&mut Machine, &Interrupt) -> Result<(), Error> + Send,
    ) -> PyResult<()> {
        let done = py.detach(|| {
            let machine: &mut Machine = &mut self.lock();
            attended(Where::Thread, None, |interrupt, _| work(machine, interrupt))
        });
        let (done, _) = done?;
        done.map_err(|e| error::core(py, &e))
    }
}

#[pymethods]
impl PyMachine {
    #[new]
    fn new(spec: &PySpec) -> PyMachine {
        let (inner, engine) = (Machine::new(spec.inner.clone()), Engine::new(spec.inner.clone()));
        PyMachine {
            spec: spec.inner.clone(),
            inner: Mutex::new(inner),
            engine: Mutex::new(engine),
            sanitizer: Mutex::default(),
        }
    }

    /// The spec from which the machine was made.
    #[getter]
    fn spec(&self) -> PySpec {
        PySpec { inner: self.spec.clone() }
    }

    /// Runs `program` to its end on the memories as they are. They keep their contents afterwards.
    ///
    /// Dump lines (`d get`) are collected in the report, or written to `dump`, an object with a `write(str)` method, in
    /// pieces of many lines.
    ///
    /// With `sanitize` the run also looks for results that depend on words that nothing has written, on timing or on the
    /// range of a format (docs/sanitizer.md); the report has the findings. The bits stay the same.
    ///
    /// Returns a Report: steps, cycles of the timing model, dump lines, lines of host commands, counters, findings.
    ///
    /// Raises RunError with the line at fault. Its code is R0004 if an earlier run stopped half way, R0005 for a program of
    /// another spec. Also raises the exceptions of `dump.write`. KeyboardInterrupt is heard while the program runs. After
    /// any of these in the middle of a program the machine refuses to run until `reset`.
    ///
    /// Source: an instruction whose evidence is `vendor-output` gives the bits of the vendor's emulator; `emu2 spec` prints the
    /// evidence of each.
    #[pyo3(signature = (program, *, dump = None, sanitize = false))]
    fn run(&self, py: Python<'_>, program: &PyProgram, dump: Option<Py<PyAny>>, sanitize: bool) -> PyResult<PyReport> {
        let place = Where::of_program(&program.inner, dump.is_some());
        let result = py.detach(|| {
            // It must not be a thread of the pool, because such a thread may take up another run while it waits for its
            // own.
            let (mut machine, mut engine) = (self.lock(), self.engine.lock().unwrap_or_else(PoisonError::into_inner));
            let (machine, engine) = (&mut *machine, &mut *engine);
            let mut sanitizer = self.sanitizer.lock().unwrap_or_else(PoisonError::into_inner);
            let mut sanitizer = if sanitize { Some(sanitizer_of(&self.spec, &mut sanitizer)) } else { None };
            let mut host = HostLines::default();
            attended(place, dump.as_ref(), |interrupt, dump| {
                engine.set_interrupt(interrupt.clone());
                let mut run = || {
                    let sink = &mut |line: &str| interrupt.check().and_then(|()| dump.line(line));
                    let on_get = &mut |get: &_, machine: &_| dump_lines(machine, get, sink);
                    match &mut sanitizer {
                        Some(sanitizer) => {
                            let sanitizer = sanitizer.as_mut().map_err(|e| at_start(e))?;
                            sanitizer.set_interrupt(interrupt.clone());
                            sanitizer.run(machine, &program.inner, &mut host, on_get)
                        }
                        None => engine.run_again(machine, &program.inner, &program.regions, &mut host, on_get),
                    }
                };
                let (ran, cost) = match place {
                    // Meanwhile the cost is counted.
                    Where::Pool => rayon::join(run, || program.cost_until(interrupt)),
                    _ => (run(), program.cost_until(interrupt)),
                };
                let findings = match &mut sanitizer {
                    Some(Ok(sanitizer)) => found(&program.inner, sanitizer),
                    _ => Vec::new(),
                };
                ran.map(|()| (cost.cloned(), host.lines, findings))
            })
        });
        let (result, lines) = result?;
        match result {
            Ok((cost, host, findings)) => {
                let report = PyReport::new(cost.map_err(|e| error::core(py, &e))?, lines);
                Ok(report.with(host, findings))
            }
            Err(e) => Err(error::run(py, &program.inner.name, &e)),
        }
    }

    /// Does in advance what the first run of `program` would do once, so that it takes no longer than later ones: lowers the
    /// program, and lets the host provide the memory that it writes.
    ///
    /// No memory of the machine changes. A program that cannot run is not refused here but by `run`.
    fn prepare(&self, py: Python<'_>, program: &PyProgram) {
        py.detach(|| {
            let (mut machine, mut engine) = (self.lock(), self.engine.lock().unwrap_or_else(PoisonError::into_inner));
            engine.prepare(&mut machine, &program.inner, &program.regions);
        });
    }

    /// Reads long words of a memory.
    ///
    /// `memory` is a name of `Spec.memories`. `addr` and `count` are in long words (8 bytes). Assembly counts words of 32
    /// bits in local memories, so an address is `2 * addr` there. `group`, `l2b`, `l1b`, `mab` and `pe` select one unit of
    /// each level; a level left out stands for all of its units.
    ///
    /// Returns uint64 with one axis for each level of the memory that is not selected, outermost first, and then `count`
    /// addresses: `read("lm0", count=4, group=0, l2b=0)` has the shape (l1b, mab, pe, 4).
    ///
    /// Raises EmulatorError: R0001 past the end, R0002 for an unknown memory, R0003 for an unknown unit.
    ///
    /// Source: sizes and levels of memories are those of the spec (`Spec.memories`, `Spec.counts`).
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
        let read = self.with(py, |machine| {
            let region = region(machine, &memory, addr.0, count.0, units)?;
            Ok((machine.read(&region)?, shape(machine, &region)))
        });
        let (words, shape) = read?;
        words.into_pyarray(py).reshape(shape)
    }

    /// Writes long words to a memory.
    ///
    /// `words` is a uint64 array of the shape that `read` returns, or of shape (count,), which goes to every selected unit.
    /// The other arguments, units and errors are those of `read`. R0007 for an array of another shape.
    #[pyo3(
        signature = (memory, words, *, addr = Addr(0), group = None, l2b = None, l1b = None, mab = None, pe = None),
        text_signature = "($self, memory, words, *, addr=0, group=None, l2b=None, l1b=None, mab=None, pe=None)"
    )]
    fn write(
        &self,
        py: Python<'_>,
        memory: Name,
        words: PyReadonlyArrayDyn<'_, u64>,
        addr: Addr,
        group: Option<Unit>,
        l2b: Option<Unit>,
        l1b: Option<Unit>,
        mab: Option<Unit>,
        pe: Option<Unit>,
    ) -> PyResult<()> {
        let count = words.shape().last().copied().unwrap_or(1) as u64;
        let axes = words.shape();
        let units = [group, l2b, l1b, mab, pe].map(|unit| unit.map(|Unit(number)| number));
        // A broadcast array may name more words than any host has, so its size is checked before it is copied.
        let region = self.with(py, |machine| {
            let region = region(machine, &memory, addr.0, count, units)?;
            let shape = shape(machine, &region);
            if axes.len() > 1 && axes != shape {
                let message = format!("the array's shape is {axes:?}; the units and addresses are {shape:?}");
                return Err(Error::new(Code::BadShape, message));
            }
            Ok(region)
        })?;
        let flat = words.as_array().iter().copied().collect::<Vec<u64>>();
        self.with(py, |machine| machine.write(&region, &flat))
    }

    /// Looks for words without a defined value, as a sanitized run knows them. The arguments are those of `read`.
    ///
    /// Returns findings, as `Report.findings`. Before the first sanitized run nothing is known, so there are none.
    #[pyo3(
        signature = (memory, *, addr = Addr(0), count = Addr(1), group = None, l2b = None, l1b = None, mab = None, pe = None),
        text_signature = "($self, memory, *, addr=0, count=1, group=None, l2b=None, l1b=None, mab=None, pe=None)"
    )]
    fn undefined<'py>(
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
    ) -> PyResult<Bound<'py, PyAny>> {
        let units = [group, l2b, l1b, mab, pe].map(|unit| unit.map(|Unit(number)| number));
        let found = self.with(py, |machine| {
            let region = region(machine, &memory, addr.0, count.0, units)?;
            let mut sanitizer = self.sanitizer.lock().unwrap_or_else(PoisonError::into_inner);
            let Some(sanitizer) = sanitizer.as_mut() else { return Ok(Vec::new()) };
            sanitizer.show(machine, &region)?;
            Ok(found(&emu2::asm::Program::of(self.spec.clone(), "<host>", Vec::new()), sanitizer))
        })?;
        convert::serialize(py, &found)
    }

    /// Which bits of long words have a defined value, as sanitized runs know it. The arguments are those of `read`.
    ///
    /// Returns uint64 of the shape that `read` returns: a bit is 1 where something has written the bit. Before the first
    /// sanitized run nothing is known, and every bit is 1.
    #[pyo3(
        signature = (memory, *, addr = Addr(0), count = Addr(1), group = None, l2b = None, l1b = None, mab = None, pe = None),
        text_signature = "($self, memory, *, addr=0, count=1, group=None, l2b=None, l1b=None, mab=None, pe=None)"
    )]
    fn validity<'py>(
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
        let read = self.with(py, |machine| {
            let region = region(machine, &memory, addr.0, count.0, units)?;
            let mut sanitizer = self.sanitizer.lock().unwrap_or_else(PoisonError::into_inner);
            let words = match sanitizer.as_mut() {
                Some(sanitizer) => sanitizer.validity(machine, &region)?,
                None => vec![u64::MAX; machine.read(&region)?.len()],
            };
            Ok((words, shape(machine, &region)))
        });
        let (words, shape) = read?;
        words.into_pyarray(py).reshape(shape)
    }

    /// Saves the contents of all memories to a file for `load_state`. Raises EmulatorError R0004 or F0005.
    fn save_state(&self, py: Python<'_>, path: FilePath) -> PyResult<()> {
        let bytes = self.with(py, |machine| machine.save_state())?;
        let unwritable = |e| Error::new(Code::Unwritable, format!("{}: {e}", path.0.display()));
        py.detach(|| std::fs::write(&path.0, bytes).map_err(unwritable)).map_err(|e| error::core(py, &e))
    }

    /// Makes the contents of all memories what they were when `save_state` wrote the file. Raises EmulatorError, and leaves the
    /// machine as it was: F0001 for an unreadable file, F0009 for one that is no state, R0005 for another machine's state.
    fn load_state(&self, py: Python<'_>, path: FilePath) -> PyResult<()> {
        self.attended(py, |machine, interrupt| machine.load_state(&read(&path.0, STATE_LIMIT, interrupt)?))
    }

    /// Loads the `load` regions of a memory file (JSON).
    fn load_memory_file(&self, py: Python<'_>, path: FilePath) -> PyResult<()> {
        let files = MemoryFiles::new(&self.spec, None, Some(&path.0), None, false).map_err(|e| error::core(py, &e))?;
        self.attended(py, |machine, interrupt| files.load_until(machine, interrupt))
    }

    /// Saves the `save` regions of a memory file (JSON).
    fn save_memory_file(&self, py: Python<'_>, path: FilePath) -> PyResult<()> {
        let files = MemoryFiles::new(&self.spec, None, None, Some(&path.0), false).map_err(|e| error::core(py, &e))?;
        self.attended(py, |machine, interrupt| files.save_until(machine, interrupt))
    }

    /// Bytes of the host that DRAM and PDM take: the written pages, of 32 KiB each.
    #[getter]
    fn resident_bytes(&self, py: Python<'_>) -> PyResult<usize> {
        self.with(py, |machine| Ok(machine.resident_bytes()))
    }

    /// Sets every memory to zero. Makes the machine usable again after an error.
    fn reset(&self, py: Python<'_>) -> PyResult<()> {
        self.with(py, |machine| {
            machine.reset();
            Ok(())
        })
    }

    fn __repr__(&self) -> String {
        format!("Machine({:?})", self.spec.machine.name)
    }
}

#[pymethods]
impl PyMemoryFiles {
    /// Reads memory files and checks their keys, regions and offsets. `config` counts for both directions. `load` and
    /// `save` are memory files for one direction each. But if `config` has regions without `file` in a direction, the
    /// argument of that direction is the data file. It holds the data of those regions one after the other. `outside`
    /// allows a memory file to save to files outside its own folder. Raises EmulatorError F0001, F0004, F0006.
    #[new]
    #[pyo3(signature = (spec, *, config = None, load = None, save = None, outside = false))]
    fn new(
        py: Python<'_>,
        spec: &PySpec,
        config: Option<FilePath>,
        load: Option<FilePath>,
        save: Option<FilePath>,
        outside: bool,
    ) -> PyResult<PyMemoryFiles> {
        let [config, load, save] = [&config, &load, &save].map(|path| path.as_ref().map(|path| &*path.0));
        let inner = MemoryFiles::new(&spec.inner, config, load, save, outside).map_err(|e| error::core(py, &e))?;
        let name = |region: &Region| spec.inner.memories[region.memory].name.clone();
        let saved = inner.saved().iter().map(|r| (name(r), r.units[0].unwrap_or(0), r.addr, r.count)).collect();
        Ok(PyMemoryFiles { inner, saved })
    }

    /// The regions to save that have a length: memory, group, first long word, number of long words.
    #[getter]
    fn saved(&self) -> Vec<(String, u32, u64, u64)> {
        self.saved.clone()
    }

    /// The files that are read: the memory files and the data to load.
    #[getter]
    fn inputs(&self) -> Vec<&std::path::Path> {
        self.inner.inputs().collect()
    }

    /// The files that are written.
    #[getter]
    fn outputs(&self) -> Vec<&std::path::Path> {
        self.inner.outputs().collect()
    }

    /// Writes the regions to load to `machine`.
    fn load(&self, py: Python<'_>, machine: &PyMachine) -> PyResult<()> {
        machine.attended(py, |machine, interrupt| self.inner.load_until(machine, interrupt))
    }

    /// Writes the regions to save from `machine` to their files.
    fn save(&self, py: Python<'_>, machine: &PyMachine) -> PyResult<()> {
        machine.attended(py, |machine, interrupt| self.inner.save_until(machine, interrupt))
    }
}

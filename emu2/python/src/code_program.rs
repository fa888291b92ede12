//! Programs of the compiler: the lines of nodes that follow each other, or that share lines.

use crate::code_machine::{counts, PyCodeLines, PyCodeMachine};
use placing::{Code, Fragment, Kind, Node, Program, Values};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyDict;
use std::collections::HashMap;
use std::sync::Arc;

/// What a program counts of a node: steps, words of DRAM read and written, steps by slot, waits.
type Row<'py> = (i64, i64, i64, Bound<'py, PyDict>, i64);
/// An MV: its node, its memories, its words, when it starts and ends.
type Flight = (usize, String, String, i64, i64, i64);
/// When a line or an MV begins and ends, and for how many cycles it holds which slots or memories.
type Held = (i64, i64, Vec<(String, i64)>);
/// Lines, the lines with addresses of DRAM, rows, cycles, runs, MVs, stalls, and how many parts were merged.
type Found<'py> = (
    Vec<String>,
    Vec<(usize, String, i64)>,
    Vec<Row<'py>>,
    i64,
    Vec<(usize, i64, Vec<usize>)>,
    Vec<Flight>,
    [i64; 3],
    usize,
);

/// The program of nodes; if `merged`, they share lines. A part of it has at most `window` lines of nodes, or one node.
#[pyclass(name = "CodeProgram", module = "emu2._core")]
pub(crate) struct PyCodeProgram {
    machine: Py<PyCodeMachine>,
    program: Option<Program>,
}

#[pymethods]
impl PyCodeProgram {
    #[new]
    fn new(py: Python<'_>, machine: Py<PyCodeMachine>, merged: bool, window: usize) -> Self {
        let program = Program::new(Arc::clone(&machine.bind(py).get().machine), merged, window);
        Self { machine, program: Some(program) }
    }

    /// Adds a node. `names` has the names of its values in the program, and `addresses` those that have one.
    ///
    /// `kind` is `download`, `transfer`, `other` or `fixed`. Raises KeyError for a value without an address, and ValueError
    /// for another kind.
    fn add(
        &mut self,
        py: Python<'_>,
        comment: String,
        lines: &PyCodeLines,
        kind: &str,
        packed: bool,
        loose: bool,
        names: HashMap<String, String>,
        addresses: &Bound<'_, PyAny>,
    ) -> PyResult<()> {
        let kind = match kind {
            "download" => Kind::Download,
            "transfer" => Kind::Transfer,
            "other" => Kind::Other,
            "fixed" => Kind::Fixed,
            _ => return Err(PyValueError::new_err("no kind of nodes")),
        };
        let mut values = Values::default();
        for name in &lines.values {
            let own = names.get(name).unwrap_or(name);
            values.at.push(Some(addresses.get_item(own)?.extract()?));
            values.names.push(own.as_str().into());
        }
        let fragment = Fragment { lines: Arc::clone(&lines.lines), packed, loose, values: Arc::new(values) };
        let node = Node { comment, fragment, short: Arc::clone(&lines.short), kind };
        let program = self.program.as_mut().ok_or_else(finished)?;
        py.detach(|| program.add(node));
        Ok(())
    }

    /// Returns when each line and each MV of the nodes begins and ends at the earliest, in cycles, as if every slot, port and
    /// memory were free, and for how many cycles it holds which of them.
    ///
    /// None if lines that belong together cannot be kept together. Raises ValueError if the program was returned before.
    fn unlimited(&mut self, py: Python<'_>) -> PyResult<Option<Vec<Held>>> {
        let program = self.program.as_mut().ok_or_else(finished)?;
        let found = py.detach(|| program.unlimited());
        let all = self.machine.get().machine.names.all();
        let text = |name: u16| all.get(usize::from(name)).map_or(String::new(), ToString::to_string);
        let named = |uses: Vec<(u16, i64)>| uses.into_iter().map(|(name, cycles)| (text(name), cycles)).collect();
        Ok(found.map(|all| all.into_iter().map(|(start, end, uses)| (start, end, named(uses))).collect()))
    }

    /// Returns the program of all nodes; none may come behind. Raises ValueError if it was returned before.
    fn finish<'py>(&mut self, py: Python<'py>) -> PyResult<Found<'py>> {
        let program = self.program.take().ok_or_else(finished)?;
        let (code, parts) = py.detach(|| program.finish());
        let all = self.machine.get().machine.names.all();
        let text = |name| all.get(usize::from(name)).map_or(String::new(), ToString::to_string);
        let Code { lines, relocations, nodes, cycles, runs, flights, stalls } = code;
        let rows = nodes
            .iter()
            .map(|row| Ok((row.steps, row.dram[0], row.dram[1], counts(py, &all, &row.busy)?, row.waits)))
            .collect::<PyResult<_>>()?;
        let relocations = relocations.into_iter().map(|(line, value, more)| (line, value.to_string(), more)).collect();
        let flight = |one: &placing::Flight| {
            (one.node, text(one.ends.0), text(one.ends.1), one.words, one.cycles.0, one.cycles.1)
        };
        let flights = flights.iter().map(flight).collect();
        Ok((lines, relocations, rows, cycles, runs, flights, stalls, parts))
    }
}

fn finished() -> PyErr {
    PyValueError::new_err("the program was returned before")
}

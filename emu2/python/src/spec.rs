//! `emu2.Spec`.

use crate::argument::Name;
use crate::error;
use crate::transfer::{index_map, mv_rate, PyIndexMap};
use emu2::report::manual;
use emu2::spec::{DataWidth, ForwardUnit, MatrixKernel, MauPort, Mnemonic, Spec, Unit};
use pyo3::prelude::*;
use pyo3::types::PyDict;
use std::sync::Arc;

/// A loaded machine description.
#[pyclass(frozen, name = "Spec", module = "emu2")]
pub(crate) struct PySpec {
    pub(crate) inner: Arc<Spec>,
}

/// Names of the specs that come with the package.
#[pyfunction]
pub(crate) fn built_in_specs() -> Vec<String> {
    emu2::spec::built_in_names()
}

/// The files of a spec and of those that it extends, its own first: names, which are paths if they lie on disk, and texts.
#[pyfunction]
pub(crate) fn spec_texts(py: Python<'_>, name: Name) -> PyResult<Vec<(String, String)>> {
    emu2::spec::texts(&name).map_err(|e| error::core(py, &e))
}

/// Names of the machines of the package that nobody built, such as `what_if/large_lm`; each extends a real one.
#[pyfunction]
pub(crate) fn what_if_specs() -> Vec<String> {
    emu2::spec::what_if_names()
}

#[pymethods]
impl PySpec {
    /// Loads a built-in spec by name, a folder of TOML files, or one TOML file.
    #[staticmethod]
    pub(crate) fn load(py: Python<'_>, name: Name) -> PyResult<PySpec> {
        let inner = Spec::load(&name).map_err(|e| error::core(py, &e))?;
        Ok(PySpec { inner: Arc::new(inner) })
    }

    #[getter]
    fn name(&self) -> &str {
        &self.inner.machine.name
    }

    #[getter]
    fn doc(&self) -> &str {
        &self.inner.machine.doc
    }

    #[getter]
    fn clock_mhz(&self) -> u32 {
        self.inner.machine.clock_mhz
    }

    /// Number of units of each level inside one unit of the level above, and the cycles of a step.
    #[getter]
    fn counts<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let c = &self.inner.counts;
        let dict = PyDict::new(py);
        let counts =
            [("group", c.group), ("l2b", c.l2b), ("l1b", c.l1b), ("mab", c.mab), ("pe", c.pe), ("cycle", c.cycle)];
        for (name, count) in counts {
            dict.set_item(name, count)?;
        }
        Ok(dict)
    }

    /// Widths of links in long words per cycle, by name.
    #[getter]
    fn ports<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let dict = PyDict::new(py);
        for (name, width) in &self.inner.ports {
            dict.set_item(name, width)?;
        }
        Ok(dict)
    }

    /// Rows of a matrix register, and its columns that take part in products, by precision.
    #[getter]
    fn matrices(&self) -> std::collections::BTreeMap<&str, (u32, u32)> {
        self.inner.mau_precisions.iter().map(|m| (m.name.as_str(), (m.rows, m.columns))).collect()
    }

    /// Bits of exponent and fraction of the float formats, by name.
    #[getter]
    fn formats(&self) -> std::collections::BTreeMap<&str, (u32, u32)> {
        self.inner.formats.iter().map(|f| (f.name.as_str(), (f.exponent, f.fraction))).collect()
    }

    /// Facts about the MAU by precision, a dict each: rows and columns (see `matrices`), result (long words that a PE's
    /// result takes), mantissa (the longest that a conversion to block float can name, None if it names none).
    #[getter]
    fn products<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let all = PyDict::new(py);
        for m in &self.inner.mau_precisions {
            let mut lengths = self.inner.alu.iter().filter_map(|a| a.lengths.as_ref());
            let dict = PyDict::new(py);
            dict.set_item("rows", m.rows)?;
            dict.set_item("columns", m.columns)?;
            dict.set_item("result", if m.result == DataWidth::Path { 2 } else { 1 })?;
            dict.set_item("mantissa", lengths.find(|l| l.precision == m.name).map(|l| l.maximum))?;
            all.set_item(&m.name, dict)?;
        }
        Ok(all)
    }

    /// Maps each forwarding path to the issue slot whose last result it holds.
    #[getter]
    fn forwards(&self) -> std::collections::BTreeMap<&str, &str> {
        let slot = |unit: ForwardUnit| match unit {
            ForwardUnit::Mau => "mau",
            ForwardUnit::Alu => "alu",
            ForwardUnit::L1bm => "l1bm",
            ForwardUnit::Matrix => {
                let read = self.inner.matrix_ops.iter().find(|op| op.kernel == MatrixKernel::Read);
                read.map_or("mread", |op| op.slot.as_str())
            }
        };
        self.inner.forwards.iter().map(|f| (f.name.as_str(), slot(f.unit))).collect()
    }

    /// Maps the letter of a matrix register in operands to its memory.
    #[getter]
    fn banks(&self) -> std::collections::BTreeMap<&str, &str> {
        self.inner.banks.iter().map(|b| (b.name.as_str(), b.memory.as_str())).collect()
    }

    /// Maps each ALU operation, without a precision, to the memories that no instruction of its line may touch.
    #[getter]
    fn excludes(&self) -> std::collections::BTreeMap<&str, Vec<String>> {
        let rules = self.inner.alu.iter().filter(|a| !a.excludes.is_empty());
        rules.map(|a| (a.name.as_str(), a.excludes.clone())).collect()
    }

    /// The mask registers: destination and source (their names as a destination and as a mask, without `$`), memory,
    /// entries (with entry 0, which masks nothing).
    #[getter]
    fn masks<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let masks = &self.inner.mask;
        let dict = PyDict::new(py);
        dict.set_item("destination", &masks.destination)?;
        dict.set_item("source", &masks.source)?;
        dict.set_item("memory", &masks.memory)?;
        dict.set_item("entries", masks.entries)?;
        Ok(dict)
    }

    /// Facts about an ALU, MAU or matrix instruction, a dict: precision (None if it has none), inputs (the MAU inputs that
    /// its sources come through), excludes (memories that no instruction of its line may touch). `mnemonic` is without
    /// parameters (`fvfma`, `hbfn`). None if no such instruction has this mnemonic.
    fn instruction<'py>(&self, py: Python<'py>, mnemonic: Name) -> PyResult<Option<Bound<'py, PyDict>>> {
        let spec = &self.inner;
        let (precision, inputs, excludes): (_, &[MauPort], &[String]) = match spec.mnemonics.get(&*mnemonic) {
            Some(Mnemonic::Alu { op, precision, .. }) => (*precision, &[], &spec.alu[*op].excludes),
            Some(Mnemonic::Mau { op, precision, .. }) => (Some(*precision), &spec.mau[*op].sources, &[]),
            Some(Mnemonic::Matrix { op, precision, .. }) => {
                (Some(*precision), spec.matrix_ops[*op].port.as_slice(), &[])
            }
            Some(Mnemonic::Transfer(_) | Mnemonic::Control(_)) | None => return Ok(None),
        };
        let dict = PyDict::new(py);
        dict.set_item("precision", precision.map(|p| spec.precisions[p].name.as_str()))?;
        let inputs: Vec<_> = inputs.iter().map(|port| format!("{port:?}").to_lowercase()).collect();
        dict.set_item("inputs", inputs)?;
        dict.set_item("excludes", excludes)?;
        Ok(Some(dict))
    }

    /// Maps each memory to its facts: words (long words of one instance), level, unit, letter, by_table (the letter
    /// of operands whose blocks a table names), widths, dump, doc.
    #[getter]
    fn memories<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let all = PyDict::new(py);
        for m in &self.inner.memories {
            let dict = PyDict::new(py);
            dict.set_item("words", m.words)?;
            dict.set_item("level", format!("{:?}", m.level).to_lowercase())?;
            let unit = match m.unit {
                Unit::Word => "word",
                Unit::Long => "long",
                Unit::Cycle => "cycle",
                Unit::Mask => "mask",
                Unit::Base => "base",
                Unit::Matrix => "matrix",
            };
            dict.set_item("unit", unit)?;
            let written = |o: &emu2::spec::Operand| format!("{}{}", o.letter, o.suffix);
            let mut operands = self.inner.operands.iter().filter(|o| o.memory == m.name);
            let by_table = operands.clone().find(|o| o.table.is_some());
            let operand = operands.next();
            dict.set_item("letter", operand.map(written))?;
            dict.set_item("by_table", by_table.map(written))?;
            dict.set_item("widths", operand.map(|o| o.widths.clone()))?;
            dict.set_item("dump", &m.dump)?;
            dict.set_item("doc", &m.doc)?;
            all.set_item(&m.name, dict)?;
        }
        Ok(all)
    }

    /// Distances that must lie between a write and a read, a dict per rule: name, memories, writers and readers (issue
    /// slots; empty: all), source (the memory that the writer reads; None: any), rule ("port", "data", "wait", "forward"),
    /// steps or cycles, evidence, doc.
    #[getter]
    fn hazards<'py>(&self, py: Python<'py>) -> PyResult<Vec<Bound<'py, PyDict>>> {
        let rule = |h: &emu2::spec::Hazard| {
            let dict = PyDict::new(py);
            dict.set_item("name", &h.name)?;
            dict.set_item("memories", &h.memories)?;
            dict.set_item("writers", &h.writers)?;
            dict.set_item("readers", &h.readers)?;
            dict.set_item("source", &h.source)?;
            dict.set_item("rule", format!("{:?}", h.rule).to_lowercase())?;
            dict.set_item("steps", h.steps)?;
            dict.set_item("cycles", h.cycles)?;
            dict.set_item("evidence", h.evidence.name())?;
            dict.set_item("doc", h.doc.trim())?;
            Ok(dict)
        };
        self.inner.hazards.iter().map(rule).collect()
    }

    /// Slots that drive one unit, a dict per unit: name, slots, limit (how many of them a line may use, all of one
    /// precision).
    #[getter]
    fn shares<'py>(&self, py: Python<'py>) -> PyResult<Vec<Bound<'py, PyDict>>> {
        let share = |s: &emu2::spec::Share| {
            let dict = PyDict::new(py);
            dict.set_item("name", &s.name)?;
            dict.set_item("slots", &s.slots)?;
            dict.set_item("limit", s.limit)?;
            Ok(dict)
        };
        self.inner.shares.iter().map(share).collect()
    }

    /// The letters of assembly text that `[syntax]` names, and tag_digits, the number of hex digits of a tag. The value of
    /// mask_assertions is its letters in one string.
    #[getter]
    fn syntax<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let s = &self.inner.syntax;
        let dict = PyDict::new(py);
        let letters = [
            ("stride", s.stride),
            ("indirect", s.indirect),
            ("modify", s.modify),
            ("extend", s.extend),
            ("reduce", s.reduce),
            ("mv_size", s.mv_size),
            ("mv_tag", s.mv_tag),
            ("mv_priority", s.mv_priority),
            ("block_float", s.block_float),
        ];
        for (name, letter) in letters {
            dict.set_item(name, letter)?;
        }
        dict.set_item("mask_assertions", s.mask_assertions.iter().collect::<String>())?;
        dict.set_item("mv_table", &s.mv_table)?;
        dict.set_item("tag_digits", s.tag_digits)?;
        Ok(dict)
    }

    /// The smallest and the largest tag of an MV.
    #[getter]
    fn mv_tags(&self) -> (u32, u32) {
        (self.inner.timing.tag_minimum, self.inner.timing.tag_maximum)
    }

    /// Every legal mnemonic, without parameters, sorted.
    #[getter]
    fn mnemonics(&self) -> Vec<String> {
        let mut all: Vec<_> = self.inner.mnemonics.keys().cloned().collect();
        sorting::sort(&mut all);
        all
    }

    /// The manual page of an instruction, or None.
    fn page(&self, name: Name) -> Option<String> {
        manual::page(&self.inner, &name)
    }

    /// One line per instruction.
    fn list(&self) -> String {
        manual::list(&self.inner)
    }

    /// Evaluates an index map: the long words that a transfer moves, and the place to which each of them goes.
    ///
    /// `mnemonic` is the transfer's name in the spec, without parameters (`l2bmb`, `mvp`); `form` is one of its forms, such
    /// as `down`. `parameters` are the numbers that the mnemonic and the selectors carry, by the spec's names (`shift`,
    /// `mab_number`, `l1bs_first`, `src_group`, ...). The map of an MV is that of its block `i`, 0 unless given.
    ///
    /// Returns an IndexMap. Its arrays are int64 of shape (n,), one entry per moved long word. Addresses count long words
    /// from the address that the instruction names.
    ///
    /// Raises EmulatorError: S0005 for an unknown transfer or form, S0007 for parameters for which the map has no value.
    ///
    /// Source: the index maps of `isa_specs`, which cite the manual's sections; `emu2 spec MNEMONIC` prints the page.
    #[pyo3(signature = (mnemonic, form, **parameters))]
    fn index_map(
        &self,
        py: Python<'_>,
        mnemonic: Name,
        form: Name,
        parameters: Option<&Bound<'_, PyDict>>,
    ) -> PyResult<PyIndexMap> {
        index_map(&self.inner, py, &mnemonic, &form, parameters)
    }

    /// The rate at which an MV holds its memories: so many long words of its size, then in so many cycles, in lowest terms.
    ///
    /// The arguments are those of `index_map`. Raises EmulatorError: S0005 also for a form that is not one of an MV, S0007.
    #[pyo3(signature = (mnemonic, form, **parameters))]
    fn mv_rate(
        &self,
        py: Python<'_>,
        mnemonic: Name,
        form: Name,
        parameters: Option<&Bound<'_, PyDict>>,
    ) -> PyResult<(u64, u64)> {
        mv_rate(&self.inner, py, &mnemonic, &form, parameters)
    }

    /// The cycles from the time at which an MV releases its memories to its end.
    #[getter]
    fn mv_latency(&self) -> u32 {
        self.inner.timing.mv_latency
    }

    fn __repr__(&self) -> String {
        format!("Spec({:?})", self.inner.machine.name)
    }
}

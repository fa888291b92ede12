//! The machine for which the compiler writes code, and the lines of its layers read for it.

use placing::{
    BlockWords, Hazard, Instruction, Issue, Line, Machine, Memory, Move, Name, Names, Part, Pe, Rules, Syntax,
};
use pyo3::exceptions::PyValueError;
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyString, PyTuple};
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

/// Of a memory its words, its letters, and the prefixes of its operands.
type MemoryFacts = (i64, String, String, (String, String));

/// The facts of a machine beside its distances: made by `pycompiler.emit.ports`.
#[derive(FromPyObject)]
struct Facts {
    /// Slots that share a unit, with how many of them a line may use.
    shares: Vec<(Vec<String>, usize)>,
    /// The memory of each bank of matrix registers; a line makes one access of each.
    banks: HashMap<String, String>,
    /// Memories above the PEs, and those that MVs use.
    above: Vec<String>,
    shared: Vec<String>,
    memories: HashMap<String, MemoryFacts>,
    syntax: HashMap<String, String>,
    forwards: HashMap<String, String>,
    /// How words are compared in blocks: where MVs touch them, and where lines do.
    unit: i64,
    granule: i64,
    cycles: i64,
    l2bs: (i64, i64),
    long: i64,
    wide: i64,
    row: i64,
    ring: i64,
    tags: (i64, i64),
    masks: (String, i64),
    files: Vec<String>,
    local: Vec<String>,
    numbers: Vec<String>,
    /// DRAM, L1BM, L2BM and PDM; the register that indirect addresses add; the memory of address registers.
    places: (String, String, String, String, String, String),
    /// The slot of the ALU, and the name of MVs among the slots.
    slots: (String, String),
}

/// A machine for which code is written.
///
/// `facts` are those of its spec. `operands` are the classes of operands: in PEs, above them, of forwarding paths, of matrix
/// registers, literals, names; then that of MVs. `issue` returns the precision, the inputs and the excluded memories of a
/// mnemonic; `cost` the ports of an MV, the cycles for which it holds them, and those to its end.
#[pyclass(name = "CodeMachine", module = "emu2._core", frozen)]
pub(crate) struct PyCodeMachine {
    pub(crate) machine: Arc<Machine>,
    classes: [Py<PyAny>; 7],
    issue: Py<PyAny>,
    cost: Py<PyAny>,
    known: Mutex<HashMap<String, Issue>>,
}

#[pymethods]
impl PyCodeMachine {
    #[new]
    fn new(
        hazards: Vec<HazardFacts>,
        facts: Facts,
        operands: [Py<PyAny>; 7],
        issue: Py<PyAny>,
        cost: Py<PyAny>,
    ) -> PyResult<Self> {
        let sizes = [
            facts.cycles,
            facts.unit,
            facts.granule,
            facts.l2bs.0,
            facts.l2bs.1,
            facts.long,
            facts.wide,
            facts.row,
            facts.ring,
        ];
        if sizes.iter().any(|&number| number < 1) {
            return Err(PyValueError::new_err("the sizes of a machine are at least 1"));
        }
        let machine = Arc::new(machine(hazards, facts));
        Ok(Self { machine, classes: operands, issue, cost, known: Mutex::default() })
    }
}

fn machine(hazards: Vec<HazardFacts>, facts: Facts) -> Machine {
    let names = Names::default();
    let of = |name: &String| names.of(name);
    let all = |given: &[String]| given.iter().map(of).collect::<Vec<_>>();
    let set = |given: &BTreeSet<String>| given.iter().map(of).collect::<Vec<_>>();
    let hazards = hazards.iter().map(|rule| Hazard {
        memories: set(&rule.memories),
        port: rule.rule == "port",
        steps: rule.steps,
        cycles: rule.cycles,
        writers: set(&rule.writers),
        readers: set(&rule.readers),
        source: rule.source.as_ref().map(of),
    });
    let mut rules = Rules::new(hazards.collect(), facts.cycles);
    let banks = facts.banks.iter().map(|(bank, memory)| (of(bank), of(memory)));
    rules.shares = facts.shares.iter().map(|(slots, limit)| (all(slots), *limit)).collect();
    rules.banks = facts.banks.values().map(of).collect();
    (rules.above, rules.shared) = (all(&facts.above), all(&facts.shared));
    (rules.unit, rules.granule, rules.l2bs) = (facts.unit, facts.granule, facts.l2bs);
    let memory = |(name, (words, letter, by_table, (plain, wide))): (&String, &MemoryFacts)| {
        let prefixes = [plain.clone(), wide.clone()];
        (of(name), Memory { words: *words, letter: letter.clone(), by_table: by_table.clone(), prefixes })
    };
    let text = |name: &str| facts.syntax.get(name).cloned().unwrap_or_default();
    let syntax = Syntax {
        indirect: text("indirect"),
        extend: text("extend"),
        reduce: text("reduce"),
        stride: text("stride"),
        mv_size: text("mv_size"),
        mv_tag: text("mv_tag"),
        tag_digits: text("tag_digits").parse().unwrap_or(0),
        masks: [text("mask_destination"), text("mask_source")],
        forwards: facts.forwards.iter().map(|(path, slot)| (of(slot), path.clone())).collect(),
    };
    let (dram, blocks, above, host, added, entries) = &facts.places;
    Machine {
        memories: facts.memories.iter().map(memory).collect(),
        syntax,
        banks: banks.collect(),
        files: all(&facts.files),
        local: all(&facts.local),
        dram: of(dram),
        blocks: of(blocks),
        above: of(above),
        host: of(host),
        added: of(added),
        entries: of(entries),
        masks: of(&facts.masks.0),
        registers: facts.masks.1,
        numbers: all(&facts.numbers),
        alu: of(&facts.slots.0),
        mv: of(&facts.slots.1),
        row: facts.row,
        long: facts.long,
        wide: facts.wide,
        ring: facts.ring,
        tags: facts.tags,
        rules: Arc::new(rules),
        names,
    }
}

/// The code of a node: its lines, the same with short MVs, and the names of the values that they name.
///
/// Raises ValueError for an operand that the text of a program cannot name.
#[pyclass(name = "CodeLines", module = "emu2._core", frozen)]
pub(crate) struct PyCodeLines {
    pub(crate) lines: Arc<[Line]>,
    pub(crate) short: Arc<[Line]>,
    pub(crate) values: Vec<String>,
}

#[pymethods]
impl PyCodeLines {
    #[new]
    fn new(machine: &PyCodeMachine, lines: Bound<'_, PyTuple>, short: Bound<'_, PyTuple>) -> PyResult<Self> {
        let mut reader = Reader { of: machine, values: Vec::new(), made: HashMap::new() };
        let own = reader.lines(&lines)?;
        let short = if short.is(&lines) { Arc::clone(&own) } else { reader.lines(&short)? };
        Ok(Self { lines: own, short, values: reader.values })
    }
}

/// Reads the lines of a node. An instruction that stands on many lines is read once.
struct Reader<'a> {
    of: &'a PyCodeMachine,
    values: Vec<String>,
    made: HashMap<usize, Arc<Instruction>>,
}

impl Reader<'_> {
    fn lines(&mut self, lines: &Bound<'_, PyTuple>) -> PyResult<Arc<[Line]>> {
        lines.iter().map(|line| self.line(&line)).collect()
    }

    fn line(&mut self, line: &Bound<'_, PyAny>) -> PyResult<Line> {
        let py = line.py();
        if line.get_type().is(self.of.classes[6].bind(py)) {
            return self.transfer(line).map(|one| Line::Move(Arc::new(one)));
        }
        let all = line.getattr(intern!(py, "instructions"))?;
        let all = all.cast::<PyTuple>()?.iter().map(|one| self.known(&one));
        Ok(Line::Step(all.collect::<PyResult<_>>()?))
    }

    fn transfer(&mut self, line: &Bound<'_, PyAny>) -> PyResult<Move> {
        let py = line.py();
        Ok(Move {
            mnemonic: self.name(line, intern!(py, "mnemonic"))?,
            words: line.getattr(intern!(py, "words"))?.extract()?,
            source: self.block(&line.getattr(intern!(py, "source"))?)?,
            destination: self.block(&line.getattr(intern!(py, "destination"))?)?,
            transfer: {
                let (ports, holds, latency): (Vec<String>, i64, i64) = self.of.cost.call1(py, (line,))?.extract(py)?;
                (ports.iter().map(|port| self.of.machine.names.of(port)).collect(), holds, latency)
            },
        })
    }

    fn known(&mut self, one: &Bound<'_, PyAny>) -> PyResult<Arc<Instruction>> {
        let key = one.as_ptr() as usize;
        if let Some(found) = self.made.get(&key) {
            return Ok(Arc::clone(found));
        }
        let made = Arc::new(self.instruction(one)?);
        self.made.insert(key, Arc::clone(&made));
        Ok(made)
    }

    fn instruction(&mut self, one: &Bound<'_, PyAny>) -> PyResult<Instruction> {
        let py = one.py();
        let mnemonic = one.getattr(intern!(py, "mnemonic"))?;
        let name = mnemonic.cast::<PyString>()?.to_str()?;
        let names = &self.of.machine.names;
        let part = name.split_once('@').map(|(_, part)| names.of(part));
        let places = (self.name(one, intern!(py, "slot"))?, names.of(name), part);
        let issue = self.of.issue(&mnemonic)?;
        let mut operands = |list: &Bound<'_, PyString>| -> PyResult<Vec<Part>> {
            let list = one.getattr(list)?;
            list.cast::<PyTuple>()?.iter().map(|operand| self.operand(&operand)).collect()
        };
        let (sources, destinations) = (operands(intern!(py, "sources"))?, operands(intern!(py, "destinations"))?);
        let flush = self.mask(&one.getattr(intern!(py, "flush"))?)?;
        Ok(Instruction::new(&self.of.machine, places, sources, destinations, flush, issue))
    }

    fn operand(&mut self, operand: &Bound<'_, PyAny>) -> PyResult<Part> {
        let py = operand.py();
        let class = operand.get_type();
        let is = |number: usize| class.is(self.of.classes[number].bind(py));
        if is(0) {
            self.pe(operand).map(Part::Pe)
        } else if is(1) {
            self.block(operand).map(Part::Block)
        } else if is(2) {
            Ok(Part::Forward(self.name(operand, intern!(py, "slot"))?, truth(operand, intern!(py, "negate"))?))
        } else if is(3) {
            let row = operand.getattr(intern!(py, "row"))?.extract()?;
            Ok(Part::Matrix(self.name(operand, intern!(py, "bank"))?, row, number(operand, intern!(py, "words"))?))
        } else if is(4) {
            let value = self.value(operand)?;
            Ok(Part::Literal(number(operand, intern!(py, "bits"))?, value, number(operand, intern!(py, "unit"))?))
        } else {
            Ok(Part::Special(self.name(operand, intern!(py, "name"))?))
        }
    }

    fn pe(&mut self, operand: &Bound<'_, PyAny>) -> PyResult<Pe> {
        let py = operand.py();
        let part = operand.getattr(intern!(py, "word"))?;
        let word = match part.extract::<i64>() {
            Ok(one) => vec![one],
            Err(_) => part.extract::<Option<Vec<i64>>>()?.unwrap_or_default(),
        };
        Ok(Pe {
            memory: self.name(operand, intern!(py, "memory"))?,
            offsets: operand.getattr(intern!(py, "offsets"))?.extract()?,
            value: self.value(operand)?,
            negate: truth(operand, intern!(py, "negate"))?,
            word,
            extend: truth(operand, intern!(py, "extend"))?,
            reduce: truth(operand, intern!(py, "reduce"))?,
            words: number(operand, intern!(py, "words"))?,
            mask: self.mask(&operand.getattr(intern!(py, "mask"))?)?,
            indirect: truth(operand, intern!(py, "indirect"))?,
        })
    }

    /// The first word of a mask register.
    fn mask(&mut self, register: &Bound<'_, PyAny>) -> PyResult<Option<i64>> {
        if register.is_none() {
            return Ok(None);
        }
        let (own, machine) = (self.pe(register)?, &self.of.machine);
        let (first, cycles) = (own.offsets.first().copied().unwrap_or(-1), machine.rules.cycles);
        let whole = own.offsets.iter().copied().eq(first..first + cycles);
        if own.memory != machine.masks || own.value.is_some() || first % cycles != 0 || !whole {
            return Err(PyValueError::new_err("a mask is a mask register"));
        }
        Ok(Some(first))
    }

    fn block(&mut self, operand: &Bound<'_, PyAny>) -> PyResult<BlockWords> {
        let py = operand.py();
        Ok(BlockWords {
            memory: self.name(operand, intern!(py, "memory"))?,
            offset: number(operand, intern!(py, "offset"))?,
            words: number(operand, intern!(py, "words"))?,
            value: self.value(operand)?,
            unit: (operand.getattr(intern!(py, "group"))?.extract()?, operand.getattr(intern!(py, "l2b"))?.extract()?),
            wide: truth(operand, intern!(py, "wide"))?,
            entries: operand.getattr(intern!(py, "entries"))?.extract()?,
            implied: truth(operand, intern!(py, "implied"))?,
        })
    }

    /// The number of the value of an operand.
    fn value(&mut self, operand: &Bound<'_, PyAny>) -> PyResult<Option<usize>> {
        let value: Option<String> = operand.getattr(intern!(operand.py(), "value"))?.extract()?;
        Ok(value.map(|name| {
            self.values.iter().position(|one| *one == name).unwrap_or_else(|| {
                self.values.push(name);
                self.values.len() - 1
            })
        }))
    }

    fn name(&self, from: &Bound<'_, PyAny>, attribute: &Bound<'_, PyString>) -> PyResult<Name> {
        let found = from.getattr(attribute)?;
        Ok(self.of.machine.names.of(found.cast::<PyString>()?.to_str()?))
    }
}

fn truth(from: &Bound<'_, PyAny>, attribute: &Bound<'_, PyString>) -> PyResult<bool> {
    from.getattr(attribute)?.is_truthy()
}

fn number(from: &Bound<'_, PyAny>, attribute: &Bound<'_, PyString>) -> PyResult<i64> {
    from.getattr(attribute)?.extract()
}

impl PyCodeMachine {
    /// What a mnemonic demands of its line, which is asked once.
    fn issue(&self, mnemonic: &Bound<'_, PyAny>) -> PyResult<Issue> {
        let name = mnemonic.cast::<PyString>()?.to_str()?;
        let known = || self.known.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(found) = known().get(name) {
            return Ok(found.clone());
        }
        let (precision, inputs, excludes): (Option<String>, Vec<String>, Vec<String>) =
            self.issue.call1(mnemonic.py(), (mnemonic,))?.extract(mnemonic.py())?;
        let all = |given: Vec<String>| given.iter().map(|one| self.machine.names.of(one)).collect();
        let precision = precision.map(|name| self.machine.names.of(&name));
        let found = Issue { precision, inputs: all(inputs), excludes: all(excludes) };
        known().insert(name.to_owned(), found.clone());
        Ok(found)
    }
}

/// The facts of a row of counts, by name.
pub(crate) fn counts<'py>(py: Python<'py>, all: &[Arc<str>], found: &[(Name, i64)]) -> PyResult<Bound<'py, PyDict>> {
    let out = PyDict::new(py);
    for (name, count) in found {
        out.set_item(all.get(usize::from(*name)).map_or("", AsRef::as_ref), count)?;
    }
    Ok(out)
}

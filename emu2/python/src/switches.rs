//! The compiler's search for the passes of a layout switch.

use numpy::{ndarray, PyArray1, PyReadonlyArray1};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyTuple;
use pyo3::IntoPyObjectExt;
use switches::{pass_steps, plan};
use switches::{
    Change, Chosen, Goal, Guesses, Layout, Level, Line, Machine, Move, Moves, Outcome, Place, SubAxis, TooSmall,
};

const NO_MEANING: &str = "layouts, moves and sizes must have a meaning";

/// A digit: size, number of the level, stride.
type Digit = (i64, usize, i64);
/// The digits of each axis, and those of the copies.
type Places = (Vec<Vec<Digit>>, Vec<Digit>);
/// The units and addresses of the results of moves, then those of their sources.
type Columns<'py> = [Bound<'py, PyArray1<i64>>; 4];
/// Lines: the name of each, and its fields.
type Named<'py> = Vec<Bound<'py, PyTuple>>;
/// A memory without room: its name, the long words that are needed, and those for which there is room.
type Missing = (&'static str, i64, i64);
/// A pass: number of its level, layout afterwards, steps.
type PassRow = (usize, Option<Places>, i64);

/// The layouts and the shape of a tensor.
#[derive(FromPyObject)]
pub(crate) struct Switch {
    source: Places,
    result: Places,
    shape: Vec<i64>,
}

/// What the search must know of the machine and of the tensor's dtype.
#[derive(FromPyObject)]
pub(crate) struct Facts {
    counts: [i64; 5],
    bits: i64,
    addressed_bits: i64,
    lm0: i64,
    cycles: i64,
    mv_latency: i64,
    mv_near: i64,
    mv_far: i64,
    mv_all: i64,
    mv_dram: i64,
    l2bs_per_group: i64,
    row: i64,
    block: i64,
    l2bm_words: i64,
    spread: (i64, i64),
    vectors: i64,
    l2bm: i64,
    pdm: i64,
    masks: i64,
    wide: i64,
}

/// Finds the cheapest passes of a layout switch. Returns rows of level, layout (None for the wanted layout) and steps, or
/// None if there are no passes of at most `most` steps. Levels are numbered from 0: W, PE, MAB, L1B, L2B, Addr, Time.
/// Raises ValueError for numbers that have no meaning. Signals are heard.
#[pyfunction]
pub(crate) fn plan_passes(
    py: Python<'_>,
    switch: Switch,
    facts: Facts,
    most: Option<i64>,
) -> PyResult<Option<Vec<PassRow>>> {
    let (change, machine) = (change(&switch)?, machine(&facts)?);
    let mut signal = Ok(());
    let mut go_on = || {
        signal = Python::attach(|py| py.check_signals());
        signal.is_ok()
    };
    let outcome = py.detach(|| plan(&change, &machine, most, &mut go_on));
    signal?;
    Ok(match outcome {
        Outcome::Found(passes) => {
            let row = |pass: switches::Pass| (pass.level as usize, pass.layout.as_ref().map(given), pass.steps);
            Some(passes.into_iter().map(row).collect())
        }
        Outcome::None | Outcome::Stopped => None,
    })
}

/// Counts the steps of one pass over `level`. Returns None if one pass cannot do it. Raises ValueError for numbers that
/// have no meaning.
#[pyfunction]
pub(crate) fn count_pass_steps(switch: Switch, facts: Facts, level: usize) -> PyResult<Option<i64>> {
    Ok(pass_steps(&change(&switch)?, level_of(level)?, &machine(&facts)?))
}

/// Returns the moves of one pass over `level`: the units and addresses of their results, then those of their sources.
/// Returns None if one pass cannot make the change. Raises ValueError for numbers that have no meaning.
#[pyfunction]
pub(crate) fn pass_moves<'py>(
    py: Python<'py>,
    switch: Switch,
    facts: Facts,
    level: usize,
) -> PyResult<Option<Columns<'py>>> {
    let found = switches::pass_moves(&change(&switch)?, level_of(level)?, &machine(&facts)?);
    let columns = |list: Vec<Move>| {
        let column = |place: fn(&Move) -> i64| PyArray1::from_iter(py, list.iter().map(place));
        [column(|m| m.result), column(|m| m.result_at), column(|m| m.source), column(|m| m.source_at)]
    };
    Ok(found.map(columns))
}

/// A part of moves: columns, and the PEs that write.
type Part<'py> = ([PyReadonlyArray1<'py, i64>; 4], bool, Option<i64>);

/// Returns the lines of moves over `level`, each a tuple of its name and its fields, and None. If a memory has no room
/// for rows that must go together, returns its name, how many long words they have, and for how many there is room. Each part
/// has moves as columns, as [`pass_moves`] returns them, whether only some PEs may write, and the L1B of these, if it is one; no
/// part reads what another writes. `place`: whether the addresses of the source and of the result begin at an even word, whether
/// they lie in different memories, and whether there are words of DRAM. Raises ValueError for numbers that have no meaning.
#[pyfunction]
pub(crate) fn move_lines<'py>(
    py: Python<'py>,
    parts: Vec<Part<'py>>,
    facts: Facts,
    level: usize,
    place: (bool, bool, bool, bool),
) -> PyResult<(Named<'py>, Option<Missing>)> {
    let chosen = |(columns, around, l1b): &Part<'py>| {
        let [result, result_at, source, source_at] = columns.each_ref().map(|column| column.as_array());
        let list = ndarray::Zip::from(result)
            .and(result_at)
            .and(source)
            .and(source_at)
            .map_collect(|&result, &result_at, &source, &source_at| Move {
                result,
                result_at,
                source,
                source_at,
                times: 1,
            })
            .to_vec();
        Chosen { moves: Moves { list, times: 1 }, around: *around, l1b: *l1b }
    };
    let parts: Vec<Chosen> = parts.iter().map(chosen).collect();
    let (source_even, result_even, apart, dram) = place;
    let place = Place { even: (source_even, result_even), apart, around: false, l1b: None, dram };
    let (level, machine) = (level_of(level)?, machine(&facts)?);
    match py.detach(|| switches::move_lines(&parts, level, &place, &machine)).ok_or_else(no_meaning)? {
        Ok(lines) => Ok((lines.into_iter().map(|line| named(py, line)).collect::<PyResult<_>>()?, None)),
        Err(TooSmall { level, words, room }) => {
            let memory = if level == Level::L1b { "l1bm" } else { "l2bm" };
            Ok((Vec::new(), Some((memory, words, room))))
        }
    }
}

/// Returns the name of a line and its fields. Where a result goes, False means nowhere, True the sum, else long words.
fn named(py: Python<'_>, line: Line) -> PyResult<Bound<'_, PyTuple>> {
    let goal = |goal: Goal| match goal {
        Goal::Forward => false.into_py_any(py),
        Goal::Sum => true.into_py_any(py),
        Goal::At(words) => words.into_py_any(py),
    };
    match line {
        Line::Choose { part, units, register } => ("choose", part, units, register).into_pyobject(py),
        Line::Copy { read, write, register } => ("copy", read, write, register).into_pyobject(py),
        Line::Turn { upwards, read, write, register } => ("turn", upwards, read, write, register).into_pyobject(py),
        Line::Words { read, write } => ("words", read, write).into_pyobject(py),
        Line::Constant { number, at } => ("constant", number, at).into_pyobject(py),
        Line::Rotate { read, by } => ("rotate", read, by).into_pyobject(py),
        Line::Keep { read, bits, goal: to } => ("keep", read, bits, goal(to)?).into_pyobject(py),
        Line::Join { goal: to } => ("join", goal(to)?).into_pyobject(py),
        Line::Lift { read, at } => ("lift", read, at).into_pyobject(py),
        Line::Lower { at, by, write, register } => ("lower", at, by, write, register).into_pyobject(py),
        Line::Cast { at, write, register, wide } => ("cast", at, write, register, wide).into_pyobject(py),
        Line::Fill { unit, read, at, wide } => ("fill", unit, read, at, wide).into_pyobject(py),
        Line::ToL2bm { unit, l1bm, l2bm, words } => ("to_l2bm", unit, l1bm, l2bm, words).into_pyobject(py),
        Line::FromL2bm { units, l1bm, l2bm, words } => ("from_l2bm", units, l1bm, l2bm, words).into_pyobject(py),
        Line::Inside { first, free, from, to, words } => ("inside", first, free, from, to, words).into_pyobject(py),
        Line::Spread { upwards, l1bm, l2bm } => ("spread", upwards, l1bm, l2bm).into_pyobject(py),
        Line::Mv { upwards, unit, home, l2bm, at, words } => {
            ("mv", upwards, unit, home, l2bm, at, words).into_pyobject(py)
        }
        Line::MvAll { home, l2bm, pdm, words } => ("mv_all", home, l2bm, pdm, words).into_pyobject(py),
    }
}

/// Returns the number of the instructions whose last flags choose `units` of a level by their number, and the literal that
/// the first joins with the number; None if there are none.
#[pyfunction]
pub(crate) fn compare_units(units: u64, count: i64) -> PyResult<Option<(usize, i64)>> {
    (1..=64).contains(&count).then(|| switches::comparison(units, count)).ok_or_else(no_meaning)
}

fn no_meaning() -> PyErr {
    PyValueError::new_err(NO_MEANING)
}

/// Guesses the steps of switches of a tensor of `shape`.
///
/// Raises ValueError for numbers that have no meaning, as its methods do.
#[pyclass(name = "SwitchGuesses", module = "emu2._core")]
pub(crate) struct PySwitchGuesses {
    guesses: Guesses,
}

#[pymethods]
impl PySwitchGuesses {
    #[new]
    fn new(shape: Vec<i64>, facts: Facts) -> PyResult<Self> {
        Ok(Self { guesses: Guesses::new(shape, machine(&facts)?) })
    }

    /// Returns the number of a layout.
    fn number(&mut self, places: Places) -> PyResult<usize> {
        self.guesses.number(layout(&places)?).ok_or_else(no_meaning)
    }

    /// Returns the steps from each of `sources` to each of `results`, in rows; all are numbers of layouts.
    fn table<'py>(
        &mut self,
        py: Python<'py>,
        sources: Vec<usize>,
        results: Vec<usize>,
    ) -> PyResult<Bound<'py, PyArray1<i64>>> {
        let pairs = sources.iter().flat_map(|&source| results.iter().map(move |&result| (source, result)));
        let steps = pairs.map(|(source, result)| self.guesses.steps(source, result));
        Ok(PyArray1::from_vec(py, steps.collect::<Option<Vec<i64>>>().ok_or_else(no_meaning)?))
    }
}

fn change(switch: &Switch) -> PyResult<Change> {
    let change =
        Change { source: layout(&switch.source)?, result: layout(&switch.result)?, shape: switch.shape.clone() };
    change.is_valid().then_some(change).ok_or_else(no_meaning)
}

fn machine(facts: &Facts) -> PyResult<Machine> {
    let machine = Machine {
        counts: facts.counts,
        bits: facts.bits,
        addressed_bits: facts.addressed_bits,
        lm0: facts.lm0,
        cycles: facts.cycles,
        mv_latency: facts.mv_latency,
        mv_near: facts.mv_near,
        mv_far: facts.mv_far,
        mv_all: facts.mv_all,
        mv_dram: facts.mv_dram,
        l2bs_per_group: facts.l2bs_per_group,
        row: facts.row,
        block: facts.block,
        l2bm_words: facts.l2bm_words,
        spread: facts.spread,
        vectors: facts.vectors,
        l2bm: facts.l2bm,
        pdm: facts.pdm,
        masks: facts.masks,
        wide: facts.wide,
    };
    machine.is_valid().then_some(machine).ok_or_else(no_meaning)
}

fn layout(places: &Places) -> PyResult<Layout> {
    let digit = |&(size, level, stride): &Digit| Ok(SubAxis { size, level: level_of(level)?, stride });
    let digits = |row: &Vec<Digit>| row.iter().map(digit).collect::<PyResult<Vec<SubAxis>>>();
    Ok(Layout { axes: places.0.iter().map(digits).collect::<PyResult<_>>()?, copies: digits(&places.1)? })
}

fn level_of(number: usize) -> PyResult<Level> {
    Level::ALL.get(number).copied().ok_or_else(|| PyValueError::new_err("levels are numbered 0 to 6"))
}

fn given(layout: &Layout) -> Places {
    let digits = |row: &Vec<SubAxis>| row.iter().map(|s| (s.size, s.level as usize, s.stride)).collect();
    (layout.axes.iter().map(digits).collect(), digits(&layout.copies))
}

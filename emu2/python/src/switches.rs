//! The compiler's search for the passes of a layout switch.

use numpy::PyArray1;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::IntoPyObjectExt;
use switches::{move_steps, pass_steps, plan};
use switches::{
    Cast, Change, Fill, FillRow, Guesses, Layout, Level, Machine, Move, Moves, Outcome, Sent, SubAxis, Turn, Way,
};

const NO_MEANING: &str = "layouts, moves and sizes must have a meaning";

/// A digit: size, number of the level, stride.
type Digit = (i64, usize, i64);
/// The digits of each axis, and those of the copies.
type Places = (Vec<Vec<Digit>>, Vec<Digit>);
/// A move: unit and address of the result, unit and address of the source.
type MoveRow = (i64, i64, i64, i64);
/// The units and addresses of the results of moves, then those of their sources.
type Columns<'py> = [Bound<'py, PyArray1<i64>>; 4];
/// A row that goes straight: that of the result, that of the source, first sender, free bits, the L1Bs that write.
type SentRow = (i64, i64, i64, i64, u64);
/// A turn: by how many units, the units that write, and pairs of source and result addresses.
type TurnRow = (i64, u64, Vec<(i64, i64)>);
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
    l2bs_per_group: i64,
    row: i64,
    block: i64,
    l2bm_words: i64,
    vectors: i64,
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

/// Counts the steps of moves over `level`, without hazards around them. The moves are rows of unit and address of the
/// result and of unit and address of the source. All of them are done `times` times, each time at other addresses. Raises
/// ValueError for numbers that have no meaning.
#[pyfunction]
pub(crate) fn count_move_steps(rows: Vec<MoveRow>, times: i64, facts: Facts, level: usize) -> PyResult<i64> {
    let machine = machine(&facts)?;
    move_steps(&moves(rows, times), level_of(level)?, &machine).ok_or_else(no_meaning)
}

/// Returns moves over `level` as turns: by how many units, the units that write as bits (0 for all), and pairs of source and
/// result addresses. Raises ValueError for numbers that have no meaning.
#[pyfunction]
pub(crate) fn move_turns(rows: Vec<MoveRow>, facts: Facts, level: usize) -> PyResult<Vec<TurnRow>> {
    let found = switches::turns(&moves(rows, 1), level_of(level)?, &machine(&facts)?).ok_or_else(no_meaning)?;
    Ok(found.into_iter().map(turn).collect())
}

/// Returns the cheapest way of moves between MABs: its name with turns, shares, casts, or rows of fills. `even` says whether
/// the addresses of the source and of the result begin at an even word. Raises ValueError for numbers that have no meaning.
#[pyfunction]
pub(crate) fn mab_way(
    py: Python<'_>,
    rows: Vec<MoveRow>,
    facts: Facts,
    even: (bool, bool),
) -> PyResult<(&'static str, Py<PyAny>)> {
    let found = switches::between_mabs(&moves(rows, 1), even, &machine(&facts)?).ok_or_else(no_meaning)?;
    let fill = |one: Fill| (one.first, one.unit, one.words, one.wide);
    Ok(match found {
        Way::Turns(turns) => ("turns", turns.into_iter().map(turn).collect::<Vec<_>>().into_py_any(py)?),
        Way::Shared(shares) => {
            ("shares", shares.into_iter().map(|one| (one.turns, one.rows)).collect::<Vec<_>>().into_py_any(py)?)
        }
        Way::Casts(casts) => {
            let row = |one: Cast| (one.at, one.first, one.results, one.units, one.each);
            ("casts", casts.into_iter().map(row).collect::<Vec<_>>().into_py_any(py)?)
        }
        Way::Fills(rows) => {
            let row = |(at, fills): FillRow| (at, fills.into_iter().map(fill).collect::<Vec<_>>());
            ("fills", rows.into_iter().map(row).collect::<Vec<_>>().into_py_any(py)?)
        }
    })
}

/// Returns how rows go straight to other L1Bs: row of the result, row of the source, first sender and free bits of the
/// instruction, and the L1Bs that write as bits (0 for all). Returns None if they cannot, or if the way through L2BM takes
/// fewer steps. Raises ValueError for numbers that have no meaning.
#[pyfunction]
pub(crate) fn straight_rows(rows: Vec<MoveRow>, facts: Facts) -> PyResult<Option<Vec<SentRow>>> {
    let found = switches::straight_rows(&moves(rows, 1), &machine(&facts)?).ok_or_else(no_meaning)?;
    let row = |one: Sent| (one.at, one.row, one.by.first, one.by.free, one.units);
    Ok(found.map(|sent| sent.into_iter().map(row).collect()))
}

fn moves(rows: Vec<MoveRow>, times: i64) -> Moves {
    let row = |(result, result_at, source, source_at)| Move { result, result_at, source, source_at, times: 1 };
    Moves { list: rows.into_iter().map(row).collect(), times }
}

fn turn(one: Turn) -> TurnRow {
    (one.by, one.units, one.pairs)
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
        l2bs_per_group: facts.l2bs_per_group,
        row: facts.row,
        block: facts.block,
        l2bm_words: facts.l2bm_words,
        vectors: facts.vectors,
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

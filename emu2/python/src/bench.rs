//! `emu2._core.race` and `emu2._core.limit`: the timing of `emu2 bench`.

use crate::error;
use crate::machine::PyMachine;
use crate::program::PyProgram;
use emu2::error::{Code, Error};
use emu2::machine::Machine;
use emu2::measure::{self, Limit};
use emu2::num::clone_choice;
use emu2::num::level::Level;
use pyo3::prelude::*;
use std::time::Duration;

/// A pool of threads for one measurement.
fn pool(threads: usize) -> Result<rayon::ThreadPool, Error> {
    let built = rayon::ThreadPoolBuilder::new().num_threads(threads).build();
    built.map_err(|e| Error::new(Code::BadOption, format!("{threads} threads cannot be started: {e}")))
}

/// Runs an assembled program on `threads` threads for about `seconds`, in turns with the limit called `limit` on `units`
/// rows of `words` elements. Returns the seconds of the program's best run and the best elements per second of the limit.
#[pyfunction]
#[pyo3(signature = (machine, program, *, threads, seconds, limit = None, words = 0, units = 1))]
pub(crate) fn race(
    py: Python<'_>,
    machine: &PyMachine,
    program: &PyProgram,
    threads: usize,
    seconds: f64,
    limit: Option<&str>,
    words: usize,
    units: usize,
) -> PyResult<(f64, f64)> {
    let time = duration(seconds).map_err(|e| error::core(py, &e))?;
    let mut limit = limit.map(|name| Limit::new(name, words, units)).transpose().map_err(|e| error::core(py, &e))?;
    let pool = pool(threads).map_err(|e| error::core(py, &e))?;
    let raced = py.detach(|| {
        let machine: &mut Machine = &mut machine.lock();
        pool.install(|| measure::race(machine, &program.inner, limit.as_mut(), time))
    });
    match raced {
        Ok(race) => Ok((race.seconds, race.limit)),
        Err(e) => Err(error::run(py, &program.inner.name, &e)),
    }
}

/// Returns the best elements per second of the limit called `name` within `seconds`.
#[pyfunction]
#[pyo3(signature = (name, *, seconds, words = 0, units = 1))]
pub(crate) fn limit(py: Python<'_>, name: &str, seconds: f64, words: usize, units: usize) -> PyResult<f64> {
    let time = duration(seconds).map_err(|e| error::core(py, &e))?;
    let mut limit = Limit::new(name, words, units).map_err(|e| error::core(py, &e))?;
    Ok(py.detach(|| limit.best(time)))
}

/// The level of the kernels in use: `baseline`, `v3` or `v4`.
#[pyfunction]
pub(crate) fn level() -> &'static str {
    Level::current().name()
}

/// The levels that this host has, the plainest first.
#[pyfunction]
pub(crate) fn levels() -> Vec<&'static str> {
    Level::supported().into_iter().map(Level::name).collect()
}

/// The arithmetic kernels that have chosen a clone so far, each with its level. Empty if `EMU2_LEVEL` forces one.
#[pyfunction]
pub(crate) fn choices() -> Vec<(&'static str, &'static str)> {
    clone_choice::choices().into_iter().map(|(kernel, level)| (kernel, level.name())).collect()
}

/// Number of threads on which a machine runs. `race` has threads of its own.
#[pyfunction]
pub(crate) fn threads() -> usize {
    emu2::threads::count()
}

fn duration(seconds: f64) -> Result<Duration, Error> {
    Duration::try_from_secs_f64(seconds).map_err(|e| Error::new(Code::BadOption, format!("{seconds} seconds: {e}")))
}

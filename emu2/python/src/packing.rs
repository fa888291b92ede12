//! The compiler's address search.

use packing::{search, spread, Buffer, Outcome};
use pyo3::exceptions::{PyTimeoutError, PyValueError};
use pyo3::prelude::*;
use std::time::{Duration, Instant};

/// Finds offsets of `buffers` (rows of first moment, end, size, alignment) in a memory of `capacity`. Returns None if they
/// cannot fit. Each of `orders` is an order of preference of the buffers. Raises TimeoutError after `seconds`, and
/// ValueError for buffers without life time, size or alignment and for orders that are not permutations. Signals are heard.
#[pyfunction]
pub(crate) fn search_offsets(
    py: Python<'_>,
    buffers: Vec<(i64, i64, i64, i64)>,
    capacity: i64,
    orders: Vec<Vec<usize>>,
    seconds: f64,
) -> PyResult<Option<Vec<i64>>> {
    let buffers: Vec<Buffer> =
        buffers.into_iter().map(|(start, end, size, align)| Buffer { start, end, size, align }).collect();
    let begin = Instant::now();
    let limit = Duration::try_from_secs_f64(seconds.max(0.0)).unwrap_or(Duration::MAX);
    let mut signal = Ok(());
    let mut go_on = || {
        signal = Python::attach(|py| py.check_signals());
        signal.is_ok() && begin.elapsed() < limit
    };
    let outcome = py.detach(|| search(&buffers, capacity, &orders, &mut go_on));
    signal?;
    match outcome {
        Outcome::Placed(offsets) => Ok(Some(offsets)),
        Outcome::Impossible => Ok(None),
        Outcome::OutOfTime => Err(PyTimeoutError::new_err("the search was stopped before it could tell")),
        Outcome::Invalid => Err(PyValueError::new_err("buffers and orders must have a meaning")),
    }
}

/// Moves `buffers` (rows of first moment, end, size, alignment) apart that lie at `offsets` in a memory of `capacity`, so
/// that units are written again long after they were read last. `fixed` buffers stay. Distances of more than `window`
/// moments are all alike. Returns the new offsets. Raises ValueError if the offsets are no placement, or the window is below 1.
#[pyfunction]
pub(crate) fn spread_offsets(
    py: Python<'_>,
    buffers: Vec<(i64, i64, i64, i64)>,
    offsets: Vec<i64>,
    fixed: Vec<bool>,
    capacity: i64,
    window: i64,
) -> PyResult<Vec<i64>> {
    let buffers: Vec<Buffer> =
        buffers.into_iter().map(|(start, end, size, align)| Buffer { start, end, size, align }).collect();
    py.detach(|| spread(&buffers, &offsets, &fixed, capacity, window)).ok_or_else(|| {
        PyValueError::new_err("the offsets must be a placement of the buffers, and the window at least 1")
    })
}

//! The compiler's address search.

use packing::{fit, search, spread, Buffer, Gap, Outcome, NODES};
use pyo3::exceptions::{PyTimeoutError, PyValueError};
use pyo3::prelude::*;
use std::time::{Duration, Instant};

/// Finds offsets of `buffers` (rows of first moment, end, size, alignment) in a memory of `capacity`. Returns None if they
/// cannot fit. Each of `orders` is an order of preference of the buffers. Raises TimeoutError after `seconds`, or
/// after `work`, which counts all buffers at each node, and ValueError for buffers without life time, size or alignment and for orders that are not permutations. Signals are heard.
#[pyfunction]
pub(crate) fn search_offsets(
    py: Python<'_>,
    buffers: Vec<(i64, i64, i64, i64)>,
    capacity: i64,
    orders: Vec<Vec<usize>>,
    seconds: f64,
    work: u64,
) -> PyResult<Option<Vec<i64>>> {
    let buffers: Vec<Buffer> =
        buffers.into_iter().map(|(start, end, size, align)| Buffer { start, end, size, align }).collect();
    let begin = Instant::now();
    let limit = Duration::try_from_secs_f64(seconds.max(0.0)).unwrap_or(Duration::MAX);
    let mut left = work / (NODES * buffers.len().max(1) as u64);
    let mut signal = Ok(());
    let mut go_on = || {
        signal = Python::attach(|py| py.check_signals());
        let more = left > 0;
        left = left.saturating_sub(1);
        signal.is_ok() && more && begin.elapsed() < limit
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

/// Places `buffers` (rows of first moment, end, size, alignment) one after the other, as `order` has them, in the lowest gap
/// that is wide enough, or in the narrowest. Those with a `fixed` offset keep it. Returns the offsets. Raises ValueError for
/// buffers without life time or alignment, and for an order that is no permutation.
#[pyfunction]
pub(crate) fn fit_offsets(
    py: Python<'_>,
    buffers: Vec<(i64, i64, i64, i64)>,
    fixed: Vec<Option<i64>>,
    order: Vec<usize>,
    narrowest: bool,
) -> PyResult<Vec<i64>> {
    let buffers: Vec<Buffer> =
        buffers.into_iter().map(|(start, end, size, align)| Buffer { start, end, size, align }).collect();
    let gap = if narrowest { Gap::Narrowest } else { Gap::Lowest };
    py.detach(|| fit(&buffers, &fixed, &order, gap))
        .ok_or_else(|| PyValueError::new_err("buffers and their order must have a meaning"))
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

//! The chip's conversions between singles and halves, for arrays.

use emu2::num::convert::{half_to_single, single_to_half};
use numpy::{PyArray1, PyReadonlyArray1};
use pyo3::prelude::*;

/// Rounds singles to half words, as the chip does: to nearest, ties to even; without denormals.
#[pyfunction]
pub(crate) fn to_half<'py>(
    py: Python<'py>,
    singles: PyReadonlyArray1<'py, f32>,
) -> PyResult<Bound<'py, PyArray1<u16>>> {
    let words = singles.as_slice()?.iter().map(|single| single_to_half(single.to_bits()));
    Ok(PyArray1::from_iter(py, words))
}

/// The singles that equal half words.
#[pyfunction]
pub(crate) fn from_half<'py>(
    py: Python<'py>,
    words: PyReadonlyArray1<'py, u16>,
) -> PyResult<Bound<'py, PyArray1<f32>>> {
    let singles = words.as_slice()?.iter().map(|&word| f32::from_bits(half_to_single(word)));
    Ok(PyArray1::from_iter(py, singles))
}

//! The compiler's search for the cheapest layouts.

use choosing::{Search, Wrong};
use numpy::PyReadonlyArrayDyn;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

/// Finds the cheapest choice of one candidate for each variable.
///
/// There are variables with `sizes` candidates, of which `pairs` share costs. A table of the search has at most `most` entries.
/// Raises ValueError if a size is 0, or if pairs do not name two variables each, no two of them the same.
#[pyclass(name = "ChoiceSearch", module = "emu2._core")]
pub(crate) struct PyChoiceSearch {
    search: Search,
    /// The arrays that the last call got: they have the same costs as then.
    single: Vec<Option<Py<PyAny>>>,
    shared: Vec<Option<Py<PyAny>>>,
}

#[pymethods]
impl PyChoiceSearch {
    #[new]
    fn new(sizes: Vec<usize>, pairs: Vec<(usize, usize)>, most: usize) -> PyResult<Self> {
        let known = |count: usize| (0..count).map(|_| None).collect();
        let (single, shared) = (known(sizes.len()), known(pairs.len()));
        Ok(Self { search: Search::new(sizes, pairs, most).map_err(refused)?, single, shared })
    }

    /// The variables that keep their choice in an elimination.
    #[getter]
    fn held(&self) -> Vec<usize> {
        self.search.held().to_vec()
    }

    /// Returns a choice that costs at most as much as `start`.
    ///
    /// `single` has the costs of each variable's candidates, `shared` those of each pair, row by row of the first variable's
    /// candidates. An array that was given to the last call too must have the same costs as then. Raises ValueError if they
    /// do not fit.
    fn cheapest(
        &mut self,
        py: Python<'_>,
        single: Vec<Bound<'_, PyAny>>,
        shared: Vec<Bound<'_, PyAny>>,
        start: Vec<usize>,
    ) -> PyResult<Vec<usize>> {
        self.take(single, shared)?;
        let search = &mut self.search;
        py.detach(|| search.cheapest(&start)).map_err(refused)
    }

    /// Returns the cheapest choice if the variables that are held keep their choice of `start`; for arguments see `cheapest`.
    fn eliminated(
        &mut self,
        py: Python<'_>,
        single: Vec<Bound<'_, PyAny>>,
        shared: Vec<Bound<'_, PyAny>>,
        start: Vec<usize>,
    ) -> PyResult<Vec<usize>> {
        self.take(single, shared)?;
        let search = &mut self.search;
        py.detach(|| search.eliminated(&start)).map_err(refused)
    }
}

impl PyChoiceSearch {
    /// Takes over the arrays that are new.
    fn take(&mut self, single: Vec<Bound<'_, PyAny>>, shared: Vec<Bound<'_, PyAny>>) -> PyResult<()> {
        if single.len() != self.single.len() || shared.len() != self.shared.len() {
            return Err(PyValueError::new_err("each variable and each pair has one array of costs"));
        }
        for (number, (array, known)) in single.into_iter().zip(&mut self.single).enumerate() {
            if let Some(costs) = new_costs(array, known)? {
                self.search.set_single(number, &costs).map_err(refused)?;
            }
        }
        for (number, (array, known)) in shared.into_iter().zip(&mut self.shared).enumerate() {
            if let Some(costs) = new_costs(array, known)? {
                self.search.set_pair(number, &costs).map_err(refused)?;
            }
        }
        Ok(())
    }
}

/// Returns the costs of an array; None if it is the one that is known.
fn new_costs(array: Bound<'_, PyAny>, known: &mut Option<Py<PyAny>>) -> PyResult<Option<Vec<i64>>> {
    if known.as_ref().is_some_and(|known| known.is(&array)) {
        return Ok(None);
    }
    let costs: PyReadonlyArrayDyn<'_, i64> = array.extract()?;
    let costs = costs.as_array().iter().copied().collect();
    *known = Some(array.unbind());
    Ok(Some(costs))
}

fn refused(problem: Wrong) -> PyErr {
    PyValueError::new_err(problem.to_string())
}

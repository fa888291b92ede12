//! The compiler's search for the cheapest layouts.

use std::collections::HashMap;

use choosing::{Search, Wrong};
use numpy::PyReadonlyArrayDyn;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

/// Finds the cheapest choice of one candidate for each variable: the number of the candidate.
///
/// There are variables with `sizes` candidates, of which `pairs` share costs. All costs are 0 at first; none may be negative. A
/// table of the search has at most `most` entries. It is fast if few costs are new since it was asked last. Raises ValueError if
/// a size is 0, or if pairs do not name two variables each, no two of them the same. All methods raise ValueError for numbers
/// that do not fit.
#[pyclass(name = "ChoiceSearch", module = "emu2._core")]
pub(crate) struct PyChoiceSearch {
    search: Search,
    pairs: Vec<(usize, usize)>,
    numbers: HashMap<(usize, usize), usize>,
    most: usize,
    /// The candidates of another search that this one has; empty if it is no part.
    kept: Vec<Vec<usize>>,
}

#[pymethods]
impl PyChoiceSearch {
    #[new]
    fn new(sizes: Vec<usize>, pairs: Vec<(usize, usize)>, most: usize) -> PyResult<Self> {
        let search = Search::new(sizes, pairs.clone(), most).map_err(refused)?;
        let numbers = pairs.iter().enumerate().map(|(number, &pair)| (pair, number)).collect();
        Ok(Self { search, pairs, numbers, most, kept: Vec::new() })
    }

    /// The variables that keep their choice in an elimination.
    #[getter]
    fn held(&self) -> Vec<usize> {
        self.search.held().to_vec()
    }

    /// Takes new costs: of the candidates of a variable `(u, u)`, or `[b, c]` of those of both variables of a pair.
    fn take(&mut self, costs: HashMap<(usize, usize), PyReadonlyArrayDyn<'_, i64>>) -> PyResult<()> {
        for (pair, costs) in costs {
            let costs: Vec<i64> = costs.as_array().iter().copied().collect();
            let taken = if pair.0 == pair.1 {
                self.search.set_single(pair.0, &costs)
            } else {
                self.search.set_pair(self.numbers.get(&pair).copied().unwrap_or(self.pairs.len()), &costs)
            };
            taken.map_err(refused)?;
        }
        Ok(())
    }

    /// Returns the total cost of a choice.
    fn total(&self, chosen: Vec<usize>) -> PyResult<i64> {
        self.search.total(&chosen).map_err(refused)
    }

    /// Returns a choice that costs at most as much as `start`.
    fn cheapest(&mut self, py: Python<'_>, start: Vec<usize>) -> PyResult<Vec<usize>> {
        let search = &mut self.search;
        py.detach(|| search.cheapest(&start)).map_err(refused)
    }

    /// Returns the cheapest choice if the variables that are held keep their choice of `start`.
    fn eliminated(&mut self, py: Python<'_>, start: Vec<usize>) -> PyResult<Vec<usize>> {
        let search = &mut self.search;
        py.detach(|| search.eliminated(&start)).map_err(refused)
    }

    /// Returns the `most` cheapest of what `eliminated` returns for each candidate of a variable: cost, candidate, choice.
    fn answers(
        &mut self,
        py: Python<'_>,
        start: Vec<usize>,
        variable: usize,
        most: usize,
    ) -> PyResult<Vec<(i64, usize, Vec<usize>)>> {
        let search = &mut self.search;
        py.detach(|| search.answers(&start, variable, most)).map_err(refused)
    }

    /// Returns a search over the candidates `kept` of each variable; all its costs are 0 until it follows this one.
    fn part(&self, kept: Vec<Vec<usize>>) -> PyResult<Self> {
        let part = Self::new(kept.iter().map(Vec::len).collect(), self.pairs.clone(), self.most)?;
        Ok(Self { kept, ..part })
    }

    /// Takes over the present costs of the search of which this one is a part.
    fn follow(&mut self, whole: PyRef<'_, Self>) -> PyResult<()> {
        self.search.follow(&whole.search, &self.kept).map_err(refused)
    }
}

fn refused(problem: Wrong) -> PyErr {
    PyValueError::new_err(problem.to_string())
}

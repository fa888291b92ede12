//! The compiler's pipelines over rows.

use placing::{place_rows as place, Operation, Places, What};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

/// Kind and number of what an operand reads, and whether it converts that.
type Read = (u8, usize, bool);
/// The instruction that one is or repeats, and the number that each of its operands reads.
type Made = (Option<usize>, Vec<usize>);
/// Instructions, how they were placed one after the other, with steps and their operands' banks, stored results with their
/// last readers, constants, held inputs.
type Found =
    (Vec<Made>, Vec<(usize, i64)>, Vec<Vec<usize>>, Vec<(usize, usize, i64)>, Vec<(usize, usize)>, Vec<(usize, usize)>);

/// Register files, banks, units, the unit that copies; the bank of each input and of the result; which constants have equal
/// words; steps from a write to a read in LM, in registers and of masks.
type PyPlaces = (usize, usize, usize, usize, Vec<Option<usize>>, usize, Vec<bool>, i64, i64, i64);

/// Gives each instruction of a program over rows a step, and each operand a bank, when a row starts every `interval` steps.
///
/// Instructions are rows of unit, operands and flags. Of an operand's kinds, 0 is an input, 1 a constant and 2 a result.
/// Returns None if an instruction finds no step. Raises ValueError for another kind.
#[pyfunction]
pub(crate) fn place_rows(
    py: Python<'_>,
    operations: Vec<(usize, Vec<Read>, Option<usize>)>,
    order: Vec<usize>,
    interval: i64,
    places: PyPlaces,
) -> PyResult<Option<Found>> {
    let what = |(kind, number, extend): Read| match kind {
        0 => Ok((What::Input(number), extend)),
        1 => Ok((What::Constant(number), extend)),
        2 => Ok((What::Result(number), extend)),
        _ => Err(PyValueError::new_err("an operand is an input, a constant or a result")),
    };
    let made = operations.into_iter().enumerate().map(|(number, (unit, reads, flush))| {
        let sources = reads.into_iter().map(what).collect::<PyResult<Vec<_>>>()?;
        Ok(Operation { unit, sources, flush, origin: Some(number) })
    });
    let operations = made.collect::<PyResult<Vec<_>>>()?;
    let (files, banks, units, copies, homes, result, uniform, lm, stored, masks) = places;
    let places = Places { files, banks, units, copies, homes, result, uniform, lm, stored, masks };
    let found = py.detach(|| place(operations, &order, interval, &places));
    Ok(found.map(|one| {
        let number = |&(what, _): &(What, bool)| match what {
            What::Input(at) | What::Constant(at) | What::Result(at) | What::Flags(at) => at,
        };
        let rows = one.operations.iter().map(|own| (own.origin, own.sources.iter().map(number).collect()));
        let placed = one.order.iter().map(|&index| (index, one.steps[index]));
        (rows.collect(), placed.collect(), one.banks, one.stored, one.constants, one.held)
    }))
}

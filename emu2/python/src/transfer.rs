//! The index maps and the rates of transfers: what `emu2.Spec` says of them.

use crate::argument::{integer, Name};
use crate::error;
use emu2::asm::FormRef;
use emu2::error::{Code, Error};
use emu2::report;
use emu2::spec::{Place, Spec, COORDINATES};
use numpy::{IntoPyArray, PyArray1};
use pyo3::prelude::*;
use pyo3::types::PyDict;

/// One evaluated index map: the source and the destination of every moved long word.
#[pyclass(frozen, name = "IndexMap", module = "emu2", get_all)]
pub(crate) struct PyIndexMap {
    /// Each coordinate of the source as an array with one entry per moved long word.
    source: Py<PyDict>,
    /// Each coordinate of the destination, in the same form.
    destination: Py<PyDict>,
    /// MV: long words of a block; otherwise None.
    unit: Option<u64>,
    /// MV: the distances of offsets from block to block, of source and destination; otherwise None.
    strides: Option<(u64, u64)>,
}

/// Evaluates the map of a form; see `Spec.index_map`.
pub(crate) fn index_map(
    spec: &Spec,
    py: Python<'_>,
    mnemonic: &str,
    form: &str,
    parameters: Option<&Bound<'_, PyDict>>,
) -> PyResult<PyIndexMap> {
    let (at, named) = find(spec, py, mnemonic, form, parameters)?;
    let form = &spec.forms[at.transfer][at.form];
    let mut values: Vec<(&str, i64)> = named.iter().map(|(n, v)| (n.as_str(), *v)).collect();
    let evaluation = |e: emu2::spec::ExprError| {
        error::core(py, &Error::new(Code::SpecExpression, format!("`{}` form `{}`: {e}", mnemonic, form.name)))
    };
    let strides = form.unit.map(|_| form.block_strides(&values)).transpose().map_err(evaluation)?;
    if form.unit.is_some() && !values.iter().any(|(n, _)| *n == "i") {
        values.push(("i", 0));
    }
    let moves = form.evaluate(&values).map_err(evaluation)?;
    let side = |place: &dyn Fn(&(Place, Place)) -> Place| -> PyResult<Py<PyDict>> {
        let dict = PyDict::new(py);
        let places: Vec<Place> = moves.iter().map(place).collect();
        for name in COORDINATES {
            let column: Vec<i64> = places.iter().map(|p| coordinate(p, name)).collect();
            let column: Bound<'_, PyArray1<i64>> = column.into_pyarray(py);
            dict.set_item(name, column)?;
        }
        Ok(dict.unbind())
    };
    Ok(PyIndexMap { source: side(&|m| m.0)?, destination: side(&|m| m.1)?, unit: form.unit, strides })
}

/// Returns the rate of an MV of a form; see `Spec.mv_rate`.
pub(crate) fn mv_rate(
    spec: &Spec,
    py: Python<'_>,
    mnemonic: &str,
    form: &str,
    parameters: Option<&Bound<'_, PyDict>>,
) -> PyResult<(u64, u64)> {
    let (at, named) = find(spec, py, mnemonic, form, parameters)?;
    report::mv_rate(spec, at, named).ok_or_else(|| {
        let message = format!("`{mnemonic}` form `{form}` has no rate: no MV, or one without its selectors");
        error::core(py, &Error::new(Code::SpecUnknownName, message))
    })
}

/// Finds a form of a transfer, and the numbers of its mnemonic and selectors by the spec's names.
fn find(
    spec: &Spec,
    py: Python<'_>,
    mnemonic: &str,
    form: &str,
    parameters: Option<&Bound<'_, PyDict>>,
) -> PyResult<(FormRef, Vec<(String, i64)>)> {
    let fail = |message: String| error::core(py, &Error::new(Code::SpecUnknownName, message));
    let transfer = spec.transfers.iter().position(|t| t.name == *mnemonic);
    let transfer = transfer.ok_or_else(|| fail(format!("no transfer is called `{mnemonic}`")))?;
    let number = spec.forms[transfer].iter().position(|f| f.name == *form).ok_or_else(|| {
        let known: Vec<_> = spec.forms[transfer].iter().map(|f| f.name.as_str()).collect();
        fail(format!("`{mnemonic}` has no form `{form}`; its forms are {}", known.join(", ")))
    })?;
    let mut named: Vec<(String, i64)> = Vec::new();
    if let Some(default) = spec.parameters[transfer].as_ref().and_then(|p| p.default) {
        named = spec.form_values(transfer, default);
    }
    for (key, value) in parameters.iter().flat_map(|d| d.iter()) {
        let key = key.extract::<Name>()?.0;
        let value = integer(value.as_borrowed(), &format!("parameter {key} = "), Code::SpecExpression)?;
        named.retain(|(n, _)| *n != key);
        named.push((key, value));
    }
    Ok((FormRef { transfer, form: number, parameter: 0 }, named))
}

fn coordinate(place: &Place, name: &str) -> i64 {
    match name {
        "group" => place.group.into(),
        "l2b" => place.l2b.into(),
        "l1b" => place.l1b.into(),
        "mab" => place.mab.into(),
        "pe" => place.pe.into(),
        "cycle" => place.cycle.into(),
        "half" => place.half.into(),
        _ => place.addr as i64,
    }
}

//! Index maps of MVs and L2BM instructions turned into runs of long words that are copied or reduced together.

use super::no_kernel::no_kernel;
use super::validity::whole_lanes;
use crate::error::{Code, Error};
use crate::num::lane::Lane;
use crate::num::reduce::{reduce_kernel, ReduceKernel};
use crate::spec::{ExprError, Place, Precision, ResolvedForm, Spec};

/// Consecutive long words of one destination unit, and the consecutive long words that are copied or reduced into them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct TransferRun {
    /// The unit, and the offset of the first long word from the written address.
    pub(super) to: Place,
    /// One place per element, in the order of the reduction tree. A copy has one place. None: the neutral element.
    pub(super) from: Vec<Option<Place>>,
    /// Long words.
    pub(super) length: u64,
}

impl TransferRun {
    /// Whether the long words of the next run continue this one, in the destination and in every source.
    fn goes_on(&self, to: &Place, from: &[Option<Place>]) -> bool {
        let after = |start: &Place| Place { addr: start.addr + self.length, ..*start };
        let follows = |(ours, theirs): (&Option<Place>, &Option<Place>)| match (ours, theirs) {
            (Some(ours), Some(theirs)) => after(ours) == *theirs,
            (None, None) => true,
            _ => false,
        };
        after(&self.to) == *to && self.from.iter().zip(from).all(follows)
    }
}

/// The runs of a form with these parameters, in the order of their destinations.
pub(super) fn transfer_runs(form: &ResolvedForm, parameters: &[(&str, i64)]) -> Result<Vec<TransferRun>, Error> {
    let fail = |e: ExprError| Error::new(Code::SpecExpression, format!("form `{}`: {e}", form.name));
    let words = if form.tree.is_empty() {
        let mut moves = form.evaluate(parameters).map_err(fail)?;
        moves.sort_unstable_by_key(|(_, to)| *to);
        moves.into_iter().map(|(from, to)| (to, vec![Some(from)])).collect()
    } else {
        form.meetings(parameters).map_err(fail)?
    };
    let mut runs: Vec<TransferRun> = Vec::new();
    for (to, from) in words {
        match runs.last_mut() {
            Some(run) if run.goes_on(&to, &from) => run.length += 1,
            _ => runs.push(TransferRun { to, from, length: 1 }),
        }
    }
    Ok(runs)
}

/// The reduction of a transfer.
#[derive(Clone, Debug)]
pub(super) struct Reducer {
    kernel: ReduceKernel,
    tree: Vec<usize>,
    /// The lanes of the values, for a reduction of validity.
    lane: Lane,
    /// Validity is reduced: a lane of the result is valid if it is valid in all elements.
    validity: bool,
}

impl Reducer {
    /// The reduction of a transfer's form, if it reduces.
    ///
    /// # Errors
    /// [`Code::NoKernel`] if there is no kernel for it.
    pub(super) fn of(spec: &Spec, transfer: usize, form: &ResolvedForm) -> Result<Option<Reducer>, Error> {
        let Some(reduction) = spec.transfers[transfer].reduction.map(|at| &spec.reductions[at]) else {
            return Ok(None);
        };
        let lane = spec.precisions.iter().find(|p| p.name == reduction.precision).and_then(Precision::lane);
        let kernel = lane.and_then(|lane| reduce_kernel(&reduction.kernel, lane, false));
        let kernel = kernel.ok_or_else(|| no_kernel(&format!("the reduction `{}`", reduction.name)))?;
        let lane = lane.unwrap_or(Lane::L);
        Ok(Some(Reducer { kernel, tree: form.tree.clone(), lane, validity: false }))
    }

    /// The reduction of the validity of the elements instead of their values.
    ///
    /// # Errors
    /// [`Code::NoKernel`] if there is no kernel for it.
    pub(super) fn of_validity(self) -> Result<Reducer, Error> {
        let kernel = reduce_kernel("band", Lane::L, false).ok_or_else(|| no_kernel("the reduction `band`"))?;
        Ok(Reducer { kernel, validity: true, ..self })
    }
}

/// Buffers of reductions.
#[derive(Clone, Debug, Default)]
pub(super) struct RunBuffers {
    inputs: Vec<u64>,
    stages: Vec<u64>,
}

impl RunBuffers {
    /// Copies or reduces the long words of `run` to `out`. `read` gets a place of the map and the buffer to fill.
    pub(super) fn fetch(
        &mut self,
        run: &TransferRun,
        reducer: Option<&Reducer>,
        out: &mut [u64],
        mut read: impl FnMut(&Place, &mut [u64]),
    ) {
        let Some(Reducer { kernel, tree, lane, validity }) = reducer else {
            if let Some(from) = run.from.first().and_then(Option::as_ref) {
                read(from, out);
            }
            return;
        };
        self.inputs.resize(run.from.len() * out.len(), 0);
        for (from, row) in run.from.iter().zip(self.inputs.chunks_exact_mut(out.len().max(1))) {
            match from {
                Some(from) => read(from, row),
                None => row.fill(kernel.neutral()),
            }
        }
        kernel.tree(tree, &self.inputs, &mut self.stages, out);
        if *validity {
            out.iter_mut().for_each(|word| *word = whole_lanes(*word, *lane));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::spec::UnitSet;

    fn of(name: &str, parameters: &[(&str, i64)]) -> Vec<TransferRun> {
        let spec = Spec::load("mncore2").unwrap();
        let at = spec.transfers.iter().position(|t| t.name == name).unwrap();
        let form = &spec.forms[at][0];
        transfer_runs(form, parameters).unwrap()
    }

    #[test]
    fn maps_are_few_blocks() {
        // A broadcast is one run per L1B, a distribution one per L1B and cycle, a reduction one row.
        assert_eq!(of("l2bmb", &[("l1bs_first", 0), ("l1bs_free", 7)]).len(), 8);
        assert_eq!(of("l2bmd", &[("l1bs_first", 0), ("l1bs_free", 7)]).len(), 32);
        let row = of("l2bmrdfadd", &[("l1bs_first", 1), ("l1bs_free", 6)]);
        let [TransferRun { to: Place { addr: 0, .. }, from, length: 64 }] = &row[..] else { panic!("{row:?}") };
        let present: Vec<u32> = from.iter().flatten().map(|p| p.l1b).collect();
        assert_eq!(present, UnitSet { first: 1, free: 6 }.members(8).collect::<Vec<_>>());
        assert_eq!(of("mvrdfadd", &[("dst_group", 0), ("i", 0)]).len(), 1);
    }
}

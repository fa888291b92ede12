//! L1BM instructions: copies and reductions between the PEs and the memories of their L1B.

use super::{memory_slot, Lowering};
use crate::asm::FormRef;
use crate::error::Error;
use crate::exec::compute::Compute;
use crate::exec::l1bm::{L1bPlace, Load, Sent};
use crate::exec::l1bm_map::{pe_runs, reduction_layout, PeRun, RepeatedRows};
use crate::exec::no_kernel::no_kernel;
use crate::machine::Layout;
use crate::num::reduce::reduce_kernel;
use crate::spec::{reduction_lane, End, ForwardUnit, Widen};
use std::sync::Arc;

impl Lowering {
    /// Lowers an instruction at `address` of L1BM or on the turnaround register. Also returns the unit whose path takes the
    /// words.
    pub(super) fn l1bm(
        &mut self,
        layout: &Layout,
        form: FormRef,
        address: Option<u64>,
    ) -> Result<(Compute, Option<ForwardUnit>), Error> {
        let spec = self.spec.clone();
        let resolved = &spec.forms[form.transfer][form.form];
        let to_pe = matches!(resolved.destination, End::Pe);
        let end = if to_pe { &resolved.source } else { &resolved.destination };
        let kept = spec.memory(&spec.turnaround.memory).map(|m| layout.slot(m).index).unwrap_or_default();
        let kept = L1bPlace { slot: kept, address: 0 };
        let written = match address {
            Some(address) => Some(L1bPlace { slot: memory_slot(&spec, layout, end)?.index, address }),
            None => None,
        };
        if let Some(at) = spec.transfers[form.transfer].reduction {
            let sent = Sent { written: written.map(|place| (place, ())), kept: (kept, ()) };
            return Ok((self.reduction(form, at, sent)?, None));
        }
        let runs = self.pe_map(form, to_pe)?;
        if to_pe {
            let words = runs.iter().map(|run| run.length).sum();
            let load = Load { place: written.unwrap_or(kept), rows: RepeatedRows::of(&runs), runs, words };
            return Ok((Compute::Load(load), Some(ForwardUnit::L1bm)));
        }
        // Kept words are not shifted when they are stored. They are shifted when they return.
        let parameter = spec.parameters[form.transfer].as_ref().and_then(|p| p.default);
        let unshifted = FormRef { parameter: parameter.unwrap_or(form.parameter), ..form };
        let kept = (kept, self.pe_map(unshifted, false)?);
        Ok((Compute::Store(Sent { written: written.map(|place| (place, runs)), kept }), None))
    }

    fn pe_map(&mut self, form: FormRef, to_pe: bool) -> Result<Arc<[PeRun]>, Error> {
        if let Some(runs) = self.pe_maps.get(&form) {
            return Ok(runs.clone());
        }
        let runs: Arc<[PeRun]> = pe_runs(&self.spec, &self.moves(form)?, to_pe).into();
        self.pe_maps.insert(form, runs.clone());
        Ok(runs)
    }

    fn reduction(&mut self, form: FormRef, reduction: usize, sent: Sent<()>) -> Result<Compute, Error> {
        let spec = self.spec.clone();
        let (entry, resolved) = (&spec.reductions[reduction], &spec.forms[form.transfer][form.form]);
        let lane = reduction_lane(&spec, entry, resolved.widen == Some(Widen::Always));
        let kernel = lane.and_then(|lane| reduce_kernel(&entry.kernel, lane, resolved.narrow));
        let kernel = kernel.ok_or_else(|| no_kernel(&format!("the reduction `{}`", entry.name)))?;
        let reduction_layout = match self.meetings.get(&form) {
            Some(reduction_layout) => reduction_layout.clone(),
            None => {
                let reduction_layout = reduction_layout(&spec, &self.moves(form)?, &resolved.tree, resolved.narrow);
                let reduction_layout = Arc::new(reduction_layout);
                self.meetings.insert(form, reduction_layout.clone());
                reduction_layout
            }
        };
        Ok(Compute::Reduce { sent, kernel, reduction_layout })
    }
}

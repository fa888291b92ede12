//! Liveness: whether anyone reads a result on a forwarding path or in the turnaround register.

use crate::exec::compute::Compute;
use crate::exec::op::{Op, Step};

/// Marks the ops whose result on a forwarding path is read before the next update, or remains after the last step. Does the
/// same for words in the turnaround register.
pub(crate) fn mark_live(region: &mut [Step], paths: usize, turnaround: usize) {
    let mut live = vec![true; paths];
    // The first words of the turnaround register, up to this one, are overwritten before anyone reads them.
    let mut written_again = 0;
    for step in region.iter_mut().rev() {
        for op in &mut step.ops {
            let (end, first) = op.compute.kept();
            op.keep = step.forward && end > written_again;
            if op.keep {
                written_again = first;
            }
        }
        if step.ops.iter().any(|op| matches!(&op.compute, Compute::Load(load) if load.place.slot == turnaround)) {
            written_again = 0;
        }
        // If two ops write the same path, the last one wins.
        for op in step.ops.iter_mut().rev() {
            op.live = step.forward && op.forward.is_some_and(|path| std::mem::replace(&mut live[path], false));
        }
        step.ops.iter().flat_map(Op::paths_read).for_each(|path| live[path] = true);
    }
}

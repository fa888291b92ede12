//! What is queued on a device: kernels in their order, and transfers.

use crate::kernel::Loaded;
use crate::status::Refusal;
use emu2::host::Device;
use std::collections::{HashMap, VecDeque};
use std::sync::Arc;

/// Kernels that the queue of a board holds.
pub(crate) const DEPTH: usize = 31;

/// A transfer that runs beside the caller.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct TransferId(u64);

/// The direction of a transfer.
#[derive(Debug)]
pub(crate) enum Way {
    ToDevice(Vec<u8>),
    FromDevice(usize),
}

#[derive(Debug)]
pub(crate) struct Transfer {
    pub(crate) id: TransferId,
    /// Kernels that were launched before this transfer. It sees what they leave.
    after: u64,
    pub(crate) way: Way,
    pub(crate) offset: u64,
    pub(crate) tag: u32,
}

/// What a transfer brought: bytes from the device, or nothing.
pub(crate) type Brought = Result<Vec<u8>, Refusal>;

/// What can run now.
#[derive(Debug)]
pub(crate) enum Work {
    Kernel(Arc<Loaded>),
    Transfer(Transfer),
}

/// The queue of a device.
#[derive(Debug, Default)]
pub(crate) struct Queue {
    kernels: VecDeque<Arc<Loaded>>,
    transfers: Vec<Transfer>,
    done: HashMap<TransferId, Brought>,
    next_id: u64,
    launched: u64,
    finished: u64,
}

impl Queue {
    pub(crate) fn launch(&mut self, kernel: Arc<Loaded>) {
        self.kernels.push_back(kernel);
        self.launched += 1;
    }

    pub(crate) fn start(&mut self, way: Way, offset: u64, tag: u32) -> TransferId {
        let id = TransferId(self.next_id);
        self.next_id += 1;
        self.transfers.push(Transfer { id, after: self.launched, way, offset, tag });
        id
    }

    /// Kernels that have not ended.
    pub(crate) fn kernels(&self) -> usize {
        (self.launched - self.finished) as usize
    }

    /// Transfers to and from the device that have not ended.
    pub(crate) fn transfers(&self) -> [usize; 2] {
        let to = self.transfers.iter().filter(|t| matches!(t.way, Way::ToDevice(_))).count();
        [to, self.transfers.len() - to]
    }

    /// Takes what can run now on an idle device. A transfer comes before the kernels that were launched after it.
    pub(crate) fn take(&mut self, device: &Device) -> Option<Work> {
        let blocked = self.kernels.front().is_some_and(|kernel| device.blocked_at(&kernel.kernel).is_some());
        let ready = |transfer: &Transfer| {
            let arrived = matches!(transfer.way, Way::ToDevice(_)) || device.is_due(transfer.tag);
            arrived && (blocked || self.finished >= transfer.after)
        };
        if let Some(at) = self.transfers.iter().position(ready) {
            return Some(Work::Transfer(self.transfers.remove(at)));
        }
        if blocked {
            return None;
        }
        self.kernels.pop_front().map(Work::Kernel)
    }

    pub(crate) fn kernel_ended(&mut self) {
        self.finished += 1;
    }

    pub(crate) fn transfer_ended(&mut self, id: TransferId, brought: Brought) {
        self.done.insert(id, brought);
    }

    /// The tag of the kernel at the front for which nobody has sent.
    pub(crate) fn blocked_at(&self, device: &Device) -> Option<u32> {
        self.kernels.front().and_then(|kernel| device.blocked_at(&kernel.kernel))
    }

    pub(crate) fn is_done(&self, id: TransferId) -> bool {
        self.done.contains_key(&id)
    }

    /// What a transfer brought, once.
    pub(crate) fn collect(&mut self, id: TransferId) -> Option<Brought> {
        self.done.remove(&id)
    }

    /// Drops a transfer that has not ended.
    pub(crate) fn drop_transfer(&mut self, id: TransferId) {
        self.transfers.retain(|transfer| transfer.id != id);
        self.done.remove(&id);
    }

    /// Drops everything that is queued. Transfers end with the error.
    pub(crate) fn clear(&mut self, why: &Refusal) {
        self.kernels.clear();
        self.finished = self.launched;
        for transfer in std::mem::take(&mut self.transfers) {
            self.done.insert(transfer.id, Err(why.clone()));
        }
    }
}

//! The tags of a device, shared by its MVs and the host's transfers.

use crate::error::{Code, Error};
use crate::exec::Tags;
use std::collections::HashMap;

/// The history of a tag.
#[derive(Clone, Copy, Debug, Default)]
struct Record {
    /// An MV has signalled the tag since the host last received under it.
    due: bool,
    /// A `wait` has seen that signal.
    waited: bool,
    /// The host has received under the tag at least once.
    received: bool,
}

/// Tags that something has signalled. A `wait` finds them signalled for ever; a transfer to the host uses the signal up.
#[derive(Debug, Default)]
pub(super) struct DeviceTags {
    known: HashMap<u32, Record>,
}

impl Tags for DeviceTags {
    fn signal(&mut self, tag: u32) {
        let record = self.known.entry(tag).or_default();
        (record.due, record.waited) = (true, false);
    }

    fn wait(&mut self, tag: u32) -> Result<(), Error> {
        match self.known.get_mut(&tag) {
            Some(record) => {
                record.waited = true;
                Ok(())
            }
            None => {
                let message = format!("nothing signals tag {tag:02x}: neither a send of the host nor an MV before");
                let help = "send under this tag before the kernel runs, or give it to the MV that is waited for";
                Err(Error::new(Code::UnsignalledTag, message).help(help))
            }
        }
    }
}

impl DeviceTags {
    /// Checks that a transfer to the device may signal `tag`. It may not if an MV has signalled the tag and nobody has seen
    /// that yet.
    pub(super) fn check_send(&self, tag: u32) -> Result<(), Error> {
        match self.known.get(&tag) {
            Some(Record { due: true, waited: false, .. }) => {
                let message =
                    format!("tag {tag:02x} is in flight: an MV signalled it and nothing was received under it");
                Err(Error::new(Code::TagInFlight, message))
            }
            _ => Ok(()),
        }
    }

    /// Notes that a transfer to the device has signalled `tag`.
    pub(super) fn sent(&mut self, tag: u32) {
        self.known.entry(tag).or_default().due = false;
    }

    /// Checks that a transfer from the device under `tag` could start.
    pub(super) fn check_receive(&self, tag: u32) -> Result<(), Error> {
        let message = match self.known.get(&tag) {
            Some(Record { due: true, .. }) => return Ok(()),
            Some(Record { received: true, .. }) => {
                format!("tag {tag:02x} has been received already, and no MV has signalled it since")
            }
            Some(_) => format!("tag {tag:02x} was signalled by the host, not by an MV"),
            None => format!("no MV has signalled tag {tag:02x}"),
        };
        Err(Error::new(Code::NothingToReceive, message))
    }

    /// Notes that a transfer from the device has used the signal up.
    pub(super) fn received(&mut self, tag: u32) {
        let record = self.known.entry(tag).or_default();
        (record.due, record.received) = (false, true);
    }
}

//! The tags of a device, shared by its MVs and the host's transfers.

use crate::error::{Code, Error};
use crate::exec::Tags;
use crate::word::TagUse;
use std::collections::HashMap;

/// How tags are used up.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum TagRules {
    /// A `wait` finds a tag signalled for ever, and an MV may signal a tag again before anybody saw the last signal.
    #[default]
    Kept,
    /// The rules that public host programs follow: a `wait` uses up the kernel's half of a signal, as a transfer to the host
    /// uses up the other half, and an MV must not signal a tag of which nobody has used either half.
    UsedUp,
}

/// The history of a tag.
#[derive(Clone, Copy, Debug, Default)]
struct Record {
    /// A transfer has signalled the tag since a kernel last waited for it.
    ready: bool,
    /// An MV has signalled the tag since the host last received under it.
    due: bool,
    /// A `wait` has seen that signal.
    waited: bool,
    /// The host has received under the tag at least once.
    received: bool,
}

/// Tags that something has signalled.
#[derive(Debug, Default)]
pub(super) struct DeviceTags {
    known: HashMap<u32, Record>,
    rules: TagRules,
    /// A tag that was signalled twice before anybody used the signal.
    doubled: Option<u32>,
}

impl Tags for DeviceTags {
    fn signal(&mut self, tag: u32) {
        let record = self.known.entry(tag).or_default();
        if record.due && !record.waited && self.rules == TagRules::UsedUp {
            self.doubled = Some(tag);
        }
        (record.due, record.waited, record.ready) = (true, false, true);
    }

    fn wait(&mut self, tag: u32) -> Result<(), Error> {
        let kept = self.rules == TagRules::Kept;
        match self.known.get_mut(&tag).filter(|record| kept || record.ready) {
            Some(record) => {
                (record.waited, record.ready) = (true, false);
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
    /// No tag is signalled.
    pub(super) fn new(rules: TagRules) -> DeviceTags {
        DeviceTags { rules, ..DeviceTags::default() }
    }

    /// The rules of all tags.
    pub(super) fn rules(&self) -> TagRules {
        self.rules
    }

    /// The tag at which a kernel with these uses of tags would wait for ever, if nobody signalled one meanwhile.
    pub(super) fn blocked_at(&self, uses: &[TagUse]) -> Option<u32> {
        // The signals of the kernel itself. False: used up.
        let mut own: HashMap<u32, bool> = HashMap::new();
        let kept = self.rules == TagRules::Kept;
        for used in uses {
            match *used {
                TagUse::Signal(tag) => {
                    own.insert(tag, true);
                }
                TagUse::Wait(tag) => {
                    let before = || self.known.get(&tag).is_some_and(|record| kept || record.ready);
                    if !own.get(&tag).copied().unwrap_or_else(before) {
                        return Some(tag);
                    }
                    own.insert(tag, kept);
                }
            }
        }
        None
    }

    /// Whether a transfer from the device under `tag` could start.
    pub(super) fn is_due(&self, tag: u32) -> bool {
        self.known.get(&tag).is_some_and(|record| record.due)
    }

    /// Checks that no tag was signalled twice since the last call.
    pub(super) fn check_doubled(&mut self) -> Result<(), Error> {
        match self.doubled.take() {
            None => Ok(()),
            Some(tag) => {
                let message = format!("an MV signals tag {tag:02x} again, before anybody has used its last signal");
                let help = "wait for the tag in the kernel, or receive under it, between the two MVs";
                Err(Error::new(Code::TagInFlight, message).help(help))
            }
        }
    }

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
        let record = self.known.entry(tag).or_default();
        (record.due, record.ready) = (false, true);
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

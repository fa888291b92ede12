//! Commands of the host in a program: the machine completes each one when it is reached.

use super::tags::Tags;
use crate::asm::host_command::{no_host, reached, shown};
use crate::asm::{HostCommand, HostWords};
use crate::error::Error;
use crate::machine::{Machine, Region};

/// The region that a command names.
///
/// # Errors
/// If the host reaches no memory of the machine.
pub(super) fn region(machine: &Machine, words: &HostWords, count: u64) -> Result<Region, Error> {
    let (memory, group) = reached(machine.spec()).ok_or_else(no_host)?;
    Ok(Region { memory, units: [Some(group), None, None, None, None], addr: words.address, count })
}

/// Runs a command.
///
/// # Errors
/// Those of `tags`.
pub(super) fn run(machine: &mut Machine, command: &HostCommand, tags: &mut dyn Tags) -> Result<(), Error> {
    let (words, payload, count) = match command {
        HostCommand::Fence => return Ok(()),
        HostCommand::Write(words, payload) => (words, Some(payload), payload.len() as u64),
        HostCommand::Read(words, count) => (words, None, *count),
    };
    if words.wait != 0 {
        tags.wait(words.wait)?;
    }
    let region = region(machine, words, count)?;
    match payload {
        Some(payload) => machine.write(&region, payload)?,
        None => {
            for (address, word) in (words.address..).zip(machine.read(&region)?) {
                tags.read_by_host(&shown(machine.spec(), address, word))?;
            }
        }
    }
    if words.signal != 0 {
        tags.signal(words.signal);
    }
    Ok(())
}

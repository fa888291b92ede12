//! The file that keeps the contents of all memories of a device, so that they outlive the process as on a board.

use crate::status::{Refusal, Status};
use emu2::error::{Code, Error};
use emu2::files::{read, STATE_LIMIT};
use emu2::host::Device;
use emu2::interrupt::Interrupt;
use std::path::Path;

/// Reads the file, if it exists.
pub(crate) fn load(device: &mut Device, path: &Path) -> Result<(), Refusal> {
    if !path.exists() {
        return Ok(());
    }
    let done = read(path, STATE_LIMIT, &Interrupt::default()).and_then(|bytes| device.load_state(&bytes));
    done.map_err(|error: Error| {
        let status = if error.code() == Code::WrongSpec { Status::Device } else { Status::Io };
        Refusal::new(status, format!("{}: {error}", path.display()))
    })
}

/// Writes the file. Another process sees the old one or the new one.
pub(crate) fn save(device: &Device, path: &Path) -> Result<(), Refusal> {
    let bad = |what: String| Refusal::new(Status::Io, format!("{}: {what}", path.display()));
    let bytes = device.save_state().map_err(|error| bad(error.to_string()))?;
    let mut beside = path.as_os_str().to_owned();
    beside.push(format!(".{}", std::process::id()));
    let done = std::fs::write(&beside, bytes).and_then(|()| std::fs::rename(&beside, path));
    done.map_err(|error| {
        let _ = std::fs::remove_file(&beside);
        bad(error.to_string())
    })
}

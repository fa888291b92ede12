//! Files that a user names. Reads are limited in size and never wait for ever.

use crate::error::{Code, Error};
use crate::interrupt::Interrupt;
use std::fs::{File, OpenOptions};
use std::io::{ErrorKind, Read};
use std::path::Path;
use std::time::{Duration, Instant};

/// Bytes of the longest source that is read from a file.
pub const SOURCE_LIMIT: u64 = 1 << 30;

/// Bytes of the longest saved state that is read.
pub const STATE_LIMIT: u64 = 1 << 36;

/// Most bytes that are read from anything but a regular file, because a pipe or a device may have no end.
pub const STREAM_LIMIT: u64 = 1 << 28;

/// Bytes read at a time, between checks of the interrupt.
const CHUNK: usize = 1 << 20;

/// How long to look at a pipe to which nobody writes, and how often.
const PATIENCE: Duration = Duration::from_secs(2);
const PAUSE: Duration = Duration::from_millis(10);

/// The contents of the file at `path`, if they are at most `limit` bytes. If it is not a regular file, at most
/// [`STREAM_LIMIT`].
///
/// # Errors
/// [`Code::Unreadable`], also for a pipe that nobody writes to; [`Code::FileSize`]; [`Code::Interrupted`].
pub fn read(path: &Path, limit: u64, interrupt: &Interrupt) -> Result<Vec<u8>, Error> {
    let name = path.display();
    let unreadable = |e: std::io::Error| Error::new(Code::Unreadable, format!("{name}: {e}"));
    let mut file = open(OpenOptions::new().read(true), path).map_err(unreadable)?;
    let metadata = file.metadata().map_err(unreadable)?;
    let limit = if metadata.is_file() { limit } else { limit.min(STREAM_LIMIT) };
    let too_long = || Error::new(Code::FileSize, format!("{name}: more than {limit} bytes"));
    if metadata.is_file() && metadata.len() > limit {
        return Err(too_long());
    }
    let mut bytes = Vec::new();
    let (start, mut heard) = (Instant::now(), metadata.is_file());
    loop {
        interrupt.check()?;
        match (&mut file).take(CHUNK as u64).read_to_end(&mut bytes) {
            // This is the end, or a pipe that has no writer yet.
            Ok(0) if heard || !is_pipe(&metadata) => return Ok(bytes),
            Ok(0) if start.elapsed() > PATIENCE => {
                let message = format!("{name}: nobody writes to this pipe");
                return Err(Error::new(Code::Unreadable, message).help("start its writer first, or name a file"));
            }
            Ok(0) => std::thread::sleep(PAUSE),
            Ok(_) => heard = true,
            Err(e) if e.kind() == ErrorKind::WouldBlock => {
                heard = true;
                std::thread::sleep(PAUSE);
            }
            Err(e) => return Err(unreadable(e)),
        }
        if bytes.len() as u64 > limit {
            return Err(too_long());
        }
    }
}

/// Opens a new or emptied file at `path` for writing. With `append` the contents stay. A pipe needs a reader.
///
/// # Errors
/// Those of the host.
pub(crate) fn create(path: &Path, append: bool) -> std::io::Result<File> {
    let mut options = OpenOptions::new();
    if append {
        options.append(true);
    } else {
        options.write(true).create(true).truncate(true);
    }
    // Only opening must not wait. Writes to a pipe may wait.
    if std::fs::metadata(path).is_ok_and(|metadata| is_pipe(&metadata)) {
        open(&mut options, path)?;
    }
    options.open(path)
}

/// Opens without waiting for the other end of a pipe.
#[cfg(unix)]
fn open(options: &mut OpenOptions, path: &Path) -> std::io::Result<File> {
    use std::os::unix::fs::OpenOptionsExt;
    options.clone().custom_flags(libc::O_NONBLOCK).open(path)
}

#[cfg(not(unix))]
fn open(options: &mut OpenOptions, path: &Path) -> std::io::Result<File> {
    options.open(path)
}

#[cfg(unix)]
fn is_pipe(metadata: &std::fs::Metadata) -> bool {
    use std::os::unix::fs::FileTypeExt;
    metadata.file_type().is_fifo()
}

#[cfg(not(unix))]
fn is_pipe(_: &std::fs::Metadata) -> bool {
    false
}

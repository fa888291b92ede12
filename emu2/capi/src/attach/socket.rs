//! The socket of a process, for the same user only. Requests and answers are lines of JSON.
#![allow(unsafe_code)]

use super::hub::Hub;
use super::requests::answer;
use serde_json::{json, Value};
use std::fs::Permissions;
use std::io::{BufRead, BufReader, Error, ErrorKind, Read, Result, Write};
use std::os::fd::AsRawFd;
use std::os::unix::fs::{FileTypeExt, PermissionsExt};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::Path;
use std::sync::mpsc;
use std::sync::Arc;

/// The longest request.
const LONGEST: u64 = 1 << 24;

/// Opens the socket, and serves one debugger after the other beside the program.
pub(super) fn listen(hub: &Arc<Hub>, path: &Path) -> Result<()> {
    match std::fs::metadata(path) {
        Ok(found) if !found.file_type().is_socket() => return Err(Error::from(ErrorKind::AlreadyExists)),
        Ok(_) if UnixStream::connect(path).is_ok() => return Err(Error::from(ErrorKind::AddrInUse)),
        // There is none, or it is that of a process that has ended.
        _ => {}
    }
    // The socket gets its name when it listens, and nobody else can open it.
    let mut beside = path.as_os_str().to_owned();
    beside.push(format!(".{}", std::process::id()));
    let listener = UnixListener::bind(&beside)?;
    let named = std::fs::set_permissions(&beside, Permissions::from_mode(0o600));
    if let Err(error) = named.and_then(|()| std::fs::rename(&beside, path)) {
        let _ = std::fs::remove_file(&beside);
        return Err(error);
    }
    let hub = hub.clone();
    let serve = move || {
        for stream in listener.incoming().map_while(Result::ok) {
            if is_same_user(&stream) {
                let _ = session(&hub, &stream);
            }
        }
    };
    std::thread::Builder::new().name("emu2-debug".into()).spawn(serve).map(drop)
}

/// Whether the other end is a process of this user.
fn is_same_user(stream: &UnixStream) -> bool {
    let mut found = libc::ucred { pid: 0, uid: 0, gid: 0 };
    let mut size = size_of::<libc::ucred>() as libc::socklen_t;
    // SAFETY: the socket is open, and the kernel of the host writes at most `size` bytes, those of `found`.
    let code = unsafe {
        libc::getsockopt(
            stream.as_raw_fd(),
            libc::SOL_SOCKET,
            libc::SO_PEERCRED,
            (&raw mut found).cast(),
            &raw mut size,
        )
    };
    // SAFETY: the call has no arguments and cannot fail.
    code == 0 && found.uid == unsafe { libc::geteuid() }
}

/// Reads a request. None at the end of the stream.
fn read(reader: &mut impl BufRead) -> Result<Option<Value>> {
    let mut line = Vec::new();
    reader.by_ref().take(LONGEST).read_until(b'\n', &mut line)?;
    match line.last() {
        None => Ok(None),
        Some(b'\n') => Ok(Some(serde_json::from_slice(&line).unwrap_or(Value::Null))),
        Some(_) => Err(Error::from(ErrorKind::InvalidData)),
    }
}

/// Serves one debugger.
fn session(hub: &Arc<Hub>, stream: &UnixStream) -> Result<()> {
    let (sender, requests) = mpsc::channel();
    let (mut reader, beside) = (BufReader::new(stream.try_clone()?), hub.clone());
    // `pause` is heard while a move is at work.
    let listen = move || {
        while let Ok(Some(request)) = read(&mut reader) {
            if request["do"] == "pause" {
                beside.pause();
            } else if sender.send(request).is_err() {
                break;
            }
        }
        // A debugger that goes away does not wait for its move. A move that is still to begin finds the channel closed.
        drop(sender);
        beside.pause();
    };
    hub.attach();
    let listening = std::thread::Builder::new().name("emu2-debug".into()).spawn(listen);
    let mut writer = stream;
    for request in requests {
        let said = match answer(hub, &request) {
            Ok(value) => json!({ "ok": value }),
            Err(error) => {
                let found = &error.0;
                json!({ "error": { "code": found.code.id(), "message": found.message, "help": found.help } })
            }
        };
        if writeln!(writer, "{said}").is_err() || request["do"] == "detach" {
            break;
        }
    }
    hub.detach();
    // The thread that listens ends with the stream.
    let _ = stream.shutdown(std::net::Shutdown::Both);
    listening.map(|thread| drop(thread.join()))
}

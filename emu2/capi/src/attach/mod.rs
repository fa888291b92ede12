//! A debugger that attaches to this process. It is off unless the variable EMU2_DEBUG names a socket.
//!
//! Kernels that are launched while a debugger is attached run in a session of the debugger, one at a time. The thread of the
//! device lends the session, and the thread of the socket moves it as the debugger asks. After a detach the kernel runs on
//! to its end, and later ones run as without a debugger.
//!
//! | file | subject |
//! |---|---|
//! | `hub` | the one place where a kernel meets a debugger |
//! | `run` | a kernel under the debugger |
//! | `requests` | what a debugger may ask |
//! | `socket` | the socket of a process, for the same user only |

mod hub;
mod requests;
mod run;
mod socket;

use crate::environment;
use crate::message;
use emu2::debug::Session;
use hub::Hub;
pub(crate) use hub::Memories;
use std::sync::{Arc, OnceLock, Weak};

static HUB: OnceLock<Option<Arc<Hub>>> = OnceLock::new();

/// The hub of this process, if a debugger may attach. A forked child has none: its parent owns the socket.
fn hub() -> Option<&'static Arc<Hub>> {
    HUB.get()?.as_ref().filter(|hub| hub.is_ours())
}

/// Opens the socket with the first device, and makes the memories of a device visible.
pub(crate) fn register(device: Weak<dyn Memories>) {
    let hub = HUB.get_or_init(|| {
        let path = environment::value(environment::DEBUG)?;
        let hub = Arc::new(Hub::new(environment::value(environment::DEBUG_STOP).is_some()));
        match socket::listen(&hub, path.as_ref()) {
            Ok(()) => Some(hub),
            Err(error) => {
                message::show(&format!("emu2: {}: no debugger can attach: {error}", path.to_string_lossy()));
                None
            }
        }
    });
    if let Some(hub) = hub.as_ref().filter(|hub| hub.is_ours()) {
        hub.add_device(device);
    }
}

/// Whether the next kernel should run under the debugger.
pub(crate) fn wants() -> bool {
    hub().is_some_and(|hub| hub.wants())
}

/// Lends a kernel to the debugger until it lets go of it.
pub(crate) fn lend(session: Session, name: &str) -> Session {
    match hub() {
        Some(hub) => hub.lend(session, name),
        None => session,
    }
}

//! Long work in another thread. Meanwhile the calling thread hears signals and writes the lines that the work dumps.

use crate::sink::{Dump, Line};
use emu2::asm::{ItemKind, Program};
use emu2::interrupt::Interrupt;
use emu2::threads;
use pyo3::exceptions::PySystemError;
use pyo3::prelude::*;
use std::sync::mpsc::{sync_channel, Receiver, RecvTimeoutError, SyncSender};
use std::time::Duration;

/// How often to look for signals.
const PERIOD: Duration = Duration::from_millis(20);

/// Number of bytes from which on reading a source is long work. Shorter ones take less than 200 ms, and a thread of their own
/// would take memory from another arena each time.
pub(crate) const LONG_TEXT: usize = 1 << 20;

/// Number of statements from which on a run is long work: a thread of its own costs less than it gains.
const LONG_PROGRAM: usize = 128;

/// The same number for the long words of one MV or debug statement.
const LONG_STATEMENT: u64 = 1 << 14;

/// The thread in which work is done.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Where {
    /// In the calling thread. The work ends before anyone would want to stop it.
    Here,
    /// In a thread of the pool, which shares regions at less cost. Not for work that writes to a sink, because the sink may
    /// have work for the pool.
    Pool,
    /// In a thread of its own.
    Thread,
}

impl Where {
    /// The thread in which a text of this many bytes is read.
    pub(crate) fn of_text(bytes: usize) -> Where {
        if bytes < LONG_TEXT {
            Where::Here
        } else {
            Where::Thread
        }
    }

    /// The thread in which `program` runs.
    pub(crate) fn of_program(program: &Program, sink: bool) -> Where {
        let long = |kind: &ItemKind| match kind {
            ItemKind::Mv(mv) => mv.size >= LONG_STATEMENT,
            ItemKind::Get(get) => get.count >= LONG_STATEMENT,
            _ => false,
        };
        match program.statements() >= LONG_PROGRAM || program.items.iter().any(|item| long(&item.kind)) {
            false => Where::Here,
            true if sink => Where::Thread,
            true => Where::Pool,
        }
    }
}

/// Returns the result of `work`, and the lines that it dumped if there is no sink. Must be called without the interpreter.
///
/// Signals are heard while it works. An exception of a handler or of the sink stops the work and is returned instead.
pub(crate) fn attended<T: Send>(
    place: Where,
    sink: Option<&Py<PyAny>>,
    work: impl FnOnce(&Interrupt, &mut Dump<'_>) -> T + Send,
) -> PyResult<(T, Vec<String>)> {
    let mut result = None;
    let kept = &mut result;
    let lines = attend_to(place, sink, Box::new(move |stop, dump| *kept = Some(work(stop, dump))))?;
    match result {
        Some(result) => Ok((result, lines)),
        None => Err(PySystemError::new_err("a thread of emu2 ended without a result")),
    }
}

/// Work that keeps its result itself. It has one type, so that the threads around it are compiled once.
type Work<'a> = Box<dyn FnOnce(&Interrupt, &mut Dump<'_>) + Send + 'a>;

/// Returns the lines that `work` dumped if there is no sink; as [`attended`].
fn attend_to(place: Where, sink: Option<&Py<PyAny>>, work: Work<'_>) -> PyResult<Vec<String>> {
    let interrupt = Interrupt::default();
    if place == Where::Here {
        let mut dump = Dump::here(sink);
        work(&interrupt, &mut dump);
        return dump.finish();
    }
    let (pieces, to_write) = sync_channel(1);
    let (answer, go_on) = sync_channel(1);
    let line = Line::new(pieces, go_on);
    let stop = &interrupt;
    // Dropping the line together with the dump tells the other thread that the work is done.
    let away = move || {
        let mut dump = Dump::there(line, sink.is_some());
        work(stop, &mut dump);
        dump.finish()
    };
    let wait = move || attend(sink, &to_write, &answer, stop);
    let (lines, failure) = match place {
        Where::Pool => threads::beside(away, wait),
        _ => std::thread::scope(|scope| {
            let worker = scope.spawn(away);
            let failure = wait();
            (worker.join().ok(), failure)
        }),
    };
    match (lines, failure) {
        (_, Some(error)) => Err(error),
        (Some(lines), None) => lines,
        (None, None) => Ok(Vec::new()),
    }
}

/// Writes the pieces until the other end is gone. Returns the exception of a signal handler or of the sink, if there was
/// one.
fn attend(
    sink: Option<&Py<PyAny>>,
    pieces: &Receiver<String>,
    answer: &SyncSender<bool>,
    interrupt: &Interrupt,
) -> Option<PyErr> {
    let mut failure = None;
    loop {
        let piece = match pieces.recv_timeout(PERIOD) {
            Err(RecvTimeoutError::Disconnected) => return failure,
            Err(RecvTimeoutError::Timeout) => None,
            Ok(piece) => Some(piece),
        };
        let done = Python::attach(|py| {
            py.check_signals()?;
            match (&piece, sink, &failure) {
                (Some(text), Some(sink), None) => sink.call_method1(py, "write", (text.as_str(),)).map(drop),
                _ => Ok(()),
            }
        });
        if let Err(error) = done {
            interrupt.request();
            failure.get_or_insert(error);
        }
        if piece.is_some() {
            // An answer to a thread that has ended is lost, and nobody waits for it.
            let _ = answer.send(failure.is_none());
        }
    }
}

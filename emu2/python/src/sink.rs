//! Dump lines on their way to Python. They are collected, or written to an object in batches.

use emu2::error::{Code, Error};
use pyo3::prelude::*;
use std::sync::mpsc::{Receiver, SyncSender};

/// Bytes of dump lines that are handed to a Python sink at a time.
const BATCH_BYTES: usize = 1 << 16;

/// A connection from the working thread to the waiting one: it sends pieces of text, and gets back whether to go on.
pub(crate) struct Line {
    pieces: SyncSender<String>,
    go_on: Receiver<bool>,
}

impl Line {
    pub(crate) fn new(pieces: SyncSender<String>, go_on: Receiver<bool>) -> Line {
        Line { pieces, go_on }
    }

    /// Lets the other end write `text` to the sink. Returns false if that fails or if the work must stop.
    pub(crate) fn write(&self, text: String) -> bool {
        self.pieces.send(text).is_ok() && self.go_on.recv().unwrap_or(false)
    }
}

/// Where dump lines go.
enum Destination<'a> {
    /// To a list.
    Collected,
    /// To an object with a `write(str)` method, from this thread.
    Here(&'a Py<PyAny>),
    /// To such an object, from the thread at the other end of the line.
    There,
}

/// Takes dump lines without the interpreter.
pub(crate) struct Dump<'a> {
    destination: Destination<'a>,
    /// The connection to the thread that waits for this one.
    line: Option<Line>,
    lines: Vec<String>,
    batch: String,
    failure: Option<PyErr>,
}

impl<'a> Dump<'a> {
    /// A dump whose lines go to `sink`, an object with a `write(str)` method, or are collected.
    pub(crate) fn here(sink: Option<&'a Py<PyAny>>) -> Dump<'a> {
        Dump::new(sink.map_or(Destination::Collected, Destination::Here))
    }

    /// A dump whose lines are collected, or written by the thread at the other end of `line`.
    pub(crate) fn there(line: Line, sink: bool) -> Dump<'a> {
        Dump { line: Some(line), ..Dump::new(if sink { Destination::There } else { Destination::Collected }) }
    }

    fn new(destination: Destination<'a>) -> Dump<'a> {
        Dump { destination, line: None, lines: Vec::new(), batch: String::new(), failure: None }
    }

    pub(crate) fn line(&mut self, line: &str) -> Result<(), Error> {
        if matches!(self.destination, Destination::Collected) {
            self.lines.push(line.to_string());
            return Ok(());
        }
        self.batch.push_str(line);
        self.batch.push('\n');
        if self.batch.len() < BATCH_BYTES {
            Ok(())
        } else {
            self.flush()
        }
    }

    fn flush(&mut self) -> Result<(), Error> {
        let batch = std::mem::take(&mut self.batch);
        if batch.is_empty() {
            return Ok(());
        }
        let sent = match self.destination {
            Destination::Collected => true,
            Destination::There => self.line.as_ref().is_some_and(|line| line.write(batch)),
            Destination::Here(sink) => {
                let sent = Python::attach(|py| sink.call_method1(py, "write", (batch,)).map(drop));
                sent.map_err(|e| self.failure = Some(e)).is_ok()
            }
        };
        if sent {
            return Ok(());
        }
        Err(Error::new(Code::Unwritable, "the dump cannot be written"))
    }

    /// The collected lines, or the exception of the sink. Lines before a run-time error belong to the dump too.
    pub(crate) fn finish(mut self) -> PyResult<Vec<String>> {
        if self.failure.is_none() {
            let _ = self.flush();
        }
        match self.failure {
            Some(error) => Err(error),
            None => Ok(self.lines),
        }
    }
}

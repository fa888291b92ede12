//! Dump lines on their way to Python: collected, or written to an object in batches.

use emu2::error::{Code, Error};
use pyo3::prelude::*;

/// Dump lines handed to a Python sink at a time.
const BATCH_BYTES: usize = 1 << 16;

/// Takes dump lines without the interpreter.
pub(crate) struct Dump {
    sink: Option<Py<PyAny>>,
    lines: Vec<String>,
    batch: String,
    failure: Option<PyErr>,
}

impl Dump {
    /// Lines go to `sink`, an object with a `write(str)` method, or are collected.
    pub(crate) fn new(sink: Option<Py<PyAny>>) -> Dump {
        Dump { sink, lines: Vec::new(), batch: String::new(), failure: None }
    }

    pub(crate) fn line(&mut self, line: &str) -> Result<(), Error> {
        if self.sink.is_none() {
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
        let Some(sink) = self.sink.as_ref().filter(|_| !self.batch.is_empty()) else { return Ok(()) };
        let sent = Python::attach(|py| sink.call_method1(py, "write", (self.batch.as_str(),)).map(|_| ()));
        self.batch.clear();
        sent.map_err(|e| {
            self.failure = Some(e);
            Error::new(Code::Unwritable, "the dump cannot be written")
        })
    }

    /// The collected lines, or what the sink raised. Lines before a run-time error belong to the dump too.
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

//! A kernel under the debugger.

use emu2::asm::Origins;
use emu2::debug::{said, Session, Stop};
use emu2::error::{Code, Error};
use serde_json::{json, Value};

/// A breakpoint that the debugger wants, for kernels that run now or later.
#[derive(Clone, Debug)]
pub(super) struct Wanted {
    pub(super) id: u32,
    pub(super) text: String,
    /// The kernel or the source that `text` names a line of. None: it stops in every kernel.
    pub(super) file: Option<String>,
}

/// A kernel, and the breakpoints in it.
pub(super) struct Run {
    pub(super) session: Session,
    pub(super) name: String,
    /// Number of this launch under the debugger, from 1.
    pub(super) number: u64,
    /// Numbers of breakpoints: of the session, and of the debugger.
    ids: Vec<(u32, u32)>,
    /// The debugger has been told that the kernel is there.
    shown: bool,
    /// The debugger lets go of the kernel.
    pub(super) released: bool,
    /// Where a statement failed that was reached before.
    failed: Option<usize>,
}

/// Splits `line 12 if CONDITION` into the line and the rest.
fn line_of(text: &str) -> Option<(u32, &str)> {
    let rest = text.trim().strip_prefix("line ")?.trim_start();
    let end = rest.find(|c: char| !c.is_ascii_digit()).unwrap_or(rest.len());
    Some((rest[..end].parse().ok()?, &rest[end..]))
}

fn file_name(path: &str) -> &str {
    path.rsplit('/').next().unwrap_or(path)
}

impl Run {
    pub(super) fn new(session: Session, name: &str, number: u64, wanted: &[Wanted]) -> Run {
        let (name, ids) = (name.to_string(), Vec::new());
        let mut run = Run { session, name, number, ids, shown: false, released: false, failed: None };
        for one in wanted {
            // A breakpoint at a line of another kernel stops in that one.
            let _ = run.add(one);
        }
        run
    }

    /// The text of a breakpoint for this kernel. None if it is one of another file.
    fn text_of(&self, wanted: &Wanted) -> Option<String> {
        let (Some(file), Some((line, rest))) = (&wanted.file, line_of(&wanted.text)) else {
            return Some(wanted.text.clone());
        };
        let text = &self.session.program().text;
        match Origins::of(text).first_line(file, line) {
            Some(line) => Some(format!("line {line}{rest}")),
            None => (file_name(file) == file_name(&self.name)).then(|| wanted.text.clone()),
        }
    }

    /// Adds a breakpoint. None if it is one of another file.
    ///
    /// # Errors
    /// Those of [`Session::add`].
    pub(super) fn add(&mut self, wanted: &Wanted) -> Result<Option<Value>, Error> {
        let Some(text) = self.text_of(wanted) else { return Ok(None) };
        let added = self.session.add(&text)?;
        let (id, mut said) = (added.id, said::breakpoint(added));
        said["id"] = wanted.id.into();
        self.ids.push((id, wanted.id));
        Ok(Some(said))
    }

    /// Removes a breakpoint.
    pub(super) fn remove(&mut self, id: u32) {
        for (own, _) in self.ids.extract_if(.., |(_, wanted)| *wanted == id) {
            let _ = self.session.remove(own);
        }
    }

    /// Whether the debugger knows of this kernel.
    pub(super) fn is_shown(&self) -> bool {
        self.shown
    }

    /// Whether the kernel must go on without the debugger: every statement has run, or the next one fails again.
    pub(super) fn is_over(&self) -> bool {
        let position = self.session.position();
        position == self.session.len() || self.failed == Some(position)
    }

    /// Says where a move has ended.
    pub(super) fn said(&mut self, stop: &Stop, dump: &[String]) -> Value {
        self.shown = true;
        self.failed = stop.error.as_ref().map(|_| self.session.position());
        let mut found = said::stop(stop, &mut self.session, dump);
        let ids: Vec<u32> =
            self.ids.iter().filter(|(own, _)| stop.breakpoints.contains(own)).map(|(_, id)| *id).collect();
        found["breakpoints"] = json!(ids);
        found["kernel"] = self.number.into();
        found
    }

    /// Where the kernel stands.
    ///
    /// # Errors
    /// Those of [`Session::clock`].
    pub(super) fn state(&mut self) -> Result<Value, Error> {
        let position = self.session.position();
        let (images, bytes) = self.session.history();
        let line = self.session.line(position);
        let clock = self.session.clock()?;
        let (steps, cycles) = (clock.steps(position), clock.cycles(position));
        Ok(json!({
            "kernel": self.number, "name": self.name, "position": position, "statements": self.session.len(),
            "line": line, "steps": steps, "cycles": cycles, "history": [images, bytes],
        }))
    }
}

/// The error of a request that needs a kernel.
pub(super) fn no_kernel() -> Error {
    let help = "`run` goes to the next kernel; memories can be read meanwhile";
    Error::new(Code::BadCommand, "no kernel is stopped").help(help)
}

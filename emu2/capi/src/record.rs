//! What ran on a device, for `emu2 trace`: a line of JSON for each device, written when it is closed.

use crate::environment;
use crate::message;
use emu2::asm::{Origins, Program};
use emu2::exec::Finding;
use emu2::report::Report;
use emu2::word::print;
use std::collections::HashMap;
use std::fs::OpenOptions;
use std::io::Write;
use std::path::PathBuf;

/// Launches that are listed one by one. Later ones are only counted.
const MOST: usize = 1 << 16;
/// Findings that are listed for each kernel.
const MOST_FINDINGS: usize = 1 << 10;

#[derive(Debug)]
struct Row {
    name: String,
    /// The source, for those who look at the kernel later.
    text: String,
    findings: Vec<serde_json::Value>,
    steps: u64,
    cycles: u64,
    launches: u64,
}

impl Row {
    /// Notes a finding of the last launch.
    fn found(&mut self, finding: &Finding, place: &str) {
        if self.findings.len() < MOST_FINDINGS {
            let found = &finding.diagnostic;
            self.findings.push(serde_json::json!({
                "launch": self.launches, "line": finding.line, "code": found.code.id(), "message": found.message,
                "help": found.help, "count": finding.count, "place": place,
            }));
        }
    }
}

/// The launches of a device.
#[derive(Debug)]
pub(crate) struct Record {
    path: PathBuf,
    rows: Vec<Row>,
    known: HashMap<(String, u64, u64), usize>,
    order: Vec<usize>,
    last: Option<usize>,
}

impl Record {
    /// An empty record, if the caller wants one.
    pub(crate) fn wanted() -> Option<Record> {
        let path = environment::value(environment::REPORT)?.into();
        Some(Record { path, rows: Vec::new(), known: HashMap::new(), order: Vec::new(), last: None })
    }

    /// Notes a launch, and what a sanitizer has found in it.
    pub(crate) fn launched(&mut self, program: &Program, report: &Report, findings: &[Finding]) {
        let (steps, cycles) = (report.steps, report.cycles);
        let next = self.rows.len();
        let at = *self.known.entry((program.name.clone(), steps, cycles)).or_insert(next);
        if at == next {
            let (name, text, findings) = (program.name.clone(), source(program), Vec::new());
            self.rows.push(Row { name, text, findings, steps, cycles, launches: 0 });
        }
        self.rows[at].launches += 1;
        findings.iter().for_each(|finding| self.rows[at].found(finding, &place(program, finding.line)));
        self.last = Some(at);
        if self.order.len() < MOST {
            self.order.push(at);
        }
    }

    /// Notes what a sanitizer has found in bytes that the host read behind the last launch.
    pub(crate) fn shown(&mut self, finding: &Finding, offset: u64, bytes: usize) {
        if let Some(row) = self.last.and_then(|at| self.rows.get_mut(at)) {
            row.found(finding, &receive(offset, bytes));
        }
    }

    /// Adds the line of this device to the file.
    pub(crate) fn write(&self) {
        let kernels: Vec<serde_json::Value> = self
            .rows
            .iter()
            .map(|row| {
                let Row { name, text, findings, steps, cycles, launches } = row;
                serde_json::json!({
                    "name": name, "steps": steps, "cycles": cycles, "launches": launches, "findings": findings, "text": text,
                })
            })
            .collect();
        let line = serde_json::json!({"process": std::process::id(), "kernels": kernels, "order": self.order});
        let file = OpenOptions::new().create(true).append(true).open(&self.path);
        // One write, so that lines of processes beside each other stay whole.
        if let Err(error) = file.and_then(|mut file| file.write_all(format!("{line}\n").as_bytes())) {
            message::show(&format!("emu2: {}: {error}", self.path.display()));
        }
    }
}

/// The text in which a program counts its lines.
fn source(program: &Program) -> String {
    match program.text.is_empty() {
        true => print(program),
        false => program.text.to_string(),
    }
}

/// The place of a line of a program in the source that it was made from.
pub(crate) fn place(program: &Program, line: u32) -> String {
    match Origins::of(&program.text).of_line(line) {
        Some(place) => format!("{}:{}", place.file, place.line),
        None => format!("{}:{line}", program.name),
    }
}

/// The place of a receive.
pub(crate) fn receive(offset: u64, bytes: usize) -> String {
    format!("receive of {bytes} bytes at {offset}")
}

/// A finding as a line of text.
pub(crate) fn text(place: &str, finding: &Finding) -> String {
    let found = &finding.diagnostic;
    format!("warning[{}]: {place}: {}", found.code.id(), found.message)
}

//! What ran on a device, for `emu2 trace`: a line of JSON for each device, written when it is closed.

use crate::environment;
use crate::message;
use emu2::report::Report;
use std::collections::HashMap;
use std::fs::OpenOptions;
use std::io::Write;
use std::path::PathBuf;

/// Launches that are listed one by one. Later ones are only counted.
const MOST: usize = 1 << 16;

#[derive(Debug)]
struct Row {
    name: String,
    steps: u64,
    cycles: u64,
    launches: u64,
}

/// The launches of a device.
#[derive(Debug)]
pub(crate) struct Record {
    path: PathBuf,
    rows: Vec<Row>,
    known: HashMap<(String, u64, u64), usize>,
    order: Vec<usize>,
}

impl Record {
    /// An empty record, if the caller wants one.
    pub(crate) fn wanted() -> Option<Record> {
        let path = environment::value(environment::REPORT)?.into();
        Some(Record { path, rows: Vec::new(), known: HashMap::new(), order: Vec::new() })
    }

    /// Notes a launch.
    pub(crate) fn launched(&mut self, name: &str, report: &Report) {
        let (steps, cycles) = (report.steps, report.cycles);
        let next = self.rows.len();
        let at = *self.known.entry((name.to_string(), steps, cycles)).or_insert(next);
        if at == next {
            self.rows.push(Row { name: name.to_string(), steps, cycles, launches: 0 });
        }
        self.rows[at].launches += 1;
        if self.order.len() < MOST {
            self.order.push(at);
        }
    }

    /// Adds the line of this device to the file.
    pub(crate) fn write(&self) {
        let kernels: Vec<serde_json::Value> = self
            .rows
            .iter()
            .map(|row| {
                let Row { name, steps, cycles, launches } = row;
                serde_json::json!({"name": name, "steps": steps, "cycles": cycles, "launches": launches})
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

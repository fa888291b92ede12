//! The timeline as trace events in Chrome's JSON, which Perfetto opens. One microsecond of the trace is one cycle. So
//! consecutive slices touch exactly.

use super::timeline::{Event, Flight, Timeline, Wait};
use super::traffic::Port;
use crate::asm::{Item, ItemKind, Program};
use crate::error::Error;
use serde_json::{json, Value};
use std::collections::HashSet;

/// A group of tracks, and the order in which groups are shown.
#[derive(Clone, Copy, Debug)]
enum Process {
    Pe = 1,
    Mv = 2,
    Ports = 3,
}

const STEPS: usize = 1;
const WAITS: usize = 2;

/// Bytes of text that are handed to the sink at a time.
const BATCH_BYTES: usize = 1 << 16;

/// Writes the trace of `program` to `sink`, piece by piece.
///
/// There is a track for steps, one for waits, one for each memory that MVs hold, and as many tracks for MVs as are ever on
/// their way at the same time. Every slice carries the line of its statement.
///
/// # Errors
/// The errors of `sink`.
pub fn trace(program: &Program, sink: &mut dyn FnMut(&str) -> Result<(), Error>) -> Result<(), Error> {
    let head = json!({ "machine": program.spec.machine.name, "program": program.name,
        "clock_mhz": program.spec.machine.clock_mhz, "unit": "1 us is 1 cycle" });
    let batch = format!("{{\"otherData\":{head},\"traceEvents\":[\n");
    let mut writer = Writer { program, sink, batch, first: true, lanes: Vec::new(), ports: HashSet::new() };
    for (process, name) in [(Process::Pe, "PE"), (Process::Mv, "MV"), (Process::Ports, "memories held by MVs")] {
        writer.name(process, None, name)?;
    }
    writer.name(Process::Pe, Some(STEPS), "steps")?;
    writer.name(Process::Pe, Some(WAITS), "waits")?;
    let mut timeline = Timeline::new(program);
    program.for_each(|item| match timeline.item(item) {
        Event::Steps { wait, start, count } => {
            if let Some(wait) = wait {
                writer.wait(item, &wait)?;
            }
            let args = json!({ "line": item.line, "steps": count });
            writer.slice(Process::Pe, STEPS, writer.statement(item), (start, timeline.cycles(count)), args)
        }
        Event::Mv(flight) => writer.mv(item, &flight),
        Event::Nothing => Ok(()),
    })?;
    writer.batch.push_str("\n]}\n");
    writer.flush()
}

struct Writer<'a> {
    program: &'a Program,
    sink: &'a mut dyn FnMut(&str) -> Result<(), Error>,
    batch: String,
    /// Whether no event has been written yet.
    first: bool,
    /// When the last MV of each track ends.
    lanes: Vec<u64>,
    /// Memories that have a track.
    ports: HashSet<Port>,
}

impl<'a> Writer<'a> {
    fn statement(&self, item: &Item) -> &'a str {
        let span = item.span.start as usize..item.span.end as usize;
        self.program.text.get(span).unwrap_or_default()
    }

    fn wait(&mut self, item: &Item, wait: &Wait) -> Result<(), Error> {
        let name = format!("wait i{:02x}", wait.tag);
        let args = json!({ "line": item.line, "host": wait.host });
        if wait.stall > 0 {
            return self.slice(Process::Pe, WAITS, &name, (wait.start, wait.stall), args);
        }
        let pid = Process::Pe as u32;
        self.event(
            &json!({ "ph": "i", "s": "t", "pid": pid, "tid": WAITS, "ts": wait.start, "name": name, "args": args }),
        )
    }

    fn mv(&mut self, item: &Item, flight: &Flight) -> Result<(), Error> {
        let ItemKind::Mv(mv) = &item.kind else { return Ok(()) };
        let statement = self.statement(item);
        let held = flight.released - flight.start;
        let args = json!({ "line": item.line, "tag": mv.tag.map(|tag| format!("{tag:02x}")), "long words": mv.size,
            "issued": flight.issued, "queued": flight.start - flight.issued, "holds memories for": held });
        let free = self.lanes.iter().position(|end| *end <= flight.start);
        let lane = free.unwrap_or(self.lanes.len());
        if lane == self.lanes.len() {
            self.lanes.push(0);
            self.name(Process::Mv, Some(lane + 1), &format!("MV {lane}"))?;
        }
        self.lanes[lane] = flight.end;
        self.slice(Process::Mv, lane + 1, statement, (flight.start, flight.end - flight.start), args)?;
        for port in &flight.traffic.ports {
            let tid = port.number(&self.program.spec);
            if self.ports.insert(*port) {
                self.name(Process::Ports, Some(tid), &port.name(&self.program.spec))?;
            }
            let args = json!({ "line": item.line });
            self.slice(Process::Ports, tid, statement, (flight.start, held), args)?;
        }
        Ok(())
    }

    /// Names a track or a group of tracks, and states its position.
    fn name(&mut self, process: Process, tid: Option<usize>, name: &str) -> Result<(), Error> {
        let (kind, pid) = (if tid.is_some() { "thread" } else { "process" }, process as usize);
        let order = json!({ "sort_index": tid.unwrap_or(pid) });
        for (what, args) in [("name", json!({ "name": name })), ("sort_index", order)] {
            let name = format!("{kind}_{what}");
            self.event(&json!({ "ph": "M", "pid": pid, "tid": tid.unwrap_or(0), "name": name, "args": args }))?;
        }
        Ok(())
    }

    /// Writes a slice of `(start, duration)` cycles.
    fn slice(
        &mut self,
        process: Process,
        tid: usize,
        name: &str,
        (ts, dur): (u64, u64),
        args: Value,
    ) -> Result<(), Error> {
        let pid = process as u32;
        self.event(&json!({ "ph": "X", "pid": pid, "tid": tid, "ts": ts, "dur": dur, "name": name, "args": args }))
    }

    fn event(&mut self, event: &Value) -> Result<(), Error> {
        if !self.first {
            self.batch.push_str(",\n");
        }
        self.first = false;
        self.batch.push_str(&event.to_string());
        if self.batch.len() < BATCH_BYTES {
            return Ok(());
        }
        self.flush()
    }

    fn flush(&mut self) -> Result<(), Error> {
        (self.sink)(&self.batch)?;
        self.batch.clear();
        Ok(())
    }
}

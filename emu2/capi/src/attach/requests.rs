//! What a debugger may ask: the functions of `emu2.Debugger`, by name.

use super::hub::{Hub, HubState};
use super::run::{no_kernel, Run, Wanted};
use emu2::debug::{said, Condition, PlaceSet, Stop, Unit};
use emu2::error::{Code, Error};
use emu2::interrupt::Interrupt;
use emu2::machine::{Machine, Region};
use serde_json::{json, Value};
use std::sync::MutexGuard;

/// Words that one request may bring.
const MOST_WORDS: u64 = 1 << 20;

/// A kernel begins.
const START: Stop = Stop { reason: "start", breakpoints: Vec::new(), text: String::new(), error: None };

fn bad(what: impl Into<String>) -> Error {
    Error::new(Code::BadRequest, what)
}

fn number(request: &Value, name: &str) -> Result<u64, Error> {
    request[name].as_u64().ok_or_else(|| bad(format!("`{name}` is no number from 0 on")))
}

fn text<'r>(request: &'r Value, name: &str) -> Result<&'r str, Error> {
    request[name].as_str().ok_or_else(|| bad(format!("`{name}` is no text")))
}

/// Calls `work` with the memories: those of the kernel that is stopped, or those of the last device that was opened.
fn with_machine<T>(state: &HubState, work: impl FnOnce(&Machine) -> Result<T, Error>) -> Result<T, Error> {
    if let Some(run) = &state.run {
        return work(run.session.machine());
    }
    let device = state.devices.iter().rev().find_map(|device| device.upgrade());
    let device = device.ok_or_else(|| bad("no device is open"))?;
    let (mut work, mut done) = (Some(work), None);
    device.look(&mut |machine| done = work.take().map(|work| work(machine)));
    done.unwrap_or_else(|| Err(bad("a kernel runs that was launched before")))
}

fn stopped(state: &mut HubState) -> Result<&mut Run, Error> {
    state.run.as_mut().filter(|run| !run.released).ok_or_else(no_kernel)
}

fn region(machine: &Machine, request: &Value) -> Result<Region, Error> {
    let name = text(request, "memory")?;
    let memory = machine.spec().memory(name);
    let memory = memory.ok_or_else(|| Error::new(Code::UnknownMemory, format!("no memory is called `{name}`")))?;
    let unit = |level: usize| request["units"][level].as_u64().and_then(|unit| u32::try_from(unit).ok());
    let (addr, count) = (number(request, "addr")?, number(request, "count")?);
    let region = Region { memory, units: std::array::from_fn(unit), addr, count };
    region.check(machine.spec())?;
    let units: u64 = region.extents(machine.spec()).iter().map(|n| u64::from(*n)).product();
    match units.checked_mul(count) {
        Some(words) if words <= MOST_WORDS => Ok(region),
        _ => Err(bad(format!("more than {MOST_WORDS} long words at once"))),
    }
}

/// A move of the kernel that is stopped, to a position that `target` finds. Where the kernel is over or none is there, the
/// move leads to the start of the next kernel.
fn step(hub: &Hub, back: bool, mut target: impl FnMut(&mut Run) -> Result<usize, Error>) -> Result<Value, Error> {
    let (mut state, interrupt) = (hub.lock(), hub.begin());
    if let Some(run) = state.run.as_mut().filter(|run| !run.is_shown()) {
        return Ok(run.said(&START, &[]));
    }
    if state.run.as_ref().is_none_or(|run| run.is_over() && !back) {
        return next(hub, state, &interrupt);
    }
    let run = stopped(&mut state)?;
    let position = target(run)?;
    run.session.set_interrupt(interrupt);
    let mut dump = Vec::new();
    let stop = run.session.step_to(position, &mut |line| keep(&mut dump, line));
    Ok(run.said(&stop, &dump))
}

fn keep(dump: &mut Vec<String>, line: &str) -> Result<(), Error> {
    dump.extend(line.lines().map(str::to_string));
    Ok(())
}

/// Goes to the start of the next kernel.
fn next(hub: &Hub, state: MutexGuard<'_, HubState>, interrupt: &Interrupt) -> Result<Value, Error> {
    let (mut state, found) = hub.next_kernel(state, interrupt);
    if !found {
        return Ok(idle());
    }
    Ok(stopped(&mut state)?.said(&START, &[]))
}

/// The answer to a pause where no kernel runs.
fn idle() -> Value {
    json!({
        "reason": "pause", "breakpoints": [], "text": "no kernel runs", "position": 0, "line": 0, "dump": [],
        "error": null, "kernel": null,
    })
}

/// Runs to the next breakpoint, in this kernel or in a later one.
fn run(hub: &Hub, limit: usize) -> Result<Value, Error> {
    let (mut state, interrupt) = (hub.lock(), hub.begin());
    let mut dump = Vec::new();
    loop {
        if state.run.as_ref().is_none_or(Run::is_over) {
            let found;
            (state, found) = hub.next_kernel(state, &interrupt);
            if !found {
                return Ok(idle());
            }
        }
        let run = stopped(&mut state)?;
        run.session.set_interrupt(interrupt.clone());
        let stop = run.session.run_forward(limit, &mut |line| keep(&mut dump, line));
        if stop.reason != "end" {
            return Ok(run.said(&stop, &dump));
        }
    }
}

fn run_back(hub: &Hub) -> Result<Value, Error> {
    let (mut state, interrupt) = (hub.lock(), hub.begin());
    let run = stopped(&mut state)?;
    run.session.set_interrupt(interrupt);
    let stop = run.session.run_back();
    Ok(run.said(&stop, &[]))
}

fn unit(name: &str) -> Result<Unit, Error> {
    match name {
        "line" => Ok(Unit::Line),
        "step" => Ok(Unit::Step),
        "region" => Ok(Unit::Region),
        _ => Err(Error::new(Code::BadOption, format!("no unit `{name}`")).help("use `line`, `step` or `region`")),
    }
}

fn add(state: &mut HubState, request: &Value) -> Result<Value, Error> {
    let (text, file) = (text(request, "text")?.to_string(), request["file"].as_str().map(str::to_string));
    let of_line = text.trim_start().starts_with("line ");
    let here = state.run.as_ref().map(|run| run.name.clone());
    if of_line && file.is_none() && here.is_none() {
        return Err(no_kernel());
    }
    let file = if of_line { file.or(here) } else { None };
    state.next += 1;
    let wanted = Wanted { id: state.next, text, file };
    let said = match &mut state.run {
        Some(run) => run.add(&wanted)?,
        None => None,
    };
    let later = json!({ "id": wanted.id, "text": wanted.text, "line": null });
    state.wanted.push(wanted);
    Ok(said.unwrap_or(later))
}

fn remove(state: &mut HubState, id: u64) -> Result<Value, Error> {
    let before = state.wanted.len();
    state.wanted.retain(|wanted| u64::from(wanted.id) != id);
    if state.wanted.len() == before {
        return Err(Error::new(Code::BadBreakpoint, format!("there is no breakpoint {id}")));
    }
    if let Some(run) = &mut state.run {
        run.remove(id as u32);
    }
    Ok(Value::Null)
}

fn write(state: &mut HubState, request: &Value) -> Result<Value, Error> {
    let words = request["words"].as_array().map(|words| words.iter().map(Value::as_u64).collect::<Option<Vec<u64>>>());
    let words = words.flatten().ok_or_else(|| bad("`words` is no list of long words"))?;
    let run = stopped(state)?;
    let region = region(run.session.machine(), request)?;
    run.session.write(&region, &words).map(|()| Value::Null)
}

fn differences(run: &mut Run, request: &Value) -> Result<Value, Error> {
    let (first, second) = (number(request, "first")? as usize, number(request, "second")? as usize);
    run.session.check(first.max(second))?;
    let (mut count, mut words, most) = (0u64, Vec::new(), number(request, "most")? as usize);
    let spec = run.session.spec();
    let done = run.session.differences((first, second), &mut |found| {
        count += 1;
        if words.len() < most {
            words.push(said::difference(&spec, &found));
        }
    });
    done.map_err(|e| Error(Box::new(e.diagnostic)))?;
    Ok(json!({ "count": count, "words": words }))
}

/// Answers a request.
///
/// # Errors
/// Those of the functions, and [`Code::BadRequest`].
pub(super) fn answer(hub: &Hub, request: &Value) -> Result<Value, Error> {
    let back = request["back"].as_bool().unwrap_or(false);
    match text(request, "do")? {
        "hello" => {
            let spec = with_machine(&hub.lock(), |machine| Ok(machine.spec().machine.name.clone()));
            Ok(json!({ "process": std::process::id(), "spec": spec.ok() }))
        }
        "detach" => Ok(Value::Null),
        "run" if back => run_back(hub),
        "run" => run(hub, request["limit"].as_u64().map_or(usize::MAX, |limit| limit as usize)),
        "step" => {
            let unit = unit(text(request, "unit")?)?;
            step(hub, back, |run| Ok(run.session.target(unit, back)))
        }
        "go" => {
            let position = number(request, "position")? as usize;
            step(hub, true, |run| run.session.check(position).map(|()| position))
        }
        other => {
            let state = &mut *hub.lock();
            match other {
                "state" => stopped(state)?.state(),
                "source" => Ok(json!(&*stopped(state)?.session.program().text)),
                "line_of" => Ok(json!(stopped(state)?.session.line(number(request, "position")? as usize))),
                "at_line" => Ok(json!(stopped(state)?.session.at_line(number(request, "line")? as u32)?)),
                "at_cycle" => Ok(json!(stopped(state)?.session.at_cycle(number(request, "cycle")?)?)),
                "at_tag" => Ok(json!(stopped(state)?.session.at_tag(number(request, "tag")? as u32)?)),
                "first_write" => {
                    let run = stopped(state)?;
                    let place = PlaceSet::parse(text(request, "place")?, &run.session.spec())?;
                    let range = number(request, "first")? as usize..number(request, "last")? as usize;
                    Ok(json!(run.session.first_write(&place, range)))
                }
                "differences" => differences(stopped(state)?, request),
                "breakpoints" => {
                    let all = state.wanted.iter().map(|one| json!({ "id": one.id, "text": one.text, "line": null }));
                    Ok(all.collect())
                }
                "add" => add(state, request),
                "remove" => remove(state, number(request, "id")?),
                "evaluate" => with_machine(state, |machine| {
                    let place = PlaceSet::parse(text(request, "place")?, machine.spec())?;
                    Ok(said::words(&place.words(machine, number(request, "most")?.min(MOST_WORDS) as usize)))
                }),
                "holds" => with_machine(state, |machine| {
                    Ok(json!(Condition::parse(text(request, "condition")?, machine.spec())?.holds(machine)))
                }),
                "read" => with_machine(state, |machine| Ok(json!(machine.read(&region(machine, request)?)?))),
                "write" => write(state, request),
                _ => Err(bad(format!("the request `{other}` is not known"))),
            }
        }
    }
}

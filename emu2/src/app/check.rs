//! Compares an app with itself and with a machine before anything of it runs.

use super::model::{damaged, App, Segment, Value, Work};
use super::onnx;
use crate::error::{Code, Error};
use crate::spec::{LevelName, Spec};
use std::collections::{HashMap, HashSet};

/// The most long words that one value may take in all groups: packing it takes as much of the host.
const MOST_WORDS: u64 = 1 << 28;

/// The index of the memory that apps keep their values in.
pub(super) fn dram(spec: &Spec) -> Result<usize, Error> {
    spec.memory("dram").ok_or_else(|| damaged(format!("the machine `{}` has no dram", spec.machine.name)))
}

/// The values by name.
pub(super) fn named(app: &App) -> HashMap<&str, &Value> {
    app.values.iter().map(|value| (value.name.as_str(), value)).collect()
}

/// Refuses an app whose parts do not fit each other or the machine, or that needs more than this reader has.
pub(super) fn check(app: &App, spec: &Spec) -> Result<(), Error> {
    let values = named(app);
    if values.len() != app.values.len() {
        return Err(damaged("two values have one name"));
    }
    let capacity = spec.memories[dram(spec)?].words;
    if app.dram_words > capacity {
        return Err(damaged(format!("it needs {} long words of DRAM, the machine has {capacity}", app.dram_words)));
    }
    app.values.iter().try_for_each(|value| place(value, app, spec))?;
    ports(app, &values)?;
    for (name, data) in &app.constants {
        let value =
            values.get(name.as_str()).ok_or_else(|| damaged(format!("there is data of the unknown value `{name}`")))?;
        if data.len() as u64 != value.size() * value.elem.bytes() as u64 {
            return Err(damaged(format!("the data of `{name}` does not fit its shape {:?}", value.shape)));
        }
    }
    if app.registered > 0 {
        return Err(Error::new(Code::AppNeeds, "it has registered values, which change from call to call"));
    }
    segments(app, &values)
}

fn place(value: &Value, app: &App, spec: &Spec) -> Result<(), Error> {
    if !value.on_device {
        return Ok(());
    }
    let name = &value.name;
    let Some(dtype) = value.device().filter(|dtype| dtype.holds(value.elem)) else {
        return Err(damaged(format!("`{name}` is {}, but {} on the device", value.elem.name(), value.dtype)));
    };
    if value.dram.checked_add(value.words).is_none_or(|end| end > app.dram_words) {
        return Err(damaged(format!("`{name}` lies outside of the app's {} long words", app.dram_words)));
    }
    let groups = u64::from(spec.count(LevelName::Group));
    if value.words.saturating_mul(groups) > MOST_WORDS {
        return Err(Error::new(Code::AppNeeds, format!("`{name}` takes more than {MOST_WORDS} long words")));
    }
    let Some(place) = &value.place else {
        let reason = format!("it does not say where the elements of `{name}` lie");
        return Err(Error::new(Code::AppNeeds, reason).help("add the places: `pycompiler app FILE -o NEW`"));
    };
    let words = value.words * u64::from(64 / dtype.bits) * if place.alike { 1 } else { groups };
    place.fault(&value.shape, words).map_or(Ok(()), |fault| Err(damaged(format!("`{name}` {fault}"))))
}

fn ports(app: &App, values: &HashMap<&str, &Value>) -> Result<(), Error> {
    for (what, ports) in [("input", &app.inputs), ("output", &app.outputs)] {
        for port in ports {
            if !values.contains_key(port.value.as_str()) {
                return Err(damaged(format!("the {what} `{}` is the unknown value `{}`", port.key, port.value)));
            }
        }
        let keys: HashSet<_> = ports.iter().map(|port| &port.key).collect();
        if keys.len() != ports.len() {
            return Err(damaged(format!("two {what}s have one name")));
        }
    }
    Ok(())
}

fn segments(app: &App, values: &HashMap<&str, &Value>) -> Result<(), Error> {
    let given = app.inputs.iter().map(|port| port.value.as_str());
    let mut known: HashSet<&str> = given.chain(app.constants.iter().map(|(name, _)| name.as_str())).collect();
    for (number, segment) in app.segments.iter().enumerate() {
        for name in segment.inputs.iter().chain(&segment.outputs) {
            if !values.contains_key(name.as_str()) {
                return Err(damaged(format!("segment {number} names the unknown value `{name}`")));
            }
        }
        if let Some(name) = segment.inputs.iter().find(|name| !known.contains(name.as_str())) {
            return Err(damaged(format!("segment {number} reads `{name}` before it is made")));
        }
        known.extend(segment.outputs.iter().map(String::as_str));
        work(number, segment, values)?;
    }
    match app.outputs.iter().find(|port| !known.contains(port.value.as_str())) {
        Some(port) => Err(damaged(format!("nothing makes `{}`", port.value))),
        None => Ok(()),
    }
}

fn work(number: usize, segment: &Segment, values: &HashMap<&str, &Value>) -> Result<(), Error> {
    match &segment.work {
        Work::Device { code, lines, .. } => {
            let count = code.split('\n').count();
            if let Some(line) = lines.iter().find(|line| **line as usize >= count) {
                return Err(damaged(format!("segment {number} moves line {line} of {count}")));
            }
            let mut ends = segment.inputs.iter().chain(&segment.outputs);
            ends.find(|name| !values.get(name.as_str()).is_some_and(|value| value.on_device))
                .map_or(Ok(()), |name| Err(damaged(format!("segment {number} uses `{name}`, which is not in DRAM"))))
        }
        Work::Host { model } => copies(number, segment, model, values).map(|_| ()),
    }
}

/// The copies, from and to, that a segment of the host makes.
pub(super) fn copies(
    number: usize,
    segment: &Segment,
    model: &[u8],
    values: &HashMap<&str, &Value>,
) -> Result<Vec<(String, String)>, Error> {
    let nodes = onnx::nodes(model).ok_or_else(|| damaged(format!("segment {number} is no ONNX model")))?;
    let mut other: Vec<_> = nodes.iter().map(|node| node.op.as_str()).filter(|op| *op != "Identity").collect();
    if !other.is_empty() {
        sorting::sort(&mut other);
        other.dedup();
        let reason = format!("segment {number} runs on the host: {}", other.join(", "));
        return Err(Error::new(Code::AppNeeds, reason).help("run it with `pycompiler run`, which has ONNX Runtime"));
    }
    let mut found = Vec::new();
    for node in nodes {
        let ([from], [to]) = (node.inputs.as_slice(), node.outputs.as_slice()) else {
            return Err(damaged(format!("segment {number} is no ONNX model")));
        };
        let types = [from, to].map(|name| values.get(name.as_str()).map(|value| (value.elem, &value.shape)));
        let ends = segment.inputs.contains(from) && segment.outputs.contains(to);
        if !ends || types[0] != types[1] {
            return Err(damaged(format!("segment {number} has other inputs and outputs than its model")));
        }
        found.push((from.clone(), to.clone()));
    }
    if segment.outputs.iter().any(|name| found.iter().all(|(_, to)| to != name)) {
        return Err(damaged(format!("segment {number} has other inputs and outputs than its model")));
    }
    Ok(found)
}

//! Runs an app on a machine of its own.

use super::arrays::{read_wanted, write_arrays, Array, Arrays};
use super::check::{check, copies, dram, named};
use super::elements::Elem;
use super::model::{damaged, App, Value, Work};
use crate::asm::{assemble, Policy, Program};
use crate::error::{Code, Error};
use crate::exec::{Engine, HostLines};
use crate::files;
use crate::interrupt::Interrupt;
use crate::machine::{Machine, Region};
use crate::report::Report;
use crate::spec::{LevelName, Spec};
use std::collections::HashMap;
use std::path::Path;
use std::sync::Arc;

/// The largest file of an app or of its inputs.
const LIMIT: u64 = 1 << 34;

/// What runs in turn.
enum Step {
    Program(Box<Program>),
    /// From and to.
    Copies(Vec<(String, String)>),
}

/// An app that is ready to run: checked, assembled, with its constants in DRAM.
pub struct Loaded {
    values: HashMap<String, Value>,
    inputs: Vec<(String, String)>,
    outputs: Vec<(String, String)>,
    constants: HashMap<String, Vec<u8>>,
    steps: Vec<Step>,
    machine: Machine,
    engine: Engine,
    memory: usize,
    interrupt: Interrupt,
}

impl Loaded {
    /// Checks and assembles `app` for the machine that it names. `interrupt` ends later runs.
    ///
    /// # Errors
    /// [`Code::BadApp`], [`Code::AppNeeds`], and those of [`Spec::load`].
    pub fn new(app: App, interrupt: &Interrupt) -> Result<Loaded, Error> {
        let spec = Arc::new(Spec::load(&app.target)?);
        check(&app, &spec)?;
        let mut steps = Vec::new();
        for (number, segment) in app.segments.iter().enumerate() {
            steps.push(match &segment.work {
                Work::Device { code, steps, cycles, .. } => program(number, code, (*steps, *cycles), &spec)?,
                Work::Host { model } => Step::Copies(copies(number, segment, model, &named(&app))?),
            });
        }
        let mut engine = Engine::new(spec.clone());
        engine.set_interrupt(interrupt.clone());
        let ports = |ports: Vec<super::model::Port>| ports.into_iter().map(|port| (port.key, port.value)).collect();
        let mut loaded = Loaded {
            values: app.values.into_iter().map(|value| (value.name.clone(), value)).collect(),
            inputs: ports(app.inputs),
            outputs: ports(app.outputs),
            constants: app.constants.into_iter().collect(),
            steps,
            memory: dram(&spec)?,
            machine: Machine::new(spec),
            engine,
            interrupt: interrupt.clone(),
        };
        let constants = std::mem::take(&mut loaded.constants);
        constants.iter().try_for_each(|(name, data)| loaded.give(name, data))?;
        loaded.constants = constants;
        Ok(loaded)
    }

    /// Name, element type and shape of each input.
    fn wanted(&self) -> Vec<(&str, Elem, &[u64])> {
        let ports = self.inputs.iter().filter_map(|(key, value)| Some((key, self.values.get(value)?)));
        ports.map(|(key, value)| (key.as_str(), value.elem, value.shape.as_slice())).collect()
    }

    /// Runs all segments on the arrays of an `.npz` file and returns the outputs.
    ///
    /// # Errors
    /// [`Code::BadArrays`], [`Code::AppInputs`], and those of [`crate::exec::run`].
    pub fn run(&mut self, inputs: &[u8]) -> Result<Arrays, Error> {
        let given = read_wanted(inputs, &self.wanted())?;
        let mut host: HashMap<String, Vec<u8>> = HashMap::new();
        for (key, value) in self.inputs.clone() {
            let Some((_, array)) = given.iter().find(|(name, _)| *name == key) else {
                return Err(Error::new(Code::AppInputs, format!("`{key}` is missing")));
            };
            self.give(&value, &array.data)?;
            host.insert(value, array.data.clone());
        }
        for number in 0..self.steps.len() {
            self.interrupt.check()?;
            match &self.steps[number] {
                Step::Program(program) => {
                    let ran =
                        self.engine.run(&mut self.machine, program, &mut HostLines::default(), &mut |_, _| Ok(()));
                    ran.map_err(|e| Error(Box::new(e.diagnostic)))?;
                }
                Step::Copies(copies) => {
                    for (from, to) in copies.clone() {
                        let data = self.fetch(&from, &host)?;
                        self.give(&to, &data)?;
                        host.insert(to, data);
                    }
                }
            }
        }
        let mut found = Vec::new();
        for (key, name) in &self.outputs {
            let data = self.fetch(name, &host)?;
            let value = self.value(name)?;
            found.push((key.clone(), Array { elem: value.elem, shape: value.shape.clone(), data }));
        }
        Ok(found)
    }

    fn value(&self, name: &str) -> Result<&Value, Error> {
        self.values.get(name).ok_or_else(|| damaged(format!("there is no value `{name}`")))
    }

    /// The region of a value in DRAM, and the long words that its place counts; None for values of the host.
    fn region(&self, value: &Value) -> Option<(Region, usize)> {
        let place = value.place.as_ref().filter(|_| value.on_device)?;
        let groups = u64::from(self.machine.spec().count(LevelName::Group));
        let units = [place.alike.then_some(0), None, None, None, None];
        let region = Region { memory: self.memory, units, addr: value.dram, count: value.words };
        Some((region, (value.words * if place.alike { 1 } else { groups }) as usize))
    }

    /// Gives the device the elements of a value, if the device uses it.
    fn give(&mut self, name: &str, data: &[u8]) -> Result<(), Error> {
        let value = self.value(name)?;
        let (Some((region, count)), Some(dtype), Some(place)) = (self.region(value), value.device(), &value.place)
        else {
            return Ok(());
        };
        let words = place.pack(&value.shape, value.elem, dtype, data, count);
        // If all groups are alike, they all get the words of one.
        self.machine.write(&Region { units: [None; 5], ..region }, &words)
    }

    /// The elements of a value as they are now.
    fn fetch(&self, name: &str, host: &HashMap<String, Vec<u8>>) -> Result<Vec<u8>, Error> {
        if let Some(data) = host.get(name).or_else(|| self.constants.get(name)) {
            return Ok(data.clone());
        }
        let value = self.value(name)?;
        let (Some((region, _)), Some(dtype), Some(place)) = (self.region(value), value.device(), &value.place) else {
            return Err(damaged(format!("`{name}` is neither on the host nor in DRAM")));
        };
        Ok(place.unpack(&value.shape, value.elem, dtype, &self.machine.read(&region)?))
    }
}

fn program(number: usize, code: &str, cost: (u64, u64), spec: &Arc<Spec>) -> Result<Step, Error> {
    let made = assemble(code, &format!("segment{number}.vsm"), spec, Policy::Run).map_err(|found| {
        let first = found.diagnostics.first().map_or_else(String::new, |d| d.message.clone());
        damaged(format!("the program of segment {number} is damaged: {first}"))
    })?;
    let report = Report::of(&made);
    if (report.steps, report.cycles) != cost {
        return Err(damaged(format!("segment {number} has {} steps, not {}", report.steps, cost.0)));
    }
    Ok(Step::Program(Box::new(made)))
}

/// Runs the app in the file `app` on the arrays of the file `inputs` and returns the bytes of an `.npz` file.
///
/// # Errors
/// Those of [`App::read`], [`Loaded::new`], [`Loaded::run`] and [`files::read`].
pub fn run_files(app: &Path, inputs: Option<&Path>, interrupt: &Interrupt) -> Result<Vec<u8>, Error> {
    let named = |e: Error| Error::new(e.code(), format!("{}: {}", app.display(), e.0.message)).help(e.0.help.clone());
    let found = App::read(&files::read(app, LIMIT, interrupt)?).map_err(named)?;
    let mut loaded = Loaded::new(found, interrupt).map_err(named)?;
    let arrays = match inputs {
        Some(path) => files::read(path, LIMIT, interrupt)?,
        None => write_arrays(&Vec::new())?,
    };
    write_arrays(&loaded.run(&arrays)?)
}

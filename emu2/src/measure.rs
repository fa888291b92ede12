//! Times programs beside the plain loops of [`crate::limits`]. Program and loop take turns, so that both see the host in
//! the same state. The best of several short runs counts, because other work of the host only ever adds time.

use crate::asm::Program;
use crate::error::{Code, Error};
use crate::exec::{AssumedHost, Engine, KeptRegions, RunError};
use crate::limits;
use crate::machine::Machine;
use std::hint::black_box;
use std::time::{Duration, Instant};

/// The fewest runs of program and limit, however long they take.
const LEAST_RUNS: u32 = 3;
/// Number of times that a pass works on the rows of a unit.
const ROUNDS: usize = 64;
/// Words of the row, for passes whose row does not depend on the machine.
const LENGTH: usize = 8192;
/// Number of times that such a pass works on its row. It takes some hundred microseconds, like the other passes.
const REPEATS: usize = 1024;
/// Multiply-adds of a chain. It takes about as long.
const CHAIN: usize = 1 << 16;

/// A limit: a loop on rows of the size that the program's instructions have.
pub struct Limit {
    name: &'static str,
    words: usize,
    units: usize,
    words_in: [Vec<u64>; 2],
    doubles_in: [Vec<f64>; 3],
    words_out: Vec<u64>,
    doubles_out: Vec<f64>,
}

/// A pass of a limit. Returns the number of elements that it has worked on.
type Pass = fn(&mut Limit) -> usize;

const LIMITS: [(&str, Pass); 7] = [
    ("add", add),
    ("copy", copy),
    ("lines", lines),
    ("fma_f64", fma_f64),
    ("registers_f64", registers_f64),
    ("registers_f32", registers_f32),
    ("multiply_add_16", multiply_add_16),
];

impl Limit {
    /// The limit `name` on `units` separate rows of `words` elements. Limits that use no memory ignore both numbers.
    ///
    /// # Errors
    /// [`Code::BadOption`] if there is no limit of this name.
    pub fn new(name: &str, words: usize, units: usize) -> Result<Limit, Error> {
        let Some((name, _)) = LIMITS.iter().find(|(known, _)| *known == name) else {
            let known: Vec<_> = LIMITS.iter().map(|(name, _)| *name).collect();
            return Err(Error::new(Code::BadOption, format!("no limit `{name}`; there are {}", known.join(", "))));
        };
        let all = words * units;
        let doubles = *name == "fma_f64";
        let row = |value: u64| vec![value; if doubles { 0 } else { all }];
        let floats = |value: f64| vec![value; if doubles { all } else { 0 }];
        Ok(Limit {
            name,
            words,
            units,
            words_in: [row(1), row(2)],
            doubles_in: [floats(1.5), floats(0.75), floats(3.0)],
            words_out: if *name == "lines" { vec![0; units * limits::APART] } else { row(0) },
            doubles_out: floats(0.0),
        })
    }

    /// Elements per second of one pass.
    fn pace(&mut self) -> f64 {
        let pass = LIMITS.iter().find(|(name, _)| *name == self.name).map_or(copy as Pass, |(_, pass)| *pass);
        let start = Instant::now();
        let elements = pass(self);
        elements as f64 / start.elapsed().as_secs_f64()
    }

    /// Elements per second of the best pass within `time`.
    pub fn best(&mut self, time: Duration) -> f64 {
        let start = Instant::now();
        let mut best = 0f64;
        let mut runs = 0;
        while runs < LEAST_RUNS || start.elapsed() < time {
            best = best.max(self.pace());
            runs += 1;
        }
        best
    }

    /// Calls `step` on the row of every unit. Like the engine, it works on one unit [`ROUNDS`] times before it goes on to
    /// the next.
    fn rows(&mut self, mut step: impl FnMut(&mut Limit, std::ops::Range<usize>)) -> usize {
        for unit in 0..self.units {
            for _ in 0..ROUNDS {
                step(self, unit * self.words..(unit + 1) * self.words);
            }
        }
        self.units * self.words * ROUNDS
    }
}

fn add(limit: &mut Limit) -> usize {
    limit.rows(|l, row| {
        let [x, y] = &l.words_in;
        limits::add(black_box(&x[row.clone()]), black_box(&y[row.clone()]), &mut l.words_out[row]);
        black_box(&mut l.words_out);
    })
}

fn copy(limit: &mut Limit) -> usize {
    limit.rows(|l, row| {
        limits::copy(black_box(&l.words_in[0][row.clone()]), &mut l.words_out[row]);
        black_box(&mut l.words_out);
    })
}

fn lines(limit: &mut Limit) -> usize {
    for _ in 0..ROUNDS {
        limits::lines(black_box(&limit.words_in[0]), limit.units, &mut limit.words_out);
        black_box(&mut limit.words_out);
    }
    limit.units * limit.words * ROUNDS
}

fn fma_f64(limit: &mut Limit) -> usize {
    limit.rows(|l, row| {
        let [x, y, z] = &l.doubles_in;
        let (x, y) = (black_box(&x[row.clone()]), black_box(&y[row.clone()]));
        limits::fma_f64(x, y, &z[row.clone()], &mut l.doubles_out[row]);
        black_box(&mut l.doubles_out);
    })
}

fn registers_f64(_: &mut Limit) -> usize {
    let mut sums = [1.0; _];
    limits::registers_f64(CHAIN, black_box(0.5), &mut sums);
    black_box(&mut sums).len() * CHAIN
}

fn registers_f32(_: &mut Limit) -> usize {
    let mut sums = [1.0; _];
    limits::registers_f32(CHAIN, black_box(0.5), &mut sums);
    black_box(&mut sums).len() * CHAIN
}

fn multiply_add_16(_: &mut Limit) -> usize {
    let (x, mut sums) = ([3i16; LENGTH], [0; _]);
    for _ in 0..REPEATS {
        limits::multiply_add_16(black_box(&x), black_box(&mut sums));
    }
    LENGTH * REPEATS
}

/// The results of a program and a limit that took turns.
#[derive(Clone, Copy, Debug)]
pub struct Race {
    /// Seconds of the program's best run, without assembling and lowering.
    pub seconds: f64,
    /// Elements per second of the limit's best pass; 0 without a limit.
    pub limit: f64,
}

/// Runs `program` and a pass of `limit` in turns for about `time`, in the threads of the pool that the caller is in.
///
/// # Errors
/// Those of [`Engine::run`].
pub fn race(
    machine: &mut Machine,
    program: &Program,
    mut limit: Option<&mut Limit>,
    time: Duration,
) -> Result<Race, RunError> {
    let mut engine = Engine::new(program.spec.clone());
    let regions = KeptRegions::default();
    let mut once =
        |machine: &mut Machine| engine.run_again(machine, program, &regions, &mut AssumedHost, &mut |_, _| Ok(()));
    // From the second run on the engine keeps the lowered program. Only the runs after that are timed.
    once(machine)?;
    once(machine)?;
    let mut best = Race { seconds: f64::INFINITY, limit: 0.0 };
    let (start, mut runs) = (Instant::now(), 0);
    while runs < LEAST_RUNS || start.elapsed() < time {
        let begin = Instant::now();
        once(machine)?;
        best.seconds = best.seconds.min(begin.elapsed().as_secs_f64());
        if let Some(limit) = limit.as_deref_mut() {
            best.limit = best.limit.max(limit.pace());
        }
        runs += 1;
    }
    Ok(best)
}

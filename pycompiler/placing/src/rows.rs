//! A program over one row becomes a schedule over many: each instruction gets a step and a bank for each operand.
//!
//! Every `interval` steps a new row starts. All rows run through the same flat schedule, so ports and units are taken at
//! steps modulo the interval. The registers come later: here a result has a bank, and the step of its last reader there.

use crate::row_program::{has_meaning, Operation, Placed, Places, What};

/// Places the instructions of a program in `order`, its last one makes the result. None if one finds no step, or if
/// numbers have no meaning.
pub fn place_rows(operations: Vec<Operation>, order: &[usize], interval: i64, places: &Places) -> Option<Placed> {
    let count = operations.len();
    if !has_meaning(&operations, interval, places) || order.iter().any(|&index| index >= count) {
        return None;
    }
    let ports = places.banks * interval as usize;
    let mut attempt = Attempt {
        places,
        interval,
        last: count.checked_sub(1)?,
        readers: vec![None; ports],
        writers: vec![false; ports + places.units * interval as usize],
        until: vec![vec![0; places.banks]; count],
        changes: Vec::new(),
        made: Placed { steps: vec![NOWHERE; count], banks: vec![Vec::new(); count], operations, ..Placed::default() },
    };
    let done = order.iter().all(|&index| attempt.place(index));
    let Attempt { mut made, until, .. } = attempt;
    made.stored.iter_mut().for_each(|one| one.2 = until[one.0][one.1]);
    done.then_some(made)
}

/// The step of an instruction that has none.
const NOWHERE: i64 = -1;

/// What changed, with the value before.
enum Change {
    Reader(usize, Option<(What, i64)>),
    Writer(usize),
    Stored(usize, usize, i64),
    Constant,
    Held,
}

/// A partial schedule.
struct Attempt<'a> {
    places: &'a Places,
    interval: i64,
    last: usize,
    /// by bank and phase: what is read there, and the step of the flat schedule
    readers: Vec<Option<(What, i64)>>,
    /// by bank and phase, then by unit and phase: whether something is written there
    writers: Vec<bool>,
    /// by result and bank: the step of the last reader; 0 if the result is not stored there
    until: Vec<Vec<i64>>,
    changes: Vec<Change>,
    made: Placed,
}

impl Attempt<'_> {
    fn phase(&self, bank: usize, step: i64) -> usize {
        bank * self.interval as usize + step.rem_euclid(self.interval) as usize
    }

    fn is_lm(&self, bank: usize) -> bool {
        bank >= self.places.files + 2
    }

    fn t(&self) -> usize {
        self.places.files
    }

    fn may_read(&self, bank: usize, what: What, step: i64) -> bool {
        if self.readers[self.phase(bank, step)].is_some_and(|found| found != (what, step)) {
            return false;
        }
        !self.is_lm(bank) || !(0..self.places.lm).any(|turn| self.writers[self.phase(bank, step - turn)])
    }

    fn may_write(&self, bank: usize, step: i64) -> bool {
        if self.writers[self.phase(bank, step)] {
            return false;
        }
        !self.is_lm(bank) || !(0..self.places.lm).any(|turn| self.readers[self.phase(bank, step + turn)].is_some())
    }

    /// Returns the banks and forwarding paths from which an operand could be read in a step, those that have it first.
    fn choices(&self, what: What, step: i64, extend: bool) -> Vec<usize> {
        let files = 0..self.places.files;
        match what {
            What::Input(number) => match self.places.homes[number] {
                Some(home) => vec![home],
                None => known_first(files, |bank| self.made.held.contains(&(bank, number))),
            },
            What::Constant(number) => {
                let mut found = known_first(files, |bank| self.made.constants.contains(&(bank, number)));
                if self.t_may_hold(number) {
                    found.push(self.t());
                }
                found
            }
            What::Flags(index) => {
                let masks = self.t() + 1;
                Some(masks).filter(|&bank| self.storable(index, bank, step, self.places.masks)).into_iter().collect()
            }
            What::Result(index) => {
                let made = self.made.steps[index];
                if step == made + 1 && !extend {
                    return vec![self.places.banks + self.made.operations[index].unit];
                }
                if step < made + self.places.stored {
                    return Vec::new();
                }
                // The T register has no words, so a source that is converted is not read there.
                let banks = 0..self.places.files + usize::from(!extend);
                let free = banks.filter(|&bank| self.storable(index, bank, step, self.places.stored));
                known_first(free, |bank| self.until[index][bank] > 0)
            }
        }
    }

    /// Whether a bank keeps a result, or could keep it, until `step`.
    fn storable(&self, index: usize, bank: usize, step: i64, apart: i64) -> bool {
        let made = self.made.steps[index];
        step >= made + apart
            && (bank != self.t() || self.t_is_free(index, step))
            && (self.until[index][bank] > 0 || self.may_write(bank, made))
    }

    /// Whether the T register can hold a constant all the time: it has no words of its own.
    fn t_may_hold(&self, constant: usize) -> bool {
        let t = self.t();
        self.places.uniform[constant]
            && self.made.constants.iter().all(|&(bank, other)| bank != t || other == constant)
            && self.made.stored.iter().all(|one| one.1 != t)
    }

    /// Whether the T register, which holds one row, can keep a result until `step`.
    fn t_is_free(&self, index: usize, step: i64) -> bool {
        let (t, made) = (self.t(), self.made.steps[index]);
        if step > made + self.interval || self.made.constants.iter().any(|&(bank, _)| bank == t) {
            return false;
        }
        let mine = |phase: i64| (phase - made).rem_euclid(self.interval) < step - made;
        let mut others = self.made.stored.iter().filter(|one| one.1 == t && one.0 != index);
        others.all(|one| !(self.made.steps[one.0]..self.until[one.0][t]).any(mine))
    }

    /// Returns a bank for each operand and notes all reads; None if some operand has no bank.
    fn read_all(&mut self, wanted: &[(What, bool)], step: i64) -> Option<Vec<usize>> {
        let Some((&(what, extend), rest)) = wanted.split_first() else { return Some(Vec::new()) };
        for bank in self.choices(what, step, extend) {
            let before = self.changes.len();
            if bank < self.places.banks {
                if !self.may_read(bank, what, step) {
                    continue;
                }
                self.note_read(bank, what, step);
            }
            if let Some(mut others) = self.read_all(rest, step) {
                others.insert(0, bank);
                return Some(others);
            }
            self.restore(before);
        }
        None
    }

    fn note_read(&mut self, bank: usize, what: What, step: i64) {
        let port = self.phase(bank, step);
        self.changes.push(Change::Reader(port, self.readers[port]));
        self.readers[port] = Some((what, step));
        match what {
            What::Constant(number) if !self.made.constants.contains(&(bank, number)) => {
                self.made.constants.push((bank, number));
                self.changes.push(Change::Constant);
            }
            What::Input(number) if self.places.homes[number].is_none() && !self.made.held.contains(&(bank, number)) => {
                self.made.held.push((bank, number));
                self.changes.push(Change::Held);
            }
            What::Result(index) | What::Flags(index) => {
                self.write(bank, self.made.steps[index]);
                let last = self.until[index][bank];
                self.changes.push(Change::Stored(index, bank, last));
                if last == 0 {
                    self.made.stored.push((index, bank, 0));
                }
                self.until[index][bank] = last.max(step);
            }
            _ => {}
        }
    }

    fn write(&mut self, bank: usize, step: i64) {
        let port = self.phase(bank, step);
        if !self.writers[port] {
            self.writers[port] = true;
            self.changes.push(Change::Writer(port));
        }
    }

    /// Takes back all changes but the first `before`.
    fn restore(&mut self, before: usize) {
        for change in self.changes.split_off(before).into_iter().rev() {
            match change {
                Change::Reader(port, value) => self.readers[port] = value,
                Change::Writer(port) => self.writers[port] = false,
                Change::Stored(index, bank, last) => {
                    self.until[index][bank] = last;
                    if last == 0 {
                        self.made.stored.pop();
                    }
                }
                Change::Constant => drop(self.made.constants.pop()),
                Change::Held => drop(self.made.held.pop()),
            }
        }
    }

    /// Issues an instruction in the first step that has room for it.
    fn place(&mut self, index: usize) -> bool {
        let before = 1 + self.ready(index);
        let window = before..=before + self.interval + self.places.stored;
        window.clone().any(|step| self.issue(index, step))
            || window.clone().any(|step| {
                (0..self.made.operations[index].sources.len()).any(|number| self.issue_renewed(index, number, step))
            })
    }

    /// The last step in which something is made that an instruction reads.
    fn ready(&self, index: usize) -> i64 {
        let one = &self.made.operations[index];
        let rows = one.sources.iter().filter_map(|(what, _)| match *what {
            What::Result(read) | What::Flags(read) => Some(read),
            _ => None,
        });
        rows.chain(one.flush).map(|read| self.made.steps[read]).max().unwrap_or(-1)
    }

    fn issue(&mut self, index: usize, step: i64) -> bool {
        let operation = &self.made.operations[index];
        let unit = self.places.banks + operation.unit;
        if self.writers[self.phase(unit, step)] {
            return false;
        }
        let mut wanted = operation.sources.clone();
        wanted.extend(operation.flush.map(|flags| (What::Flags(flags), false)));
        let before = self.changes.len();
        let banks = self.read_all(&wanted, step);
        let last = index == self.last;
        let Some(banks) = banks.filter(|_| !last || self.may_write(self.places.result, step)) else {
            self.restore(before);
            return false;
        };
        if last {
            self.write(self.places.result, step);
        }
        self.write(unit, step);
        self.made.steps[index] = step;
        self.made.banks[index] = banks;
        self.made.order.push(index);
        true
    }

    /// Issues an instruction behind a new one that copies or repeats one of its operands. The operand then comes by
    /// forwarding, which needs no port.
    fn issue_renewed(&mut self, index: usize, number: usize, step: i64) -> bool {
        let (What::Result(source), false) = self.made.operations[index].sources[number] else { return false };
        let (before, copy) = (self.changes.len(), self.made.operations.len());
        let plain = Operation {
            unit: self.places.copies,
            sources: vec![(What::Result(source), false)],
            flush: None,
            origin: None,
        };
        for first in [plain, self.made.operations[source].clone()] {
            self.made.operations.push(first);
            self.made.steps.resize(copy + 1, NOWHERE);
            self.made.banks.resize(copy + 1, Vec::new());
            self.until.resize(copy + 1, vec![0; self.places.banks]);
            if self.ready(copy) < step && self.issue(copy, step) {
                self.made.operations[index].sources[number].0 = What::Result(copy);
                if self.issue(index, step + 1) {
                    return true;
                }
                self.made.operations[index].sources[number].0 = What::Result(source);
                self.made.order.pop();
            }
            self.restore(before);
            self.made.operations.pop();
        }
        false
    }
}

/// Returns the banks with those first that have what is wanted.
fn known_first(banks: impl Iterator<Item = usize>, has: impl Fn(usize) -> bool) -> Vec<usize> {
    let mut found: Vec<usize> = banks.collect();
    sorting::sort_by_key(&mut found, |&bank| !has(bank));
    found
}

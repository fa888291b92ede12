//! Dynamic programming: variables are eliminated one by one, and only what has changed is computed again.
//!
//! The order of the variables depends only on how many candidates each has, so it stays the same while costs change. Each
//! variable is replaced by a table over the variables with which it shares costs: the cost of its best candidate.

use std::cmp::Reverse;
use std::collections::{BTreeSet, BinaryHeap};

use crate::problem::Problem;
use crate::table::{Marks, Table};

/// The elimination of a variable: `own` are the tables that it is part of, `made` those that it leaves.
struct Step {
    variable: usize,
    own: Vec<usize>,
    made: Vec<usize>,
    way: Way,
}

enum Way {
    /// The variable keeps the choice that it has, and leaves each of its tables for that: the choice for which it did so last.
    Held(Option<usize>),
    /// The variable leaves one table, with its best choice for each entry.
    Best(Vec<usize>),
}

pub(crate) struct Elimination {
    /// The tables: those of single variables, those of pairs, and those that steps make.
    tables: Vec<Table>,
    /// The costs of the tables that steps make.
    costs: Vec<Vec<i64>>,
    /// How many tables have their costs in the problem.
    given: usize,
    variables: usize,
    steps: Vec<Step>,
    held: Vec<usize>,
}

impl Elimination {
    pub(crate) fn new(problem: &Problem, most: usize) -> Elimination {
        let (sizes, variables) = (&problem.sizes, problem.sizes.len());
        let mut tables: Vec<Table> = (0..variables).map(|variable| Table::new(vec![variable], sizes)).collect();
        tables.extend(problem.pairs.iter().map(|&(u, v)| Table::new(vec![u, v], sizes)));
        let given = tables.len();
        let mut made = Elimination { tables, costs: Vec::new(), given, variables, steps: Vec::new(), held: Vec::new() };
        made.order(problem, most);
        made
    }

    pub(crate) fn held(&self) -> &[usize] {
        &self.held
    }

    pub(crate) fn change_single(&mut self, variable: usize, entries: &[usize]) {
        self.tables[variable].change(entries);
    }

    pub(crate) fn change_pair(&mut self, pair: usize, entries: &[usize]) {
        self.tables[self.variables + pair].change(entries);
    }

    /// Returns the cheapest choice if the variables that are held keep their choice of `start`.
    pub(crate) fn run(&mut self, problem: &Problem, start: &[usize]) -> Vec<usize> {
        for number in 0..self.steps.len() {
            if matches!(self.steps[number].way, Way::Held(_)) {
                self.leave(problem, number, start);
            } else {
                self.eliminate(problem, number);
            }
        }
        for table in &mut self.tables[..self.given] {
            table.changed = None;
        }
        let mut chosen = start.to_vec();
        for step in self.steps.iter().rev() {
            if let Way::Best(choices) = &step.way {
                let table = &self.tables[step.made[0]];
                let at = table.scope.iter().zip(&table.shape).fold(0, |at, (&u, size)| at * size + chosen[u]);
                chosen[step.variable] = choices[at];
            }
        }
        chosen
    }

    /// Lets the variable that is held leave its tables for its choice.
    fn leave(&mut self, problem: &Problem, number: usize, start: &[usize]) {
        let step = &mut self.steps[number];
        let (variable, choice) = (step.variable, start[step.variable]);
        let Way::Held(last) = &mut step.way else { return };
        let same = last.replace(choice) == Some(choice);
        for place in 0..self.steps[number].own.len() {
            let (before, after) = (self.steps[number].own[place], self.steps[number].made[place]);
            if same && self.tables[before].changed.is_none() {
                self.tables[after].changed = None;
                continue;
            }
            // The stride of the variable is the length of a row behind its axis.
            let (row, size) = (self.tables[before].stride(variable), problem.sizes[variable]);
            let mut costs = std::mem::take(&mut self.costs[after - self.given]);
            let mut marks = Marks::new(&self.tables[after].shape);
            let mut changed = false;
            let source = self.costs_of(problem, before);
            for (entry, cost) in costs.iter_mut().enumerate() {
                let new = source[(entry / row * size + choice) * row + entry % row];
                if *cost != new {
                    *cost = new;
                    marks.entry(entry);
                    changed = true;
                }
            }
            let found = changed.then(|| marks.found());
            self.costs[after - self.given] = costs;
            self.tables[after].changed = found;
        }
    }

    /// Computes the part of a step's table that depends on what is new.
    fn eliminate(&mut self, problem: &Problem, number: usize) {
        let step = &self.steps[number];
        let (variable, out) = (step.variable, step.made[0]);
        let new: Vec<&Table> = step.own.iter().map(|&t| &self.tables[t]).filter(|t| t.changed.is_some()).collect();
        if new.is_empty() {
            self.tables[out].changed = None;
            return;
        }
        let table = &self.tables[out];
        let block: Vec<Vec<usize>> =
            table.scope.iter().zip(&table.shape).map(|(&u, &size)| entries_along(&new, u, size)).collect();
        let parts = step.own.iter().map(|&t| Part {
            costs: self.costs_of(problem, t),
            strides: table.scope.iter().map(|&u| self.tables[t].stride(u)).collect(),
            stride: self.tables[t].stride(variable),
        });
        let mut sums = Sums::new(parts, table.scope.len(), problem.sizes[variable]);
        let mut marks = Marks::new(&table.shape);
        let mut found: Vec<(usize, i64, usize)> = Vec::new();
        let known = &self.costs[out - self.given];
        for_each(&block, |at, first| {
            let (choice, least) = sums.least(at, first);
            let entry = at.iter().zip(&table.shape).fold(0, |entry, (&at, size)| entry * size + at);
            if known[entry] != least {
                marks.entry(entry);
            }
            found.push((entry, least, choice));
        });
        let mut changed = false;
        let marks = marks.found();
        let Way::Best(choices) = &mut self.steps[number].way else { return };
        let costs = &mut self.costs[out - self.given];
        for (entry, least, choice) in found {
            changed |= costs[entry] != least;
            costs[entry] = least;
            choices[entry] = choice;
        }
        self.tables[out].changed = changed.then_some(marks);
    }

    fn costs_of<'a>(&'a self, problem: &'a Problem, table: usize) -> &'a [i64] {
        if table < self.variables {
            &problem.single[table]
        } else if table < self.given {
            &problem.shared[table - self.variables]
        } else {
            &self.costs[table - self.given]
        }
    }

    /// Makes the steps; the variable with the smallest table comes next.
    fn order(&mut self, problem: &Problem, most: usize) {
        let sizes = &problem.sizes;
        let mut beside: Vec<Option<BTreeSet<usize>>> = vec![Some(BTreeSet::new()); sizes.len()];
        let mut tables: Vec<Vec<usize>> = (0..sizes.len()).map(|variable| vec![variable]).collect();
        for (pair, &(u, v)) in problem.pairs.iter().enumerate() {
            for (one, other) in [(u, v), (v, u)] {
                beside[one].get_or_insert_default().insert(other);
                // A table belongs to all variables of its scope.
                tables[one].push(sizes.len() + pair);
            }
        }
        let room_of = |variable: usize, others: &BTreeSet<usize>| {
            others.iter().fold(sizes[variable], |room, &u| room.saturating_mul(sizes[u]))
        };
        let mut room: Vec<usize> = beside
            .iter()
            .enumerate()
            .map(|(v, others)| others.as_ref().map_or(0, |others| room_of(v, others)))
            .collect();
        let mut queue: BinaryHeap<Reverse<(usize, usize)>> =
            room.iter().enumerate().map(|(v, &r)| Reverse((r, v))).collect();
        while let Some(Reverse((size, next))) = queue.pop() {
            // An entry that no longer says the room of a variable is dropped.
            if beside[next].is_none() || room[next] != size {
                continue;
            }
            let held = size > most;
            let variable = if held {
                queue.push(Reverse((size, next)));
                most_neighbours(&beside).unwrap_or(next)
            } else {
                next
            };
            let others = beside[variable].take().unwrap_or_default();
            let own = std::mem::take(&mut tables[variable]);
            let scopes: Vec<Vec<usize>> = if held {
                let rest = |&t: &usize| self.tables[t].scope.iter().copied().filter(|&u| u != variable).collect();
                own.iter().map(rest).collect()
            } else {
                // A variable with one candidate needs no axis.
                vec![others.iter().copied().filter(|&u| sizes[u] > 1).collect()]
            };
            let first = self.tables.len();
            let made: Vec<usize> = (first..first + scopes.len()).collect();
            for scope in scopes {
                self.tables.push(Table::new(scope, sizes));
            }
            for &u in &others {
                let Some(neighbours) = &mut beside[u] else { continue };
                neighbours.remove(&variable);
                if !held {
                    neighbours.extend(others.iter().copied().filter(|&other| other != u));
                }
                tables[u].retain(|&t| !self.tables[t].scope.contains(&variable));
                tables[u].extend(made.iter().copied().filter(|&t| self.tables[t].scope.contains(&u)));
                room[u] = room_of(u, neighbours);
                queue.push(Reverse((room[u], u)));
            }
            let way = if held {
                self.held.push(variable);
                Way::Held(None)
            } else {
                Way::Best(vec![0; self.tables[first].entries()])
            };
            self.steps.push(Step { variable, own, made, way });
        }
        // The costs that a step reads lie next to each other if its variable is the last axis.
        let mut number = vec![0; sizes.len()];
        self.steps.iter().enumerate().for_each(|(at, step)| number[step.variable] = at);
        for table in &mut self.tables[self.given..] {
            let mut scope = std::mem::take(&mut table.scope);
            sorting::sort_by_key(&mut scope, |&variable| Reverse(number[variable]));
            *table = Table::new(scope, sizes);
            // No cost is that small, so every entry of a new table will change.
            self.costs.push(vec![i64::MIN; table.entries()]);
        }
    }
}

/// The variable that is left with the most neighbours; of equal ones the first.
fn most_neighbours(beside: &[Option<BTreeSet<usize>>]) -> Option<usize> {
    let left =
        beside.iter().enumerate().filter_map(|(v, others)| others.as_ref().map(|others| (others.len(), Reverse(v))));
    left.max().map(|(_, Reverse(v))| v)
}

/// The entries along `variable` that depend on what is new in the tables; all if one of them has no axis for it.
fn entries_along(new: &[&Table], variable: usize, size: usize) -> Vec<usize> {
    let mut marks = vec![false; size];
    for table in new {
        match (table.axis(variable), &table.changed) {
            (Some(axis), Some(changed)) => changed[axis].iter().for_each(|&entry| marks[entry] = true),
            _ => return (0..size).collect(),
        }
    }
    (0..size).filter(|&entry| marks[entry]).collect()
}

/// The costs of a table that a step adds up: strides along the axes of the step's table, and along its variable.
struct Part<'a> {
    costs: &'a [i64],
    strides: Vec<usize>,
    stride: usize,
}

impl Part<'_> {
    /// Adds the costs of the variable's candidates where the others have the choices `at`.
    fn add(&self, at: &[usize], sums: &mut [i64]) {
        let first: usize = at.iter().zip(&self.strides).map(|(at, stride)| at * stride).sum();
        match self.stride {
            0 => sums.iter_mut().for_each(|sum| *sum += self.costs[first]),
            1 => sums.iter_mut().zip(&self.costs[first..]).for_each(|(sum, cost)| *sum += cost),
            stride => {
                let costs = self.costs[first..].iter().step_by(stride);
                sums.iter_mut().zip(costs).for_each(|(sum, cost)| *sum += cost);
            }
        }
    }
}

/// The sums that a step looks at. What the choices along the outer axes cost is added once for all choices along inner ones.
struct Sums<'a> {
    /// For each axis, the tables whose innermost axis it is.
    parts: Vec<Vec<Part<'a>>>,
    /// The sums of the tables without axes, then those with all that is added up to an axis.
    sums: Vec<Vec<i64>>,
}

impl<'a> Sums<'a> {
    fn new(parts: impl Iterator<Item = Part<'a>>, axes: usize, candidates: usize) -> Sums<'a> {
        let mut made =
            Sums { parts: (0..axes).map(|_| Vec::new()).collect(), sums: vec![vec![0; candidates]; axes + 1] };
        for part in parts {
            match part.strides.iter().rposition(|&stride| stride > 0) {
                Some(axis) => made.parts[axis].push(part),
                None => part.add(&[], &mut made.sums[0]),
            }
        }
        made
    }

    /// Returns the first of the cheapest candidates, and its cost, where the others have the choices `at`. Those of the axes
    /// before `first` are the same as in the last call.
    fn least(&mut self, at: &[usize], first: usize) -> (usize, i64) {
        for axis in first..self.parts.len() {
            let (below, above) = self.sums.split_at_mut(axis + 1);
            above[0].copy_from_slice(&below[axis]);
            for part in &self.parts[axis] {
                part.add(at, &mut above[0]);
            }
        }
        let sums = &self.sums[self.parts.len()];
        let (mut choice, mut least) = (0, sums[0]);
        for (candidate, &sum) in sums.iter().enumerate() {
            if sum < least {
                (choice, least) = (candidate, sum);
            }
        }
        (choice, least)
    }
}

/// Calls `visit` with each combination of one entry of each axis, and with the first axis whose entry is new.
fn for_each(block: &[Vec<usize>], mut visit: impl FnMut(&[usize], usize)) {
    if block.iter().any(Vec::is_empty) {
        return;
    }
    let mut places = vec![0; block.len()];
    let mut at: Vec<usize> = block.iter().map(|axis| axis[0]).collect();
    let mut first = 0;
    loop {
        visit(&at, first);
        let Some(axis) = (0..block.len()).rev().find(|&axis| places[axis] + 1 < block[axis].len()) else { return };
        places[axis] += 1;
        at[axis] = block[axis][places[axis]];
        for behind in axis + 1..block.len() {
            places[behind] = 0;
            at[behind] = block[behind][0];
        }
        first = axis;
    }
}

//! Local search: one choice at a time.

use crate::problem::Problem;

/// Improves `start` until no change of one variable makes the total cheaper.
///
/// For each variable it keeps the costs of its candidates given the choices of the others. A variable is looked at again when
/// a neighbour has changed.
pub(crate) fn improved(problem: &Problem, start: &[usize]) -> Vec<usize> {
    let mut chosen = start.to_vec();
    let mut sums = problem.single.clone();
    for (variable, sum) in sums.iter_mut().enumerate() {
        for &(pair, other, turned) in &problem.beside[variable] {
            add(sum, problem, pair, turned, chosen[other], 1);
        }
    }
    let mut changed = vec![true; chosen.len()];
    while changed.contains(&true) {
        for variable in 0..chosen.len() {
            if !std::mem::take(&mut changed[variable]) {
                continue;
            }
            let costs = &sums[variable];
            let before = chosen[variable];
            let mut choice = 0;
            for (number, &cost) in costs.iter().enumerate() {
                if cost < costs[choice] {
                    choice = number;
                }
            }
            if costs[choice] >= costs[before] {
                continue;
            }
            chosen[variable] = choice;
            for &(pair, other, turned) in &problem.beside[variable] {
                add(&mut sums[other], problem, pair, !turned, choice, 1);
                add(&mut sums[other], problem, pair, !turned, before, -1);
                changed[other] = true;
            }
        }
    }
    chosen
}

/// Adds to `sum`, the costs of a variable's candidates, `sign` times those of a pair, where the other one has `choice`.
/// `turned` says that the other one comes first in the pair.
fn add(sum: &mut [i64], problem: &Problem, pair: usize, turned: bool, choice: usize, sign: i64) {
    let costs = &problem.shared[pair];
    let columns = problem.sizes[problem.pairs[pair].1];
    if turned {
        for (one, &cost) in sum.iter_mut().zip(&costs[choice * columns..]) {
            *one += sign * cost;
        }
    } else {
        for (one, row) in sum.iter_mut().zip(costs.chunks_exact(columns)) {
            *one += sign * row[choice];
        }
    }
}

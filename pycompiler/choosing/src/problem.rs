//! Variables, the costs of their candidates, and those of pairs of candidates.

use std::collections::HashSet;
use std::fmt;

/// Sizes, costs or choices that do not fit together.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Wrong(pub(crate) &'static str);

impl fmt::Display for Wrong {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.0)
    }
}

impl std::error::Error for Wrong {}

/// The costs of a choice.
pub(crate) struct Problem {
    pub(crate) sizes: Vec<usize>,
    pub(crate) pairs: Vec<(usize, usize)>,
    /// For each variable, the costs of its candidates.
    pub(crate) single: Vec<Vec<i64>>,
    /// For each pair, the costs of two candidates, row by row of the first variable's.
    pub(crate) shared: Vec<Vec<i64>>,
    /// For each variable its pairs: the number of the pair, the other variable, and whether that comes first.
    pub(crate) beside: Vec<Vec<(usize, usize, bool)>>,
}

impl Problem {
    pub(crate) fn new(sizes: Vec<usize>, pairs: Vec<(usize, usize)>) -> Result<Problem, Wrong> {
        if sizes.contains(&0) {
            return Err(Wrong("a variable needs a candidate"));
        }
        let mut seen = HashSet::new();
        let mut beside = vec![Vec::new(); sizes.len()];
        let mut shared = Vec::with_capacity(pairs.len());
        for (number, &(u, v)) in pairs.iter().enumerate() {
            if u >= sizes.len() || v >= sizes.len() || u == v || !seen.insert((u.min(v), u.max(v))) {
                return Err(Wrong("a pair names two variables, and no other pair names both"));
            }
            let entries = sizes[u].checked_mul(sizes[v]).ok_or(Wrong("a pair has too many candidates"))?;
            beside[u].push((number, v, false));
            beside[v].push((number, u, true));
            shared.push(vec![0; entries]);
        }
        let single = sizes.iter().map(|&size| vec![0; size]).collect();
        Ok(Problem { sizes, pairs, single, shared, beside })
    }

    /// Takes over costs; returns the numbers of those that are new.
    pub(crate) fn set_single(&mut self, variable: usize, costs: &[i64]) -> Result<Vec<usize>, Wrong> {
        take(self.single.get_mut(variable), costs)
    }

    /// Takes over costs; returns the numbers of those that are new.
    pub(crate) fn set_pair(&mut self, pair: usize, costs: &[i64]) -> Result<Vec<usize>, Wrong> {
        take(self.shared.get_mut(pair), costs)
    }

    pub(crate) fn check(&self, chosen: &[usize]) -> Result<(), Wrong> {
        let fits = chosen.len() == self.sizes.len() && chosen.iter().zip(&self.sizes).all(|(&c, &size)| c < size);
        fits.then_some(()).ok_or(Wrong("a choice has one candidate for each variable"))
    }

    /// The total cost of a choice.
    pub(crate) fn total(&self, chosen: &[usize]) -> i64 {
        let single: i64 = self.single.iter().zip(chosen).map(|(costs, &choice)| costs[choice]).sum();
        let shared = self.pairs.iter().zip(&self.shared);
        single + shared.map(|(&(u, v), costs)| costs[chosen[u] * self.sizes[v] + chosen[v]]).sum::<i64>()
    }
}

fn take(known: Option<&mut Vec<i64>>, costs: &[i64]) -> Result<Vec<usize>, Wrong> {
    let known = known.filter(|known| known.len() == costs.len()).ok_or(Wrong("each candidate has one cost"))?;
    let mut changed = Vec::new();
    for (number, (old, &new)) in known.iter_mut().zip(costs).enumerate() {
        if *old != new {
            *old = new;
            changed.push(number);
        }
    }
    Ok(changed)
}

//! The cheapest choice of one candidate for each variable, where variables and pairs of variables have costs.
//!
//! Variables are eliminated one by one, each by dynamic programming over the variables that it shares costs with
//! (`elimination`). This is exact while the tables stay small, as they do on chains and trees. If a table would become too
//! large, a variable keeps its present choice, and a local search (`improvement`) then tries the candidates of each variable
//! one by one. Few costs change between two searches, so tables are kept, and only what depends on new costs is computed
//! again.

// `make lint` switches these lints off for tests, benches and their helpers. Here they stay on.
#![cfg_attr(not(test), warn(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::type_complexity))]

mod elimination;
mod improvement;
mod problem;
mod table;

pub use problem::Wrong;

use elimination::Elimination;
use improvement::improved;
use problem::Problem;

/// What a choice costs, the candidate that a variable has in it, and the choice.
pub type Answer = (i64, usize, Vec<usize>);

/// A search that remembers the tables of its last call.
pub struct Search {
    problem: Problem,
    elimination: Elimination,
}

impl Search {
    /// Makes a search over variables with `sizes` candidates, of which `pairs` share costs. All costs are 0 at first. No
    /// table has more than `most` entries. Errors if a size is 0, or if a pair names a variable that is not there, one variable
    /// twice, or variables that an earlier pair names.
    ///
    /// # Errors
    ///
    /// See above.
    pub fn new(sizes: Vec<usize>, pairs: Vec<(usize, usize)>, most: usize) -> Result<Search, Wrong> {
        let problem = Problem::new(sizes, pairs)?;
        let elimination = Elimination::new(&problem, most);
        Ok(Search { problem, elimination })
    }

    /// Returns the total cost of a choice.
    ///
    /// # Errors
    ///
    /// If `chosen` is no choice of one candidate for each variable.
    pub fn total(&self, chosen: &[usize]) -> Result<i64, Wrong> {
        self.problem.check(chosen)?;
        Ok(self.problem.total(chosen))
    }

    /// The variables that keep their choice in an elimination, in the order in which they leave their tables.
    pub fn held(&self) -> &[usize] {
        self.elimination.held()
    }

    /// Gives the candidates of a variable new costs.
    ///
    /// # Errors
    ///
    /// If there are not as many as the variable has candidates.
    pub fn set_single(&mut self, variable: usize, costs: &[i64]) -> Result<(), Wrong> {
        let changed = self.problem.set_single(variable, costs)?;
        self.elimination.change_single(variable, &changed);
        Ok(())
    }

    /// Gives a pair, by its number, new costs: row by row of the choices of its first variable.
    ///
    /// # Errors
    ///
    /// If there are not as many as the pair has choices.
    pub fn set_pair(&mut self, pair: usize, costs: &[i64]) -> Result<(), Wrong> {
        let changed = self.problem.set_pair(pair, costs)?;
        self.elimination.change_pair(pair, &changed);
        Ok(())
    }

    /// Returns the cheapest choice if the variables that are held keep their choice of `start`.
    ///
    /// # Errors
    ///
    /// If `start` is no choice of one candidate for each variable.
    pub fn eliminated(&mut self, start: &[usize]) -> Result<Vec<usize>, Wrong> {
        self.problem.check(start)?;
        Ok(self.elimination.run(&self.problem, start))
    }

    /// Returns the `most` candidates of a variable with the cheapest answers, the cheapest first: what the answer costs, the
    /// candidate, and the answer, which is what [`Search::eliminated`] returns if the variable has that candidate in `start`.
    ///
    /// # Errors
    ///
    /// If `start` is no choice of one candidate for each variable, or the variable is not there.
    pub fn answers(&mut self, start: &[usize], variable: usize, most: usize) -> Result<Vec<Answer>, Wrong> {
        self.problem.check(start)?;
        let candidates = *self.problem.sizes.get(variable).ok_or(Wrong("there is no such variable"))?;
        let mut asked = start.to_vec();
        let mut found: Vec<Answer> = Vec::with_capacity(candidates);
        for candidate in 0..candidates {
            asked[variable] = candidate;
            let answer = self.elimination.run(&self.problem, &asked);
            found.push((self.problem.total(&answer), candidate, answer));
        }
        sorting::sort_by_key(&mut found, |&(cost, candidate, _)| (cost, candidate));
        found.truncate(most);
        Ok(found)
    }

    /// Takes over the costs of the search that this one is the part `kept` of.
    ///
    /// # Errors
    ///
    /// If `kept` does not name candidates of each variable, as many as this search has.
    pub fn follow(&mut self, whole: &Search, kept: &[Vec<usize>]) -> Result<(), Wrong> {
        let there = |(at, &size): (&Vec<usize>, &usize)| at.iter().all(|&candidate| candidate < size);
        let sizes = &whole.problem.sizes;
        if kept.len() != sizes.len() || !kept.iter().zip(sizes).all(there) || self.problem.pairs != whole.problem.pairs
        {
            return Err(Wrong("a part has candidates of each variable"));
        }
        for (variable, at) in kept.iter().enumerate() {
            let costs: Vec<i64> = at.iter().map(|&candidate| whole.problem.single[variable][candidate]).collect();
            self.set_single(variable, &costs)?;
        }
        for (pair, &(u, v)) in whole.problem.pairs.iter().enumerate() {
            let shared = &whole.problem.shared[pair];
            let rows =
                kept[u].iter().flat_map(|&row| kept[v].iter().map(move |&column| shared[row * sizes[v] + column]));
            let costs: Vec<i64> = rows.collect();
            self.set_pair(pair, &costs)?;
        }
        Ok(())
    }

    /// Returns a choice that costs at most as much as `start`. It is the cheapest if no variable is held. Otherwise no
    /// change of one variable makes it cheaper, or it is `start`.
    ///
    /// # Errors
    ///
    /// If `start` is no choice of one candidate for each variable.
    pub fn cheapest(&mut self, start: &[usize]) -> Result<Vec<usize>, Wrong> {
        self.problem.check(start)?;
        let problem = &self.problem;
        let exact = self.elimination.held().is_empty();
        let (mut best, mut least) = (start.to_vec(), problem.total(start));
        let mut more = (!exact).then(|| improved(problem, start));
        loop {
            let mut found = self.elimination.run(problem, &best);
            if !exact {
                found = improved(problem, &found);
            }
            let mut cost = problem.total(&found);
            // If both cost the same, the elimination's is taken.
            if let Some(other) = more.take() {
                let others = problem.total(&other);
                if others < cost {
                    (found, cost) = (other, others);
                }
            }
            if cost >= least {
                return Ok(best);
            }
            (best, least) = (found, cost);
            if exact {
                return Ok(best);
            }
            // No single change makes the best choice cheaper any more, so it is improved only by an elimination.
        }
    }
}

//! The compiler's search for schedules.

use annealing::{anneal, walked, Choice, Deed, Node, Plan, Problem, Value};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

type GivenChoice = (Vec<u8>, Vec<u8>, Option<usize>, i64);
type GivenNode = (Vec<usize>, Vec<usize>, Vec<GivenChoice>, Vec<usize>, i64);
type GivenValue = (Option<usize>, i64, i64, i64, i64, i64, bool, bool, bool);
/// An order, biases by value, values that are computed again, numbers of choices by node.
type GivenPlan = (Vec<usize>, Vec<(usize, i64)>, Vec<usize>, Vec<(usize, usize)>);

/// A plan, its cycles, its DRAM words, and how many plans were tried.
type Found = (GivenPlan, i64, i64, u64);

/// Searches for a plan from the best of `orders`; returns the plan, its cycles, its DRAM words, and how many plans were tried.
///
/// Nodes are rows of inputs, outputs, choices, nodes before, segment; choices are rows of banks of inputs and outputs, the
/// input that is overwritten, cycles. Values are rows of maker, size, words, cycles of download, upload and copy, and whether
/// they are given, stored, remakable. `progress` gets the number of plans tried, cycles and words; the search ends if it
/// returns False. An exception of `progress`, and a signal, ends the search too, and is then the second part of the result.
#[pyfunction]
pub(crate) fn anneal_schedule(
    py: Python<'_>,
    nodes: Vec<GivenNode>,
    values: Vec<GivenValue>,
    rooms: [i64; 2],
    words_per_cycle: i64,
    orders: Vec<Vec<usize>>,
    steps: u64,
    seed: u64,
    progress: Bound<'_, PyAny>,
) -> PyResult<(Found, Option<PyErr>)> {
    let problem = problem(nodes, values, rooms, words_per_cycle)?;
    let progress = progress.unbind();
    let mut problem_of_caller = None;
    let mut go_on = |tried: u64, best: annealing::Cost| {
        let said = Python::attach(|py| {
            py.check_signals()?;
            progress.call1(py, (tried, best.cycles, best.words))?.is_truthy(py)
        });
        said.unwrap_or_else(|problem| {
            problem_of_caller = Some(problem);
            false
        })
    };
    let found = py.detach(|| anneal(&problem, &orders, steps, seed, &mut go_on));
    let found = found.ok_or_else(|| PyValueError::new_err("no order is possible"))?;
    let cost = found.cost;
    Ok(((given(&found.plan), cost.cycles, cost.words, found.steps), problem_of_caller))
}

/// What is done, the node, the value and bank, the number of the node's choice, and whether the node has run before.
type GivenAction = (&'static str, usize, Option<(usize, u8)>, Option<usize>, bool);

/// Returns cycles, DRAM words and actions of a plan; None if it is impossible.
#[pyfunction]
pub(crate) fn walk_schedule(
    nodes: Vec<GivenNode>,
    values: Vec<GivenValue>,
    rooms: [i64; 2],
    plan: GivenPlan,
) -> PyResult<Option<(i64, i64, Vec<GivenAction>)>> {
    let problem = problem(nodes, values, rooms, 1)?;
    let mut wanted = Plan::new(plan.0, &problem);
    let wrong = || PyValueError::new_err("the plan names what the problem has not");
    for (value, bias) in plan.1 {
        *wanted.bias.get_mut(value).ok_or_else(wrong)? = bias;
    }
    for value in plan.2 {
        *wanted.remade.get_mut(value).ok_or_else(wrong)? = true;
    }
    for (node, choice) in plan.3 {
        *wanted.picked.get_mut(node).ok_or_else(wrong)? = Some(choice);
    }
    let action = |(node, deed)| match deed {
        Deed::Run { choice, again } => ("run", node, None, Some(choice), again),
        Deed::Plain => ("plain", node, None, None, false),
        Deed::Down(value, bank) => ("down", node, Some((value, bank)), None, false),
        Deed::Up(value, bank) => ("up", node, Some((value, bank)), None, false),
        Deed::Copy(value, bank) => ("copy", node, Some((value, bank)), None, false),
        Deed::Forget(value, bank) => ("forget", node, Some((value, bank)), None, false),
    };
    let found = walked(&problem, &wanted);
    Ok(found.map(|(cost, actions)| (cost.cycles, cost.words, actions.into_iter().map(action).collect())))
}

fn problem(nodes: Vec<GivenNode>, values: Vec<GivenValue>, rooms: [i64; 2], words_per_cycle: i64) -> PyResult<Problem> {
    let choice = |(inputs, outputs, taken, cycles)| Choice { inputs, outputs, taken, cycles };
    let nodes = nodes
        .into_iter()
        .map(|(inputs, outputs, choices, before, segment)| Node {
            inputs,
            outputs,
            choices: choices.into_iter().map(choice).collect(),
            before,
            segment,
        })
        .collect();
    let values = values
        .into_iter()
        .map(|(maker, size, words, down, up, copy, given, stored, remakable)| Value {
            maker,
            size,
            words,
            down,
            up,
            copy,
            given,
            stored,
            remakable,
        })
        .collect();
    Problem::new(nodes, values, rooms, words_per_cycle)
        .ok_or_else(|| PyValueError::new_err("nodes and values must have a meaning"))
}

fn given(plan: &Plan) -> GivenPlan {
    let bias = plan.bias.iter().copied().enumerate().filter(|&(_, bias)| bias != 0).collect();
    let remade = plan.remade.iter().enumerate().filter(|&(_, &own)| own).map(|(value, _)| value).collect();
    let picked = plan.picked.iter().enumerate().filter_map(|(node, own)| own.map(|choice| (node, choice))).collect();
    (plan.order.clone(), bias, remade, picked)
}

//! The list scheduler of one part of a node: its instructions share lines where ports and hazards allow it.
//!
//! Instructions that a forwarding path connects keep their distance of one step and move together as a group. Groups are
//! placed in the order of the part.

use crate::dependences::Dependences;
use crate::op::Op;
use crate::placing::{Group, Placing};
use crate::rules::{Name, Rules};
use rustc_hash::FxHashMap as Map;
use std::sync::Arc;

/// Returns the lines of `steps` packed, each with the numbers of its instructions, which are counted through all steps.
///
/// None if no order of the groups keeps what depends on what, or if an instruction reads, by forwarding, a result from
/// outside these steps.
pub fn schedule(rules: &Arc<Rules>, steps: &[Vec<Arc<Op>>]) -> Option<Vec<Vec<usize>>> {
    let ops: Vec<(i64, &Arc<Op>)> = (0..).zip(steps).flat_map(|(at, ops)| ops.iter().map(move |op| (at, op))).collect();
    let members = groups(steps)?;
    let mut roots = vec![0; ops.len()];
    for (root, group) in members.iter().enumerate() {
        for &one in group {
            roots[one] = root;
        }
    }
    let mut placing = Placing::new(Arc::clone(rules));
    let mut lines: Vec<Vec<usize>> = Vec::new();
    for root in ordered(steps, &roots)? {
        let first = ops[members[root][0]].0;
        let group: Group = members[root].iter().map(|&one| (ops[one].0 - first, Arc::clone(ops[one].1))).collect();
        let at = placing.place(&group);
        for ((offset, _), &one) in group.iter().zip(&members[root]) {
            let at = usize::try_from(at + offset).ok()?;
            if lines.len() <= at {
                lines.resize_with(at + 1, Vec::new);
            }
            lines[at].push(one);
        }
    }
    lines.retain(|line| !line.is_empty());
    Some(lines)
}

/// The members of each group, at the number of its first one; the places of the others are empty.
fn groups(steps: &[Vec<Arc<Op>>]) -> Option<Vec<Vec<usize>>> {
    let mut members: Vec<Vec<usize>> = Vec::new();
    let mut root: Vec<usize> = Vec::new();
    let mut chosen: Map<Name, usize> = Map::default();
    for ops in steps {
        let mut here = Map::default();
        for op in ops {
            let own = members.len();
            members.push(vec![own]);
            root.push(own);
            for slot in &op.form.facts.takes {
                let (one, other) = (root[*chosen.get(slot)?], root[own]);
                if one != other {
                    let moved = std::mem::take(&mut members[one.max(other)]);
                    for &each in &moved {
                        root[each] = one.min(other);
                    }
                    members[one.min(other)].extend(moved);
                }
            }
            here.insert(op.form.facts.slot, own);
        }
        chosen = here;
    }
    Some(members)
}

/// The groups in an order in which each comes after those it depends on, else as early as its number; None if there is none.
fn ordered(steps: &[Vec<Arc<Op>>], roots: &[usize]) -> Option<Vec<usize>> {
    let mut found = Dependences::new(roots.len());
    let mut rest = roots;
    for ops in steps {
        let (own, others) = rest.split_at(ops.len());
        rest = others;
        for written in [false, true] {
            for (op, &own) in ops.iter().zip(own) {
                for touch in op.touches(written) {
                    for &(word, _) in &touch.places {
                        found.note((touch.memory, word), own, written);
                    }
                }
            }
        }
    }
    let order = found.order(|one| one);
    (order.len() == roots.len()).then(|| order.into_iter().filter(|&one| roots[one] == one).collect())
}

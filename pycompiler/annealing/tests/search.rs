//! Plans of drawn problems: possible, never worse than the first, and the same for the same seed.

use annealing::{anneal, walked, Choice, Node, Plan, Problem, Value};

struct Random(u64);

impl Random {
    fn below(&mut self, limit: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) as usize % limit
    }
}

/// A graph of `count` nodes over a few values from outside; two segments.
fn drawn(seed: u64, count: usize) -> Problem {
    let mut random = Random(seed);
    let value = |maker, size: usize, given| Value {
        maker,
        size: size as i64,
        words: 64 * size as i64,
        down: 30 + size as i64,
        up: 40 + size as i64,
        copy: size as i64,
        given,
        stored: false,
        remakable: maker.is_some(),
    };
    let mut values: Vec<Value> = (0..5).map(|_| value(None, 1 + random.below(20), true)).collect();
    let mut nodes: Vec<Node> = Vec::new();
    for at in 0..count {
        let segment = i64::from(at >= count / 2);
        let mut inputs: Vec<usize> = (0..1 + random.below(2)).map(|_| random.below(values.len())).collect();
        inputs.sort_unstable();
        inputs.dedup();
        let before: Vec<usize> = inputs.iter().filter_map(|&input| values[input].maker).collect();
        for &input in &inputs {
            if values[input].maker.is_some_and(|maker| nodes[maker].segment != segment) {
                values[input].stored = true;
            }
        }
        let own = value(Some(at), 1 + random.below(20), false);
        let other = inputs.iter().map(|_| random.below(2) as u8).collect::<Vec<_>>();
        let bank = random.below(2) as u8;
        let choice =
            |inputs: &[u8], bank: u8| Choice { inputs: inputs.to_vec(), outputs: vec![bank], taken: None, cycles: 10 };
        let mirrored: Vec<u8> = other.iter().map(|bank| 1 - bank).collect();
        let choices = vec![choice(&other, bank), choice(&mirrored, 1 - bank)];
        nodes.push(Node { inputs, outputs: vec![values.len()], choices, before, segment });
        values.push(own);
    }
    Problem::new(nodes, values, [40, 40], 8).unwrap()
}

#[test]
fn plans_are_possible_and_never_worse() {
    let mut gained = 0;
    for seed in 0..60 {
        let problem = drawn(seed, 10 + seed as usize);
        let first: Vec<usize> = (0..problem.nodes.len()).collect();
        let start = walked(&problem, &Plan::new(first.clone(), &problem)).unwrap().0;
        let found = anneal(&problem, std::slice::from_ref(&first), 400, seed, &mut |_, _| true).unwrap();
        assert!(problem.allows(&found.plan.order), "seed {seed}");
        assert_eq!(walked(&problem, &found.plan).map(|(cost, _)| cost), Some(found.cost), "seed {seed}");
        let valued = |cost: annealing::Cost| cost.cycles as f64 + cost.words as f64 / 4.0;
        assert!(valued(found.cost) <= valued(start), "seed {seed}");
        gained += u32::from(found.cost.words < start.words);
        let again = anneal(&problem, &[first], 400, seed, &mut |_, _| true).unwrap();
        assert_eq!(found.plan, again.plan, "seed {seed}");
    }
    assert!(gained > 20, "{gained}");
}

#[test]
fn a_search_ends_when_it_is_told() {
    let problem = drawn(1, 30);
    let order: Vec<usize> = (0..30).collect();
    let found = anneal(&problem, &[order], 1_000_000_000, 1, &mut |tried, _| tried < 256).unwrap();
    assert_eq!(found.steps, 256);
}

#[test]
fn what_has_no_meaning_is_refused() {
    let problem = drawn(1, 30);
    assert!(anneal(&problem, &[(0..29).collect()], 1, 1, &mut |_, _| true).is_none());
    let mut back: Vec<usize> = (0..30).collect();
    back.reverse();
    assert!(!problem.allows(&back));
    assert!(walked(&problem, &Plan::new(back, &problem)).is_none());
    let lost = Node { inputs: vec![7], ..Node::default() };
    assert!(Problem::new(vec![lost], vec![Value::default()], [1, 1], 1).is_none());
    let early = Node { before: vec![0], ..Node::default() };
    assert!(Problem::new(vec![early], vec![], [1, 1], 1).is_none());
}

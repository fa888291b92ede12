//! Schedules of programs over rows: no port and no unit serves two, and every operand is there when it is read.

use placing::{place_rows, Operation, Placed, Places, What};
use std::collections::HashMap;

struct Random(u64);

impl Random {
    fn below(&mut self, limit: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) as usize % limit
    }
}

const FILES: usize = 2;
const T: usize = FILES;
const MASKS: usize = FILES + 1;
const BANKS: usize = FILES + 4;

fn drawn(random: &mut Random) -> (Vec<Operation>, Places) {
    let inputs = 1 + random.below(3);
    let homes = (0..inputs).map(|_| Some(FILES + 2 + random.below(2))).collect();
    let uniform: Vec<bool> = (0..3).map(|_| random.below(2) == 0).collect();
    let count = 1 + random.below(24);
    let operations = (0..count)
        .map(|number| {
            let source = |random: &mut Random| {
                let kind = if number == 0 { random.below(2) } else { random.below(5) };
                match kind {
                    0 => (What::Input(random.below(inputs)), false),
                    1 => (What::Constant(random.below(3)), false),
                    _ => (What::Result(random.below(number)), random.below(8) == 0),
                }
            };
            let first = source(random);
            let mut sources = vec![first];
            // Two inputs of one LM cannot be read together.
            let second = source(random);
            if !matches!((first.0, second.0), (What::Input(_), What::Input(_))) {
                sources.push(second);
            }
            let flush = (number > 0 && random.below(6) == 0).then(|| random.below(number));
            Operation { unit: random.below(2), sources, flush, origin: Some(number) }
        })
        .collect();
    let result = if random.below(4) == 0 { random.below(FILES) } else { FILES + 2 + random.below(2) };
    let places = Places {
        files: FILES,
        banks: BANKS,
        units: 2,
        copies: 0,
        homes,
        result,
        uniform,
        lm: 1 + random.below(3) as i64,
        stored: 1 + random.below(3) as i64,
        masks: 1 + random.below(3) as i64,
    };
    (operations, places)
}

/// Puts something at a place that only one thing may have.
fn alone<K: std::hash::Hash + Eq + std::fmt::Debug, V: PartialEq + std::fmt::Debug>(
    held: &mut HashMap<K, V>,
    key: K,
    value: V,
) {
    if let Some(other) = held.get(&key) {
        assert_eq!(*other, value, "two at {key:?}");
    }
    held.insert(key, value);
}

fn check(found: &Placed, interval: i64, places: &Places, last: usize) {
    let phase = |step: i64| step.rem_euclid(interval);
    let (mut units, mut reads, mut writes) = (HashMap::new(), HashMap::new(), HashMap::new());
    let mut until: HashMap<(usize, usize), i64> = HashMap::new();
    for (index, one) in found.operations.iter().enumerate() {
        let step = found.steps[index];
        alone(&mut units, (one.unit, phase(step)), index);
        let mut wanted = one.sources.clone();
        wanted.extend(one.flush.map(|flags| (What::Flags(flags), false)));
        assert_eq!(wanted.len(), found.banks[index].len());
        for (&(what, extend), &bank) in wanted.iter().zip(&found.banks[index]) {
            if bank >= BANKS {
                let What::Result(read) = what else { panic!("{what:?} has no forwarding path") };
                assert_eq!((bank - BANKS, step, extend), (found.operations[read].unit, found.steps[read] + 1, false));
                continue;
            }
            alone(&mut reads, (bank, phase(step)), (what, step));
            match what {
                What::Input(number) => assert_eq!(places.homes[number], Some(bank)),
                What::Constant(number) => assert!(found.constants.contains(&(bank, number))),
                What::Result(read) | What::Flags(read) => {
                    let flags = matches!(what, What::Flags(_));
                    assert_eq!(bank == MASKS, flags);
                    assert!(bank != T || !extend);
                    assert!(step >= found.steps[read] + if flags { places.masks } else { places.stored });
                    let last = until.entry((read, bank)).or_insert(0);
                    *last = step.max(*last);
                }
            }
        }
    }
    for (&(read, bank), &last) in &until {
        alone(&mut writes, (bank, phase(found.steps[read])), read);
        assert!(found.stored.contains(&(read, bank, last)), "{read} in {bank} until {last}");
    }
    assert_eq!(until.len(), found.stored.len());
    let end = found.steps[last];
    assert!(!writes.contains_key(&(places.result, phase(end))));
    if places.result > MASKS {
        for turn in 0..places.lm {
            assert!(!reads.contains_key(&(places.result, phase(end + turn))), "the LM of the result is read");
        }
    }
    // The T register holds one constant all the time, or one row after the other.
    let constants = found.constants.iter().filter(|one| one.0 == T).count();
    let rows: Vec<_> = found.stored.iter().filter(|one| one.1 == T).collect();
    assert!(constants == 0 || (constants == 1 && rows.is_empty()));
    let mut taken = HashMap::new();
    for &&(row, _, last) in &rows {
        for step in found.steps[row]..last {
            assert!(taken.insert(phase(step), row).is_none(), "T holds two rows");
        }
    }
}

#[test]
fn nothing_serves_two_and_everything_is_there() {
    let (mut done, mut more) = (0, 0);
    for seed in 0..3_000 {
        let mut random = Random(seed);
        let (operations, places) = drawn(&mut random);
        let order: Vec<usize> = (0..operations.len()).collect();
        let interval = 1 + random.below(2 * operations.len() + 4) as i64;
        println!("seed {seed}");
        if let Some(found) = place_rows(operations, &order, interval, &places) {
            check(&found, interval, &places, order.len() - 1);
            done += 1;
            more += usize::from(found.operations.len() > order.len());
        }
    }
    assert!(done > 1_000 && more > 20, "{done} schedules, {more} with copies");
}

#[test]
fn what_has_no_meaning_is_refused() {
    let (operations, places) = drawn(&mut Random(1));
    let order: Vec<usize> = (0..operations.len()).collect();
    assert!(place_rows(operations.clone(), &order, 1_000, &places).is_some());
    assert!(place_rows(operations.clone(), &order, 0, &places).is_none());
    assert!(place_rows(operations.clone(), &[operations.len()], 1_000, &places).is_none());
    assert!(place_rows(Vec::new(), &[], 4, &places).is_none());
    let later = vec![Operation { unit: 0, sources: vec![(What::Result(0), false)], flush: None, origin: None }];
    assert!(place_rows(later, &[0], 4, &places).is_none());
    assert!(place_rows(operations, &order, 1_000, &Places { result: BANKS, ..places }).is_none());
}

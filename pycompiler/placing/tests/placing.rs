//! Drawn instructions: each stands where a plain reading of the rules lets it stand, and nowhere earlier.

use placing::{distance, schedule, Access, Facts, Form, Hazard, Name, Needs, Op, Operand, Rules, Timeline};
use std::sync::Arc;

const SLOTS: [Name; 3] = [0, 1, 2];
const MEMORY: Name = 10;
const ABOVE: Name = 11;
const CYCLES: i64 = 4;

struct Random(u64);

impl Random {
    fn below(&mut self, limit: i64) -> i64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33).cast_signed() % limit
    }
}

/// A write of slot 0 must be three steps old when another slot reads it, one of slot 1 seven cycles.
fn rules() -> Arc<Rules> {
    let rule = |steps, cycles, writer| Hazard {
        memories: vec![MEMORY],
        port: false,
        steps,
        cycles,
        writers: vec![writer],
        readers: Vec::new(),
        source: None,
    };
    let mut rules = Rules::new(vec![rule(Some(2), None, 0), rule(None, Some(7), 1)], CYCLES);
    rules.above = vec![ABOVE];
    rules.shared = vec![ABOVE];
    rules.shares = vec![(vec![1, 2], 1)];
    rules.unit = 2;
    Arc::new(rules)
}

/// An instruction: its slot, the words that it reads and writes in each cycle.
type Drawn = (Name, Vec<i64>, Vec<i64>);

fn drawn(random: &mut Random) -> Drawn {
    let mut words = || (0..CYCLES).map(|_| random.below(9)).collect();
    let (reads, writes) = (words(), words());
    (SLOTS[usize::try_from(random.below(3)).unwrap()], reads, writes)
}

fn op(rules: &Rules, (slot, reads, writes): &Drawn) -> Arc<Op> {
    let facts = Facts { slot: *slot, ..Facts::default() };
    let operand = |words: &[i64]| Operand::Pe(MEMORY, words.to_vec(), 1, vec![], None);
    let operands = [(operand(reads), false), (operand(writes), true)];
    let form = Arc::new(Form::new(rules, facts, &operands));
    Arc::new(Op::new(rules, form, &operands))
}

/// Whether an instruction behind `program`, whose steps are known, may stand at a step. Lines do not share it: all write one
/// memory, which has one port.
fn may(program: &[Drawn], steps: &[i64], later: &Drawn, step: i64) -> bool {
    let meets = |ours: &[i64], theirs: &[i64]| ours.iter().any(|word| theirs.contains(word));
    let follows = program.iter().zip(steps).all(|(one, &at)| {
        step != at && !(meets(&one.1, &later.2) && step < at) && !(meets(&one.2, &later.2) && step < at)
    });
    follows
        && (0..).zip(&later.1).all(|(read, word)| {
            let writes = |one: &Drawn| one.2.iter().rposition(|other| other == word);
            let last =
                program.iter().zip(steps).rev().find_map(|(one, &at)| writes(one).map(|cycle| (one.0, at, cycle)));
            let Some((slot, at, cycle)) = last else { return true };
            let apart = match slot {
                0 => 3,
                // The reading cycle comes eight cycles behind the writing one, and at least one step.
                1 => 1.max((8 + i64::try_from(cycle).unwrap() - read + CYCLES - 1).div_euclid(CYCLES)),
                _ => 1,
            };
            step >= at + apart
        })
}

#[test]
fn each_instruction_has_the_first_step_that_the_rules_allow() {
    for seed in 0..40 {
        let (mut random, rules) = (Random(seed), rules());
        let program: Vec<Drawn> = (0..25).map(|_| drawn(&mut random)).collect();
        let mut timeline = Timeline::new(Arc::clone(&rules), 9, false);
        let mut steps: Vec<i64> = Vec::new();
        for (number, one) in program.iter().enumerate() {
            let wanted = (0..).find(|&step| may(&program[..number], &steps, one, step)).unwrap();
            let line = Needs::of_line(&rules, vec![op(&rules, one)]);
            assert_eq!(timeline.place_lines(&[&line]), wanted, "seed {seed}, instruction {number}");
            steps.push(wanted);
        }
        // The list scheduler places the same groups in the same order.
        let lines = schedule(&rules, &program.iter().map(|one| vec![op(&rules, one)]).collect::<Vec<_>>()).unwrap();
        let mut order: Vec<(i64, usize)> = steps.iter().copied().zip(0..).collect();
        order.sort_unstable();
        assert_eq!(lines.concat(), order.into_iter().map(|(_, number)| number).collect::<Vec<_>>(), "seed {seed}");
    }
}

#[test]
fn a_line_keeps_its_distance_from_the_lines_before_it() {
    for seed in 0..40 {
        let (mut random, rules) = (Random(seed), rules());
        let mut issued: Vec<(Drawn, Option<Needs>)> = Vec::new();
        for number in 0..25 {
            let one = drawn(&mut random);
            let line = Needs::of_line(&rules, vec![op(&rules, &one)]);
            let newest = issued.iter().rev().map(|(_, line)| line.as_ref());
            let found = distance(&rules, newest, &line);
            let range = |words: &[i64]| (words.iter().min().copied(), words.iter().max().copied());
            // Steps behind a write of a range that it reads, and cycles from each write to each read of the same word.
            let late = |gap: &i64| {
                issued.iter().rev().zip(1..).all(|(((slot, _, writes), line), back)| {
                    let mut words = (0..).zip(writes).flat_map(|(w, word)| {
                        (0..).zip(&one.1).filter(move |(_, read)| *read == word).map(move |(r, _)| (w, r))
                    });
                    let steps = back + gap;
                    let ((low, high), (first, last)) = (range(writes), range(&one.1));
                    match (line, slot) {
                        (Some(_), 0) => steps >= 3 || last < low || high < first,
                        (Some(_), 1) => words.all(|(w, r)| steps * CYCLES + r - w >= 8),
                        _ => true,
                    }
                })
            };
            assert_eq!(Some(found), (0..).find(late), "seed {seed}, line {number}");
            let idle = (Vec::new(), Vec::new());
            issued.extend((0..found).map(|_| ((0, idle.0.clone(), idle.1.clone()), None)));
            issued.push((one, Some(line)));
        }
    }
}

#[test]
fn moves_wait_for_what_they_touch_and_for_their_port() {
    for seed in 0..40 {
        let (mut random, rules) = (Random(seed), rules());
        let mut timeline = Timeline::new(Arc::clone(&rules), 9, false);
        // Each MV: its first and last block of two words, whether it writes them, for how long it
        // holds its port, its start and its end.
        let mut placed: Vec<(i64, i64, bool, i64, i64, i64)> = Vec::new();
        for number in 0..25 {
            let (low, words, writes) = (random.below(30), 1 + random.below(5), random.below(2) == 0);
            let (holds, latency) = (1 + random.below(9), random.below(20));
            let (unit, range, cycles) = ((None, None), Some((low, low + words)), vec![]);
            let access = Access { memory: ABOVE, unit, range, cycles, slot: 9, source: None, named: false };
            let moved = if writes { [vec![], vec![access]] } else { [vec![access], vec![]] };
            let needs = Needs::of_move(moved, (vec![20], holds, latency));
            let (first, last) = (low / 2, (low + words - 1) / 2);
            // The port serves one MV at a time. Words that one of both writes are touched one after the other.
            let free = |start: i64| {
                placed.iter().all(|&(from, to, wrote, held, begin, end)| {
                    let apart = last < from || to < first || !(writes || wrote) || start >= end;
                    apart && (start >= begin + held || start + holds <= begin)
                })
            };
            let start = timeline.start_of(&needs).unwrap();
            assert_eq!(Some(start), (0..).map(|step| step * CYCLES).find(|&at| free(at)), "seed {seed}, MV {number}");
            let (step, end) = timeline.place_move(&needs, 0).unwrap();
            assert_eq!((step * CYCLES, end), (start, start + holds + latency), "seed {seed}, MV {number}");
            placed.push((first, last, writes, holds, start, end));
        }
    }
}

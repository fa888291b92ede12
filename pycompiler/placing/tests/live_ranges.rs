//! Live ranges: which accesses of a node to a memory need common words, and which need not.

use placing::{ranges, whole, Access, Block, Facts, Form, Name, Needs, Op, Operand, Rules, Site};
use std::collections::HashMap;
use std::sync::Arc;

const SLOT: Name = 0;
const MEMORY: Name = 1;
const L2BS: (i64, i64) = (2, 3);

fn rules() -> Rules {
    let mut rules = Rules::new(Vec::new(), 4);
    (rules.above, rules.shared, rules.l2bs, rules.unit) = (vec![MEMORY], vec![MEMORY], L2BS, 64);
    rules
}

/// What an instruction does with words of the memory, in blocks of 64.
#[derive(Clone, Copy)]
enum Does {
    /// All units fill them.
    Fills,
    /// A part fills them that a name selects.
    FillsPart(Name),
    Reads,
    /// It reads words that belong to a value.
    ReadsValue,
}

fn line(rules: &Rules, what: &[(Does, i64, i64)]) -> Needs {
    let op = |&(does, at, words): &(Does, i64, i64)| {
        let named = matches!(does, Does::ReadsValue);
        let unit = (None, None);
        let block = Block { memory: MEMORY, unit, start: 64 * at, words: 64 * words, named, entries: None };
        let part = if let Does::FillsPart(name) = does { Some(name) } else { None };
        let operands = [(Operand::Block(block), matches!(does, Does::Fills | Does::FillsPart(_)))];
        let form = Form::new(rules, Facts { slot: SLOT, part, ..Facts::default() }, &operands);
        Arc::new(Op::new(rules, Arc::new(form), &operands))
    };
    Needs::of_line(rules, what.iter().map(op).collect())
}

/// The number of the live range of each instruction, in the order of their first lines.
fn numbers(rules: &Rules, lines: &[Needs]) -> Vec<Option<usize>> {
    let (_, of_number) = ranges(rules, MEMORY, &lines.iter().collect::<Vec<_>>());
    let count: usize = lines.iter().map(|one| one.ops().len().max(1)).sum();
    let mut order: HashMap<usize, usize> = HashMap::new();
    let number = |live: &usize, order: &mut HashMap<usize, usize>| {
        let next = order.len();
        *order.entry(*live).or_insert(next)
    };
    (0..count).map(|at| of_number.get(&at).map(|live| number(live, &mut order))).collect()
}

#[test]
fn data_that_flows_between_instructions_joins_them() {
    use Does::{Fills, FillsPart, Reads, ReadsValue};
    let rules = rules();
    let some = |all: &[usize]| all.iter().copied().map(Some).collect::<Vec<_>>();
    let cases = [
        ("one after the other", vec![(Fills, 0, 1), (Reads, 0, 1), (Fills, 0, 1), (Reads, 0, 1)], some(&[0, 0, 1, 1])),
        ("side by side", vec![(Fills, 0, 1), (Fills, 1, 1), (Reads, 1, 1), (Reads, 0, 1)], some(&[0, 1, 1, 0])),
        ("read together", vec![(Fills, 0, 1), (Fills, 1, 1), (Reads, 0, 2)], some(&[0, 0, 0])),
        ("filled together", vec![(Fills, 0, 2), (Reads, 0, 1), (Reads, 1, 1)], some(&[0, 0, 0])),
        ("read twice", vec![(Fills, 0, 1), (Reads, 0, 1), (Reads, 0, 1)], some(&[0, 0, 0])),
        ("filled twice", vec![(Fills, 0, 1), (Fills, 0, 1), (Reads, 0, 1)], some(&[0, 0, 0])),
        ("left by an earlier node", vec![(Reads, 0, 1), (Fills, 0, 1)], vec![None; 2]),
        ("other words left", vec![(Fills, 0, 1), (Reads, 1, 1), (Fills, 0, 1)], vec![None; 3]),
        ("words of a value", vec![(Fills, 0, 1), (ReadsValue, 0, 1)], vec![None; 2]),
        (
            "other parts keep theirs",
            vec![(Fills, 0, 1), (Reads, 0, 1), (FillsPart(9), 0, 1), (Reads, 0, 1)],
            some(&[0, 0, 0, 0]),
        ),
        (
            "the same parts again",
            vec![
                (FillsPart(8), 0, 1),
                (FillsPart(9), 0, 1),
                (Reads, 0, 1),
                (FillsPart(9), 0, 1),
                (FillsPart(8), 0, 1),
                (Reads, 0, 1),
            ],
            some(&[0, 0, 0, 1, 1, 1]),
        ),
        (
            "one part after the other",
            vec![(FillsPart(8), 0, 1), (Reads, 0, 1), (FillsPart(9), 0, 1), (Reads, 0, 1)],
            some(&[0, 0, 0, 0]),
        ),
        (
            "all parts after one",
            vec![
                (FillsPart(8), 0, 1),
                (Reads, 0, 1),
                (Fills, 0, 1),
                (Reads, 0, 1),
                (FillsPart(8), 0, 1),
                (Reads, 0, 1),
            ],
            some(&[0, 0, 1, 1, 1, 1]),
        ),
    ];
    for (what, does, wanted) in cases {
        let lines: Vec<Needs> = does.iter().map(|one| line(&rules, std::slice::from_ref(one))).collect();
        assert_eq!(numbers(&rules, &lines), wanted, "{what}");
    }
}

#[test]
fn a_live_range_knows_its_words_and_when_it_touches_them() {
    let rules = rules();
    let lines = [
        line(&rules, &[(Does::Fills, 2, 1)]),
        line(&rules, &[(Does::Fills, 3, 2), (Does::Fills, 9, 1)]),
        line(&rules, &[(Does::Reads, 2, 3)]),
    ];
    let needs: Vec<&Needs> = lines.iter().collect();
    let (found, of_number) = ranges(&rules, MEMORY, &needs);
    assert_eq!(found.len(), 2);
    assert_eq!((found[0].range, found[0].count), ((128, 320), 3));
    assert_eq!(found[0].parts, [((128, 192), 0), ((192, 320), 1), ((128, 320), 2)]);
    // A block begins at a multiple of its words.
    assert_eq!(found[0].unit, 64 * 6);
    assert_eq!((found[1].range, found[1].unit, of_number[&2]), ((576, 640), 64, 1));
    let (all, of_number) = whole(&rules, MEMORY, &needs);
    assert_eq!((all.len(), all[0].range, all[0].count, of_number.len()), (1, (128, 640), 4, 4));
}

/// A slow reference follows each word of each unit from its last write to its reads.
#[test]
fn all_data_flows_inside_of_live_ranges() {
    let rules = rules();
    for seed in 1..200_u64 {
        let mut state = seed;
        let mut below = |limit: i64| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (state >> 33).cast_signed() % limit
        };
        let all = (None, None);
        let mut moves: Vec<(bool, i64, i64, Site)> = vec![(true, 0, 4, all)];
        for _ in 0..2 + below(38) {
            let at = below(4);
            let site = [all, all, (Some(0), Some(0)), (Some(0), Some(1)), (Some(1), Some(2))][below(5) as usize];
            moves.push((below(2) == 0, at, 1 + below(4 - at), site));
        }
        let needs = |&(written, at, words, unit): &(bool, i64, i64, Site)| {
            let range = Some((64 * at, 64 * (at + words)));
            let access = Access { memory: MEMORY, unit, range, cycles: vec![], slot: SLOT, source: None, named: false };
            let moved = if written { [vec![], vec![access]] } else { [vec![access], vec![]] };
            Needs::of_move(moved, (vec![], 0, 0))
        };
        let lines: Vec<Needs> = moves.iter().map(needs).collect();
        let found = numbers(&rules, &lines);
        let mut wrote: HashMap<(i64, i64, i64), usize> = HashMap::new();
        for (number, &(written, at, words, site)) in moves.iter().enumerate() {
            for (word, group, l2b) in (at..at + words)
                .flat_map(|word| (0..L2BS.0).flat_map(move |group| (0..L2BS.1).map(move |l2b| (word, group, l2b))))
                .filter(|&(_, group, l2b)| site == all || site == (Some(group), Some(l2b)))
            {
                if written {
                    wrote.insert((word, group, l2b), number);
                } else {
                    assert!(found[number].is_some(), "seed {seed}");
                    assert_eq!(found[number], found[wrote[&(word, group, l2b)]], "seed {seed}");
                }
            }
        }
    }
}

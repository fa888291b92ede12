//! Small switches whose passes are known. Random ones are compared with a search in Python, in
//! `tests/pycompiler/planners/test_switch_search.py`.

use switches::{
    move_steps, pass_moves, pass_steps, plan, Change, Guesses, Layout, Level, Machine, Move, Moves, Outcome, SubAxis,
};

const MACHINE: Machine = Machine {
    counts: [2, 4, 4, 2, 2],
    bits: 32,
    addressed_bits: 32,
    lm0: 64,
    cycles: 4,
    mv_latency: 16,
    mv_near: 4,
    mv_far: 2,
    mv_all: 2,
    mv_dram: 4,
    l2bs_per_group: 2,
    row: 16,
    block: 1,
    l2bm_words: 64,
    spread: (16, 32),
    vectors: 31,
    l2bm: 4096,
    pdm: 4096,
    masks: 7,
    wide: 2,
};

/// Returns a layout of one axis from its digits: size, level and stride, major first.
fn layout(digits: &[(i64, Level, i64)]) -> Layout {
    let sub = |&(size, level, stride): &(i64, Level, i64)| SubAxis { size, level, stride };
    Layout { axes: vec![digits.iter().map(sub).collect()], copies: Vec::new() }
}

fn change(source: &[(i64, Level, i64)], result: &[(i64, Level, i64)], size: i64) -> Change {
    Change { source: layout(source), result: layout(result), shape: vec![size] }
}

fn levels(outcome: &Outcome) -> Vec<Level> {
    match outcome {
        Outcome::Found(passes) => passes.iter().map(|pass| pass.level).collect(),
        other => panic!("{other:?}"),
    }
}

#[test]
fn each_level_that_changes_is_settled_once() {
    let addr = (16, Level::Addr, 1);
    let across = [(4, Level::Mab, 1), (4, Level::Addr, 1)];
    let cases: [(&[(i64, Level, i64)], &[(i64, Level, i64)], &[Level]); 4] = [
        (&[addr], &[addr], &[]),
        (&[addr], &[(16, Level::Addr, 2)], &[Level::Pe]),
        (&across, &[addr], &[Level::Mab]),
        (&across, &[(4, Level::Pe, 1), (4, Level::Addr, 1)], &[Level::Mab, Level::Pe]),
    ];
    for (source, result, wanted) in cases {
        let change = change(source, result, 16);
        let found = plan(&change, &MACHINE, None, &mut || true);
        assert_eq!(levels(&found), wanted, "{change:?}");
        let mut guesses = Guesses::new(change.shape.clone(), MACHINE);
        let numbers = [change.source, change.result].map(|layout| guesses.number(layout).unwrap());
        assert_eq!(guesses.steps(numbers[0], numbers[0]), Some(0));
        assert_eq!(guesses.steps(numbers[0], numbers[1]) == Some(0), source == result);
        assert_eq!(guesses.steps(0, 2), None);
    }
}

#[test]
fn a_search_ends_when_it_is_told_or_when_nothing_is_cheap_enough() {
    // Many digits that change their places, so that the search looks at many states.
    let digits = |first: Level, second: Level| {
        let one = |level, stride| SubAxis { size: 2, level, stride };
        let axes = (0..2).flat_map(|n| [vec![one(first, 1 << n)], vec![one(second, 1 << n)]]).collect();
        Layout { axes, copies: Vec::new() }
    };
    let (source, result) = (digits(Level::Mab, Level::Pe), digits(Level::Pe, Level::Mab));
    let change = Change { source, result, shape: vec![2; 4] };
    let found = plan(&change, &MACHINE, None, &mut || true);
    let steps: i64 = match &found {
        Outcome::Found(passes) => passes.iter().map(|pass| pass.steps).sum(),
        other => panic!("{other:?}"),
    };
    assert_eq!(plan(&change, &MACHINE, Some(steps), &mut || true), found);
    assert_eq!(plan(&change, &MACHINE, Some(steps - 1), &mut || true), Outcome::None);
}

#[test]
fn digits_wait_on_units_if_lm_is_nearly_full() {
    // PEs and MABs change places beside 40 of the 64 long words, so there is no room for two digits more in Addr.
    let digits = |first: Level, second: Level| {
        let one = |size, level| vec![SubAxis { size, level, stride: 1 }];
        Layout { axes: vec![one(40, Level::Addr), one(4, first), one(4, second)], copies: Vec::new() }
    };
    let (source, result) = (digits(Level::Mab, Level::Pe), digits(Level::Pe, Level::Mab));
    let change = Change { source, result, shape: vec![40, 4, 4] };
    let found = levels(&plan(&change, &MACHINE, None, &mut || true));
    assert!(found.contains(&Level::Mab) && found.contains(&Level::Pe), "{found:?}");
    // A limited search makes no detours: it is asked often, for estimates.
    assert_eq!(plan(&change, &MACHINE, Some(1 << 30), &mut || true), Outcome::None);
}

#[test]
fn moves_that_stand_for_others_count_as_often_as_they_are_done() {
    // The last axis has 22 elements on 6 long words of 4 units, of which two are empty. Its long words go to others, which begin
    // at even and at odd words, beside those of the first axis, which leave their units.
    for (level, other) in
        [(Level::Pe, Level::Mab), (Level::Mab, Level::Pe), (Level::L1b, Level::Pe), (Level::L2b, Level::Pe)]
    {
        let count = MACHINE.counts[level as usize];
        let layout = |first: SubAxis, stride| {
            let [words, units] = [(6, Level::Addr, stride), (4, other, 1)];
            let digit = |(size, level, stride)| SubAxis { size, level, stride };
            Layout { axes: vec![vec![first], vec![digit(words), digit(units)]], copies: Vec::new() }
        };
        let on = |level, stride| SubAxis { size: count, level, stride };
        for (source, result, stride) in [(1, count, 1), (2, 1, 6), (1, 2 * count, 1), (3, 1, 8)] {
            let (source, result) = (layout(on(level, 1), source), layout(on(Level::Addr, stride), result));
            for (source, result) in [(&source, &result), (&result, &source)] {
                let change = Change { source: source.clone(), result: result.clone(), shape: vec![count, 22] };
                let list = pass_moves(&change, level, &MACHINE).unwrap();
                let steps = move_steps(&Moves { list, times: 1 }, level, &MACHINE).unwrap();
                assert_eq!(pass_steps(&change, level, &MACHINE), Some(steps + 2 * MACHINE.cycles), "{change:?}");
            }
        }
    }
}

#[test]
fn digits_take_together_from_copies_that_exist() {
    // Three units have copies of each of three parts. Elements that go to units at strides 1 and 2 would need four copies.
    let machine = Machine { counts: [2, 4, 4, 2, 9], l2bs_per_group: 9, ..MACHINE };
    let on = |digits: &[(i64, i64)], level| -> Vec<SubAxis> {
        digits.iter().map(|&(size, stride)| SubAxis { size, level, stride }).collect()
    };
    let source = Layout {
        axes: vec![on(&[(3, 3)], Level::L2b), on(&[(2, 4), (2, 2), (2, 1)], Level::Addr)],
        copies: on(&[(3, 1)], Level::L2b),
    };
    let result = Layout {
        axes: vec![on(&[(3, 1)], Level::Addr), on(&[(2, 4), (2, 2), (2, 1)], Level::L2b)],
        copies: Vec::new(),
    };
    let change = Change { source, result, shape: vec![3, 8] };
    let moves = pass_moves(&change, Level::L2b, &machine).unwrap();
    assert_eq!(moves.len(), 24);
    for m in moves {
        // The unit of the result has element m.result of the last axis, and the address the part.
        assert_eq!((m.source / 3, m.source_at), (m.result_at, m.result), "{m:?}");
    }
}

#[test]
fn numbers_without_meaning_are_noticed() {
    let good = change(&[(16, Level::Addr, 1)], &[(16, Level::Addr, 1)], 16);
    assert!(good.is_valid() && MACHINE.is_valid());
    assert!(!change(&[(0, Level::Addr, 1)], &[(16, Level::Addr, 1)], 16).is_valid());
    assert!(!change(&[(16, Level::Addr, -1)], &[(16, Level::Addr, 1)], 16).is_valid());
    assert!(!Change { shape: vec![16, 2], ..good }.is_valid());
    assert!(!Machine { counts: [2, 65, 4, 2, 2], ..MACHINE }.is_valid());
    assert!(!Machine { cycles: 0, ..MACHINE }.is_valid());
    let moves = |result, at| Moves { list: vec![Move { result, result_at: at, ..Move::HERE }], times: 1 };
    assert_eq!(move_steps(&moves(4, 0), Level::Pe, &MACHINE), None);
    assert_eq!(move_steps(&moves(0, -1), Level::Pe, &MACHINE), None);
    assert_eq!(move_steps(&moves(0, 0), Level::Addr, &MACHINE), None);
    assert!(move_steps(&moves(1, 0), Level::Pe, &MACHINE).is_some());
}

//! Small problems whose answers are known. Random ones are compared with a search in Python that computes everything anew,
//! in `tests/pycompiler/planners/test_lpz.py`.

use choosing::Search;

fn chain() -> Search {
    let mut search = Search::new(vec![2, 2, 2], vec![(0, 1), (1, 2)], 64).unwrap();
    search.set_single(0, &[0, 9]).unwrap();
    search.set_single(2, &[9, 0]).unwrap();
    search.set_pair(0, &[0, 4, 4, 0]).unwrap();
    search.set_pair(1, &[0, 5, 5, 0]).unwrap();
    search
}

#[test]
fn a_chain_is_solved_exactly() {
    let mut search = chain();
    assert!(search.held().is_empty());
    assert_eq!(search.cheapest(&[0, 0, 0]).unwrap(), [0, 1, 1]);
    // Only what depends on the new costs is computed again.
    search.set_pair(0, &[0, 6, 6, 0]).unwrap();
    assert_eq!(search.cheapest(&[0, 1, 1]).unwrap(), [0, 0, 1]);
    search.set_pair(0, &[0, 4, 4, 0]).unwrap();
    assert_eq!(search.cheapest(&[0, 0, 1]).unwrap(), [0, 1, 1]);
}

#[test]
fn a_choice_that_is_the_cheapest_stays() {
    assert_eq!(chain().cheapest(&[0, 1, 1]).unwrap(), [0, 1, 1]);
    let mut free = Search::new(vec![3, 2], vec![(0, 1)], 64).unwrap();
    assert_eq!(free.cheapest(&[2, 1]).unwrap(), [2, 1]);
}

#[test]
fn variables_without_room_keep_their_choice() {
    let mut search = Search::new(vec![2, 2, 2], vec![(0, 1), (1, 2)], 2).unwrap();
    assert_eq!(search.held(), [1]);
    search.set_pair(0, &[1, 0, 0, 1]).unwrap();
    search.set_pair(1, &[0, 1, 1, 0]).unwrap();
    assert_eq!(search.eliminated(&[0, 1, 0]).unwrap(), [0, 1, 1]);
    assert_eq!(search.eliminated(&[0, 0, 0]).unwrap(), [1, 0, 0]);
    search.set_single(1, &[3, 2]).unwrap();
    assert_eq!(search.answers(&[0, 0, 0], 1, 2).unwrap(), [(2, 1, vec![0, 1, 1]), (3, 0, vec![1, 0, 0])]);
    assert_eq!(search.answers(&[0, 0, 0], 1, 1).unwrap().len(), 1);
}

#[test]
fn a_part_has_the_costs_of_the_whole() {
    let mut whole = chain();
    let kept = [vec![0, 1], vec![0], vec![1, 0]];
    let mut part = Search::new(vec![2, 1, 2], vec![(0, 1), (1, 2)], 64).unwrap();
    part.follow(&whole, &kept).unwrap();
    assert_eq!(part.cheapest(&[1, 0, 1]).unwrap(), [0, 0, 0]);
    whole.set_single(2, &[0, 9]).unwrap();
    part.follow(&whole, &kept).unwrap();
    assert_eq!(part.cheapest(&[0, 0, 0]).unwrap(), [0, 0, 1]);
    assert_eq!(part.total(&[0, 0, 1]).unwrap(), whole.total(&[0, 0, 0]).unwrap());
}

#[test]
fn what_does_not_fit_together_is_refused() {
    for (sizes, pairs) in [
        (vec![2, 0], vec![]),
        (vec![2, 2], vec![(0, 2)]),
        (vec![2, 2], vec![(1, 1)]),
        (vec![2, 2], vec![(0, 1), (1, 0)]),
    ] {
        assert!(Search::new(sizes, pairs, 4).is_err());
    }
    let mut search = chain();
    assert!(search.set_single(0, &[1]).is_err());
    assert!(search.set_single(3, &[1]).is_err());
    assert!(search.set_pair(2, &[1]).is_err());
    assert!(search.cheapest(&[0, 0]).is_err());
    assert!(search.cheapest(&[0, 0, 2]).is_err());
    assert!(search.eliminated(&[0, 0, 0, 0]).is_err());
    assert!(search.total(&[0, 0, 2]).is_err());
    assert!(search.answers(&[0, 0, 0], 3, 1).is_err());
    let mut part = Search::new(vec![1, 1, 1], vec![(0, 1), (1, 2)], 64).unwrap();
    assert!(part.follow(&search, &[vec![0], vec![2], vec![0]]).is_err());
    assert!(part.follow(&search, &[vec![0], vec![1]]).is_err());
    assert!(part.follow(&search, &[vec![0], vec![0, 1], vec![0]]).is_err());
}

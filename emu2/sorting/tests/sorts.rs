//! All sorts give what the stable sorts of the standard library give, for any items, keys and lengths.

use proptest::prelude::*;
use std::cmp::Reverse;

proptest! {
    #[test]
    fn they_are_those_of_the_standard_library(items in prop::collection::vec((0u8..9, any::<u16>()), 0..120)) {
        let mut wanted = items.clone();
        let mut found = items.clone();
        wanted.sort();
        sorting::sort(&mut found);
        prop_assert_eq!(&found, &wanted);

        // Most items share their key with others: those must stay in order.
        let (mut wanted, mut found) = (items.clone(), items.clone());
        wanted.sort_by_key(|item| Reverse(item.0));
        sorting::sort_by_key(&mut found, |item| Reverse(item.0));
        prop_assert_eq!(&found, &wanted);

        let (mut wanted, mut found) = (items.clone(), items.clone());
        wanted.sort_by_key(|one| Reverse(one.0));
        sorting::sort_by(&mut found, |a, b| b.0.cmp(&a.0));
        prop_assert_eq!(&found, &wanted);

        let (mut wanted, mut found, mut asked) = (items.clone(), items.clone(), 0);
        wanted.sort_by_cached_key(|item| item.0.to_string());
        sorting::sort_by_cached_key(&mut found, |item| {
            asked += 1;
            item.0.to_string()
        });
        prop_assert_eq!(&found, &wanted);
        prop_assert_eq!(asked, items.len());
    }
}

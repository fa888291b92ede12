//! Sets of units whose numbers differ only in certain bits.

/// The units whose numbers equal `first` in all bits except those of `free`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct UnitSet {
    /// The smallest number of the set. No bit of `free` is set in it.
    pub first: u32,
    /// Bits that may have any value.
    pub free: u32,
}

/// How many low bits of a code hold `first`.
const FIRST_BITS: u32 = 16;

impl UnitSet {
    /// The set of all `count` units.
    pub fn all(count: u32) -> UnitSet {
        UnitSet { first: 0, free: count.next_power_of_two() - 1 }
    }

    /// The set of these numbers of `count` units. `None` if they are not ascending or are no such set.
    pub fn of(numbers: &[u32], count: u32) -> Option<UnitSet> {
        let first = *numbers.first()?;
        let free = numbers.iter().fold(0, |free, n| free | (n ^ first));
        let set = UnitSet { first, free };
        (first & free == 0 && set.members(count).eq(numbers.iter().copied())).then_some(set)
    }

    /// The members among `count` units, in ascending order.
    pub fn members(self, count: u32) -> impl Iterator<Item = u32> {
        (0..count).filter(move |b| (b ^ self.first) & !self.free == 0)
    }

    /// The set as the value of a parameter.
    pub fn code(self) -> i64 {
        i64::from(self.first) | i64::from(self.free) << FIRST_BITS
    }

    /// The set that the value of a parameter stands for.
    pub fn from_code(code: i64) -> UnitSet {
        let mask = (1 << FIRST_BITS) - 1;
        UnitSet { first: (code & mask) as u32, free: (code >> FIRST_BITS & mask) as u32 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The list of sets in the vendor's manual for eight L1Bs.
    #[test]
    fn twenty_seven_sets_of_eight() {
        let text = "0;1;2;3;4;5;6;7;0,1;2,3;4,5;6,7;0,2;1,3;4,6;5,7;0,4;1,5;2,6;3,7;0,1,2,3;4,5,6,7;0,1,4,5;2,3,6,7;\
                    0,2,4,6;1,3,5,7;0,1,2,3,4,5,6,7";
        let listed: Vec<Vec<u32>> =
            text.split(';').map(|set| set.split(',').map(|n| n.trim().parse().unwrap()).collect()).collect();
        let subsets = (1u32..256).map(|bits| (0..8).filter(|b| bits >> b & 1 == 1).collect::<Vec<u32>>());
        let legal: Vec<Vec<u32>> = subsets.filter(|numbers| UnitSet::of(numbers, 8).is_some()).collect();
        assert_eq!(legal.len(), 27);
        assert!(listed.iter().all(|set| legal.contains(set)), "{legal:?}");
        for numbers in legal {
            let set = UnitSet::of(&numbers, 8).unwrap();
            assert_eq!(UnitSet::from_code(set.code()), set);
        }
        assert_eq!(UnitSet::all(7).members(7).count(), 7);
        assert_eq!(UnitSet { first: 0, free: 6 }.members(8).collect::<Vec<_>>(), [0, 2, 4, 6]);
        assert!(UnitSet::of(&[2, 0], 8).is_none() && UnitSet::of(&[0, 0], 8).is_none());
    }
}

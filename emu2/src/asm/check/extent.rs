//! The words that an access touches, and whether two accesses overlap.

use crate::asm::statement::{Access, Address, Selected};

/// The words that one access touches in its memory.
#[derive(Clone, Debug)]
pub(super) enum Extent {
    /// In a PE memory: `words` words in each cycle.
    Cycles {
        address: Address,
        words: u32,
        /// The cycles that access the memory: bit c is cycle c. `None` is all cycles.
        mask: Option<u32>,
    },
    /// In a memory above the PEs: a run of long words in the selected units. In registers: a run of entries.
    Run { start: u64, length: u64, units: Selected },
}

impl Extent {
    /// The extent of an access. `moved` says that an unknown offset is added to the address.
    pub(super) fn of(access: &Access, moved: bool, mask: Option<u32>) -> Self {
        if moved || access.indirect || access.modify.is_some() {
            // The address is unknown, so every cycle counts as touching the whole memory.
            return Extent::Cycles { address: Address::Stride { base: 0, stride: 0 }, words: u32::MAX, mask };
        }
        Extent::Cycles { address: access.address.clone(), words: access.words, mask }
    }

    /// The extent of one entry of a register file, or of all of its `entries`.
    pub(super) fn register(entry: Option<u32>, entries: u64) -> Self {
        let (start, length) = entry.map_or((0, entries), |e| (e.into(), 1));
        Extent::Run { start, length, units: Selected::default() }
    }

    /// The first word that cycle `c` accesses, if the cycle accesses the memory.
    fn at(&self, c: u32, size: u64) -> Option<u64> {
        match self {
            Extent::Cycles { address: Address::Cycle, words, mask } => active(*mask, c).then_some(u64::from(c * words)),
            Extent::Cycles { address, mask, .. } => active(*mask, c).then(|| u64::from(address.at(c)) % size.max(1)),
            Extent::Run { .. } => None,
        }
    }

    fn words(&self) -> u64 {
        match self {
            Extent::Cycles { words, .. } => u64::from(*words),
            Extent::Run { length, .. } => *length,
        }
    }
}

fn active(mask: Option<u32>, c: u32) -> bool {
    mask.is_none_or(|m| m >> c & 1 == 1)
}

/// Whether two runs on a circle of `size` places overlap.
fn circle_meet(a: u64, a_length: u64, b: u64, b_length: u64, size: u64) -> bool {
    let size = size.max(1);
    let ahead = |from: u64, to: u64| (to % size + size - from % size) % size;
    ahead(a, b) < a_length || ahead(b, a) < b_length
}

fn units_meet(a: Selected, b: Selected) -> bool {
    let meet = |a: Option<u32>, b: Option<u32>| a.is_none() || b.is_none() || a == b;
    meet(a.group, b.group) && meet(a.l2b, b.l2b)
}

/// Returns the writing and the reading cycle of an overlap, or `None` if the extents do not overlap. Of several
/// overlaps it is the one with the fewest cycles from write to read. Runs have no cycles and give (0, 0). `size` is the
/// size of the memory in the unit of the extents.
pub(super) fn meet(written: &Extent, read: &Extent, size: u64, cycles: u32) -> Option<(u32, u32)> {
    match (written, read) {
        (Extent::Run { start: a, length: m, units: u }, Extent::Run { start: b, length: n, units: v }) => {
            (units_meet(*u, *v) && circle_meet(*a, *m, *b, *n, size)).then_some((0, 0))
        }
        (Extent::Cycles { .. }, Extent::Cycles { .. }) => {
            let mut nearest: Option<(u32, u32)> = None;
            for w in 0..cycles {
                let Some(a) = written.at(w, size) else { continue };
                let meets =
                    |r: &u32| read.at(*r, size).is_some_and(|b| circle_meet(a, written.words(), b, read.words(), size));
                let Some(r) = (0..cycles).find(meets) else { continue };
                if nearest.is_none_or(|(nw, nr)| i64::from(r) - i64::from(w) < i64::from(nr) - i64::from(nw)) {
                    nearest = Some((w, r));
                }
            }
            nearest
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stride(base: u32, stride: u32, words: u32, mask: Option<u32>) -> Extent {
        Extent::Cycles { address: Address::Stride { base, stride }, words, mask }
    }

    #[test]
    fn cycles() {
        let all = None;
        let table = [
            // written, read, cycles that meet
            (stride(0, 2, 2, all), stride(0, 2, 2, all), Some((0, 0))),
            (stride(0, 0, 2, all), stride(0, 0, 2, all), Some((3, 0))),
            (stride(0, 0, 2, Some(0b0001)), stride(0, 0, 2, all), Some((0, 0))),
            (stride(0, 0, 2, Some(0b0000)), stride(0, 0, 2, all), None),
            (stride(0, 2, 2, all), stride(8, 2, 2, all), None),
            (stride(0, 4, 4, all), stride(2, 4, 1, all), Some((0, 0))),
            (stride(6, 0, 2, all), stride(0, 2, 2, all), Some((3, 3))),
            (stride(510, 2, 2, all), stride(0, 0, 1, all), Some((1, 0))),
            (stride(0, 2, 2, all), stride(6, 0, 2, all), Some((3, 0))),
        ];
        for (written, read, expected) in table {
            assert_eq!(meet(&written, &read, 512, 4), expected, "{written:?} {read:?}");
        }
    }

    #[test]
    fn unknown_addresses_meet_everything() {
        let access = |indirect, modify| Access {
            memory: 0,
            words: 2,
            address: Address::Stride { base: 100, stride: 2 },
            indirect,
            modify,
        };
        let far = stride(8, 2, 2, None);
        for (access, moved, met) in [
            (access(false, None), false, false),
            (access(false, None), true, true),
            (access(true, None), false, true),
            (access(false, Some(0)), false, true),
        ] {
            let extent = Extent::of(&access, moved, None);
            assert_eq!(meet(&extent, &far, 512, 4).is_some(), met, "{access:?} {moved}");
            assert_eq!(meet(&far, &extent, 512, 4).is_some(), met, "{access:?} {moved}");
        }
        let masked = Extent::of(&access(true, None), false, Some(0b0001));
        assert_eq!(meet(&masked, &far, 512, 4), Some((0, 0)));
    }

    #[test]
    fn runs() {
        let run = |start, length, group| Extent::Run { start, length, units: Selected { group, l2b: None } };
        let table = [
            (run(0, 64, None), run(63, 1, None), true),
            (run(0, 64, None), run(64, 64, None), false),
            (run(1000, 64, None), run(0, 1, None), true),
            (run(0, 64, Some(0)), run(0, 64, Some(1)), false),
            (run(0, 64, Some(0)), run(0, 64, None), true),
        ];
        for (written, read, expected) in table {
            assert_eq!(meet(&written, &read, 1024, 4).is_some(), expected, "{written:?} {read:?}");
        }
    }
}

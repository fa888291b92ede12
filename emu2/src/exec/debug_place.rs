//! Debug statements: the words that they name, and `d set`.

use crate::asm::DebugSet;
use crate::error::Error;
use crate::machine::{Machine, Region};
use crate::spec::{Spec, Unit, HALVES, WORDS_PER_LONG};

/// The long-word address of access `k` of a debug statement at `address`. If the accesses are words, also the number of the
/// word.
pub fn debug_place(spec: &Spec, memory: usize, words: u32, address: u64, k: u64) -> (u64, Option<u32>) {
    match spec.memories[memory].unit {
        Unit::Long | Unit::Base | Unit::Matrix => (address + k, None),
        // The address of the entry's first cycle.
        Unit::Mask => ((address + k) * u64::from(spec.counts.cycle), None),
        // An entry of the T register has 2 long words. Debug statements see the first one.
        Unit::Cycle => ((address + k) * u64::from(HALVES), None),
        Unit::Word if words < WORDS_PER_LONG => {
            let word = address + k;
            (word / u64::from(WORDS_PER_LONG), Some((word % u64::from(WORDS_PER_LONG)) as u32))
        }
        Unit::Word => (address / u64::from(WORDS_PER_LONG) + k, None),
    }
}

/// Runs a `d set`.
pub(super) fn debug_set(machine: &mut Machine, set: &DebugSet) -> Result<(), Error> {
    let spec = machine.spec().clone();
    let location = &set.location;
    let whole = spec.memories[location.memory].unit != Unit::Cycle && location.words >= WORDS_PER_LONG;
    if whole {
        let (addr, _) = debug_place(&spec, location.memory, location.words, location.address, 0);
        let count = set.payload.len() as u64;
        let region = Region { memory: location.memory, units: location.units, addr, count };
        return machine.write(&region, &set.payload);
    }
    for (k, word) in set.payload.iter().enumerate() {
        let (addr, part) = debug_place(&spec, location.memory, location.words, location.address, k as u64);
        let region = Region { memory: location.memory, units: location.units, addr, count: 1 };
        let Some(part) = part else {
            machine.write(&region, &[*word])?;
            continue;
        };
        let mut old = machine.read(&region)?;
        for value in &mut old {
            // Word 0 is the upper half; the payload's upper half is the value.
            let shift = if part == 0 { 0 } else { 32 };
            *value = (*value & !(0xFFFF_FFFF_0000_0000 >> shift)) | ((word & 0xFFFF_FFFF_0000_0000) >> shift);
        }
        machine.write(&region, &old)?;
    }
    Ok(())
}

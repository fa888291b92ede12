//! States of machines as bytes: what comes back, and what is refused.

use emu2::error::Code;
use emu2::machine::{Machine, Region};
use emu2::spec::Spec;
use std::sync::Arc;

fn machine(name: &str) -> Machine {
    Machine::new(Arc::new(Spec::load(name).unwrap()))
}

/// A word at the last address of every unit of every memory, and one at the first address of some.
fn fill(machine: &mut Machine) -> Vec<(Region, Vec<u64>)> {
    let spec = machine.spec().clone();
    let mut filled = Vec::new();
    for (memory, about) in spec.memories.iter().enumerate() {
        let region = Region { memory, units: [None; 5], addr: about.words - 1, count: 1 };
        let units: u32 = region.extents(&spec).iter().product();
        let words: Vec<u64> = (0..u64::from(units)).map(|at| (at + 1) * 0x9e37_79b9 + memory as u64).collect();
        machine.write(&region, &words).unwrap();
        filled.push((region, words));
        let first = Region { units: [Some(1), None, None, None, None], addr: 0, ..region };
        if about.words > 1 && first.check(&spec).is_ok() {
            machine.write(&first, &[7]).unwrap();
            let count = first.extents(&spec).iter().product::<u32>() as usize;
            filled.push((first, vec![7; count]));
        }
    }
    filled
}

#[test]
fn every_memory_comes_back() {
    for name in ["mini", "mncore2"] {
        let mut one = machine(name);
        let filled = fill(&mut one);
        let bytes = one.save_state().unwrap();
        // Only what is not zero takes room.
        assert!(bytes.len() < one.spec().memories.iter().map(|m| m.words as usize).sum::<usize>() * 8 * 64);
        let mut two = machine(name);
        let stale = Region { memory: 0, units: [None; 5], addr: 5, count: 1 };
        two.write(&stale, &[99]).unwrap();
        two.load_state(&bytes).unwrap();
        for (region, words) in filled {
            assert_eq!(two.read(&region).unwrap(), words, "{name}: {region:?}");
        }
        assert!(two.read(&stale).unwrap().iter().all(|word| *word == 0));
        assert_eq!(two.save_state().unwrap(), bytes);
    }
}

#[test]
fn other_machines_and_damaged_states_are_refused() {
    let mut mini = machine("mini");
    let filled = fill(&mut mini);
    let bytes = mini.save_state().unwrap();
    let other = machine("mncore2").load_state(&bytes).unwrap_err();
    assert_eq!(other.code(), Code::WrongSpec);
    let state = |change: &dyn Fn(&mut Vec<u8>)| {
        let mut changed = bytes.clone();
        change(&mut changed);
        changed
    };
    let damaged = [
        Vec::new(),
        b"nop\n".to_vec(),
        bytes[..8].to_vec(),
        state(&|bytes| bytes.truncate(bytes.len() - 1)),
        state(&|bytes| bytes.truncate(100)),
        state(&|bytes| bytes.push(0)),
        state(&|bytes| bytes[7] ^= 3),
        state(&|bytes| bytes[45] ^= 1),
        state(&|bytes| *bytes.last_mut().unwrap() ^= 1),
    ];
    for (at, bytes) in damaged.iter().enumerate() {
        assert_eq!(mini.load_state(bytes).unwrap_err().code(), Code::SavedState, "{at}");
    }
    // The machine is as it was.
    for (region, words) in filled {
        assert_eq!(mini.read(&region).unwrap(), words);
    }
}

//! One kernel for callgrind. `guard KERNEL` runs it, and only calls of [`counted`] count. benches/guard.py compares.
//! Without a kernel the names are printed.

#![allow(clippy::unwrap_used, missing_docs)]

use emu2::asm::{assemble, Policy};
use emu2::exec::{AssumedHost, Engine};
use emu2::machine::{Machine, Region};
use emu2::spec::{LevelName, Spec, Unit};
use std::sync::Arc;

/// Steps of a region. Lowering and the last forwarding update count too, as in any program.
const STEPS: usize = 32;

/// Name, lines, and the fixed bits and the free bits of every lane, so that numbers lie between 1 and 4.
const KERNELS: [(&str, &str, u64, u64); 5] = [
    ("long_add", "ladd $lm0v $ln0v $lr0v", 0, u64::MAX),
    ("fvfma", "fvfma $lm0v $ln0v $lr0v $ls0v", 0x3F80_0000_3F80_0000, 0x807F_FFFF_807F_FFFF),
    (
        "dvfma",
        "dvfmau $lm0v $ln0v $lr0v $nowrite\ndvfmad $lm0v $ln0v $mauf $ls0v",
        0x3FF0_0000_0000_0000,
        0x800F_FFFF_FFFF_FFFF,
    ),
    ("hmfma", "hmfma $lx $lm0v $llr0v $lls0v", 0x3E00_3E00_3E00_3E00, 0x81FF_81FF_81FF_81FF),
    ("l1bmrdfadd", "l1bmrdfadd $lm0v $lb0", 0x3FF0_0000_0000_0000, 0x800F_FFFF_FFFF_FFFF),
];

/// callgrind collects the calls of this function, by its name.
#[inline(never)]
fn counted(run: &mut dyn FnMut()) {
    run();
}

fn main() {
    let Some(wanted) = std::env::args().skip(1).find(|argument| !argument.starts_with('-')) else {
        KERNELS.iter().for_each(|(name, ..)| println!("{name}"));
        return;
    };
    let (_, lines, fixed, free) = *KERNELS.iter().find(|(name, ..)| *name == wanted).unwrap();
    let spec = Arc::new(Spec::load("mncore2").unwrap());
    let mut machine = Machine::new(spec.clone());
    let mut state = 1u64;
    let mut random = || {
        state = state.wrapping_mul(0x5851_F42D_4C95_7F2D).wrapping_add(0x1405_7B7E_F767_814F);
        (state ^ state >> 33) & free | fixed
    };
    for (memory, entry) in spec.memories.iter().enumerate() {
        if entry.level == LevelName::Pe && matches!(entry.unit, Unit::Word | Unit::Matrix) {
            let count = entry.words.min(16);
            let region = Region { memory, units: [None; 5], addr: 0, count };
            let data: Vec<u64> = (0..count * spec.units(entry.level)).map(|_| random()).collect();
            machine.write(&region, &data).unwrap();
        }
    }
    let program = assemble(&format!("{lines}\n").repeat(STEPS), "guard.vsm", &spec, Policy::Run).unwrap();
    let mut engine = Engine::new(spec);
    let mut run = || engine.run(&mut machine, &program, &mut AssumedHost, &mut |_, _| Ok(())).unwrap();
    // Work that is done once per program text, such as index maps, is not counted.
    run();
    counted(&mut run);
}

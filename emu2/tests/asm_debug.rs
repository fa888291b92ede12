//! What debug statements print of the PEs' registers.

use emu2::asm::{assemble, Policy};
use emu2::machine::Machine;
use emu2::spec::Spec;
use std::sync::Arc;

fn lines(text: &str) -> Vec<String> {
    let spec = Arc::new(Spec::load("mini").unwrap());
    let program = assemble(text, "test.vsm", &spec, Policy::Check).unwrap_or_else(|e| panic!("{e}"));
    let mut lines = Vec::new();
    let mut machine = Machine::new(spec);
    emu2::report::run(&mut machine, &program, &mut |line| {
        lines.push(line.to_string());
        Ok(())
    })
    .unwrap_or_else(|e| panic!("{}", e.diagnostic));
    lines
}

/// Every entry has a line per cycle, all under the entry's number.
#[test]
fn mask_registers() {
    let text = "d set $lm0p1 3 00000000000000010000000000000000000000000000FFFF\n\
                lpassa $lm0v $omr1\n\
                spassa $lm0v $omr2\n\
                d get $omr1n0c0b0m0p1 2 # two entries\n";
    let values = [[0, 15, 0, 15], [14, 15, 14, 15]];
    let mut expected = Vec::new();
    for (entry, cycles) in (1..).zip(values) {
        for value in cycles {
            let place = format!("DEBUG-OMR(n0c0b0m0p1,{entry})");
            expected.push(format!("{place}:Mask{{{value}}} #d get $omr1n0c0b0m0p1 2"));
        }
    }
    assert_eq!(lines(text), expected);
}

/// A row of a matrix register as a PE holds it (guess).
#[test]
fn matrix_registers() {
    let text = "d set $lm0m1p2 2 40000000000000003F80000000000000\n\
                fmwrite $lm0v $ly6\n\
                d getf $ly6n0c0b0m1p2 2\n";
    let expected = [
        "DEBUG-MATY(n0c0b0m1p2,6):(2, 0) (0x40000000, 0x00000000) #d getf $ly6n0c0b0m1p2 2",
        "DEBUG-MATY(n0c0b0m1p2,7):(1, 0) (0x3f800000, 0x00000000) #d getf $ly6n0c0b0m1p2 2",
    ];
    assert_eq!(lines(text), expected);
}

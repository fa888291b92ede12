//! Every example of the spec runs on every built-in machine and leaves the bits that it promises.

use emu2::asm::{assemble, parse_location, Policy};
use emu2::machine::{Machine, Region};
use emu2::spec::Spec;
use std::sync::Arc;

#[test]
fn examples_leave_their_bits() {
    for name in emu2::spec::built_in_names() {
        let spec = Arc::new(Spec::load(&name).unwrap());
        for entry in spec.entries() {
            for (number, example) in entry.examples.iter().enumerate() {
                let title = format!("{} {} example {number} on {name}", entry.family, entry.name);
                let program =
                    assemble(&example.text, &title, &spec, Policy::Check).unwrap_or_else(|e| panic!("{title}\n{}", e));
                let mut machine = Machine::new(spec.clone());
                emu2::report::run(&mut machine, &program, &mut |_| Ok(()))
                    .unwrap_or_else(|e| panic!("{title}: {}", e.diagnostic));
                let expect = example.expect_on.get(&name).unwrap_or(&example.expect);
                for (place, words) in expect {
                    let location = parse_location(place, &spec).unwrap_or_else(|e| panic!("{title}: {}", e.message));
                    for (k, word) in words.iter().enumerate() {
                        let place_of = emu2::exec::debug_place;
                        let (addr, _) = place_of(&spec, location.memory, location.words, location.address, k as u64);
                        let region = Region { memory: location.memory, units: location.units, addr, count: 1 };
                        let got = machine.read(&region).unwrap();
                        assert_eq!(format!("{:016X}", got[0]), *word, "{title}: {place} + {k}");
                    }
                }
            }
        }
    }
}

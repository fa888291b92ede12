//! Small programs with the bits that they must leave, on every machine on which they are legal.
//!
//! Files lie under `tests/data/vectors`. A line `# expect <place> = <words>` names a place as `d get` does, and the long
//! words from there on. `# machines: <names>` limits the machines.

use emu2::asm::{assemble, parse_location, Policy};
use emu2::machine::{Machine, Region};
use emu2::spec::{Spec, Unit};
use rayon::prelude::*;
use std::path::Path;
use std::sync::Arc;

fn check(title: &str, text: &str, spec: &Arc<Spec>) -> usize {
    let program = assemble(text, title, spec, Policy::Check).unwrap_or_else(|e| panic!("{}", e));
    let mut machine = Machine::new(spec.clone());
    emu2::report::run(&mut machine, &program, &mut |_| Ok(())).unwrap_or_else(|e| panic!("{title}: {}", e.diagnostic));
    let mut checked = 0;
    for line in text.lines().filter_map(|l| l.strip_prefix("# expect ")) {
        let (place, words) = line.split_once(" = ").unwrap_or_else(|| panic!("{title}: {line}"));
        let location = parse_location(place, spec).unwrap_or_else(|e| panic!("{title}: {}", e.message));
        let mut got = Vec::new();
        for k in 0..words.split(' ').count() as u64 {
            let at = |k| emu2::exec::debug_place(spec, location.memory, location.words, location.address, k).0;
            // The words of a mask register are its cycles.
            let mask = spec.memories[location.memory].unit == Unit::Mask;
            let addr = if mask { at(0) + k } else { at(k) };
            let region = Region { memory: location.memory, units: location.units, addr, count: 1 };
            let values = machine.read(&region).unwrap_or_else(|e| panic!("{title}: {e}"));
            assert!(values.iter().all(|v| *v == values[0]), "{title}: {place} differs between units");
            got.push(format!("{:016X}", values[0]));
        }
        assert_eq!(got.join(" "), words, "{title}: {place}");
        checked += 1;
    }
    checked
}

#[test]
fn vectors_leave_their_bits() {
    let specs: Vec<_> = emu2::spec::built_in_names().iter().map(|n| Arc::new(Spec::load(n).unwrap())).collect();
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/data/vectors");
    let paths: Vec<_> = std::fs::read_dir(folder).unwrap().map(|e| e.unwrap().path()).collect();
    assert!(paths.len() > 100, "{} files", paths.len());
    paths.par_iter().for_each(|path| {
        let text = std::fs::read_to_string(path).unwrap();
        let only = text.lines().find_map(|l| l.strip_prefix("# machines: "));
        for spec in &specs {
            let name = &spec.machine.name;
            if only.is_some_and(|names| !names.split(' ').any(|n| n == name)) {
                continue;
            }
            let title = format!("{} on {name}", path.file_name().unwrap().to_string_lossy());
            assert!(check(&title, &text, spec) > 0, "{title} expects nothing");
        }
    });
}

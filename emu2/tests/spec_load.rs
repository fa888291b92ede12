//! Loading of specs: the built-in ones, and every file under `tests/data/spec`.

mod support;

use emu2::error::Code;
use emu2::spec::Spec;
use std::collections::HashSet;
use support::expect::expected;

#[test]
fn built_in_specs_load() {
    let names = emu2::spec::built_in_names();
    assert!(names.len() >= 2, "{names:?}");
    for name in names {
        let spec = Spec::load(&name).unwrap_or_else(|e| panic!("{name}: {e}"));
        assert_eq!(spec.machine.name, name);
    }
}

/// A machine that nobody built has the name of its file, and no built-in name stands for the whole folder.
#[test]
fn what_if_specs_load() {
    let names = emu2::spec::what_if_names();
    assert!(names.len() >= 5, "{names:?}");
    for name in &names {
        let spec = Spec::load(name).unwrap_or_else(|e| panic!("{name}: {e}"));
        assert!(name.ends_with(&format!("/{}", spec.machine.name)), "{name}");
    }
    assert!(!emu2::spec::built_in_names().iter().any(|name| name.contains("what_if")));
    for wrong in ["what_if", "what_if/none", "large_lm"] {
        assert_eq!(Spec::load(wrong).unwrap_err().code().id(), "S0011", "{wrong}");
    }
}

#[test]
fn must_pass_files_load() {
    for path in support::paths("spec/must_pass") {
        if let Err(e) = Spec::load(path.to_str().unwrap()) {
            panic!("{}: {e}", path.display());
        }
    }
}

/// Each file names the code and a part of the message with which it must be refused.
#[test]
fn must_fail_files_are_refused_for_their_reason() {
    let mut seen = HashSet::new();
    for path in support::paths("spec/must_fail") {
        let expected = expected(&std::fs::read(&path).unwrap()).unwrap();
        let (code, message) = expected.split_once(' ').unwrap();
        let error = match Spec::load(path.to_str().unwrap()) {
            Ok(_) => panic!("{} loads", path.display()),
            Err(e) => e,
        };
        assert_eq!(error.code().id(), code, "{}: {error}", path.display());
        assert!(error.0.message.contains(message), "{}: {error}", path.display());
        seen.insert(code.to_string());
    }
    let missing: Vec<_> =
        Code::ALL.iter().map(|c| c.id()).filter(|id| id.starts_with('S') && !seen.contains(*id)).collect();
    // A spec that does not exist has no file.
    assert_eq!(missing, ["S0011"]);
    assert_eq!(Spec::load("no/such/spec").unwrap_err().code().id(), "S0011");
}

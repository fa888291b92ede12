//! Loading of the built-in specs.

use emu2::spec::Spec;

#[test]
fn built_in_specs_load() {
    for name in emu2::spec::built_in_names() {
        if let Err(error) = Spec::load(&name) {
            panic!("{name}: {error}");
        }
    }
}

//! Apps without Python: the stored file runs, and no damage of its bytes makes the reader panic.

use emu2::app::{App, Loaded};
use emu2::interrupt::Interrupt;
use std::path::PathBuf;

fn stored(name: &str) -> Vec<u8> {
    let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../tests/data/apps");
    std::fs::read(folder.join(name)).unwrap()
}

#[test]
fn the_stored_app_runs() {
    let app = App::read(&stored("format4_places.app")).unwrap();
    assert_eq!(app.target(), "mini");
    let mut loaded = Loaded::new(app, &Interrupt::default()).unwrap();
    // The stored set has the results beside the inputs, and an array that is no input is refused.
    let refused = loaded.run(&stored("format4_places.npz")).unwrap_err();
    assert_eq!(refused.code().id(), "M0004");
}

#[test]
fn every_cut_is_refused() {
    let whole = stored("format4_places.app");
    for length in 0..whole.len() {
        assert_eq!(App::read(&whole[..length]).unwrap_err().code().id(), "M0001", "{length}");
    }
}

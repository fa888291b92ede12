//! Code that tests on files share: the folders under `tests/data`, the line that says how a file must be refused, and
//! random changes of files.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, dead_code)]

pub(crate) mod changes;
pub(crate) mod expect;

use std::path::PathBuf;

/// The files of a folder under `tests/data`, in the order of their names. There is at least one.
pub(crate) fn paths(folder: &str) -> Vec<PathBuf> {
    let root: PathBuf = [env!("CARGO_MANIFEST_DIR"), "..", "tests", "data", folder].iter().collect();
    let mut all: Vec<_> = std::fs::read_dir(&root).unwrap().map(|e| e.unwrap().path()).collect();
    all.sort();
    assert!(!all.is_empty(), "{}", root.display());
    all
}

/// The same files with their names and contents.
pub(crate) fn files(folder: &str) -> Vec<(String, Vec<u8>)> {
    let named = |p: &PathBuf| (p.file_name().unwrap().to_string_lossy().into_owned(), std::fs::read(p).unwrap());
    paths(folder).iter().map(named).collect()
}

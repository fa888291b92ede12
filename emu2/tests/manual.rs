//! `docs/isa` is what the spec says. `EMU2_BLESS=1 cargo test --package emu2 --test manual` writes it anew.

use emu2::report::manual;
use emu2::spec::Spec;
use std::path::Path;

#[test]
fn docs_isa_is_fresh() {
    let spec = Spec::load("mncore2").unwrap();
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/isa");
    let bless = std::env::var_os("EMU2_BLESS").is_some();
    if bless {
        std::fs::create_dir_all(&folder).unwrap();
    }
    let pages = manual::pages(&spec);
    for page in &pages {
        let path = folder.join(&page.name);
        if bless {
            std::fs::write(&path, &page.text).unwrap();
        }
        let written = std::fs::read_to_string(&path).unwrap_or_default();
        assert!(written == page.text, "docs/isa/{} is stale: run `make manual`", page.name);
    }
    let known: Vec<_> = pages.iter().map(|p| p.name.clone()).collect();
    for entry in std::fs::read_dir(&folder).unwrap() {
        let name = entry.unwrap().file_name().into_string().unwrap();
        assert!(known.contains(&name), "docs/isa/{name} belongs to no page");
    }
}

#[test]
fn every_mnemonic_has_a_page_that_shows_it() {
    let spec = Spec::load("mncore2").unwrap();
    for mnemonic in spec.mnemonics.keys() {
        let page = manual::page(&spec, mnemonic).unwrap_or_else(|| panic!("`{mnemonic}` has no page"));
        for part in ["Syntax", "Timing", "Evidence: ", "Example"] {
            assert!(page.contains(part), "the page of `{mnemonic}` has no {part}");
        }
    }
    assert_eq!(manual::page(&spec, "fvdiv"), None);
}

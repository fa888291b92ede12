//! `docs/isa` must be the manual of the spec. `EMU2_BLESS=1 cargo test --package emu2 --test manual` writes it anew.

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

/// The pictures of maps, typed from the manual's formulas.
#[test]
fn pages_show_what_moves() {
    let spec = Spec::load("mncore2").unwrap();
    let table = [
        ("l2bmb2", "L1BM 2, 3 [0..15]  <- L2BM 0.0 [16..31]"),
        ("l2bmd", "L1BM 7 [24..31] <- L2BM 0.0 [248..255]"),
        ("mvd", "L2BM 3.1 [0..15] <- PDM 0 [112..127]"),
        ("mvb4", "L2BM 0.1 to 3.1 [16..31] <- DRAM 1 [16..31]"),
        ("mvrdfadd", "PDM 0 [0..63] <- L2BM 0.0 [0..63] with L2BM 0.1 [0..63] with .. L2BM 3.1 [0..63] (8 elements)"),
        ("l2bmr2lor", "<- L1BM 0 [0..15] with L1BM 1 [0..15]"),
        ("l1bmp", "MAB 0 to 15 PE 0..3 cycle 0 <- L1BM 0 [0]"),
    ];
    for (name, row) in table {
        let page = manual::page(&spec, name).unwrap();
        assert!(page.contains(row), "{name}: {page}");
    }
    for transfer in &spec.transfers {
        assert!(manual::page(&spec, &transfer.name).unwrap().contains(" <- "), "{}", transfer.name);
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

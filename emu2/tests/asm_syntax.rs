//! The letters of the language are those of the spec.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use emu2::asm::{assemble, Policy};
use emu2::spec::Spec;
use emu2::word::print;
use std::sync::Arc;

const OTHER_LETTERS: &str = r#"extends = "mini"
[syntax]
stride = "w"
indirect = "q"
modify = "k"
extend = "x"
reduce = "y"
mask_assertions = ["z"]
mv_size = "a"
mv_tag = "b"
mv_priority = "c"
mv_table = "ef"
tag_digits = 3
block_float = "v"
"#;

/// By line, first with the letters of MN-Core 2 and then with other letters.
const LINES: [(&str, &str); 9] = [
    ("lpassa $lm0v $lr0v4", "lpassa $lm0w $lr0w4"),
    ("lpassa $lmt4 $lr0v", "lpassa $lmq4 $lr0w"),
    ("lpassa $lm0j1 $lr0v", "lpassa $lm0k1 $lr0w"),
    ("dvadd $m0ve $ln0v $ls0v", "dvadd $m0wx $ln0w $ls0w"),
    ("hpassa $llm0vr $lr0v", "hpassa $llm0wy $lr0w"),
    ("mvp/n64i01p1 $p0@0 $d0@0", "mvp/a64b001c1 $p0@0 $d0@0"),
    ("mvp/n64nd2 $di0@0 $p0@0", "mvp/a64ef2 $di0@0 $p0@0"),
    ("nop; wait i01", "nop; wait b001"),
    ("d getbh $lm0n0c0b0m0p0 1", "d getvh $lm0n0c0b0m0p0 1"),
];

#[test]
fn letters_come_from_the_spec() {
    let folder = std::path::Path::new(env!("CARGO_TARGET_TMPDIR"));
    let path = folder.join("other_letters.toml");
    std::fs::write(&path, OTHER_LETTERS).unwrap();
    let specs = [Spec::load("mini").unwrap(), Spec::load(path.to_str().unwrap()).unwrap()].map(Arc::new);
    for (usual, other) in LINES {
        for (spec, own, foreign) in [(&specs[0], usual, other), (&specs[1], other, usual)] {
            let program = assemble(own, "own", spec, Policy::Run).unwrap_or_else(|e| panic!("{own}: {e}"));
            assert_eq!(print(&program).trim_end(), own);
            assert!(assemble(foreign, "foreign", spec, Policy::Run).is_err(), "{foreign}");
        }
    }
    for (spec, mask) in [(&specs[0], 't'), (&specs[1], 'z')] {
        assert!(assemble(&format!("lpassa $lm0 $lr0/1000{mask}"), "mask", spec, Policy::Run).is_ok());
    }
    assert!(assemble("lpassa $lm0 $lr0/1000t", "mask", &specs[1], Policy::Run).is_err());
}

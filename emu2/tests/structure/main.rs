//! The shape of the sources: no circle between Rust files, and no Rust or spec file that is too long.
//!
//! A file points at another one if it names an item that is defined there. A path that leads through `pub use` points at
//! the file of the definition. A `mod` declaration or a `pub use` alone points at nothing.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod modules;

use modules::{leaves, Crate, Target};
use proc_macro2::{TokenStream, TokenTree};
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use syn::visit::{self, Visit};

/// Longer files are hard to read.
const MOST_LINES: usize = 400;

/// The roots of the crates.
const CRATES: [&str; 8] = [
    "emu2/src/lib.rs",
    "emu2/capi/src/lib.rs",
    "emu2/python/src/lib.rs",
    "emu2/sorting/src/lib.rs",
    "pycompiler/annealing/src/lib.rs",
    "pycompiler/choosing/src/lib.rs",
    "pycompiler/packing/src/lib.rs",
    "pycompiler/switches/src/lib.rs",
];

/// Folders whose files have a limit, the ending of these files, and how many there are at least.
const FOLDERS: [(&str, &str, usize); 7] = [
    ("emu2", "rs", 100),
    ("pycompiler/annealing", "rs", 1),
    ("pycompiler/choosing", "rs", 1),
    ("pycompiler/packing", "rs", 1),
    ("pycompiler/switches", "rs", 1),
    ("benches", "rs", 1),
    ("isa_specs", "toml", 10),
];

/// For each file, the files at which it points, each with one path that does so.
type Arrows = BTreeMap<usize, BTreeMap<usize, String>>;

fn top() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap().to_path_buf()
}

/// Collects paths.
#[derive(Default)]
struct Paths(Vec<Vec<String>>);

impl<'ast> Visit<'ast> for Paths {
    fn visit_path(&mut self, path: &'ast syn::Path) {
        if path.leading_colon.is_none() {
            self.0.push(path.segments.iter().map(|s| s.ident.to_string()).collect());
        }
        visit::visit_path(self, path);
    }

    fn visit_macro(&mut self, called: &'ast syn::Macro) {
        visit::visit_macro(self, called);
        self.tokens(called.tokens.clone());
    }

    fn visit_item_use(&mut self, import: &'ast syn::ItemUse) {
        leaves(&import.tree, Vec::new(), &mut |path, _| self.0.push(path));
    }

    /// Visibility paths are not uses.
    fn visit_visibility(&mut self, _: &'ast syn::Visibility) {}
}

impl Paths {
    /// Words in the arguments of a macro, joined where `::` stands between them. Fields and methods are left out.
    fn tokens(&mut self, tokens: TokenStream) {
        let mut path: Vec<String> = Vec::new();
        let mut before = String::new();
        for token in tokens {
            match token {
                TokenTree::Ident(word) => {
                    if before != "::" {
                        self.0.push(std::mem::take(&mut path));
                    }
                    if before != "." {
                        path.push(word.to_string());
                    }
                    before.clear();
                }
                TokenTree::Punct(sign) if sign.as_char() == ':' && before == ":" => before = "::".into(),
                TokenTree::Punct(sign) => before = sign.to_string(),
                TokenTree::Group(group) => {
                    self.0.push(std::mem::take(&mut path));
                    self.tokens(group.stream());
                    before.clear();
                }
                TokenTree::Literal(_) => before.clear(),
            }
        }
        self.0.push(path);
    }
}

fn arrows(all: &Crate) -> Arrows {
    let mut arrows = Arrows::new();
    let mut point = |module: usize, path: &[String]| {
        let from = all.modules[module].file;
        if let Some(Target::File(to)) = all.resolve(module, path).filter(|t| *t != Target::File(from)) {
            arrows.entry(from).or_default().entry(to).or_insert_with(|| path.join("::"));
        }
    };
    for (at, module) in all.modules.iter().enumerate() {
        module.imports.iter().filter(|i| !i.handed_on && i.name.is_some()).for_each(|i| point(at, &i.path));
    }
    for (module, item) in &all.bodies {
        let mut paths = Paths::default();
        paths.visit_item(item);
        paths.0.iter().for_each(|path| point(*module, path));
    }
    arrows
}

/// The files that can be reached from one.
fn reached(arrows: &Arrows, from: usize) -> BTreeSet<usize> {
    let mut found = BTreeSet::new();
    let mut open = vec![from];
    while let Some(at) = open.pop() {
        open.extend(arrows.get(&at).into_iter().flat_map(|to| to.keys()).filter(|to| found.insert(**to)));
    }
    found
}

/// Sets of files in which each file leads to all others, with the paths between them.
fn circles(all: &Crate, arrows: &Arrows, root: &Path) -> Vec<String> {
    let reach: Vec<BTreeSet<usize>> = (0..all.files.len()).map(|at| reached(arrows, at)).collect();
    let name = |at: usize| all.files[at].strip_prefix(root).unwrap().display().to_string();
    let mut found = Vec::new();
    let mut done = BTreeSet::new();
    for at in 0..all.files.len() {
        let circle: BTreeSet<usize> = reach[at].iter().copied().filter(|to| reach[*to].contains(&at)).collect();
        if circle.len() < 2 || !done.insert(circle.clone()) {
            continue;
        }
        let mut text = format!("a circle of {} files:", circle.len());
        for (from, to) in arrows.iter().filter(|(from, _)| circle.contains(from)) {
            for (to, path) in to.iter().filter(|(to, _)| circle.contains(to)) {
                text.push_str(&format!("\n  {} -> {} by {path}", name(*from), name(*to)));
            }
        }
        found.push(text);
    }
    found
}

#[test]
fn files_have_no_circles() {
    let mut found = Vec::new();
    for root in CRATES {
        let all = Crate::read(&top().join(root));
        let arrows = arrows(&all);
        assert!(all.files.len() < 5 || arrows.values().map(BTreeMap::len).sum::<usize>() > all.files.len(), "{root}");
        found.extend(circles(&all, &arrows, &top()));
    }
    assert!(found.is_empty(), "{}", found.join("\n\n"));
}

/// Where `unsafe` may stand: the clones of kernels, and the edge to C.
const UNSAFE: [&str; 2] = ["emu2/src/num/level.rs", "emu2/capi/src/"];

#[test]
fn unsafe_code_stays_in_its_place() {
    let mut files = Vec::new();
    for (folder, ending, _) in FOLDERS.iter().filter(|(_, ending, _)| *ending == "rs") {
        files_below(&top().join(folder), ending, &mut files);
    }
    let allows = |path: &PathBuf| std::fs::read_to_string(path).unwrap().contains("allow(unsafe_code");
    let named = |path: &PathBuf| path.strip_prefix(top()).unwrap().to_str().unwrap().to_string();
    let elsewhere: Vec<String> = files
        .iter()
        .filter(|path| allows(path))
        .map(named)
        .filter(|name| !UNSAFE.iter().any(|place| name.starts_with(place)) && !name.contains("/tests/"))
        .collect();
    assert!(elsewhere.is_empty(), "{elsewhere:?}");
}

/// All files with an ending below a folder, without build outputs.
fn files_below(folder: &Path, ending: &str, found: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(folder).unwrap().map(|e| e.unwrap().path()) {
        if entry.is_dir() && entry.file_name().is_none_or(|name| name != "target") {
            files_below(&entry, ending, found);
        } else if entry.extension().is_some_and(|e| e == ending) {
            found.push(entry);
        }
    }
}

#[test]
fn files_are_short() {
    let mut files = Vec::new();
    for (folder, ending, least) in FOLDERS {
        let before = files.len();
        files_below(&top().join(folder), ending, &mut files);
        assert!(files.len() >= before + least, "{folder}: {} files", files.len() - before);
    }
    let lines = |path: &PathBuf| std::fs::read_to_string(path).unwrap().lines().count();
    let long: Vec<String> = files
        .iter()
        .map(|path| (lines(path), path))
        .filter(|(lines, _)| *lines > MOST_LINES)
        .map(|(lines, path)| format!("{} has {lines} lines", path.strip_prefix(top()).unwrap().display()))
        .collect();
    assert!(long.is_empty(), "longer than {MOST_LINES} lines: {long:#?}");
}

/// The circles that the test finds, on sources made for it.
#[test]
fn circles_are_found() {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("structure");
    let table: [(&str, &[(&str, &str)], usize); 8] = [
        (
            "two files",
            &[("a.rs", "use crate::b::B;\npub struct A(B);"), ("b.rs", "pub type B = Option<super::a::A>;")],
            1,
        ),
        ("one way", &[("a.rs", "use crate::b::B;\npub struct A(B);"), ("b.rs", "pub struct B;")], 0),
        ("a call", &[("a.rs", "pub fn a() { crate::b::b() }"), ("b.rs", "use super::*;\npub fn b() { a::a() }")], 1),
        (
            "in a macro",
            &[
                ("a.rs", "pub fn a() { assert!(crate::b::b()) }"),
                ("b.rs", "pub fn b() -> bool { crate::a::a(); true }"),
            ],
            1,
        ),
        (
            "declared in a macro",
            &[("a.rs", "m! { pub fn a() { crate::b::b() } }"), ("b.rs", "pub fn b() { crate::a::a() }")],
            1,
        ),
        (
            "parent and child",
            &[("a.rs", "mod c;\npub struct A(c::C);"), ("a/c.rs", "pub struct C(Box<super::A>);"), ("b.rs", "")],
            1,
        ),
        (
            "a facade",
            &[
                ("a.rs", "mod c;\nmod d;\npub use c::C;\npub use d::D;"),
                ("a/c.rs", "pub struct C;"),
                ("a/d.rs", "pub struct D(super::C);"),
                ("b.rs", ""),
            ],
            0,
        ),
        (
            "through a facade",
            &[
                ("a.rs", "mod c;\npub use c::C;"),
                ("a/c.rs", "pub struct C(crate::b::B);"),
                ("b.rs", "pub struct B(Option<Box<crate::a::C>>);"),
            ],
            1,
        ),
    ];
    for (at, (what, files, count)) in table.into_iter().enumerate() {
        let root = folder.join(at.to_string());
        std::fs::create_dir_all(root.join("a")).unwrap();
        std::fs::write(root.join("lib.rs"), "mod a;\nmod b;").unwrap();
        files.iter().for_each(|(name, text)| std::fs::write(root.join(name), text).unwrap());
        let all = Crate::read(&root.join("lib.rs"));
        assert_eq!(circles(&all, &arrows(&all), &root).len(), count, "{what}");
    }
}

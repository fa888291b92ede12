//! The modules of a crate as its sources declare them, and which file a path leads to.

use std::collections::{HashMap, HashSet};
use std::path::{Path, PathBuf};
use syn::{Item, UseTree, Visibility};

/// A name that `use` brings into a module. Without a name, everything to which the path leads.
#[derive(Debug)]
pub(crate) struct Import {
    pub(crate) path: Vec<String>,
    pub(crate) name: Option<String>,
    /// `pub use` of any kind. It hands a name on, which is not a use of it.
    pub(crate) handed_on: bool,
}

#[derive(Debug, Default)]
pub(crate) struct Module {
    pub(crate) file: usize,
    parent: Option<usize>,
    children: HashMap<String, usize>,
    items: HashSet<String>,
    pub(crate) imports: Vec<Import>,
}

/// The target of a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Target {
    Module(usize),
    /// An item, in this file.
    File(usize),
}

/// A crate: its files and modules, the root first.
#[derive(Default)]
pub(crate) struct Crate {
    pub(crate) files: Vec<PathBuf>,
    pub(crate) modules: Vec<Module>,
    /// Items by the module in which they stand, without modules and imports.
    pub(crate) bodies: Vec<(usize, Item)>,
}

impl Crate {
    /// Reads the crate whose root is `root`.
    pub(crate) fn read(root: &Path) -> Crate {
        let mut all = Crate::default();
        all.file(root, None, root.parent().unwrap().to_path_buf());
        all
    }

    fn file(&mut self, path: &Path, parent: Option<usize>, folder: PathBuf) -> usize {
        let text = std::fs::read_to_string(path).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
        let syntax = syn::parse_file(&text).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
        self.files.push(path.to_path_buf());
        self.module(self.files.len() - 1, parent, syntax.items, &folder)
    }

    fn module(&mut self, file: usize, parent: Option<usize>, items: Vec<Item>, folder: &Path) -> usize {
        let at = self.modules.len();
        self.modules.push(Module { file, parent, ..Module::default() });
        for item in items {
            if let Item::Mod(inner) = item {
                let (name, below) = (inner.ident.to_string(), folder.join(inner.ident.to_string()));
                let child = match inner.content {
                    Some((_, items)) => self.module(file, Some(at), items, &below),
                    None => {
                        let paths = [folder.join(format!("{name}.rs")), below.join("mod.rs")];
                        let path = paths.iter().find(|p| p.is_file()).unwrap_or_else(|| panic!("no file of {name}"));
                        self.file(path, Some(at), below)
                    }
                };
                self.modules[at].children.insert(name, child);
            } else if let Item::Use(import) = item {
                let handed_on = !matches!(import.vis, Visibility::Inherited);
                leaves(&import.tree, Vec::new(), &mut |path, name| {
                    self.modules[at].imports.push(Import { path, name, handed_on });
                });
            } else {
                self.modules[at].items.extend(names(&item));
                self.bodies.push((at, item));
            }
        }
        at
    }

    /// The target of a path in a module. None: an item of another crate, or a local name.
    pub(crate) fn resolve(&self, module: usize, path: &[String]) -> Option<Target> {
        self.walk(module, path, &mut HashSet::new())
    }

    fn walk(&self, module: usize, path: &[String], seen: &mut HashSet<(usize, String)>) -> Option<Target> {
        let (first, rest) = path.split_first()?;
        let mut target = match first.as_str() {
            "crate" => Target::Module(0),
            "self" => Target::Module(module),
            "super" => Target::Module(self.modules[module].parent?),
            name => self.lookup(module, name, seen)?,
        };
        for name in rest {
            target = match target {
                Target::Module(at) if name == "super" => Target::Module(self.modules[at].parent?),
                Target::Module(at) => self.lookup(at, name, seen)?,
                item => return Some(item),
            };
        }
        Some(target)
    }

    /// The target of a name in a module.
    fn lookup(&self, module: usize, name: &str, seen: &mut HashSet<(usize, String)>) -> Option<Target> {
        if !seen.insert((module, name.to_string())) {
            return None;
        }
        let at = &self.modules[module];
        if let Some(child) = at.children.get(name) {
            return Some(Target::Module(*child));
        }
        if at.items.contains(name) {
            return Some(Target::File(at.file));
        }
        let named = at.imports.iter().filter(|i| i.name.as_deref() == Some(name));
        if let Some(found) = named.into_iter().find_map(|i| self.walk(module, &i.path, seen)) {
            return Some(found);
        }
        at.imports.iter().filter(|i| i.name.is_none()).find_map(|i| match self.walk(module, &i.path, seen)? {
            Target::Module(of) => self.lookup(of, name, seen),
            Target::File(_) => None,
        })
    }
}

/// Calls `leaf` with path and name for every name in a `use`.
pub(crate) fn leaves(tree: &UseTree, mut path: Vec<String>, leaf: &mut dyn FnMut(Vec<String>, Option<String>)) {
    match tree {
        UseTree::Path(part) => {
            path.push(part.ident.to_string());
            leaves(&part.tree, path, leaf);
        }
        UseTree::Name(part) if part.ident == "self" => {
            let name = path.last().cloned();
            leaf(path, name);
        }
        UseTree::Name(part) => {
            path.push(part.ident.to_string());
            leaf(path, Some(part.ident.to_string()));
        }
        UseTree::Rename(part) => {
            if part.ident != "self" {
                path.push(part.ident.to_string());
            }
            leaf(path, Some(part.rename.to_string()));
        }
        UseTree::Glob(_) => leaf(path, None),
        UseTree::Group(group) => group.items.iter().for_each(|tree| leaves(tree, path.clone(), leaf)),
    }
}

/// The names that an item declares.
fn names(item: &Item) -> Vec<String> {
    let name = match item {
        Item::Const(i) => &i.ident,
        Item::Enum(i) => &i.ident,
        Item::Fn(i) => &i.sig.ident,
        Item::Static(i) => &i.ident,
        Item::Struct(i) => &i.ident,
        Item::Trait(i) => &i.ident,
        Item::Type(i) => &i.ident,
        Item::Union(i) => &i.ident,
        // A macro that declares items repeats the declarations, or ours name the type first.
        Item::Macro(i) => {
            let defined = i.ident.iter().map(ToString::to_string);
            return defined.chain(declared(i.mac.tokens.clone())).collect();
        }
        _ => return Vec::new(),
    };
    vec![name.to_string()]
}

/// Names that follow the keywords of declarations among tokens.
fn declared(tokens: proc_macro2::TokenStream) -> Vec<String> {
    const WORDS: [&str; 7] = ["fn", "struct", "enum", "const", "static", "type", "trait"];
    let words: Vec<String> = tokens.into_iter().map(|t| t.to_string()).collect();
    words.windows(2).filter(|w| WORDS.contains(&w[0].as_str())).map(|w| w[1].clone()).collect()
}

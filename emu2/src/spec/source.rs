//! Reads spec files, built-in or from disk, follows `extends`, and merges a spec over the one that it extends.

use crate::error::{Code, Error};
use crate::files;
use crate::interrupt::Interrupt;
use include_dir::{include_dir, Dir};
use indexmap::IndexMap;
use std::path::{Path, PathBuf};

static BUILT_IN: Dir<'_> = include_dir!("$CARGO_MANIFEST_DIR/../isa_specs");

/// The environment variable with folders, as in `PATH`, that are searched for a spec before the built-in ones.
const SEARCH_PATH: &str = "EMU2_SPEC_PATH";

/// A chain of `extends` longer than this is taken as a circle.
const MAX_EXTENDS: u32 = 8;

/// A file of a spec has at most this many bytes.
const FILE_LIMIT: u64 = 1 << 24;

/// A table of the spec and the file that it comes from.
#[derive(Clone, Debug)]
pub(super) struct Entry {
    pub(super) table: toml::Table,
    pub(super) origin: String,
}

/// All tables of a spec: `[section]` in `single`, and `[[section]]` by the `name` of the entry in `list`.
#[derive(Clone, Debug, Default)]
pub(super) struct Document {
    pub(super) single: IndexMap<String, Entry>,
    pub(super) list: IndexMap<String, IndexMap<String, Entry>>,
}

/// The folder of built-in machines that nobody built: a file each, which extends a real one.
const WHAT_IF: &str = "what_if";

/// The names of the specs that are part of this build.
pub fn built_in_names() -> Vec<String> {
    let names = BUILT_IN.dirs().filter_map(|d| Some(d.path().file_name()?.to_str()?.to_string()));
    names.filter(|name| name != WHAT_IF).collect()
}

/// The names of the machines of this build that nobody built, such as `what_if/large_lm`.
pub fn what_if_names() -> Vec<String> {
    let files = BUILT_IN.get_dir(WHAT_IF).map(|d| d.files().collect::<Vec<_>>()).unwrap_or_default();
    let stems = files.iter().filter_map(|f| f.path().file_stem()?.to_str());
    stems.map(|stem| format!("{WHAT_IF}/{stem}")).collect()
}

/// The text of one spec file. Messages call the file `name`.
struct File {
    name: String,
    text: String,
}

/// Where the files of a spec come from.
enum FileSource {
    BuiltIn(String),
    Disk(PathBuf),
}

fn find(name: &str, beside: Option<&Path>) -> Option<FileSource> {
    let beside = beside.map(|folder| folder.join(name)).filter(|p| p.exists());
    if let Some(path) = beside {
        return Some(FileSource::Disk(path));
    }
    let named = std::env::var_os(SEARCH_PATH).into_iter().flat_map(|p| std::env::split_paths(&p).collect::<Vec<_>>());
    if let Some(path) = named.map(|folder| folder.join(name)).find(|p| p.exists()) {
        return Some(FileSource::Disk(path));
    }
    if BUILT_IN.get_dir(name).is_some() && name != WHAT_IF || what_if_names().iter().any(|n| n == name) {
        return Some(FileSource::BuiltIn(name.to_string()));
    }
    let path = PathBuf::from(name);
    path.exists().then_some(FileSource::Disk(path))
}

fn read(source: &FileSource) -> Result<Vec<File>, Error> {
    let mut files = Vec::new();
    match source {
        FileSource::BuiltIn(name) => {
            let mut folder = BUILT_IN.get_dir(name).map(|d| d.files().collect::<Vec<_>>()).unwrap_or_default();
            folder.extend(BUILT_IN.get_file(format!("{name}.toml")));
            for file in folder.iter().filter(|f| f.path().extension().is_some_and(|e| e == "toml")) {
                let text = file.contents_utf8().unwrap_or_default().to_string();
                files.push(File { name: file.path().display().to_string(), text });
            }
        }
        FileSource::Disk(path) => {
            let mut paths = vec![path.clone()];
            if path.is_dir() {
                let entries = std::fs::read_dir(path).map_err(|e| unreadable(path, &e))?;
                paths = entries.filter_map(|e| Some(e.ok()?.path())).collect();
                paths.retain(|p| p.extension().is_some_and(|e| e == "toml"));
            }
            for path in paths {
                let bytes = files::read(&path, FILE_LIMIT, &Interrupt::default())?;
                let text = String::from_utf8(bytes)
                    .map_err(|e| Error::new(Code::NotUtf8, format!("{}: {}", path.display(), e.utf8_error())))?;
                files.push(File { name: path.display().to_string(), text });
            }
        }
    }
    sorting::sort_by(&mut files, |a, b| a.name.cmp(&b.name));
    Ok(files)
}

fn unreadable(path: &Path, error: &std::io::Error) -> Error {
    Error::new(Code::Unreadable, format!("{}: {error}", path.display()))
}

/// The files of the spec `name` and of the specs that it extends, its own first: the name of each, which is its path if it
/// lies on disk, and its text.
///
/// # Errors
///
/// If a spec is not found, or a file of it cannot be read.
pub fn texts(name: &str) -> Result<Vec<(String, String)>, Error> {
    let mut found = Vec::new();
    let (mut wanted, mut beside) = (Some(name.to_string()), None::<PathBuf>);
    for _ in 0..=MAX_EXTENDS {
        let Some(own) = wanted.take() else { break };
        let source =
            find(&own, beside.as_deref()).ok_or_else(|| Error::new(Code::SpecNotFound, format!("no spec `{own}`")))?;
        for file in read(&source)? {
            let parent = file.text.parse::<toml::Table>().ok().and_then(|table| table.get("extends").cloned());
            wanted = parent.and_then(|value| Some(value.as_str()?.to_string())).or(wanted);
            found.push((file.name, file.text));
        }
        beside = match source {
            FileSource::Disk(path) => path.parent().map(Path::to_path_buf),
            FileSource::BuiltIn(_) => None,
        };
    }
    Ok(found)
}

/// Loads the spec `name` (a built-in name, a folder or a file) with all specs that it extends.
pub(super) fn load(name: &str) -> Result<Document, Error> {
    load_from(name, None, 0)
}

fn load_from(name: &str, beside: Option<&Path>, depth: u32) -> Result<Document, Error> {
    let code = if depth == 0 { Code::SpecNotFound } else { Code::SpecExtends };
    if depth > MAX_EXTENDS {
        return Err(Error::new(Code::SpecExtends, format!("`extends` goes round in a circle through `{name}`")));
    }
    let source = find(name, beside).ok_or_else(|| {
        Error::new(
            code,
            format!("no spec `{name}`; built in are {}", [built_in_names(), what_if_names()].concat().join(", ")),
        )
    })?;
    let files = read(&source)?;
    if files.is_empty() {
        return Err(Error::new(code, format!("`{name}` holds no .toml file")));
    }
    let mut own = Document::default();
    let mut base = None;
    for file in &files {
        let table: toml::Table = file.text.parse().map_err(|e: toml::de::Error| {
            Error::new(Code::SpecSyntax, format!("{}: {}", file.name, e.to_string().trim_end()))
        })?;
        for (key, value) in table {
            if key == "extends" {
                let parent = value.as_str().ok_or_else(|| {
                    Error::new(Code::SpecExtends, format!("{}: `extends` is not a string", file.name))
                })?;
                base = Some(parent.to_string());
            } else {
                own.add(&key, value, &file.name)?;
            }
        }
    }
    let Some(parent) = base else { return Ok(own) };
    let folder = match &source {
        FileSource::Disk(path) => path.parent(),
        FileSource::BuiltIn(_) => None,
    };
    let mut document = load_from(&parent, folder, depth + 1)?;
    document.overlay(own);
    Ok(document)
}

impl Document {
    /// Adds one top-level value of a file. Refuses a second one of the same name.
    fn add(&mut self, key: &str, value: toml::Value, origin: &str) -> Result<(), Error> {
        let duplicate = |what: String| Error::new(Code::SpecDuplicate, format!("{origin}: {what} stands there twice"));
        match value {
            toml::Value::Table(table) => {
                let entry = Entry { table, origin: origin.to_string() };
                match self.single.insert(key.to_string(), entry) {
                    Some(_) => Err(duplicate(format!("[{key}]"))),
                    None => Ok(()),
                }
            }
            toml::Value::Array(items) => {
                for item in items {
                    let toml::Value::Table(table) = item else {
                        return Err(Error::new(
                            Code::SpecWrongType,
                            format!("{origin}: `{key}` is not a list of tables"),
                        ));
                    };
                    let Some(name) = table.get("name").and_then(toml::Value::as_str).map(str::to_string) else {
                        return Err(Error::new(Code::SpecMissingKey, format!("{origin}: a [[{key}]] has no `name`")));
                    };
                    let entry = Entry { table, origin: origin.to_string() };
                    if self.list.entry(key.to_string()).or_default().insert(name.clone(), entry).is_some() {
                        return Err(duplicate(format!("[[{key}]] `{name}`")));
                    }
                }
                Ok(())
            }
            _ => Err(Error::new(Code::SpecUnknownKey, format!("{origin}: `{key}` is not a section of a spec"))),
        }
    }

    /// Lays `top` over this document. Tables merge key by key, list entries by name.
    fn overlay(&mut self, top: Document) {
        for (key, entry) in top.single {
            merge(&mut self.single, key, entry);
        }
        for (key, entries) in top.list {
            let own = self.list.entry(key).or_default();
            for (name, entry) in entries {
                merge(own, name, entry);
            }
        }
    }
}

fn merge(into: &mut IndexMap<String, Entry>, key: String, top: Entry) {
    match into.get_mut(&key) {
        Some(base) => {
            base.origin = top.origin;
            for (k, v) in top.table {
                base.table.insert(k, v);
            }
        }
        None => {
            into.insert(key, top);
        }
    }
}

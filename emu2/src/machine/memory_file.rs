//! Memory files: a JSON list of regions to load before a run and to save after it.
//!
//! `{"load": [{"region": "pdm0", "file": "in.bin", "offset": 0}],
//!   "save": [{"region": "pdm0", "file": "out.bin", "offset": 0, "length": 1024}]}`
//!
//! Offsets and lengths count bytes, multiples of 8; data files hold long words most significant byte first, the
//! device's own order. A data file's path is relative to the folder of the JSON file.

use super::{Machine, Region};
use crate::error::{Code, Error};
use crate::spec::{LevelName, Spec};
use serde::Deserialize;
use std::path::{Path, PathBuf};

const BYTES: u64 = 8;

/// One region of a memory file.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Entry {
    region: String,
    file: PathBuf,
    #[serde(default)]
    offset: u64,
    length: Option<u64>,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct Config {
    #[serde(default)]
    load: Vec<Entry>,
    #[serde(default)]
    save: Vec<Entry>,
}

fn config(path: &Path) -> Result<Config, Error> {
    let text = std::fs::read(path).map_err(|e| io(Code::Unreadable, path, &e))?;
    serde_json::from_slice(&text).map_err(|e| Error::new(Code::MemoryFile, format!("{}: {e}", path.display())))
}

fn io(code: Code, path: &Path, error: &std::io::Error) -> Error {
    Error::new(code, format!("{}: {error}", path.display()))
}

/// The data file of an entry, seen from the JSON file's folder.
fn data_path(json: &Path, entry: &Entry) -> PathBuf {
    json.parent().map_or_else(|| entry.file.clone(), |folder| folder.join(&entry.file))
}

/// A region's memory and group: the memory's name, then the group's number.
fn region(spec: &Spec, json: &Path, entry: &Entry, bytes: u64) -> Result<Region, Error> {
    let place = format!("{}: region `{}`", json.display(), entry.region);
    let name = entry.region.trim_end_matches(|c: char| c.is_ascii_digit());
    let number = entry.region[name.len()..].parse::<u32>().ok();
    let memory = spec.memory(name).filter(|m| spec.memories[*m].level == LevelName::Group);
    let (Some(memory), Some(group)) = (memory, number.filter(|g| *g < spec.counts.group)) else {
        let groups = spec.counts.group - 1;
        let known = spec.memories.iter().filter(|m| m.level == LevelName::Group);
        let known: Vec<_> = known.map(|m| format!("{0}0 to {0}{groups}", m.name)).collect();
        return Err(Error::new(Code::MemoryFile, format!("{place} does not exist; there are {}", known.join(", "))));
    };
    if !entry.offset.is_multiple_of(BYTES) || !bytes.is_multiple_of(BYTES) {
        let message =
            format!("{place}: offset {} and {bytes} bytes are not whole long words of {BYTES} bytes", entry.offset);
        return Err(Error::new(Code::MemoryFile, message));
    }
    let size = spec.memories[memory].words;
    let (addr, count) = (entry.offset / BYTES, bytes / BYTES);
    if addr.checked_add(count).is_none_or(|end| end > size) {
        let message = format!("{place}: {bytes} bytes from {} on reach past its {} bytes", entry.offset, size * BYTES);
        return Err(Error::new(Code::MemoryRange, message));
    }
    Ok(Region { memory, units: [Some(group), None, None, None, None], addr, count })
}

impl Machine {
    /// Writes every `load` region of the memory file at `json` to the machine. All entries are checked before any is
    /// written.
    pub fn load_memory_file(&mut self, json: &Path) -> Result<(), Error> {
        let spec = self.spec().clone();
        let mut ready = Vec::new();
        for entry in config(json)?.load {
            let path = data_path(json, &entry);
            let mut bytes = std::fs::read(&path).map_err(|e| io(Code::Unreadable, &path, &e))?;
            if let Some(length) = entry.length {
                if length > bytes.len() as u64 {
                    let message = format!("{} has {} bytes, not {length}", path.display(), bytes.len());
                    return Err(Error::new(Code::MemoryFile, message));
                }
                bytes.truncate(length as usize);
            }
            let region = region(&spec, json, &entry, bytes.len() as u64)?;
            let (words, _) = bytes.as_chunks::<{ BYTES as usize }>();
            ready.push((region, words.iter().map(|w| u64::from_be_bytes(*w)).collect::<Vec<_>>()));
        }
        ready.iter().try_for_each(|(region, words)| self.write(region, words))
    }

    /// Writes every `save` region of the memory file at `json` from the machine to its data file.
    pub fn save_memory_file(&self, json: &Path) -> Result<(), Error> {
        let spec = self.spec().clone();
        for entry in config(json)?.save {
            let size = spec.memories.iter().find(|m| entry.region.starts_with(&m.name)).map_or(0, |m| m.words);
            let length = entry.length.unwrap_or((size * BYTES).saturating_sub(entry.offset));
            let words = self.read(&region(&spec, json, &entry, length)?)?;
            let bytes: Vec<u8> = words.iter().flat_map(|w| w.to_be_bytes()).collect();
            let path = data_path(json, &entry);
            std::fs::write(&path, bytes).map_err(|e| io(Code::Unwritable, &path, &e))?;
        }
        Ok(())
    }
}

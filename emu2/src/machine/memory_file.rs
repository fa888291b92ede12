//! Memory files: a JSON list of regions to load before a run and to save after it.
//!
//! `{"load": [{"region": "pdm0", "file": "in.bin", "offset": 0}],
//!   "save": [{"region": "pdm0", "file": "out.bin", "offset": 0, "length": 1024}]}`
//!
//! Offsets and lengths count bytes, multiples of 8; data files hold long words most significant byte first, the
//! device's own order. A data file's path is relative to the folder of the JSON file. Saved files lie in that folder, unless
//! the caller allows others, and are never one of the JSON files.
//!
//! guess: regions without a `file`, as public configurations have them, lie one after the other in the data file that is
//! named beside the configuration; saved ones without one go to `<region>.bin`.

use super::{Machine, Region};
use crate::error::{Code, Error};
use crate::files;
use crate::interrupt::Interrupt;
use crate::spec::{LevelName, Spec};
use serde::Deserialize;
use serde_json::Value;
use std::io::{BufWriter, Write};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

const BYTES: u64 = 8;
/// Long words handed on at a time.
const CHUNK: u64 = 1 << 16;
/// Bytes of the longest JSON file that is read.
const CONFIG_LIMIT: u64 = 1 << 24;

/// One region of a memory file.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Entry {
    region: String,
    file: Option<PathBuf>,
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

/// A region with the place of its data.
#[derive(Clone, Debug)]
struct Piece {
    /// The JSON file and the region, for messages.
    place: String,
    memory: usize,
    group: u32,
    offset: u64,
    length: Option<u64>,
    /// Bytes from the region's offset to its end.
    room: u64,
    path: PathBuf,
    /// The folder that the path is relative to; none for a path that the caller gave.
    folder: Option<PathBuf>,
    /// It follows the previous piece in the same data file.
    follows: bool,
}

/// The regions that a run begins and ends with, all names and places checked.
#[derive(Clone, Debug, Default)]
pub struct MemoryFiles {
    load: Vec<Piece>,
    save: Vec<Piece>,
}

fn io(code: Code, path: &Path, error: &std::io::Error) -> Error {
    Error::new(code, format!("{}: {error}", path.display()))
}

fn config(path: &Path) -> Result<Config, Error> {
    let text = files::read(path, CONFIG_LIMIT, &Interrupt::default())?;
    let bad = |what: String| Error::new(Code::MemoryFile, format!("{}: {what}", path.display()));
    let config = serde_json::from_slice(&text).map_err(|e| bad(e.to_string()))?;
    // Arrays would pass for objects with their keys left out.
    let value: Value = serde_json::from_slice(&text).map_err(|e| bad(e.to_string()))?;
    let lists = value.as_object().map(|keys| keys.values().filter_map(Value::as_array).flatten());
    match lists.map(|mut entries| entries.all(Value::is_object)) {
        Some(true) => Ok(config),
        _ => Err(bad("an array stands where an object belongs".to_string())),
    }
}

/// The direction of a list of regions.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Direction {
    Load,
    Save,
}

impl MemoryFiles {
    /// Reads memory files. `config` counts for both directions. `load` and `save` are memory files for one direction each; or,
    /// where `config` has regions without `file` in that direction, the file that holds those one after the other.
    /// `outside` allows a memory file to save to files outside its own folder.
    ///
    /// # Errors
    /// [`Code::Unreadable`], [`Code::MemoryFile`] and [`Code::MemoryRange`], before any data is read or written.
    pub fn new(
        spec: &Spec,
        config_path: Option<&Path>,
        load: Option<&Path>,
        save: Option<&Path>,
        outside: bool,
    ) -> Result<MemoryFiles, Error> {
        let mut files = MemoryFiles::default();
        // A file that counts for both directions need not be named again for one.
        let other = |path: &&Path| Some(*path) != config_path;
        let (mut load, mut save) = (load.filter(other), save.filter(other));
        if let Some(path) = config_path {
            let config = config(path)?;
            let data = |entries: &[Entry], given: &mut Option<&Path>| {
                let bare = entries.iter().any(|e| e.file.is_none());
                given.take_if(|_| bare).map(Path::to_path_buf)
            };
            let (from, to) = (data(&config.load, &mut load), data(&config.save, &mut save));
            files.load = pieces(spec, path, &config.load, from.as_deref(), Direction::Load)?;
            files.save = pieces(spec, path, &config.save, to.as_deref(), Direction::Save)?;
        }
        if let Some(path) = load {
            files.load.extend(pieces(spec, path, &config(path)?.load, None, Direction::Load)?);
        }
        if let Some(path) = save {
            files.save.extend(pieces(spec, path, &config(path)?.save, None, Direction::Save)?);
        }
        // `load` and `save` are memory files here: those that name data were taken.
        let described = [config_path, load, save];
        for (at, piece) in files.save.iter().enumerate() {
            piece.check_target(described.into_iter().flatten(), outside)?;
            if !piece.follows && files.save[..at].iter().any(|earlier| earlier.path == piece.path) {
                let message = format!("{}: another region is saved to {} too", piece.place, piece.path.display());
                return Err(Error::new(Code::MemoryFile, message).help("give every region a file of its own"));
            }
        }
        Ok(files)
    }

    /// Writes the regions to load to `machine`. All data is checked before any is written.
    ///
    /// # Errors
    /// [`Code::Unreadable`], [`Code::MemoryFile`] and [`Code::MemoryRange`].
    pub fn load(&self, machine: &mut Machine) -> Result<(), Error> {
        self.load_until(machine, &Interrupt::default())
    }

    /// As [`MemoryFiles::load`], unless `interrupt` is requested before the end. A machine that has some of the data
    /// must be reset.
    ///
    /// # Errors
    /// As [`MemoryFiles::load`], and [`Code::Interrupted`].
    pub fn load_until(&self, machine: &mut Machine, interrupt: &Interrupt) -> Result<(), Error> {
        // No file needs more bytes than all the regions have together.
        let limit = self.load.iter().fold(0, |sum: u64, piece| sum.saturating_add(piece.offset + piece.room));
        let mut ready: Vec<(&Piece, Vec<u8>)> = Vec::new();
        let mut rest = Vec::new();
        for piece in &self.load {
            let bytes = match piece.follows {
                true => std::mem::take(&mut rest),
                false => files::read(&piece.path, limit, interrupt)?,
            };
            let (bytes, left) = piece.part(bytes)?;
            rest = left;
            ready.push((piece, bytes));
        }
        for (piece, bytes) in ready {
            let (words, _) = bytes.as_chunks::<{ BYTES as usize }>();
            for (at, chunk) in words.chunks(CHUNK as usize).enumerate() {
                let words: Vec<u64> = chunk.iter().map(|w| u64::from_be_bytes(*w)).collect();
                interrupt.check().inspect_err(|_| machine.poison())?;
                machine.write(&piece.region(at as u64 * CHUNK, words.len() as u64), &words)?;
            }
        }
        Ok(())
    }

    /// Writes the regions to save from `machine` to their data files.
    ///
    /// # Errors
    /// [`Code::Unwritable`].
    pub fn save(&self, machine: &Machine) -> Result<(), Error> {
        self.save_until(machine, &Interrupt::default())
    }

    /// As [`MemoryFiles::save`], unless `interrupt` is requested before the end.
    ///
    /// # Errors
    /// [`Code::Unwritable`] and [`Code::Interrupted`].
    pub fn save_until(&self, machine: &Machine, interrupt: &Interrupt) -> Result<(), Error> {
        for piece in &self.save {
            let fail = |e: &std::io::Error| io(Code::Unwritable, &piece.path, e);
            let file = files::create(&piece.path, piece.follows);
            let mut file = BufWriter::new(file.map_err(|e| fail(&e))?);
            let words = piece.length.unwrap_or(piece.room) / BYTES;
            let mut done = 0;
            while done < words {
                interrupt.check()?;
                let chunk = machine.read(&piece.region(done, CHUNK.min(words - done)))?;
                let bytes: Vec<u8> = chunk.iter().flat_map(|w| w.to_be_bytes()).collect();
                file.write_all(&bytes).map_err(|e| fail(&e))?;
                done += chunk.len() as u64;
            }
            file.flush().map_err(|e| fail(&e))?;
        }
        Ok(())
    }
}

/// The pieces of a list. `data`: where entries without a `file` lie.
fn pieces(
    spec: &Spec,
    json: &Path,
    entries: &[Entry],
    data: Option<&Path>,
    direction: Direction,
) -> Result<Vec<Piece>, Error> {
    let mut all: Vec<Piece> = Vec::new();
    let mut bare = false;
    for entry in entries {
        let place = format!("{}: region `{}`", json.display(), entry.region);
        let beside = |file: &Path| json.parent().map_or_else(|| file.to_path_buf(), |folder| folder.join(file));
        let shared = entry.file.is_none() && data.is_some();
        let path = match (&entry.file, data, direction) {
            (Some(file), ..) => beside(file),
            (None, Some(data), _) => data.to_path_buf(),
            (None, None, Direction::Save) => beside(Path::new(&format!("{}.bin", entry.region))),
            (None, None, Direction::Load) => {
                let help = "give it a `file`, or name the file with the data as --load-memory-file";
                return Err(Error::new(Code::MemoryFile, format!("{place} has no `file`")).help(help));
            }
        };
        let folder = (!shared).then(|| beside(Path::new("")));
        all.push(piece(spec, entry, place, (path, folder), shared && bare)?);
        bare |= shared;
    }
    // Pieces of one file are contiguous in it, whatever stands between them in the list.
    all.sort_by_key(|piece| piece.follows || data.is_some_and(|data| piece.path == data));
    Ok(all)
}

/// A checked piece. A region is a memory's name and a group's number.
fn piece(
    spec: &Spec,
    entry: &Entry,
    place: String,
    (path, folder): (PathBuf, Option<PathBuf>),
    follows: bool,
) -> Result<Piece, Error> {
    let name = entry.region.trim_end_matches(|c: char| c.is_ascii_digit());
    let number = entry.region[name.len()..].parse::<u32>().ok();
    let memory = spec.memory(name).filter(|m| spec.memories[*m].level == LevelName::Group);
    let (Some(memory), Some(group)) = (memory, number.filter(|g| *g < spec.counts.group)) else {
        let groups = spec.counts.group - 1;
        let known = spec.memories.iter().filter(|m| m.level == LevelName::Group);
        let known: Vec<_> = known.map(|m| format!("{0}0 to {0}{groups}", m.name)).collect();
        return Err(Error::new(Code::MemoryFile, format!("{place} does not exist; there are {}", known.join(", "))));
    };
    let size = spec.memories[memory].words * BYTES;
    let room = size.saturating_sub(entry.offset);
    let (offset, length) = (entry.offset, entry.length);
    let piece = Piece { place, memory, group, offset, length, room, path, folder, follows };
    if offset > size {
        let message = format!("{}: offset {offset} lies past its {size} bytes", piece.place);
        return Err(Error::new(Code::MemoryRange, message));
    }
    piece.check(length.unwrap_or(0))?;
    Ok(piece)
}

/// `path` without links and `..`; the last part need not exist.
fn real(path: &Path) -> PathBuf {
    let whole = || path.canonicalize().ok();
    let parent = || {
        let folder = path.parent().map(|p| if p.as_os_str().is_empty() { Path::new(".") } else { p })?;
        Some(folder.canonicalize().ok()?.join(path.file_name()?))
    };
    whole().or_else(parent).unwrap_or_else(|| path.to_path_buf())
}

/// Whether two names are links to one file.
fn same_file(one: &Path, other: &Path) -> bool {
    let id = |path: &Path| path.metadata().ok().map(|found| (found.dev(), found.ino()));
    id(one).is_some_and(|found| id(other) == Some(found))
}

impl Piece {
    /// Whether the piece may be saved to its path: no memory file, and within the folder unless `outside` is allowed.
    fn check_target<'a>(&self, described: impl Iterator<Item = &'a Path>, outside: bool) -> Result<(), Error> {
        let (place, path, target) = (&self.place, self.path.display(), real(&self.path));
        for json in described {
            if real(json) == target || same_file(json, &target) {
                let message = format!("{place}: saving to {path} would overwrite the memory file itself");
                return Err(Error::new(Code::MemoryFile, message).help("give the data a file of its own"));
            }
        }
        let Some(folder) = self.folder.as_ref().filter(|_| !outside) else { return Ok(()) };
        // A folder without a name is the current one.
        let folder = if folder.as_os_str().is_empty() { Path::new(".") } else { folder };
        if !target.starts_with(real(folder)) {
            let message = format!("{place}: {path} lies outside the folder of the memory file");
            let help = "save to a file within the folder, or allow others with --save-outside";
            return Err(Error::new(Code::MemoryFile, message).help(help));
        }
        Ok(())
    }

    /// Whether `bytes` are whole long words that fit.
    fn check(&self, bytes: u64) -> Result<(), Error> {
        let (place, offset) = (&self.place, self.offset);
        if !offset.is_multiple_of(BYTES) || !bytes.is_multiple_of(BYTES) {
            let message =
                format!("{place}: offset {offset} and {bytes} bytes are not whole long words of {BYTES} bytes");
            return Err(Error::new(Code::MemoryFile, message).help(format!("use multiples of {BYTES}")));
        }
        if bytes > self.room {
            let size = offset + self.room;
            let message = format!("{place}: {bytes} bytes from {offset} on reach past its {size} bytes");
            return Err(Error::new(Code::MemoryRange, message));
        }
        Ok(())
    }

    /// The bytes of a file that belong to the piece, and the rest.
    fn part(&self, mut bytes: Vec<u8>) -> Result<(Vec<u8>, Vec<u8>), Error> {
        let mut rest = Vec::new();
        if let Some(length) = self.length {
            if length > bytes.len() as u64 {
                let (place, path, has) = (&self.place, self.path.display(), bytes.len());
                let message = format!("{place}: {length} bytes are wanted, {path} has {has}");
                return Err(Error::new(Code::MemoryFile, message).help("lower the length or give the whole data"));
            }
            rest = bytes.split_off(length as usize);
        }
        self.check(bytes.len() as u64)?;
        Ok((bytes, rest))
    }

    /// `count` long words from long word `at` of the piece on.
    fn region(&self, at: u64, count: u64) -> Region {
        let units = [Some(self.group), None, None, None, None];
        Region { memory: self.memory, units, addr: self.offset / BYTES + at, count }
    }
}

impl Machine {
    /// Writes every `load` region of the memory file at `json` to the machine.
    ///
    /// # Errors
    /// As [`MemoryFiles`].
    pub fn load_memory_file(&mut self, json: &Path) -> Result<(), Error> {
        MemoryFiles::new(self.spec(), None, Some(json), None, false)?.load(self)
    }

    /// Writes every `save` region of the memory file at `json` from the machine to its data file.
    ///
    /// # Errors
    /// As [`MemoryFiles`].
    pub fn save_memory_file(&self, json: &Path) -> Result<(), Error> {
        MemoryFiles::new(self.spec(), None, None, Some(json), false)?.save(self)
    }
}

//! Memory files: a JSON list of regions to load before a run and to save after it.
//!
//! `{"load": [{"region": "pdm0", "file": "in.bin", "offset": 0}],
//!   "save": [{"region": "pdm0", "file": "out.bin", "offset": 0, "length": 1024}]}`
//!
//! Offsets and lengths count bytes and are multiples of 8. Data files hold long words, most significant byte first, as the
//! device does. The path of a data file is relative to the folder of the JSON file. Saved files are written to that
//! folder, unless the caller allows other folders. They are never one of the JSON files.
//!
//! guess: public configurations have regions without a `file`. The data of such regions is loaded one after the other
//! from the data file that the caller names. Saved ones go to `<region>.bin` if no such file is named.

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
/// Long words that are copied at a time.
const CHUNK: u64 = 1 << 16;
/// Bytes of the longest JSON file that is read.
const CONFIG_LIMIT: u64 = 1 << 24;
/// Links that are followed one after the other.
const LINKS: usize = 40;

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
    /// Bytes from the offset in the region to the end of the region.
    room: u64,
    path: PathBuf,
    /// The folder to which the path is relative. None if the caller gave the path.
    folder: Option<PathBuf>,
    /// The piece follows the previous one in the same data file.
    follows: bool,
}

/// The regions to load before a run and to save after it. All names and places are checked.
#[derive(Clone, Debug, Default)]
pub struct MemoryFiles {
    /// The JSON files.
    described: Vec<PathBuf>,
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
    // Serde would read an array as an object without keys.
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
    /// Reads memory files. `config` counts for both directions. `load` and `save` are memory files for one direction each.
    /// But if `config` has regions without `file` in a direction, the argument of that direction is the data file. It holds
    /// the data of those regions one after the other. `outside` allows a memory file to save to files outside its own
    /// folder.
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
        // A file that counts for both directions may be named again for one of them. It is not read twice.
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
        // Here `load` and `save` are memory files. If they named data, they have been taken out above.
        files.described = [config_path, load, save].into_iter().flatten().map(Path::to_path_buf).collect();
        for (at, piece) in files.save.iter().enumerate() {
            piece.check_target(&files.described, &files.load, outside)?;
            if !piece.follows && files.save[..at].iter().any(|earlier| same(&earlier.path, &piece.path)) {
                let message = format!("{}: another region is saved to {} too", piece.place, piece.path.display());
                return Err(Error::new(Code::MemoryFile, message).help("give every region a file of its own"));
            }
        }
        Ok(files)
    }

    /// The files that are read: the JSON files and the data to load.
    pub fn inputs(&self) -> impl Iterator<Item = &Path> {
        self.described.iter().chain(self.load.iter().map(|piece| &piece.path)).map(PathBuf::as_path)
    }

    /// The files that are written.
    pub fn outputs(&self) -> impl Iterator<Item = &Path> {
        self.save.iter().filter(|piece| !piece.follows).map(|piece| piece.path.as_path())
    }

    /// The regions to save that have a length of their own.
    pub fn saved(&self) -> Vec<Region> {
        let lengths = self.save.iter().filter_map(|piece| Some((piece, piece.length? / BYTES)));
        lengths.map(|(piece, words)| piece.region(0, words)).collect()
    }

    /// Writes the regions to load to `machine`. All data is checked before any is written.
    ///
    /// # Errors
    /// [`Code::Unreadable`], [`Code::MemoryFile`] and [`Code::MemoryRange`].
    pub fn load(&self, machine: &mut Machine) -> Result<(), Error> {
        self.load_until(machine, &Interrupt::default())
    }

    /// Does the same as [`MemoryFiles::load`], but stops if `interrupt` is requested. A machine that has only some of the
    /// data must be reset.
    ///
    /// # Errors
    /// Those of [`MemoryFiles::load`], and [`Code::Interrupted`].
    pub fn load_until(&self, machine: &mut Machine, interrupt: &Interrupt) -> Result<(), Error> {
        // No file needs more bytes than all regions together have.
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

    /// Does the same as [`MemoryFiles::save`], but stops if `interrupt` is requested.
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

/// The pieces of a list. `data`: the file with the data of entries without a `file`.
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
    // Pieces of one file are contiguous in it, whatever other entries stand between them in the list.
    sorting::sort_by_key(&mut all, |piece| piece.follows || data.is_some_and(|data| piece.path == data));
    Ok(all)
}

/// Checks a piece. A region is written as the name of a memory and the number of a group.
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

/// `path` without links and `..`. Its last part need not exist, also behind links. None if its folder does not exist.
fn real(path: &Path) -> Option<PathBuf> {
    let mut path = path.to_path_buf();
    for _ in 0..LINKS {
        if let Ok(whole) = path.canonicalize() {
            return Some(whole);
        }
        let folder = path.parent().map(|p| if p.as_os_str().is_empty() { Path::new(".") } else { p })?;
        let folder = folder.canonicalize().ok()?;
        let place = folder.join(path.file_name()?);
        match place.read_link() {
            Ok(target) => path = folder.join(target),
            Err(_) => return Some(place),
        }
    }
    None
}

/// Whether two names stand for one file, which need not exist.
fn same(one: &Path, other: &Path) -> bool {
    let id = |path: &Path| path.metadata().ok().map(|found| (found.dev(), found.ino()));
    let ids = (id(one), id(other));
    ids.0 == ids.1 && (ids.0.is_some() || one == other || real(one).is_some_and(|one| real(other) == Some(one)))
}

impl Piece {
    /// Checks that the piece may be saved to its path: it is neither a memory file nor data to load, and lies within the
    /// folder unless `outside` is allowed.
    fn check_target(&self, described: &[PathBuf], loaded: &[Piece], outside: bool) -> Result<(), Error> {
        let (place, path) = (&self.place, self.path.display());
        let json = described.iter().any(|json| same(json, &self.path)).then_some("the memory file itself");
        let data = loaded.iter().any(|piece| same(&piece.path, &self.path)).then_some("data that is loaded");
        if let Some(what) = json.or(data) {
            let message = format!("{place}: saving to {path} would overwrite {what}");
            return Err(Error::new(Code::MemoryFile, message).help("give the data a file of its own"));
        }
        // Without its folder the file cannot be written at all.
        let Some(target) = real(&self.path) else { return Ok(()) };
        let Some(folder) = self.folder.as_ref().filter(|_| !outside) else { return Ok(()) };
        // An empty folder name means the current folder.
        let folder = if folder.as_os_str().is_empty() { Path::new(".") } else { folder };
        if !real(folder).is_some_and(|folder| target.starts_with(folder)) {
            let message = format!("{place}: {path} lies outside the folder of the memory file");
            let help = "save to a file within the folder, or allow others with --save-outside";
            return Err(Error::new(Code::MemoryFile, message).help(help));
        }
        Ok(())
    }

    /// Checks that `bytes` are whole long words and fit.
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

    /// Splits the bytes of a file into those of the piece and the rest.
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

    /// The region of `count` long words, beginning at long word `at` of the piece.
    fn region(&self, at: u64, count: u64) -> Region {
        let units = [Some(self.group), None, None, None, None];
        Region { memory: self.memory, units, addr: self.offset / BYTES + at, count }
    }
}

impl Machine {
    /// Writes every `load` region of the memory file at `json` to the machine.
    ///
    /// # Errors
    /// Those of [`MemoryFiles`].
    pub fn load_memory_file(&mut self, json: &Path) -> Result<(), Error> {
        MemoryFiles::new(self.spec(), None, Some(json), None, false)?.load(self)
    }

    /// Writes every `save` region of the memory file at `json` from the machine to its data file.
    ///
    /// # Errors
    /// Those of [`MemoryFiles`].
    pub fn save_memory_file(&self, json: &Path) -> Result<(), Error> {
        MemoryFiles::new(self.spec(), None, None, Some(json), false)?.save(self)
    }
}

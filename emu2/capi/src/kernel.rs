//! Loaded kernels.

use crate::environment;
use crate::status::{Refusal, Status};
use emu2::asm::AssembleError;
use emu2::files::{read, SOURCE_LIMIT};
use emu2::host::{Device, Kernel};
use emu2::interrupt::Interrupt;
use emu2::word::{unpack, TagUse, MAGIC};
use std::borrow::Cow;
use std::path::{Path, PathBuf};

/// Ending of the files that boards read, and of the assembled text beside them.
const PACKED: &str = ".idma.dat";
const ASSEMBLED: &str = ".asm";
/// Letters of the lines with which a host takes part in a program. The host program takes that part here.
const HOST_LINES: [&str; 3] = ["c", "e", "f"];

/// A kernel that was loaded. It runs any number of times.
#[derive(Clone, Debug)]
pub struct Loaded {
    pub(crate) kernel: Kernel,
}

impl Loaded {
    /// The tags for which the kernel waits and those of its MVs, in its order, each as often as it occurs.
    pub fn tags(&self) -> (Vec<u32>, Vec<u32>) {
        let (mut waits, mut mvs) = (Vec::new(), Vec::new());
        for used in self.kernel.tag_uses() {
            match used {
                TagUse::Wait(tag) => waits.push(*tag),
                TagUse::Signal(tag) => mvs.push(*tag),
            }
        }
        (waits, mvs)
    }
}

/// Loads a kernel from the bytes of a container, of assembled text or of a source.
pub(crate) fn load(device: &Device, data: &[u8], name: &str) -> Result<Loaded, Refusal> {
    let bad = |message: String| Refusal::new(Status::Kernel, message);
    check_limit(data.len())?;
    let text = if data.starts_with(&MAGIC) {
        Cow::Owned(unpack(data).map_err(|e| bad(format!("{name}: {e}")))?.into_bytes())
    } else if !data.is_empty() && name.ends_with(PACKED) {
        let message =
            "these are not the bytes of `assemble3 --loader` of this project. The words that boards read are not \
                       known, so a kernel must be assembled from its source";
        return Err(bad(format!("{name}: {message}")));
    } else {
        Cow::Borrowed(data)
    };
    let name = name.strip_suffix(PACKED).unwrap_or(name);
    let loaded = device.load_kernel(&without_host_lines(&text), name);
    loaded.map(|kernel| Loaded { kernel }).map_err(|e: AssembleError| bad(e.to_string()))
}

/// Loads the kernel of a file. Where a program names a packed file that does not exist, the assembled text beside it serves.
pub(crate) fn load_file(device: &Device, path: &Path) -> Result<Loaded, Refusal> {
    let beside = neighbour(path).filter(|text| text.exists() && !path.exists());
    let path = beside.as_deref().unwrap_or(path);
    let bytes = read(path, SOURCE_LIMIT, &Interrupt::default()).map_err(|e| Refusal::new(Status::Io, e.to_string()))?;
    load(device, &bytes, &path.display().to_string())
}

fn neighbour(path: &Path) -> Option<PathBuf> {
    let name = path.to_str()?;
    name.strip_suffix(PACKED).map(|stem| PathBuf::from(format!("{stem}{ASSEMBLED}")))
}

/// The limit of contiguous memory on a host with a board, if the caller wants it checked.
fn check_limit(bytes: usize) -> Result<(), Refusal> {
    let Some(limit) = environment::value(environment::DMA_LIMIT) else { return Ok(()) };
    let limit: usize = limit
        .to_str()
        .and_then(|text| text.parse().ok())
        .ok_or_else(|| Refusal::new(Status::Env, format!("{} is no number of bytes", environment::DMA_LIMIT)))?;
    let needed = bytes.max(1).next_power_of_two();
    if needed <= limit {
        return Ok(());
    }
    let message = format!("the kernel needs {needed} contiguous bytes, and {} allows {limit}", environment::DMA_LIMIT);
    Err(Refusal::new(Status::Kernel, message))
}

/// The text without lines that a host writes. Other lines keep their numbers.
fn without_host_lines(text: &[u8]) -> Cow<'_, [u8]> {
    let is_host = |line: &[u8]| {
        let word = line.split(|b| b.is_ascii_whitespace()).find(|word| !word.is_empty()).unwrap_or(&[]);
        HOST_LINES.iter().any(|letter| letter.as_bytes() == word)
    };
    if !text.split(|b| *b == b'\n').any(is_host) {
        return Cow::Borrowed(text);
    }
    let kept: Vec<&[u8]> = text.split(|b| *b == b'\n').map(|line| if is_host(line) { &[] } else { line }).collect();
    Cow::Owned(kept.join(&b'\n'))
}

//! Sets of arrays, as `numpy.savez` writes them: a zip file with an array in each member.

use super::elements::Elem;
use crate::error::{Code, Error};
use std::io::{Cursor, Read, Write};
use zip::write::SimpleFileOptions;
use zip::{CompressionMethod, ZipArchive, ZipWriter};

const MAGIC: &[u8] = b"\x93NUMPY";

/// The longest header of an array: numpy's own limit.
const HEADER: usize = 10_000;

/// An array in row-major order, its elements as little-endian bytes.
#[derive(Clone, Debug, PartialEq)]
pub struct Array {
    pub(super) elem: Elem,
    pub(super) shape: Vec<u64>,
    pub(super) data: Vec<u8>,
}

/// Arrays with their names, in the order of the file.
pub type Arrays = Vec<(String, Array)>;

impl Array {
    /// The type and shape, as messages show them.
    pub(super) fn shown(elem: Elem, shape: &[u64]) -> String {
        format!("{}{shape:?}", elem.name())
    }
}

fn bad(reason: impl Into<String>) -> Error {
    Error::new(Code::BadArrays, reason)
}

/// Reads the arrays that `wanted` names, with their types and shapes; no data of another array is read.
///
/// # Errors
/// [`Code::BadArrays`] for a file that is none, [`Code::AppInputs`] for an array that is not wanted or of another type.
pub(super) fn read_wanted(data: &[u8], wanted: &[(&str, Elem, &[u64])]) -> Result<Arrays, Error> {
    let mut file = ZipArchive::new(Cursor::new(data)).map_err(|e| bad(e.to_string()))?;
    let mut found = Vec::new();
    for number in 0..file.len() {
        let mut member = file.by_index(number).map_err(|e| bad(e.to_string()))?;
        let name = member.name().strip_suffix(".npy").unwrap_or(member.name()).to_string();
        let Some((_, elem, shape)) = wanted.iter().find(|row| row.0 == name) else {
            return Err(Error::new(Code::AppInputs, format!("`{name}` is no input")));
        };
        let (found_elem, found_shape) = header(&mut member).map_err(|reason| bad(format!("`{name}` {reason}")))?;
        if found_elem != *elem || found_shape != *shape {
            let (have, want) = (Array::shown(found_elem, &found_shape), Array::shown(*elem, shape));
            return Err(Error::new(Code::AppInputs, format!("`{name}` is {have}, not {want}")));
        }
        let size = shape.iter().product::<u64>() * elem.bytes() as u64;
        let mut bytes = Vec::new();
        (&mut member).take(size + 1).read_to_end(&mut bytes).map_err(|e| bad(format!("`{name}`: {e}")))?;
        if bytes.len() as u64 != size {
            return Err(bad(format!("`{name}` has {} bytes of data, not {size}", bytes.len())));
        }
        found.push((name, Array { elem: found_elem, shape: found_shape, data: bytes }));
    }
    Ok(found)
}

/// The type and shape that a member begins with.
fn header(member: &mut impl Read) -> Result<(Elem, Vec<u64>), String> {
    let mut start = [0u8; 8];
    member.read_exact(&mut start).map_err(|e| format!("is no array: {e}"))?;
    if start[..6] != *MAGIC || !(1..=3).contains(&start[6]) {
        return Err("is no array".into());
    }
    let mut length = [0u8; 4];
    let width = if start[6] == 1 { 2 } else { 4 };
    member.read_exact(&mut length[..width]).map_err(|e| format!("is no array: {e}"))?;
    let length = u32::from_le_bytes(length) as usize;
    if length > HEADER {
        return Err("has a header that is too long".into());
    }
    let mut text = vec![0u8; length];
    member.read_exact(&mut text).map_err(|e| format!("is no array: {e}"))?;
    let text = String::from_utf8(text).map_err(|_| "has a damaged header")?;
    let after = |key: &str| -> Result<&str, String> {
        let found = text.split_once(&format!("'{key}':")).map(|(_, rest)| rest.trim_start());
        found.ok_or_else(|| format!("has no `{key}` in its header"))
    };
    let descr = after("descr")?.strip_prefix('\'').and_then(|rest| rest.split_once('\'')).map(|(descr, _)| descr);
    let descr = descr.ok_or("has elements of several fields")?;
    let elem = descr.strip_prefix(['<', '|']).and_then(Elem::of_numpy);
    let elem = elem.ok_or_else(|| format!("has elements of the type `{descr}`"))?;
    let inner = after("shape")?.strip_prefix('(').and_then(|rest| rest.split_once(')')).map(|(inner, _)| inner);
    let axes = inner.ok_or("has no shape")?.split(',').map(str::trim).filter(|axis| !axis.is_empty());
    let shape: Vec<u64> = axes.map(str::parse).collect::<Result<_, _>>().map_err(|_| "has a damaged shape")?;
    if !after("fortran_order")?.starts_with("False") && shape.len() > 1 {
        return Err("is in column-major order; write it with numpy.ascontiguousarray".into());
    }
    Ok((elem, shape))
}

/// The bytes of a file with `arrays`, as `numpy.load` reads it.
///
/// # Errors
/// [`Code::BadArrays`] for elements that numpy lacks.
pub fn write_arrays(arrays: &Arrays) -> Result<Vec<u8>, Error> {
    let mut file = ZipWriter::new(Cursor::new(Vec::new()));
    for (name, array) in arrays {
        let descr = array.elem.numpy();
        if descr.is_empty() {
            return Err(bad(format!("`{name}` has elements of the type {}, which numpy lacks", array.elem.name())));
        }
        let order = if array.elem.bytes() == 1 { '|' } else { '<' };
        let axes: Vec<String> = array.shape.iter().map(|axis| format!("{axis},")).collect();
        let facts = format!("{{'descr': '{order}{descr}', 'fortran_order': False, 'shape': ({}), }}", axes.join(" "));
        // The data begins at a multiple of 64 bytes.
        let length = (MAGIC.len() + 4 + facts.len() + 1).next_multiple_of(64) - MAGIC.len() - 4;
        let options = SimpleFileOptions::default().compression_method(CompressionMethod::Stored).large_file(true);
        let mut write = || -> Result<(), String> {
            file.start_file(format!("{name}.npy"), options).map_err(|e| e.to_string())?;
            let mut put = |bytes: &[u8]| file.write_all(bytes).map_err(|e| e.to_string());
            put(MAGIC)?;
            put(&[1, 0])?;
            put(&(length as u16).to_le_bytes())?;
            put(format!("{facts:<width$}\n", width = length - 1).as_bytes())?;
            put(&array.data)
        };
        write().map_err(bad)?;
    }
    Ok(file.finish().map_err(|e| bad(e.to_string()))?.into_inner())
}

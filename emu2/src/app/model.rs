//! An app in memory, as `gpfnapp.fbs` describes it.

use super::buffer::{Buffer, Damage, Kind, Table};
use super::elements::{Dtype, Elem};
use super::place::Place;
use crate::error::{Code, Error};
use sha2::{Digest, Sha256};
use std::collections::HashMap;

/// The format that writers use. It changes when an older reader would misread a file; fields that a reader may leave
/// out do not change it.
const FORMAT: u32 = 5;

/// The format in which each constant has its data inside of the flatbuffer.
const INSIDE: u32 = 4;

/// The data of a constant begins at a multiple of so many bytes.
const ALIGNED: u64 = 64;

const DIGEST_BYTES: usize = 32;

/// The most elements of a value, as in a model that compiles.
const MOST: u64 = 1 << 30;

/// A tensor; `place` is there if it lies in DRAM, with its first long word in `dram`.
#[derive(Clone, Debug)]
pub(super) struct Value {
    pub(super) name: String,
    pub(super) elem: Elem,
    pub(super) shape: Vec<u64>,
    pub(super) dtype: String,
    pub(super) on_device: bool,
    pub(super) dram: u64,
    pub(super) words: u64,
    pub(super) place: Option<Place>,
}

impl Value {
    /// Number of elements.
    pub(super) fn size(&self) -> u64 {
        self.shape.iter().product()
    }

    /// The dtype of its words in DRAM.
    pub(super) fn device(&self) -> Option<Dtype> {
        Dtype::named(&self.dtype)
    }
}

/// An input, an output or a registered value: the caller's name `key` of a value.
#[derive(Clone, Debug)]
pub(super) struct Port {
    pub(super) key: String,
    pub(super) value: String,
}

#[derive(Clone, Debug)]
pub(super) enum Work {
    /// Assembly text, and the lines that a loader would have to move.
    Device { code: String, lines: Vec<u32>, steps: u64, cycles: u64 },
    /// An ONNX model.
    Host { model: Vec<u8> },
}

#[derive(Clone, Debug)]
pub(super) struct Segment {
    pub(super) inputs: Vec<String>,
    pub(super) outputs: Vec<String>,
    pub(super) work: Work,
}

/// A compiled model: segments in order, the tensors between them, constant data.
#[derive(Clone, Debug)]
pub struct App {
    pub(super) target: String,
    pub(super) inputs: Vec<Port>,
    pub(super) outputs: Vec<Port>,
    pub(super) values: Vec<Value>,
    pub(super) constants: Vec<(String, Vec<u8>)>,
    pub(super) segments: Vec<Segment>,
    pub(super) dram_words: u64,
    pub(super) registered: usize,
}

/// The error of an app that is damaged.
pub(super) fn damaged(reason: impl Into<String>) -> Error {
    Error::new(Code::BadApp, reason)
}

/// The part of a file in front of its digest, which must be right.
fn sealed(data: &[u8]) -> Result<&[u8], Error> {
    if data.len() < 8 + DIGEST_BYTES || &data[4..8] != b"GPFN" {
        return Err(damaged("it lacks the identifier GPFN"));
    }
    let (data, digest) = data.split_at(data.len() - DIGEST_BYTES);
    if Sha256::digest(data).as_slice() != digest {
        return Err(damaged("its digest is wrong"));
    }
    Ok(data)
}

/// Checks the digest of an app of any format, and the structure of all its tables; returns where they end.
///
/// # Errors
/// [`Code::BadApp`].
pub fn check_structure(data: &[u8]) -> Result<usize, Error> {
    structure(sealed(data)?)
}

fn structure(data: &[u8]) -> Result<usize, Error> {
    let buffer = Buffer::new(data);
    buffer.root().and_then(|root| root.check(&APP)).map_err(damaged)?;
    Ok(buffer.end())
}

impl App {
    /// Reads the bytes of a file. Nothing in it has been compared with a machine yet.
    ///
    /// # Errors
    /// [`Code::BadApp`], [`Code::AppFormat`].
    pub fn read(data: &[u8]) -> Result<App, Error> {
        let data = sealed(data)?;
        let end = structure(data)?;
        let buffer = Buffer::new(data);
        let root = buffer.root().map_err(damaged)?;
        let format = root.int(0).map_err(damaged)?;
        if format != FORMAT && format != INSIDE {
            return Err(Error::new(
                Code::AppFormat,
                format!("the app has format {format}, this reader knows {FORMAT}"),
            ));
        }
        let mut found = app(root).map_err(damaged)?;
        if format == FORMAT {
            found.constants = behind(data, end, &found).map_err(damaged)?;
        }
        Ok(found)
    }

    /// The name of the machine that it was compiled for.
    pub fn target(&self) -> &str {
        &self.target
    }
}

const PORT: Kind = Kind::Table(&[Kind::Name, Kind::Name]);
const PLACE: Kind = Kind::Table(&[
    Kind::Number(1),
    Kind::List(&Kind::Table(&[Kind::List(&Kind::Number(8))])),
    Kind::List(&Kind::Number(8)),
    Kind::List(&Kind::Number(8)),
    Kind::List(&Kind::Number(8)),
]);
const VALUE: Kind = Kind::Table(&[
    Kind::Name,
    Kind::Name,
    Kind::List(&Kind::Number(8)),
    Kind::Text,
    Kind::Text,
    Kind::Number(1),
    Kind::Number(8),
    Kind::Number(8),
    PLACE,
]);
const OWNER: Kind = Kind::Table(&[Kind::Name, Kind::Name, Kind::Text, Kind::Text]);
const SEGMENT: Kind = Kind::Table(&[
    Kind::Number(1),
    Kind::List(&Kind::Text),
    Kind::List(&Kind::Text),
    Kind::Text,
    Kind::List(&Kind::Table(&[Kind::Number(4), Kind::Name, Kind::Number(8)])),
    Kind::Number(8),
    Kind::Number(8),
    Kind::List(&Kind::Number(1)),
    Kind::List(&OWNER),
    Kind::List(&Kind::Number(4)),
]);
/// The fields of the root table of `gpfnapp.fbs`.
const APP: [Kind; 11] = [
    Kind::Number(4),
    Kind::Text,
    Kind::Name,
    Kind::List(&PORT),
    Kind::List(&PORT),
    Kind::List(&VALUE),
    Kind::List(&Kind::Table(&[Kind::Name, Kind::List(&Kind::Number(1))])),
    Kind::List(&SEGMENT),
    Kind::Number(8),
    Kind::List(&PORT),
    Kind::List(&PORT),
];

fn app(root: Table<'_>) -> Result<App, Damage> {
    Ok(App {
        target: root.name(2)?,
        inputs: ports(root, 3)?,
        outputs: ports(root, 4)?,
        values: root.tables(5)?.into_iter().map(value).collect::<Result<_, _>>()?,
        constants: root.tables(6)?.into_iter().map(|t| Ok((t.name(0)?, t.raw(1)?))).collect::<Result<_, Damage>>()?,
        segments: root.tables(7)?.into_iter().map(segment).collect::<Result<_, _>>()?,
        dram_words: root.long(8)?,
        registered: root.tables(9)?.len() + root.tables(10)?.len(),
    })
}

/// The constants, whose data is at the end of the file, in their order, behind the tables' `end`.
fn behind(data: &[u8], end: usize, app: &App) -> Result<Vec<(String, Vec<u8>)>, Damage> {
    let values: HashMap<&str, u64> =
        app.values.iter().map(|value| (value.name.as_str(), value.size() * value.elem.bytes() as u64)).collect();
    let mut sizes = Vec::new();
    for (name, _) in &app.constants {
        let size = values.get(name.as_str()).ok_or_else(|| format!("there is data of the unknown value `{name}`"))?;
        sizes.push((name, *size));
    }
    let rooms = sizes.iter().try_fold(0u64, |sum, (_, size)| sum.checked_add(size.next_multiple_of(ALIGNED)));
    let start = rooms.and_then(|rooms| (data.len() as u64).checked_sub(rooms));
    let end = end as u64;
    let start = start.filter(|start| (end..end + 2 * ALIGNED).contains(start) && start % ALIGNED == 0);
    let mut at = start.ok_or("the data behind the tables does not fit the constants")? as usize;
    let mut found = Vec::new();
    for (name, size) in sizes {
        found.push((name.clone(), data[at..at + size as usize].to_vec()));
        at += size.next_multiple_of(ALIGNED) as usize;
    }
    Ok(found)
}

fn ports(root: Table<'_>, number: usize) -> Result<Vec<Port>, Damage> {
    root.tables(number)?.into_iter().map(|t| Ok(Port { key: t.name(0)?, value: t.name(1)? })).collect()
}

fn value(table: Table<'_>) -> Result<Value, Damage> {
    let (name, elem, shape) = (table.name(0)?, table.name(1)?, table.longs(2)?);
    let size = shape.iter().try_fold(1u64, |size, axis| size.checked_mul(*axis));
    if size.is_none_or(|size| size > MOST) || shape.iter().any(|axis| *axis > MOST) {
        return Err(format!("`{name}` has the shape {shape:?}"));
    }
    let elem = Elem::named(&elem).ok_or_else(|| format!("`{name}` has the unknown element type `{elem}`"))?;
    Ok(Value {
        elem,
        shape,
        dtype: table.text(3)?,
        on_device: table.byte(5)? != 0,
        dram: table.long(6)?,
        words: table.long(7)?,
        place: table.inner(8)?.map(place).transpose()?,
        name,
    })
}

fn place(table: Table<'_>) -> Result<Place, Damage> {
    Ok(Place {
        alike: table.byte(0)? != 0,
        axes: table.tables(1)?.into_iter().map(|axis| axis.longs(0)).collect::<Result<_, _>>()?,
        copies: table.longs(2)?.into_iter().map(|word| word as i64).collect(),
        elements: table.longs(3)?,
        owners: table.longs(4)?,
    })
}

fn segment(table: Table<'_>) -> Result<Segment, Damage> {
    let work = match table.byte(0)? {
        0 => Work::Device {
            code: table.text(3)?,
            lines: table.tables(4)?.into_iter().map(|place| place.int(0)).collect::<Result<_, _>>()?,
            steps: table.long(5)?,
            cycles: table.long(6)?,
        },
        1 => Work::Host { model: table.raw(7)? },
        kind => return Err(format!("a segment has the unknown kind {kind}")),
    };
    Ok(Segment { inputs: table.texts(1)?, outputs: table.texts(2)?, work })
}

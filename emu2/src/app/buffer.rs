//! Reads flatbuffers. Every offset must stay inside the file, and no part may be reached twice: damaged offsets could
//! otherwise make a small file unpack without end.

use std::cell::Cell;

/// What is wrong with the file.
pub(super) type Damage = String;

/// The bytes of a file, how many of them may still be read, and where the last part that was read ends.
pub(super) struct Buffer<'a> {
    data: &'a [u8],
    left: Cell<usize>,
    end: Cell<usize>,
}

/// What a field of a table is.
pub(super) enum Kind {
    /// A number of so many bytes.
    Number(usize),
    Text,
    /// A text that must be there.
    Name,
    Table(&'static [Kind]),
    List(&'static Kind),
}

/// A table, with the place of its list of fields.
#[derive(Clone, Copy)]
pub(super) struct Table<'a> {
    buffer: &'a Buffer<'a>,
    at: usize,
    size: usize,
    fields: usize,
    length: usize,
}

impl<'a> Buffer<'a> {
    pub(super) fn new(data: &'a [u8]) -> Self {
        Buffer { data, left: Cell::new(data.len()), end: Cell::new(0) }
    }

    /// Where the last part ends that was read so far.
    pub(super) fn end(&self) -> usize {
        self.end.get()
    }

    /// The table that the file begins with.
    pub(super) fn root(&'a self) -> Result<Table<'a>, Damage> {
        self.table(self.offset(0)?)
    }

    fn bytes<const N: usize>(&self, at: usize) -> Result<[u8; N], Damage> {
        let found = at.checked_add(N).and_then(|end| self.data.get(at..end));
        found.and_then(|part| part.try_into().ok()).ok_or_else(|| format!("an offset to {at} leaves the file"))
    }

    fn offset(&self, at: usize) -> Result<usize, Damage> {
        let by = u32::from_le_bytes(self.bytes(at)?) as usize;
        at.checked_add(by).ok_or_else(|| "an offset leaves the file".to_string())
    }

    /// Counts bytes of the file as read.
    fn take(&self, at: usize, size: usize) -> Result<&'a [u8], Damage> {
        let end = at.checked_add(size).filter(|end| *end <= self.data.len());
        let Some(end) = end else { return Err(format!("a part at {at} of {size} bytes leaves the file")) };
        let left = self.left.get().checked_sub(size).ok_or("parts of the file overlap")?;
        self.left.set(left);
        self.end.set(self.end.get().max(end));
        Ok(&self.data[at..end])
    }

    fn table(&'a self, at: usize) -> Result<Table<'a>, Damage> {
        let by = i64::from(i32::from_le_bytes(self.bytes(at)?));
        let fields = usize::try_from(at as i64 - by).map_err(|_| "a table has no list of fields")?;
        let length = u16::from_le_bytes(self.bytes(fields)?) as usize;
        let size = u16::from_le_bytes(self.bytes(fields + 2)?) as usize;
        if length < 4 || length % 2 == 1 || fields + length > self.data.len() || size < 4 {
            return Err("a list of fields is damaged".into());
        }
        self.take(at, size)?;
        self.end.set(self.end.get().max(fields + length));
        Ok(Table { buffer: self, at, size, fields, length })
    }

    /// The number of elements of a vector and the place of its first one; all of its bytes count as read.
    fn vector(&self, at: usize, width: usize) -> Result<(usize, &'a [u8]), Damage> {
        let count = u32::from_le_bytes(self.bytes(at)?) as usize;
        let size = count.checked_mul(width).and_then(|size| size.checked_add(4));
        let part = self.take(at, size.ok_or("a list is too long")?)?;
        Ok((count, &part[4..]))
    }

    fn check(&'a self, at: usize, kind: &Kind) -> Result<(), Damage> {
        match kind {
            Kind::Number(_) => Ok(()),
            Kind::Text | Kind::Name => self.text(self.offset(at)?).map(|_| ()),
            Kind::Table(fields) => self.table(self.offset(at)?)?.check(fields),
            Kind::List(Kind::Number(size)) => self.vector(self.offset(at)?, *size).map(|_| ()),
            Kind::List(inner) => {
                let at = self.offset(at)?;
                let (count, _) = self.vector(at, 4)?;
                (0..count).try_for_each(|i| self.check(at + 4 + 4 * i, inner))
            }
        }
    }

    fn text(&self, at: usize) -> Result<String, Damage> {
        let (_, bytes) = self.vector(at, 1)?;
        String::from_utf8(bytes.to_vec()).map_err(|_| "a text is not UTF-8".to_string())
    }
}

impl<'a> Table<'a> {
    /// The place of a field that needs `width` bytes in the table; None if it is not there.
    fn field(&self, number: usize, width: usize) -> Result<Option<usize>, Damage> {
        let entry = 4 + 2 * number;
        if entry + 2 > self.length {
            return Ok(None);
        }
        let place = u16::from_le_bytes(self.buffer.bytes(self.fields + entry)?) as usize;
        match place {
            0 => Ok(None),
            place if place >= 4 && place + width <= self.size => Ok(Some(self.at + place)),
            _ => Err("a field lies outside of its table".into()),
        }
    }

    fn target(&self, number: usize) -> Result<Option<usize>, Damage> {
        self.field(number, 4)?.map(|at| self.buffer.offset(at)).transpose()
    }

    /// Checks all fields, and what they lead to.
    pub(super) fn check(&self, fields: &[Kind]) -> Result<(), Damage> {
        for (number, kind) in fields.iter().enumerate() {
            let place = self.field(number, if let Kind::Number(size) = kind { *size } else { 4 })?;
            match place {
                Some(place) => self.buffer.check(place, kind)?,
                None if matches!(kind, Kind::Name) => return Err("a field is missing".into()),
                None => (),
            }
        }
        Ok(())
    }

    pub(super) fn byte(&self, number: usize) -> Result<u8, Damage> {
        Ok(self.field(number, 1)?.map(|at| self.buffer.bytes::<1>(at)).transpose()?.map_or(0, |b| b[0]))
    }

    pub(super) fn int(&self, number: usize) -> Result<u32, Damage> {
        Ok(self.field(number, 4)?.map(|at| self.buffer.bytes(at)).transpose()?.map_or(0, u32::from_le_bytes))
    }

    pub(super) fn long(&self, number: usize) -> Result<u64, Damage> {
        Ok(self.field(number, 8)?.map(|at| self.buffer.bytes(at)).transpose()?.map_or(0, u64::from_le_bytes))
    }

    pub(super) fn text(&self, number: usize) -> Result<String, Damage> {
        self.target(number)?.map_or(Ok(String::new()), |at| self.buffer.text(at))
    }

    /// A text that must be there.
    pub(super) fn name(&self, number: usize) -> Result<String, Damage> {
        let at = self.target(number)?.ok_or("a field is missing")?;
        self.buffer.text(at)
    }

    pub(super) fn inner(&self, number: usize) -> Result<Option<Table<'a>>, Damage> {
        self.target(number)?.map(|at| self.buffer.table(at)).transpose()
    }

    pub(super) fn raw(&self, number: usize) -> Result<Vec<u8>, Damage> {
        self.target(number)?.map_or(Ok(Vec::new()), |at| Ok(self.buffer.vector(at, 1)?.1.to_vec()))
    }

    pub(super) fn longs(&self, number: usize) -> Result<Vec<u64>, Damage> {
        let Some(at) = self.target(number)? else { return Ok(Vec::new()) };
        let (_, bytes) = self.buffer.vector(at, 8)?;
        Ok(bytes.as_chunks().0.iter().map(|part| u64::from_le_bytes(*part)).collect())
    }

    pub(super) fn texts(&self, number: usize) -> Result<Vec<String>, Damage> {
        self.each(number, |buffer, at| buffer.text(at))
    }

    pub(super) fn tables(&self, number: usize) -> Result<Vec<Table<'a>>, Damage> {
        self.each(number, |buffer, at| buffer.table(at))
    }

    fn each<T>(
        &self,
        number: usize,
        read: impl Fn(&'a Buffer<'a>, usize) -> Result<T, Damage>,
    ) -> Result<Vec<T>, Damage> {
        let Some(at) = self.target(number)? else { return Ok(Vec::new()) };
        let (count, _) = self.buffer.vector(at, 4)?;
        (0..count).map(|i| read(self.buffer, self.buffer.offset(at + 4 + 4 * i)?)).collect()
    }
}

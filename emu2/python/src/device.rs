//! `emu2.Device` and `emu2.Kernel`.

use crate::argument::{integer, Addr, Name, Text, Unit};
use crate::attended::{attended, Where};
use crate::error;
use crate::files::{path, read};
use crate::program::PyProgram;
use crate::report::PyReport;
use crate::spec::PySpec;
use emu2::error::{Code, Error};
use emu2::files::SOURCE_LIMIT;
use emu2::host::{Device, Endian, Kernel, UnitNumbers, NO_TAG};
use emu2::spec::Spec;
use numpy::{IntoPyArray, PyArray1, PyArrayMethods, PyReadonlyArray1};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict, PyString};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// The default spec of a device.
const DEFAULT_SPEC: &str = "mncore2";
/// Names of the numbers of a location.
const LOCATION: [&str; 5] = ["chip", "l2b", "l1b", "mab", "pe"];

/// A machine from the view of a host program: transfers, kernels, tags. `with Device() as device:` closes it.
///
/// The host reaches the PDM of group 0 only (`size` bytes). Offsets and lengths are bytes, multiples of 8. Tags are those
/// of MVs and `wait`, 1 to 63; 0 means none. Calls return when their work is done. Memories keep their contents from kernel
/// to kernel. After an error inside a kernel the device refuses to work (R0004) until `reset`.
#[pyclass(frozen, name = "Device", module = "emu2")]
pub(crate) struct PyDevice {
    spec: Arc<Spec>,
    /// The device; None after it was closed.
    inner: Mutex<Option<Device>>,
}

/// A program that was loaded; it runs on any device of its spec, any number of times.
#[pyclass(frozen, name = "Kernel", module = "emu2")]
pub(crate) struct PyKernel {
    inner: Kernel,
}

impl PyDevice {
    fn lock(&self) -> MutexGuard<'_, Option<Device>> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Calls `work` with the open device, without the interpreter.
    fn with<T: Send>(&self, py: Python<'_>, work: impl FnOnce(&mut Device) -> Result<T, Error> + Send) -> PyResult<T> {
        py.detach(|| self.lock().as_mut().ok_or_else(closed).and_then(work)).map_err(|e| error::core(py, &e))
    }
}

fn closed() -> Error {
    Error::new(Code::Closed, "the device has been closed")
}

fn shape_error(py: Python<'_>, message: &str, help: &str) -> PyErr {
    error::core(py, &Error::new(Code::BadShape, message).help(help))
}

/// Argument: a byte of the memory that the host reaches. H0001 for an integer out of its range.
struct Offset(u64);

/// Argument: a tag of a transfer. H0003 for an integer out of its range.
struct Tag(u32);

/// Argument: an endian mode. R0009 for an integer out of its range.
struct Mode(u8);

impl FromPyObject<'_, '_> for Offset {
    type Error = PyErr;

    fn extract(object: Borrowed<'_, '_, PyAny>) -> PyResult<Self> {
        integer(object, "offset ", Code::TransferRange).map(Offset)
    }
}

impl FromPyObject<'_, '_> for Tag {
    type Error = PyErr;

    fn extract(object: Borrowed<'_, '_, PyAny>) -> PyResult<Self> {
        integer(object, "tag ", Code::TagRange).map(Tag)
    }
}

impl FromPyObject<'_, '_> for Mode {
    type Error = PyErr;

    fn extract(object: Borrowed<'_, '_, PyAny>) -> PyResult<Self> {
        integer(object, "endian mode ", Code::BadOption).map(Mode)
    }
}

/// A flat view of the bytes of a C-contiguous array.
fn flat<'py>(array: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
    let py = array.py();
    let dtype = array.getattr("dtype")?;
    if matches!(dtype.getattr("kind")?.extract()?, 'U' | 'S') {
        // numpy would turn a str into an array whose bytes have numpy's own encoding, four per character.
        return Err(shape_error(py, "a text is no array", "use an array of numbers, or bytes"));
    }
    if dtype.getattr("hasobject")?.is_truthy()? {
        return Err(shape_error(py, "an array of Python objects has no bytes to transfer", "use an array of numbers"));
    }
    if !dtype.getattr("isnative")?.is_truthy()? {
        let help = "convert it first: array.astype(array.dtype.newbyteorder('='))";
        return Err(shape_error(py, "the numbers of the array have the other byte order than the host", help));
    }
    array.call_method1("reshape", (-1,))?.call_method1("view", ("uint8",))
}

/// Reads group, L2B, L1B, MAB and PE from a sequence of up to five numbers, or from a dict.
fn place(py: Python<'_>, location: Option<&Bound<'_, PyAny>>) -> PyResult<UnitNumbers> {
    let mut place = [0; 5];
    let Some(location) = location else { return Ok(place) };
    let bad = |message: String| {
        let help = format!("give up to {} numbers, or a dict with the keys {}", LOCATION.len(), LOCATION.join(", "));
        error::core(py, &Error::new(Code::BadSelector, message).help(help))
    };
    if let Ok(named) = location.cast::<PyDict>() {
        for (key, value) in named.iter() {
            let key = key.extract::<Name>()?.0;
            let at = LOCATION.iter().position(|name| *name == key);
            let at = at.ok_or_else(|| bad(format!("a location has no `{key}`")))?;
            place[at] = value.extract::<Unit>()?.0;
        }
        return Ok(place);
    }
    let numbers: Vec<u32> = location.extract().map_err(|_| bad(format!("{location} is no location")))?;
    if numbers.len() > place.len() {
        return Err(bad(format!("a location of {} numbers", numbers.len())));
    }
    place[..numbers.len()].copy_from_slice(&numbers);
    Ok(place)
}

#[pymethods]
impl PyDevice {
    /// Opens a device of `spec` (an `emu2.Spec`, or any argument of `Spec.load`) whose memories are zero. `endian` is the
    /// same as the attribute.
    #[new]
    #[pyo3(
        signature = (spec = None, *, endian = Mode(4)),
        text_signature = "(spec=None, *, endian=4)"
    )]
    fn new(py: Python<'_>, spec: Option<&Bound<'_, PyAny>>, endian: Mode) -> PyResult<PyDevice> {
        let spec = match spec {
            None => PySpec::load(py, Name::of(DEFAULT_SPEC))?.inner,
            Some(spec) => match spec.cast::<PySpec>() {
                Ok(spec) => spec.get().inner.clone(),
                Err(_) => PySpec::load(py, spec.extract()?)?.inner,
            },
        };
        let device = Device::open(spec.clone()).map_err(|e| error::core(py, &e))?;
        let device = PyDevice { spec, inner: Mutex::new(Some(device)) };
        device.set_endian(py, endian)?;
        Ok(device)
    }

    /// The spec from which the device was made.
    #[getter]
    fn spec(&self) -> PySpec {
        PySpec { inner: self.spec.clone() }
    }

    /// Number of bytes that the host reaches.
    #[getter]
    fn size(&self, py: Python<'_>) -> PyResult<u64> {
        self.with(py, |device| Ok(device.size()))
    }

    /// How transfers reverse bytes, in both directions: 0 reverses blocks of 64 bytes, 1 nothing, and 2, 3 and 4 (the
    /// default) reverse units of 2, 4 and 8 bytes. In mode 4 a little-endian uint64 is a long word of the device.
    #[getter]
    fn endian(&self, py: Python<'_>) -> PyResult<u8> {
        self.with(py, |device| Ok(device.endian().mode()))
    }

    #[setter]
    fn set_endian(&self, py: Python<'_>, mode: Mode) -> PyResult<()> {
        self.with(py, |device| Endian::new(mode.0).map(|endian| device.set_endian(endian)))
    }

    /// Copies `data` (an array of any numeric dtype in C order, or bytes) to byte `offset`, then signals `tag`.
    ///
    /// Raises EmulatorError: H0001 past the end, H0002 for an offset or length that is no multiple of 8 bytes (64 in endian
    /// mode 0), H0003 for a tag above 63, H0005 for a tag that an MV has signalled and nobody has received, H0006 for a
    /// closed device.
    #[pyo3(
        signature = (data, offset = Offset(0), tag = Tag(NO_TAG)),
        text_signature = "($self, data, offset=0, tag=0)"
    )]
    fn send(&self, py: Python<'_>, data: &Bound<'_, PyAny>, offset: Offset, tag: Tag) -> PyResult<()> {
        let bytes: Vec<u8> = match data.cast::<PyBytes>() {
            Ok(bytes) => bytes.as_bytes().to_vec(),
            Err(_) => {
                let numpy = py.import("numpy")?;
                let array = numpy.call_method1("asarray", (data,))?;
                // A broadcast array may name more bytes than any host has, so its size is checked before it is copied.
                let bytes: u128 = array.getattr("nbytes")?.extract()?;
                let size = self.with(py, |device| Ok(device.size()))?;
                if bytes > u128::from(size) {
                    let message = format!("{bytes} bytes are more than the {size} bytes that the host reaches");
                    return Err(error::core(py, &Error::new(Code::TransferRange, message)));
                }
                let array = numpy.call_method1("ascontiguousarray", (array,))?;
                let bytes: PyReadonlyArray1<'_, u8> = flat(&array)?.extract()?;
                bytes.as_slice()?.to_vec()
            }
        };
        self.with(py, |device| device.send(&bytes, offset.0, tag.0))
    }

    /// Fills the array `out` (any numeric dtype, writable, C order) from byte `offset` on and returns it, once an MV has
    /// signalled `tag`. The signal is used up. With tag 0 the call waits for nothing.
    ///
    /// Raises EmulatorError: H0004 if no MV has signalled the tag since data was last received with it, R0007 for an array
    /// that cannot be filled, and the errors of `send`.
    #[pyo3(
        signature = (out, offset = Offset(0), tag = Tag(NO_TAG)),
        text_signature = "($self, out, offset=0, tag=0)"
    )]
    fn recv<'py>(
        &self,
        py: Python<'py>,
        out: Bound<'py, PyAny>,
        offset: Offset,
        tag: Tag,
    ) -> PyResult<Bound<'py, PyAny>> {
        let array = out.is_instance(&py.import("numpy")?.getattr("ndarray")?)?;
        let flag = |name: &str| out.getattr("flags")?.getattr(name)?.is_truthy();
        if !array || !flag("c_contiguous")? || !flag("writeable")? {
            return Err(shape_error(py, "this cannot be filled", "give a writable numpy array in C order"));
        }
        let view = flat(&out)?;
        let view = view.cast::<PyArray1<u8>>()?;
        let length = view.len()?;
        let bytes = self.with(py, |device| {
            let mut bytes = device.alloc(length)?;
            device.recv(&mut bytes, offset.0, tag.0)?;
            Ok(bytes)
        })?;
        view.readwrite().as_slice_mut()?.copy_from_slice(&bytes);
        Ok(out)
    }

    /// Loads a kernel: an `emu2.Program`; the path of a source (.vsm), of assembled text (.asm) or of a container; or the
    /// contents of such a file, as bytes or as a str with a line feed.
    ///
    /// Raises AssembleError with every finding, EmulatorError F0001 for a file that cannot be read.
    #[pyo3(signature = (source, *, filename = None))]
    fn load_kernel(&self, py: Python<'_>, source: &Bound<'_, PyAny>, filename: Option<Name>) -> PyResult<PyKernel> {
        if let Ok(program) = source.cast::<PyProgram>() {
            return Ok(PyKernel { inner: Kernel::new(program.get().inner.clone()) });
        }
        let text = source.is_instance_of::<PyString>() && source.contains("\n")?;
        let (data, name) = match (source.is_instance_of::<PyBytes>(), text) {
            (true, _) => (Text::new(source)?, "<bytes>".to_string()),
            (_, true) => (Text::new(source)?, "<string>".to_string()),
            _ => {
                let path = path(source)?;
                (Text::Read(read(py, &path, SOURCE_LIMIT)?), path.display().to_string())
            }
        };
        let name = filename.map_or(name, |name| name.0);
        let loaded = py.detach(|| {
            let device = self.lock();
            let device = device.as_ref().ok_or_else(closed)?;
            Ok(attended(Where::of_text(data.len()), None, |interrupt, _| match Where::of_text(data.len()) {
                // This uses tables that the device has laid out already.
                Where::Here => device.load_kernel(&data, &name),
                _ => device.load_kernel_until(&data, &name, interrupt),
            }))
        });
        match loaded.map_err(|e| error::core(py, &e))??.0 {
            Ok(inner) => Ok(PyKernel { inner }),
            Err(e) => Err(error::assemble(py, &e)),
        }
    }

    /// Runs `kernel` to its end and returns its report. Dump lines are collected in the report, or written to `dump`, an
    /// object with a `write(str)` method.
    ///
    /// Raises RunError with the line: R0008 for a `wait` whose tag neither the host nor an MV has signalled.
    #[pyo3(signature = (kernel, *, dump = None))]
    fn exec(&self, py: Python<'_>, kernel: &PyKernel, dump: Option<Py<PyAny>>) -> PyResult<PyReport> {
        let place = Where::of_program(kernel.inner.program(), dump.is_some());
        let result = py.detach(|| {
            let mut device = self.lock();
            let device = device.as_mut().ok_or_else(closed)?;
            Ok(attended(place, dump.as_ref(), |interrupt, dump| {
                device.set_interrupt(interrupt.clone());
                device.exec(&kernel.inner, &mut |line| interrupt.check().and_then(|()| dump.line(line)))
            }))
        });
        let (result, lines) = result.map_err(|e| error::core(py, &e))??;
        match result {
            Ok(report) => Ok(PyReport::new(report, lines)),
            Err(e) => Err(error::run(py, &kernel.inner.program().name, &e)),
        }
    }

    /// Reads `count` long words of a memory of one unit as uint64, from long word `addr` on (the address of a local memory
    /// is the assembly's divided by 2). `region` is a memory of the spec in upper or lower case, such as "PDM" or "lm0".
    /// `location` is up to five numbers (group, l2b, l1b, mab, pe), of which missing ones are 0, or a dict with the keys
    /// chip, l2b, l1b, mab, pe.
    ///
    /// Raises EmulatorError: R0001 past the end, R0002 for an unknown memory, R0003 for an unknown unit.
    #[pyo3(
        signature = (region, location = None, addr = Addr(0), count = Addr(1)),
        text_signature = "($self, region, location=None, addr=0, count=1)"
    )]
    fn debug_read<'py>(
        &self,
        py: Python<'py>,
        region: Name,
        location: Option<&Bound<'py, PyAny>>,
        addr: Addr,
        count: Addr,
    ) -> PyResult<Bound<'py, PyArray1<u64>>> {
        let place = place(py, location)?;
        Ok(self.with(py, |device| device.debug_read(&region, place, addr.0, count.0))?.into_pyarray(py))
    }

    /// Writes long words of a memory of one unit from long word `addr` on. Arguments and errors are those of `debug_read`.
    #[pyo3(signature = (region, location, addr, words))]
    fn debug_write(
        &self,
        py: Python<'_>,
        region: Name,
        location: Option<&Bound<'_, PyAny>>,
        addr: Addr,
        words: PyReadonlyArray1<'_, u64>,
    ) -> PyResult<()> {
        let place = place(py, location)?;
        let longest = self.spec.memories.iter().map(|memory| memory.words).max().unwrap_or(0);
        let given = words.as_array().len();
        if given as u64 > longest {
            let message = format!("{given} long words are more than any memory has");
            return Err(error::core(py, &Error::new(Code::AddressRange, message)));
        }
        let words: Vec<u64> = words.as_array().iter().copied().collect();
        self.with(py, |device| device.debug_write(&region, place, addr.0, &words))
    }

    /// Bytes of the host that DRAM and PDM take: the written pages, of 32 KiB each.
    #[getter]
    fn resident_bytes(&self, py: Python<'_>) -> PyResult<usize> {
        self.with(py, |device| Ok(device.machine().resident_bytes()))
    }

    /// Sets every memory to zero and all tags to unsignalled. Makes the device usable again after an error.
    fn reset(&self, py: Python<'_>) -> PyResult<()> {
        self.with(py, |device| {
            device.reset();
            Ok(())
        })
    }

    /// Releases the memories. Closing twice does nothing; every other call on a closed device raises H0006.
    fn close(&self, py: Python<'_>) {
        py.detach(|| *self.lock() = None);
    }

    fn __enter__(slf: Bound<'_, Self>) -> Bound<'_, Self> {
        slf
    }

    #[pyo3(signature = (*_error))]
    fn __exit__(&self, py: Python<'_>, _error: &Bound<'_, pyo3::types::PyTuple>) {
        self.close(py);
    }

    fn __repr__(&self) -> String {
        format!("Device({:?})", self.spec.machine.name)
    }
}

#[pymethods]
impl PyKernel {
    /// The program of the kernel.
    #[getter]
    fn program(&self) -> PyProgram {
        PyProgram::new(self.inner.program().clone())
    }

    fn __repr__(&self) -> String {
        format!("Kernel({:?})", self.inner.program().name)
    }
}

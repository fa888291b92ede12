//! A device from the view of a host program: transfers to and from its memory, kernels, tags, and a debugger's access.
//!
//! The host reaches one memory of one group (PDM of group 0 on MN-Core 2). MVs bring data to and from the other memories.
//! Offsets and lengths count bytes. MVs, `wait` and the transfers of the host share the tags. Every call returns when its
//! work is done. Memories keep their contents from kernel to kernel.
//!
//! ```
//! use emu2::host::{Device, NO_TAG};
//! use std::sync::Arc;
//!
//! let spec = Arc::new(emu2::spec::Spec::load("mini")?);
//! let mut device = Device::open(spec)?;
//! let kernel = device.load_kernel(b"nop; wait i10\nmvp/n64i1e $p0@0 $p64@0\n", "copy.vsm")?;
//! device.send(&[7; 512], 0, 0x10)?;
//! let report = device.exec(&kernel, &mut |_line| Ok(())).map_err(|e| e.diagnostic.message)?;
//! let mut out = device.alloc(512)?;
//! device.recv(&mut out, 512, 0x1e)?;
//! assert_eq!((out, report.mvs), (vec![7; 512], 1));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod endian;
mod followed;
mod kernel;
mod tags;

pub use endian::Endian;
pub use kernel::Kernel;
pub use tags::TagRules;

use crate::asm::{AssembleError, Assembler};
use crate::error::{Code, Error};
use crate::exec::{Engine, RunError, Sanitizer};
use crate::interrupt::Interrupt;
use crate::machine::{Machine, Region};
use crate::report::{dump_lines, Report};
use crate::spec::{LevelName, Spec};
use endian::LONG_BYTES;
use std::sync::Arc;
use tags::DeviceTags;

/// The tag of transfers that signal nothing and wait for nothing.
pub const NO_TAG: u32 = 0;

/// The name of the memory that channels of the host reach beside the PDM.
const DRAM: &str = "dram";

/// The numbers of a unit: group, L2B, L1B, MAB, PE. Levels below the level of a memory are ignored.
pub type UnitNumbers = [u32; 5];

/// A machine behind a host interface. Dropping it closes it.
pub struct Device {
    machine: Machine,
    engine: Engine,
    /// What sanitized runs know of the memories. It is made for the first one.
    sanitizer: Option<Box<Sanitizer>>,
    assembler: Assembler,
    tags: DeviceTags,
    endian: Endian,
    /// The memory that the host reaches, as an entry of `memories`, and the group of its instance.
    reached: (usize, u32),
}

impl Device {
    /// A device of `spec` whose memories are zero.
    ///
    /// # Errors
    /// [`Code::SpecMissingKey`] for a machine without a memory that the host reaches.
    pub fn open(spec: Arc<Spec>) -> Result<Device, Error> {
        let reached = spec.memories.iter().enumerate().find_map(|(at, m)| Some((at, m.host?)));
        let Some(reached) = reached else {
            let message = format!("no memory of `{}` is reached by the host", spec.machine.name);
            return Err(Error::new(Code::SpecMissingKey, message).help("give one memory of a group the key `host`"));
        };
        Ok(Device {
            engine: Engine::new(spec.clone()),
            sanitizer: None,
            assembler: Assembler::new(&spec),
            machine: Machine::new(spec),
            tags: DeviceTags::default(),
            endian: Endian::default(),
            reached,
        })
    }

    /// The spec from which the device was made.
    pub fn spec(&self) -> &Arc<Spec> {
        self.machine.spec()
    }

    /// The machine of the device, for reading.
    pub fn machine(&self) -> &Machine {
        &self.machine
    }

    /// Number of bytes that the host reaches.
    pub fn size(&self) -> u64 {
        self.spec().memories[self.reached.0].words * LONG_BYTES as u64
    }

    /// A buffer of `bytes` zero bytes for transfers.
    ///
    /// # Errors
    /// [`Code::TransferUnit`] and [`Code::TransferRange`] for sizes that no transfer can have.
    pub fn alloc(&self, bytes: usize) -> Result<Vec<u8>, Error> {
        self.region(0, bytes)?;
        Ok(vec![0; bytes])
    }

    /// Makes later runs end with [`Code::Interrupted`] soon after `interrupt` is requested.
    pub fn set_interrupt(&mut self, interrupt: Interrupt) {
        self.engine.set_interrupt(interrupt);
    }

    /// The mode in which transfers reverse bytes.
    pub fn endian(&self) -> Endian {
        self.endian
    }

    /// Sets the mode of both directions, from the next transfer on.
    pub fn set_endian(&mut self, endian: Endian) {
        self.endian = endian;
    }

    /// Sets the rules of tags, and makes all of them unsignalled.
    pub fn set_tag_rules(&mut self, rules: TagRules) {
        self.tags = DeviceTags::new(rules);
    }

    /// The tag at which `kernel` would wait for ever, if it ran now and nobody signalled one meanwhile.
    pub fn blocked_at(&self, kernel: &Kernel) -> Option<u32> {
        self.tags.blocked_at(kernel.tag_uses())
    }

    /// Whether data could be received under `tag` now.
    pub fn is_due(&self, tag: u32) -> bool {
        tag == NO_TAG || self.tags.is_due(tag)
    }

    /// Copies `data` to byte `offset`, then signals `tag` ([`NO_TAG`]: nothing).
    ///
    /// # Errors
    /// [`Code::TransferUnit`] for an offset or length that is no multiple of [`Endian::granule`], or no bytes;
    /// [`Code::TransferRange`] past the end; [`Code::TagRange`] and [`Code::TagInFlight`] for the tag; [`Code::Poisoned`].
    pub fn send(&mut self, data: &[u8], offset: u64, tag: u32) -> Result<(), Error> {
        self.machine.check_usable()?;
        let region = self.region(offset, data.len())?;
        self.check_tag(tag)?;
        if tag != NO_TAG {
            self.tags.check_send(tag)?;
        }
        self.machine.write(&region, &self.endian.words(data))?;
        if tag != NO_TAG {
            self.tags.sent(tag);
        }
        Ok(())
    }

    /// Signals a tag as a transfer to the device does, without data.
    ///
    /// # Errors
    /// [`Code::TagRange`] for a tag that does not exist.
    pub fn signal(&mut self, tag: u32) -> Result<(), Error> {
        self.check_tag(tag)?;
        self.tags.sent(tag);
        Ok(())
    }

    /// Fills `out` from byte `offset` on, after an MV has signalled `tag` ([`NO_TAG`]: at once, with the current contents).
    /// The signal is used up: each transfer needs its own.
    ///
    /// # Errors
    /// Those of [`Device::send`], except that [`Code::NothingToReceive`] means that no signal is left. The hardware would
    /// wait for good.
    pub fn recv(&mut self, out: &mut [u8], offset: u64, tag: u32) -> Result<(), Error> {
        self.machine.check_usable()?;
        let region = self.region(offset, out.len())?;
        self.check_tag(tag)?;
        if tag != NO_TAG {
            self.tags.check_receive(tag)?;
        }
        let (memory, group) = self.reached;
        self.endian.bytes(out, |words| self.machine.read_unit(memory, [group, 0, 0, 0, 0], region.addr, words));
        if tag != NO_TAG {
            self.tags.received(tag);
        }
        Ok(())
    }

    /// Loads a kernel from a source (`.vsm`), assembled text (`.asm`) or a program container. The end of `name` decides
    /// between the first two. If it is neither, the form of the lines decides.
    ///
    /// # Errors
    /// [`AssembleError`] with every finding.
    pub fn load_kernel(&self, data: &[u8], name: &str) -> Result<Kernel, AssembleError> {
        Ok(Kernel::new(kernel::load(&self.assembler, self.spec(), data, name, &Interrupt::default())?))
    }

    /// Does the same as [`Device::load_kernel`], but stops if `interrupt` is requested.
    ///
    /// # Errors
    /// Those of [`Device::load_kernel`], and [`Code::Interrupted`].
    pub fn load_kernel_until(&self, data: &[u8], name: &str, interrupt: &Interrupt) -> Result<Kernel, AssembleError> {
        let assembler = Assembler::new(self.spec()).interrupted_by(interrupt);
        let program = kernel::load(&assembler, self.spec(), data, name, interrupt)?;
        Kernel::until(program, interrupt)
    }

    /// Runs `kernel` to its end. `sink` takes the dump lines.
    ///
    /// # Errors
    /// [`Code::WrongSpec`] before anything ran. [`Code::UnsignalledTag`] at a `wait` for a tag that neither the host nor an
    /// MV has signalled. The errors of `sink`, after which the device must be reset. [`Code::TagInFlight`] after the end, with
    /// [`TagRules::UsedUp`], if MVs signalled a tag twice.
    pub fn exec(
        &mut self,
        kernel: &Kernel,
        sink: &mut dyn FnMut(&str) -> Result<(), Error>,
    ) -> Result<Report, RunError> {
        let on_get = &mut |get: &_, machine: &Machine| dump_lines(machine, get, sink);
        let (program, regions) = (kernel.program(), kernel.regions());
        self.engine.run_again(&mut self.machine, program, regions, &mut self.tags, on_get)?;
        self.tags.check_doubled().map_err(|e| RunError { line: 0, diagnostic: *e.0 })?;
        Ok(kernel.report().clone())
    }

    /// Reads `count` long words of one unit's memory from long word `addr` on. It is a debugger's access: no transfer, no
    /// tag.
    ///
    /// # Errors
    /// [`Code::UnknownMemory`], [`Code::BadSelector`], [`Code::AddressRange`].
    pub fn debug_read(&self, memory: &str, place: UnitNumbers, addr: u64, count: u64) -> Result<Vec<u64>, Error> {
        self.machine.read(&self.place(memory, place, addr, count)?)
    }

    /// Writes long words of one unit's memory from long word `addr` on.
    ///
    /// # Errors
    /// Those of [`Device::debug_read`].
    pub fn debug_write(&mut self, memory: &str, place: UnitNumbers, addr: u64, words: &[u64]) -> Result<(), Error> {
        let region = self.place(memory, place, addr, words.len() as u64)?;
        self.machine.write(&region, words)
    }

    /// Copies `data` to the DRAM of the group that the host reaches, from byte `address` on.
    ///
    /// # Errors
    /// [`Code::TransferUnit`] and those of [`Device::debug_write`].
    pub fn dram_write(&mut self, address: u64, data: &[u8]) -> Result<(), Error> {
        let place = self.dram(address, data.len())?;
        let words = self.endian.words(data).into_owned();
        self.debug_write(DRAM, place, address / LONG_BYTES as u64, &words)
    }

    /// Fills `out` from the DRAM of the group that the host reaches, from byte `address` on.
    ///
    /// # Errors
    /// [`Code::TransferUnit`] and those of [`Device::debug_read`].
    pub fn dram_read(&self, address: u64, out: &mut [u8]) -> Result<(), Error> {
        let place = self.dram(address, out.len())?;
        let words = self.debug_read(DRAM, place, address / LONG_BYTES as u64, (out.len() / LONG_BYTES) as u64)?;
        self.endian.bytes(out, |place| place.copy_from_slice(&words));
        Ok(())
    }

    /// The group of the DRAM that the host reaches, if it has such a range of whole units.
    fn dram(&self, address: u64, bytes: usize) -> Result<UnitNumbers, Error> {
        self.check_granule(address, bytes)?;
        Ok([self.reached.1, 0, 0, 0, 0])
    }

    /// Sets every memory to zero and all tags to unsignalled. Makes the device usable again after an error. The endian mode
    /// stays.
    pub fn reset(&mut self) {
        self.machine.reset();
        self.reset_tags();
    }

    /// Sets all tags to unsignalled, and keeps the memories as they are. Makes the device usable again after an error.
    pub fn reset_tags(&mut self) {
        self.machine.recover();
        self.tags = DeviceTags::new(self.tags.rules());
    }

    /// Finds a memory by its name, in upper or lower case.
    fn place(&self, memory: &str, place: UnitNumbers, addr: u64, count: u64) -> Result<Region, Error> {
        let spec = self.spec();
        let Some(memory) = spec.memory(&memory.to_ascii_lowercase()) else {
            let known: Vec<_> = spec.memories.iter().map(|m| m.name.as_str()).collect();
            let message = format!("no memory is called `{memory}`; there are {}", known.join(", "));
            return Err(Error::new(Code::UnknownMemory, message));
        };
        let level = spec.memories[memory].level;
        let tree = [LevelName::Group, LevelName::L2b, LevelName::L1b, LevelName::Mab, LevelName::Pe];
        let units = std::array::from_fn(|at| (tree[at] <= level).then_some(place[at]));
        let region = Region { memory, units, addr, count };
        region.check(spec)?;
        Ok(region)
    }

    /// The region that a transfer of `bytes` bytes at `offset` covers.
    fn region(&self, offset: u64, bytes: usize) -> Result<Region, Error> {
        self.check_granule(offset, bytes)?;
        let size = self.size();
        if offset.checked_add(bytes as u64).is_none_or(|end| end > size) {
            let message = format!("{bytes} bytes at {offset} reach past the {size} bytes that the host reaches");
            return Err(Error::new(Code::TransferRange, message));
        }
        let (memory, group) = self.reached;
        let units = [Some(group), None, None, None, None];
        let (addr, count) = (offset / LONG_BYTES as u64, (bytes / LONG_BYTES) as u64);
        Ok(Region { memory, units, addr, count })
    }

    /// Checks that a transfer has whole units.
    fn check_granule(&self, offset: u64, bytes: usize) -> Result<(), Error> {
        let granule = self.endian.granule();
        if bytes == 0 || !bytes.is_multiple_of(granule) || !offset.is_multiple_of(granule as u64) {
            let message = format!("{bytes} bytes at {offset} are no transfer in endian mode {}", self.endian.mode());
            let help = format!("use an offset and a length that are multiples of {granule} bytes, at least {granule}");
            return Err(Error::new(Code::TransferUnit, message).help(help));
        }
        Ok(())
    }

    fn check_tag(&self, tag: u32) -> Result<(), Error> {
        let largest = self.spec().timing.tag_maximum;
        if tag <= largest {
            return Ok(());
        }
        let message = format!("tag {tag:#04x} is past {largest:#04x}, the last one");
        Err(Error::new(Code::TagRange, message).help(format!("use 1 to {largest}, or {NO_TAG} for none")))
    }
}

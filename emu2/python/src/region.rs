//! Regions of memories as Python names them.

use emu2::error::{Code, Error};
use emu2::machine::{Machine, Region, Units};

/// The region of a memory by its name.
pub(crate) fn region(machine: &Machine, memory: &str, addr: u64, count: u64, units: Units) -> Result<Region, Error> {
    let index = machine.spec().memory(memory).ok_or_else(|| {
        let known: Vec<_> = machine.spec().memories.iter().map(|m| m.name.as_str()).collect();
        Error::new(Code::UnknownMemory, format!("no memory is called `{memory}`; there are {}", known.join(", ")))
    })?;
    let region = Region { memory: index, units, addr, count };
    region.check(machine.spec())?;
    Ok(region)
}

/// The axes of a region's array: the levels of the memory that are not selected, then addresses.
pub(crate) fn shape(machine: &Machine, region: &Region) -> Vec<usize> {
    let extents = region.extents(machine.spec());
    let free = extents.iter().zip(region.units).filter(|(_, unit)| unit.is_none()).map(|(n, _)| *n as usize);
    free.chain([region.count as usize]).collect()
}

//! The DRAM address registers (DAR) of the groups. `l2bmdars` fills their buffer from L2BM, `l2bmdarw` moves words from the
//! buffer to the DAR, and MVs with `$di` read the DAR.
//!
//! guess: the most significant word of a long word comes first. Filling starts the buffer anew. Entries and words wrap.

use super::no_kernel::no_kernel;
use super::transfer_runs::transfer_runs;
use crate::asm::{FormRef, L2bmTransfer};
use crate::error::Error;
use crate::machine::{Machine, Slot};
use crate::spec::{selector_name, End, LevelName, Spec, BUFFER_STATE, WORDS_PER_LONG, WORD_BITS};

/// The low word of a long word.
const WORD_MASK: u64 = (1 << WORD_BITS) - 1;

/// Long words to write to a memory of a group.
#[derive(Debug)]
pub(super) struct GroupWrite {
    group: usize,
    slot: Slot,
    addr: u64,
    words: Vec<u64>,
}

impl GroupWrite {
    pub(super) fn write(self, machine: &mut Machine) {
        machine.state.group[self.group][self.slot.index].write(self.addr, &self.words);
    }
}

/// Whether the instruction fills the buffer (`l2bmdars`).
pub(super) fn fills_buffer(spec: &Spec, instruction: &L2bmTransfer) -> bool {
    let FormRef { transfer, form, .. } = instruction.form;
    let implied = matches!(spec.forms[transfer][form].source, End::Memory { implied: true, .. });
    spec.transfers[transfer].level == LevelName::Group && !implied
}

/// The table entries that `l2bmdarw` writes, and how far the buffer is empty after that.
pub(super) fn empty_buffer(machine: &Machine, instruction: &L2bmTransfer) -> Result<Vec<GroupWrite>, Error> {
    let spec = machine.spec();
    let form = &spec.forms[instruction.form.transfer][instruction.form.form];
    let slots = slots(machine, spec, &form.destination)?;
    let count = form.evaluate(&[]).map_or(0, |moves| moves.len() as u64);
    Ok((0..machine.state.group.len()).flat_map(|group| empty(machine, group, slots, count)).collect())
}

/// Fills the buffer of every group from L2BM, and sets the entry to which its first word goes (`l2bmdars`).
pub(super) fn fill_buffer(machine: &mut Machine, instruction: &L2bmTransfer) -> Result<(), Error> {
    let spec = machine.spec().clone();
    let form = &spec.forms[instruction.form.transfer][instruction.form.form];
    let slots = slots(machine, &spec, &form.destination)?;
    let l2b = instruction.source_unit.l2b.unwrap_or(0);
    let name = selector_name("src", LevelName::L2b);
    let runs = transfer_runs(form, &[(&name, i64::from(l2b))])?;
    let source = super::lower::memory_slot(&spec, machine.layout(), &form.source)?;
    let mut changes = Vec::new();
    for group in 0..machine.state.group.len() {
        let memory = &machine.state.l2b[group * spec.counts.l2b as usize + l2b as usize][source.index];
        for run in &runs {
            let Some(Some(from)) = run.from.first() else { continue };
            let at = |k: u64| memory[((instruction.source + from.addr + k) % memory.len() as u64) as usize];
            let words = (0..run.length).map(at).collect();
            changes.push(GroupWrite { group, slot: slots.buffer, addr: run.to.addr, words });
        }
        let words = vec![instruction.destination, 0];
        changes.push(GroupWrite { group, slot: slots.buffer, addr: slots.buffer.words - BUFFER_STATE, words });
    }
    changes.into_iter().for_each(|change| change.write(machine));
    Ok(())
}

/// Moves the next `count` words of a group's buffer to its DAR.
fn empty(machine: &Machine, group: usize, slots: DarSlots, count: u64) -> Vec<GroupWrite> {
    let memories = &machine.state.group[group];
    let room = slots.buffer.words - BUFFER_STATE;
    let mut state = [0; BUFFER_STATE as usize];
    memories[slots.buffer.index].read(room, &mut state);
    let [entry, gone] = state;
    let per_long = u64::from(WORDS_PER_LONG);
    let mut changes: Vec<GroupWrite> = (0..count)
        .map(|k| {
            let (at, mut long) = ((gone + k) % (room * per_long), [0]);
            memories[slots.buffer.index].read(at / per_long, &mut long);
            let shift = (per_long - 1 - at % per_long) as u32 * WORD_BITS;
            let words = vec![long[0] >> shift & WORD_MASK];
            GroupWrite { group, slot: slots.dar, addr: (entry + gone + k) % slots.dar.words, words }
        })
        .collect();
    changes.push(GroupWrite { group, slot: slots.buffer, addr: room + 1, words: vec![gone + count] });
    changes
}

#[derive(Clone, Copy, Debug)]
struct DarSlots {
    dar: Slot,
    buffer: Slot,
}

fn slots(machine: &Machine, spec: &Spec, end: &End) -> Result<DarSlots, Error> {
    let End::Memory { operand, .. } = end else { return Err(no_kernel("a table without a memory")) };
    let entry = &spec.operands[*operand];
    let slot = |name: &String| spec.memory(name).map(|m| machine.layout().slot(m));
    match (slot(&entry.memory), entry.buffer.as_ref().and_then(slot)) {
        (Some(dar), Some(buffer)) => Ok(DarSlots { dar, buffer }),
        _ => Err(no_kernel("a table without a buffer")),
    }
}

/// Gives the buffers of `other` the same state as those of `machine`: how much of each is used, and where the rest goes.
pub(super) fn share_state(machine: &Machine, other: &mut Machine, instruction: &L2bmTransfer) -> Result<(), Error> {
    let spec = machine.spec().clone();
    let form = &spec.forms[instruction.form.transfer][instruction.form.form];
    let buffer = slots(machine, &spec, &form.destination)?.buffer;
    for (ours, theirs) in machine.state.group.iter().zip(&mut other.state.group) {
        let mut state = [0; BUFFER_STATE as usize];
        ours[buffer.index].read(buffer.words - BUFFER_STATE, &mut state);
        theirs[buffer.index].write(buffer.words - BUFFER_STATE, &state);
    }
    Ok(())
}

/// Exchanges the DAR of two machines of one spec.
pub(super) fn swap(one: &mut Machine, other: &mut Machine, dar: Slot) {
    for (ours, theirs) in one.state.group.iter_mut().zip(&mut other.state.group) {
        std::mem::swap(&mut ours[dar.index], &mut theirs[dar.index]);
    }
}

/// How an MV finds the blocks of its DRAM side through the DAR of a group.
#[derive(Clone, Copy, Debug)]
pub(super) struct DarLookup {
    dar: Slot,
    /// Long words of a block.
    block: u64,
    /// First entry.
    entry: u64,
    /// Number of blocks that an entry covers.
    per_entry: u64,
}

impl DarLookup {
    /// The lookup for the memory of `end`. It begins at `entry` of the DAR.
    ///
    /// # Errors
    /// `NoKernel` if no DAR leads to this memory.
    pub(super) fn new(machine: &Machine, end: &End, entry: u64, per_entry: u64) -> Result<DarLookup, Error> {
        let spec = machine.spec();
        let End::Memory { operand, .. } = end else { return Err(no_kernel("a table that leads to the PEs")) };
        let name = &spec.operands[*operand].name;
        let table = spec.operands.iter().filter_map(|o| o.table.as_ref()).find(|t| t.operand == *name);
        let slot = table.and_then(|t| spec.memory(&t.memory)).map(|m| machine.layout().slot(m));
        match (table, slot) {
            (Some(of), Some(dar)) => {
                Ok(DarLookup { dar, block: spec.table_block(of), entry, per_entry: per_entry.max(1) })
            }
            _ => Err(no_kernel("an operand without a table")),
        }
    }

    /// The DAR, and the first and the last entry that a run of long words uses.
    pub(super) fn entries(&self, offset: u64, length: u64) -> (Slot, u64, u64) {
        let entry = |at: u64| self.entry + at / self.block / self.per_entry;
        (self.dar, entry(offset), entry(offset + length.max(1) - 1))
    }

    /// Calls `piece(address, from, to)` for the pieces of the run `offset .. offset + length` of a group. `from..to` counts
    /// from the start of the run.
    pub(super) fn each(
        &self,
        machine: &Machine,
        group: usize,
        offset: u64,
        length: usize,
        mut piece: impl FnMut(u64, usize, usize),
    ) {
        let mut done = 0;
        while done < length {
            let (block, inside) = ((offset + done as u64) / self.block, (offset + done as u64) % self.block);
            let entry = (self.entry + block / self.per_entry) % self.dar.words;
            let mut base = [0];
            machine.state.group[group][self.dar.index].read(entry, &mut base);
            let address = self.block * ((base[0] & WORD_MASK) + block % self.per_entry) + inside;
            let n = (length - done).min((self.block - inside) as usize);
            piece(address, done, done + n);
            done += n;
        }
    }
}

//! The DAR tables: filled from L2BM through a buffer, read by MVs.
//!
//! guess: the most significant word of a long word comes first; filling starts the buffer anew; entries and words wrap.

use super::lower::no_kernel;
use super::piece::pieces;
use crate::asm::{L2bmTransfer, Selected};
use crate::error::Error;
use crate::machine::{Machine, Slot};
use crate::spec::{selector_name, End, LevelName, Spec, BUFFER_STATE, WORDS_PER_LONG, WORD_BITS};

/// The low word of a long word.
const WORD_MASK: u64 = (1 << WORD_BITS) - 1;

/// Long words that a group's memory takes.
#[derive(Debug)]
pub(super) struct Change {
    group: usize,
    slot: Slot,
    addr: u64,
    words: Vec<u64>,
}

impl Change {
    pub(super) fn write(self, machine: &mut Machine) {
        machine.state.group[self.group][self.slot.index].write(self.addr, &self.words);
    }
}

/// What an instruction of the groups makes of the state.
pub(super) fn read(machine: &Machine, instruction: &L2bmTransfer) -> Result<Vec<Change>, Error> {
    let spec = machine.spec().clone();
    let form = &spec.forms[instruction.form.transfer][instruction.form.form];
    let slots = slots(machine, &spec, &form.destination)?;
    let implied = matches!(form.source, End::Memory { implied: true, .. });
    let groups = 0..machine.state.group.len();
    if implied {
        let count = form.evaluate(&[]).map_or(0, |moves| moves.len() as u64);
        return Ok(groups.flat_map(|group| empty(machine, group, slots, count)).collect());
    }
    let l2b = instruction.source_unit.l2b.unwrap_or(0);
    let name = selector_name("src", LevelName::L2b);
    let runs = pieces(form, &[(&name, i64::from(l2b))])?;
    let source = super::lower::memory_slot(&spec, machine.layout(), &form.source)?;
    let mut changes = Vec::new();
    for group in groups {
        let memory = &machine.state.l2b[group * spec.counts.l2b as usize + l2b as usize][source.index];
        for run in &runs {
            let Some(Some(from)) = run.from.first() else { continue };
            let at = |k: u64| memory[((instruction.source + from.addr + k) % memory.len() as u64) as usize];
            let words = (0..run.length).map(at).collect();
            changes.push(Change { group, slot: slots.buffer, addr: run.to.addr, words });
        }
        let words = vec![instruction.destination, 0];
        changes.push(Change { group, slot: slots.buffer, addr: slots.buffer.words - BUFFER_STATE, words });
    }
    Ok(changes)
}

/// The next `count` words of the buffer of a group to the table.
fn empty(machine: &Machine, group: usize, slots: Slots, count: u64) -> Vec<Change> {
    let memories = &machine.state.group[group];
    let room = slots.buffer.words - BUFFER_STATE;
    let mut state = [0; BUFFER_STATE as usize];
    memories[slots.buffer.index].read(room, &mut state);
    let [entry, gone] = state;
    let per_long = u64::from(WORDS_PER_LONG);
    let mut changes: Vec<Change> = (0..count)
        .map(|k| {
            let (at, mut long) = ((gone + k) % (room * per_long), [0]);
            memories[slots.buffer.index].read(at / per_long, &mut long);
            let shift = (per_long - 1 - at % per_long) as u32 * WORD_BITS;
            let words = vec![long[0] >> shift & WORD_MASK];
            Change { group, slot: slots.table, addr: (entry + gone + k) % slots.table.words, words }
        })
        .collect();
    changes.push(Change { group, slot: slots.buffer, addr: room + 1, words: vec![gone + count] });
    changes
}

#[derive(Clone, Copy, Debug)]
struct Slots {
    table: Slot,
    buffer: Slot,
}

fn slots(machine: &Machine, spec: &Spec, end: &End) -> Result<Slots, Error> {
    let End::Memory { operand, .. } = end else { return Err(no_kernel("a table without a memory")) };
    let entry = &spec.operands[*operand];
    let slot = |name: &String| spec.memory(name).map(|m| machine.layout().slot(m));
    match (slot(&entry.memory), entry.buffer.as_ref().and_then(slot)) {
        (Some(table), Some(buffer)) => Ok(Slots { table, buffer }),
        _ => Err(no_kernel("a table without a buffer")),
    }
}

/// How an MV finds the blocks of one side through the tables of the groups.
#[derive(Clone, Copy, Debug)]
pub(super) struct Indirect {
    table: Slot,
    /// Long words of a block.
    block: u64,
    /// First entry.
    entry: u64,
    /// Blocks of an entry.
    per_entry: u64,
}

impl Indirect {
    /// The way to the memory of `end` from `entry` of the table on.
    pub(super) fn new(machine: &Machine, end: &End, entry: u64, per_entry: u64) -> Result<Indirect, Error> {
        let spec = machine.spec();
        let End::Memory { operand, .. } = end else { return Err(no_kernel("a table that leads to the PEs")) };
        let name = &spec.operands[*operand].name;
        let table = spec.operands.iter().filter_map(|o| o.table.as_ref()).find(|t| t.operand == *name);
        let slot = table.and_then(|t| spec.memory(&t.memory)).map(|m| machine.layout().slot(m));
        match (table, slot) {
            (Some(of), Some(table)) => {
                Ok(Indirect { table, block: spec.table_block(of), entry, per_entry: per_entry.max(1) })
            }
            _ => Err(no_kernel("an operand without a table")),
        }
    }

    /// Calls `piece(address, from, to)` for the pieces of the run `offset .. offset + length` of a group, `from..to` counted
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
            let entry = (self.entry + block / self.per_entry) % self.table.words;
            let mut base = [0];
            machine.state.group[group][self.table.index].read(entry, &mut base);
            let address = self.block * ((base[0] & WORD_MASK) + block % self.per_entry) + inside;
            let n = (length - done).min((self.block - inside) as usize);
            piece(address, done, done + n);
            done += n;
        }
    }
}

/// The units of an MV's side as part of a key.
pub(super) type Units = (Selected, Selected);
